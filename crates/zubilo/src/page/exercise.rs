//! Every function of pages on any bytes: nothing may panic, hang or read outside, results may be
//! anything. Shared by the tests of pages and by the fuzz target `pages`; not part of the engine.

use super::packed::{self, Packed};
use super::quick::{self, ByteKey, Level, NumberKey};
use super::row::{New, Node, Row, Rules};
use super::{Branch, Leaf, NewValue, NormBuf, Order, SearchKey, ValueKind};
use super::{branch, header, leaf, row};

/// Reads all that the bytes of a page may claim to hold.
pub(super) fn read_everything(page: &[u8], order: &Order, keys: &[Vec<u8>]) {
    let mut out = Vec::new();
    for key in keys {
        let mut buf = NormBuf::default();
        let key = SearchKey::new(order, key, &mut buf);
        let _ = Leaf::new(page)
            .and_then(|l| l.search(order, &key).map(|_| l.find(order, &key).is_ok()));
        let _ = Branch::new(page).and_then(|b| b.search(order, &key));
        let _ = Packed::new(page).and_then(|p| p.search(order, key.raw()));
        quickly(page, &key);
    }
    if let Ok(leaf) = Leaf::new(page) {
        let _ = (leaf.check(order), leaf.used());
        for i in (0..leaf.count()).step_by(leaf.count() / 50 + 1).chain([leaf.count()]) {
            let _ = (leaf.key(i), leaf.entry(i), leaf::entry_footprint(&leaf, i, 4));
            let _ = leaf
                .offsets()
                .get(i)
                .map(|at| super::entry_at(page, usize::from(u16::from_le_bytes(*at))));
        }
    }
    if let Ok(branch) = Branch::new(page) {
        let _ = (branch.check(order), branch.used());
        for i in (0..branch.count()).step_by(branch.count() / 50 + 1).chain([branch.count()]) {
            let _ = (branch.child(i), branch.entry_size(i), branch.separator(i, &mut out));
            let _ = branch.records(i);
        }
    }
    if let Ok(packed) = Packed::new(page) {
        let _ = (packed.check(order), packed::check_header(page, order), packed.len_in_record());
        let _ = (packed.item(0), packed.item(packed.count()), packed.entry_size(1));
        packed::to_record(&packed, &mut out);
    }
    let _ = header::verify(page, 3);
    super::prefetch(page.as_ptr());
}

/// The quick parse.
fn quickly(page: &[u8], key: &SearchKey<'_>) {
    let (norm, raw) = (ByteKey::new(key.norm()), ByteKey::new(key.raw()));
    let number = <[u8; 8]>::try_from(key.norm()).map(|norm| NumberKey(u64::from_be_bytes(norm)));
    if let Some(level) = Level::of_branches(header::level(page).saturating_add(1)).next() {
        let _ = (quick::way(page, level, &norm), quick::child_among_many(page, level, &norm));
        let _ = number.map(|number| quick::way(page, level, &number));
    }
    let _ = quick::place(page, &norm).map(|at| quick::value_at(page, at, &raw));
    let _ = number.map(|number| quick::place(page, &number));
}

/// Two pages and arguments for the mutators; each runs on copies, and what it leaves is read.
struct Trial<'t> {
    page: &'t [u8],
    other: &'t [u8],
    order: &'t Order,
    args: (usize, usize),
    key: &'t [u8],
}

impl Trial<'_> {
    fn on<T>(&self, change: impl FnOnce(&mut [u8], &mut [u8]) -> T) {
        let (mut page, mut other) = (self.page.to_vec(), self.other.to_vec());
        change(&mut page, &mut other);
        let keys = [self.key.to_vec()];
        read_everything(&page, self.order, &keys);
        read_everything(&other, self.order, &keys);
    }

    fn leaves(&self) {
        let (order, key, (i, j)) = (self.order, self.key, self.args);
        let (low, high) = (i.min(j), i.max(j));
        let kind = [ValueKind::Inline, ValueKind::Tree][i % 2];
        let (align, len) = (1 << (j % 5), (i * 31 + j) % 700);
        let bytes = vec![7; len];
        let (rules, value) = (Rules::of_leaves(order, align), NewValue::of(kind, &bytes));
        self.on(|p, _| leaf::insert(p, i, &rules, key, value));
        self.on(|p, _| leaf::set_value(p, i, &rules, value));
        self.on(|p, _| leaf::resize_value(p, i, order, len).is_ok());
        self.on(|p, _| leaf::insert_surely(p, i, &rules, key, value));
        self.on(|p, _| leaf::value_mut(p, i).map(|v| v.fill(9)));
        self.on(|p, _| leaf::remove(p, i));
        self.on(|p, _| leaf::remove_range(p, low, high));
        self.on(|p, _| leaf::rebuild(p, order, align));
    }

    fn branches(&self) {
        let (key, (i, j)) = (self.key, self.args);
        let (low, high) = (i.min(j), i.max(j));
        self.on(|p, _| branch::insert(p, i, key, 5));
        self.on(|p, _| branch::remove(p, i));
        self.on(|p, _| branch::remove_range(p, low, high));
        self.on(|p, _| branch::set_child(p, i, 5));
        self.on(|p, _| branch::set_records(p, i, 5));
        self.on(|p, _| branch::set_separator(p, i, key));
        let _ = branch::split_point(self.page, i, key.len(), j % 2 == 0);
    }

    fn packed(&self) {
        let (key, (i, j)) = (self.key, self.args);
        let (low, high) = (i.min(j), i.max(j));
        self.on(|p, _| packed::insert(p, i, &key[..key.len().min(8)]));
        self.on(|p, _| packed::remove(p, i));
        self.on(|p, _| packed::remove_range(p, low, high));
    }
}

