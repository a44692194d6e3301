//! Reading leaves.

use std::cmp::Ordering;

use crate::num::{load_u16, load_u32};

use super::key::{NormBuf, Order, SearchKey, head_after, same};
use super::slots::{Slots, arrays_at};
use super::{Damage, HEADER, Kind, header};

/// Bytes before a record's key.
pub(super) const RECORD_HEAD: usize = 4;
const LEN_BITS: u32 = 14;
/// Longest key that a record's field can hold.
pub(super) const KEY_LEN_MAX: usize = (1 << LEN_BITS) - 1;

/// What the value bytes of an entry are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ValueKind {
    /// The value itself.
    Inline = 0,
    /// The reference of a value run.
    Run = 1,
    /// The descriptor of a tree.
    Tree = 2,
    /// A small set of duplicates.
    Duplicates = 3,
}

impl ValueKind {
    fn of(bits: u16) -> ValueKind {
        match bits & 3 {
            0 => ValueKind::Inline,
            1 => ValueKind::Run,
            2 => ValueKind::Tree,
            _ => ValueKind::Duplicates,
        }
    }
}

/// A record of a leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'p> {
    pub(crate) key: &'p [u8],
    pub(crate) kind: ValueKind,
    pub(crate) value: &'p [u8],
}

/// A leaf, its arrays checked.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'p> {
    slots: Slots<'p>,
}

impl<'p> Leaf<'p> {
    /// The leaf in `page`, which must say that it is on level 0.
    #[inline(always)]
    pub(crate) fn on_level_0(page: &'p [u8]) -> Result<Leaf<'p>, Damage> {
        if header::kind_and_level(page) != (Kind::Leaf as u8, 0) {
            return Err(Damage("expected a leaf page"));
        }
        Ok(Leaf { slots: Slots::new(page)? })
    }

    #[inline(always)]
    pub(crate) fn new(page: &'p [u8]) -> Result<Leaf<'p>, Damage> {
        if page.get(24) != Some(&(Kind::Leaf as u8)) {
            return Err(Damage("expected a leaf page"));
        }
        Ok(Leaf { slots: Slots::new(page)? })
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.slots.count()
    }

    /// Index of `key`, or where it would be inserted.
    #[inline(always)]
    pub(crate) fn search(
        &self,
        order: &Order,
        key: &SearchKey<'_>,
    ) -> Result<Result<usize, usize>, Damage> {
        if self.slots.custom {
            return self.search_between(order, key.raw(), 0, self.count());
        }
        let head = match self.slots.head_for(key.norm()) {
            Ok(head) => head,
            Err(Ordering::Less) => return Ok(Err(0)),
            Err(_) => return Ok(Err(self.count())),
        };
        let low = self.slots.lower(head);
        if low >= self.count() || self.slots.head(low) != head {
            return Ok(Err(low));
        }
        match order.compare(key.raw(), self.key(low)?) {
            Ordering::Equal => Ok(Ok(low)),
            Ordering::Less => Ok(Err(low)),
            Ordering::Greater => {
                let high = self.slots.upper(head);
                self.search_between(order, key.raw(), low + 1, high)
            }
        }
    }

    /// Where `key` belongs, as far as the first and the last head show: before all entries, after
    /// them, or neither is sure.
    #[inline(always)]
    pub(crate) fn side(&self, key: &SearchKey<'_>) -> Ordering {
        if self.slots.custom || self.count() == 0 {
            return Ordering::Equal;
        }
        match self.slots.head_for(key.norm()) {
            Ok(head) if head < self.slots.head(0) => Ordering::Less,
            Ok(head) if head > self.slots.head(self.count() - 1) => Ordering::Greater,
            Ok(_) => Ordering::Equal,
            Err(side) => side,
        }
    }

    /// The entry under `key`. As `search`, but the record is read only once, and a key is rejected
    /// from another only where they differ. Whether the key shares the page's prefix is not asked:
    /// a key that does not is no key of the page, whatever its head would be.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        order: &Order,
        key: &SearchKey<'_>,
    ) -> Result<Option<Entry<'p>>, Damage> {
        if !self.slots.custom {
            let head = self.slots.head_after_prefix(key.norm());
            let low = self.slots.lower(head);
            if low >= self.count() || self.slots.head(low) != head {
                return Ok(None);
            }
            let entry = self.entry(low)?;
            if same(entry.key, key.raw()) {
                return Ok(Some(entry));
            }
        }
        self.find_slowly(order, key)
    }