impl Trial<'_> {
    /// What neighbours give one another.
    fn neighbours(&self) {
        let (order, key, (i, j)) = (self.order, self.key, self.args);
        let (low, high) = (i.min(j), i.max(j));
        let rules = Rules { order, align: 1 << (j % 5), between: key };
        self.on(|p, q| row::shift(p, q, i, &rules));
        self.on(|p, q| row::take(p, j % 2 == 0, q, (low, high), &rules));
        self.on(|p, q| header::init_like(q, p).and_then(|()| row::shift(p, q, i, &rules)));
        for level in 0..2 {
            let node = |page| Node::on_level(page, level);
            let (Ok(left), Ok(right)) = (node(self.page), node(self.other)) else { continue };
            for new in [None, Some(New { key, size: j * 9, index: i })] {
                let mut out = Vec::new();
                let row = Row::new(left, right, rules, new);
                let cuts = [row.even(self.page.len()), row.filled(j * 50)];
                for cut in cuts.into_iter().flatten().flatten().chain([row.cut_at(i)]) {
                    let _ = (row.is_cut(cut), row.separator(cut, &mut out));
                }
            }
        }
    }
}

/// Runs each change of each kind of page on copies of two pages.
pub(super) fn change_everything(
    page: &[u8],
    other: &[u8],
    order: &Order,
    args: (usize, usize),
    key: &[u8],
) {
    let trial = Trial { page, other, order, args, key };
    trial.leaves();
    trial.branches();
    trial.packed();
    trial.neighbours();
}

/// Two pages with arguments from the bytes of a fuzzer: order, two places in pages, size of a page,
/// length of a key, the key; then for each page what stands at its start and at its end. Between is
/// nothing, as in pages that are not full.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_pages(data: &[u8]) {
    let Some((&[order, i, j, size, key_len], rest)) = data.split_first_chunk() else { return };
    let orders = [Order::Bytes, Order::Reversed, Order::Custom(std::sync::Arc::new(by_length))];
    let order = &orders[usize::from(order) % orders.len()];
    let size = if size % 8 == 7 { 16384 } else { 4096 };
    let (key, mut rest) = rest.split_at(rest.len().min(usize::from(key_len) * 4));
    let mut page = || {
        let mut page = vec![0; size];
        for at_end in [false, true] {
            let Some((len, bytes)) = rest.split_first_chunk() else { break };
            let len = usize::from(u16::from_le_bytes(*len)).min(bytes.len()).min(size);
            let (bytes, left) = bytes.split_at(len);
            let start = if at_end { size - len } else { 0 };
            page[start..start + len].copy_from_slice(bytes);
            rest = left;
        }
        page
    };
    let (page, other) = (page(), page());
    read_everything(&page, order, &[key.to_vec(), Vec::new()]);
    change_everything(&page, &other, order, (i.into(), j.into()), key);
    read_set(key, order);
}

/// What a small set of values may claim to hold.
#[cfg(feature = "fuzz")]
fn read_set(bytes: &[u8], order: &Order) {
    let Ok(set) = Packed::in_record(bytes) else { return };
    for i in 0..=set.count() {
        let found = set.item(i).map(|item| set.search(order, item));
        std::hint::black_box(found.is_ok());
        std::hint::black_box(packed::remove_in_record(&mut bytes.to_vec(), i).is_ok());
        let mut grown = [bytes, &[0; 9]].concat();
        std::hint::black_box(packed::insert_in_record(&mut grown, bytes.len(), i, &[1; 7]).is_ok());
    }
    let mut page = vec![0; 4096];
    if packed::init(&mut page, 1, order.is_custom(), set.item_size()) {
        std::hint::black_box(packed::fill_from_record(&mut page, bytes).is_ok());
    }
    std::hint::black_box((set.of_one_size(), set.check(order).is_ok()));
}

/// An order in which neither prefixes nor heads help.
#[cfg(feature = "fuzz")]
fn by_length(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| b.cmp(a))
}