    /// Several keys with one head, or no heads at all.
    /// By value, see `Branch`.
    #[cold]
    fn find_slowly(self, order: &Order, key: &SearchKey<'_>) -> Result<Option<Entry<'p>>, Damage> {
        match self.search(order, key)? {
            Ok(i) => self.entry(i).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The bytes of the whole page.
    #[inline(always)]
    pub(crate) fn page(&self) -> &'p [u8] {
        self.slots.page
    }

    /// The offsets of all records, for `entry_at`.
    #[inline(always)]
    pub(crate) fn offsets(&self) -> &'p [[u8; 2]] {
        self.slots.offsets()
    }

    /// Binary search by whole keys among entries [low, high).
    fn search_between(
        self,
        order: &Order,
        key: &[u8],
        mut low: usize,
        mut high: usize,
    ) -> Result<Result<usize, usize>, Damage> {
        while low < high {
            let middle = low + (high - low) / 2;
            match order.compare(key, self.key(middle)?) {
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Less => high = middle,
                Ordering::Greater => low = middle + 1,
            }
        }
        Ok(Err(low))
    }

    /// Header of a record: key length, kind, value length.
    #[inline(always)]
    fn record(&self, i: usize) -> Result<(usize, usize, ValueKind, usize), Damage> {
        let at = self.slots.offset(i)?;
        let fields = load_u16(self.slots.page, at).zip(load_u16(self.slots.page, at + 2));
        let (key, value) = fields.ok_or(Damage("a record leads outside its page"))?;
        let len = usize::from(key & ((1 << LEN_BITS) - 1));
        Ok((at, len, ValueKind::of(key >> LEN_BITS), usize::from(value)))
    }

    #[inline(always)]
    pub(crate) fn key(&self, i: usize) -> Result<&'p [u8], Damage> {
        let (at, len, ..) = self.record(i)?;
        let start = at + RECORD_HEAD;
        self.slots.page.get(start..start + len).ok_or(Damage("a key leads outside its page"))
    }

    #[inline(always)]
    pub(crate) fn entry(&self, i: usize) -> Result<Entry<'p>, Damage> {
        entry_at(self.slots.page, self.slots.offset(i)?)
    }

    /// Lengths of an entry's key and value.
    #[inline(always)]
    pub(super) fn lengths(&self, i: usize) -> Result<(usize, usize), Damage> {
        self.record(i).map(|(_, key_len, _, value_len)| (key_len, value_len))
    }

    /// Head and offset of each of the entries [from, to).
    #[inline(always)]
    pub(super) fn each_slot(
        &self,
        from: usize,
        to: usize,
    ) -> Result<impl Iterator<Item = (u32, usize)> + use<'p>, Damage> {
        let slots = self.slots.heads().get(from..to).zip(self.slots.offsets().get(from..to));
        let (heads, offsets) = slots.ok_or(Damage("index past the last entry"))?;
        Ok(heads.iter().zip(offsets).map(|(head, offset)| {
            (u32::from_le_bytes(*head), usize::from(u16::from_le_bytes(*offset)))
        }))
    }

    pub(super) fn head(&self, i: usize) -> u32 {
        self.slots.head(i)
    }

    /// The head that a key with this normal form would have, if it shares the page's prefix and the
    /// page has heads.
    #[inline(always)]
    pub(super) fn head_of(&self, norm: &[u8]) -> Option<u32> {
        if self.slots.custom { None } else { self.slots.head_for(norm).ok() }
    }

    /// Position of the value in the page, and its length.
    pub(super) fn value_range(&self, i: usize) -> Result<std::ops::Range<usize>, Damage> {
        let (at, key_len, _, value_len) = self.record(i)?;
        let start = at + RECORD_HEAD + key_len;
        if start + value_len > self.slots.page.len() {
            return Err(Damage("a record leads outside its page"));
        }
        Ok(start..start + value_len)
    }

    pub(super) fn offset(&self, i: usize) -> Result<usize, Damage> {
        self.slots.offset(i)
    }

    pub(crate) fn prefix(&self) -> &'p [u8] {
        self.slots.prefix()
    }

    /// Bytes in use after the header: prefix, slots and live records.
    pub(crate) fn used(&self) -> usize {
        self.slots.prefix().len() + self.used_without_prefix()
    }

    pub(super) fn used_without_prefix(&self) -> usize {
        let page = self.slots.page;
        let heap = page.len().saturating_sub(header::heap(page) as usize);
        6 * self.count() + heap.saturating_sub(header::garbage(page) as usize)
    }

    /// Checks everything: order, heads, prefix, that records do not overlap, the count of garbage.
    pub(crate) fn check(&self, order: &Order) -> Result<(), Damage> {
        let page = self.slots.page;
        if self.slots.custom != order.is_custom() {
            return Err(Damage("the page was written for another kind of order"));
        }
        let mut spans = Vec::with_capacity(self.count());
        let mut buf = NormBuf::default();
        for i in 0..self.count() {
            let entry = self.entry(i)?;
            let norm = SearchKey::new(order, entry.key, &mut buf).norm();
            if !self.slots.custom {
                if !norm.starts_with(self.slots.prefix()) {
                    return Err(Damage("a key without the page's prefix"));
                }
                if head_after(norm, self.slots.prefix().len()) != self.slots.head(i) {
                    return Err(Damage("a head that is not its key's"));
                }
            }
            if i > 0 && !order.compare(self.key(i - 1)?, entry.key).is_lt() {
                return Err(Damage("keys are not in order"));
            }
            let at = self.offset(i)?;
            spans.push((at, at + RECORD_HEAD + entry.key.len() + entry.value.len()));
        }
        let arrays_end = HEADER + self.slots.prefix().len() + 6 * self.count();
        super::slots::check_heap(page, arrays_end, &mut spans)
    }
}

/// The record at a position in a page, as it is stored, and the length of its key.
#[inline(always)]
pub(super) fn record_at(page: &[u8], at: usize) -> Result<(&[u8], usize), Damage> {
    let record = load_u32(page, at).and_then(|fields| {
        let key_len = fields as usize & KEY_LEN_MAX;
        let record = page.get(at..)?.get(..RECORD_HEAD + key_len + (fields as usize >> 16))?;
        Some((record, key_len))
    });
    record.ok_or(Damage("a record leads outside its page"))
}

/// Record `i` of a leaf that was looked at before and had `count` records.
#[inline(always)]
pub(crate) fn entry_of(page: &[u8], count: usize, i: usize) -> Option<Entry<'_>> {
    if i >= count {
        return None;
    }
    let offset = load_u16(page, arrays_at(page) + 4 * count + 2 * i)?;
    entry_at(page, usize::from(offset)).ok()
}

/// The record at a position in a page.
#[inline(always)]
pub(crate) fn entry_at(page: &[u8], at: usize) -> Result<Entry<'_>, Damage> {
    let fields = load_u32(page, at);
    let parts = fields.and_then(|fields| {
        let (key_len, value_len) = ((fields as usize) & KEY_LEN_MAX, fields as usize >> 16);
        let both = page.get(at + RECORD_HEAD..at + RECORD_HEAD + key_len + value_len)?;
        let (key, value) = both.split_at_checked(key_len)?;
        Some(Entry { key, kind: ValueKind::of((fields >> LEN_BITS) as u16), value })
    });
    match parts {
        Some(entry) => Ok(entry),
        None => Err(Damage("a record leads outside its page")),
    }
}

/// The first field of a record.
pub(super) fn key_field(len: usize, kind: ValueKind) -> u16 {
    (len as u16 & ((1 << LEN_BITS) - 1)) | (kind as u16) << LEN_BITS
}
