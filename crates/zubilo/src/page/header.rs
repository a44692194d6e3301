//! The 48-byte header of every tree page.

use twox_hash::XxHash3_64;

use crate::num::{load_u16, load_u32, load_u64, store_u16, store_u32, store_u64};
use crate::planted::{Bug, has};

use super::{Damage, FLAG_COUNTED, FLAG_CUSTOM, FLAG_DIRTY_RUNS, HEADER, Kind};

const NUMBER: usize = 8;
const BIRTH: usize = 16;
const KIND: usize = 24;
const LEVEL: usize = 25;
const FLAGS: usize = 26;
const COUNT: usize = 28;
const PREFIX: usize = 30;
const HEAP: usize = 32;
const GARBAGE: usize = 36;
const TABLE: usize = 40;
/// Packed leaves: size of the items. Others: the opening.
const ITEM: usize = 44;

macro_rules! field {
    ($(#[$doc:meta])* $get:ident, $set:ident, $load:ident, $store:ident, $at:ident, $int:ty) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $get(page: &[u8]) -> $int {
            $load(page, $at).unwrap_or(0)
        }

        #[allow(dead_code)]
        #[inline(always)]
        pub(super) fn $set(page: &mut [u8], value: $int) {
            let stored = $store(page, $at, value);
            debug_assert!(stored, "a page is longer than its header");
        }
    };
}

field!(/** Number of the page. */ number, set_number, load_u64, store_u64, NUMBER, u64);
field!(/** Transaction that wrote it. */ birth, set_birth, load_u64, store_u64, BIRTH, u64);
field!(/** Entries. */ count, set_count, load_u16, store_u16, COUNT, u16);
field!(/** Length of the common prefix. */ prefix_len, set_prefix_len, load_u16, store_u16, PREFIX, u16);
field!(/** Lowest used byte of the heap. */ heap, set_heap, load_u32, store_u32, HEAP, u32);
field!(/** Dead bytes in the heap. */ garbage, set_garbage, load_u32, store_u32, GARBAGE, u32);
field!(/** Table the page belongs to. */ table, set_table, load_u32, store_u32, TABLE, u32);
field!(/** Size of a packed leaf's items. */ item_size, set_item_size, load_u32, store_u32, ITEM, u32);
field!(/** The open that wrote a branch or an ordinary leaf; 0 where that is not known. */ opening, set_opening, load_u32, store_u32, ITEM, u32);
field!(/** Flag bits. */ flags, set_flag_bits, load_u16, store_u16, FLAGS, u16);

/// Kind of the page.
#[inline(always)]
pub(crate) fn kind(page: &[u8]) -> Result<Kind, Damage> {
    match page.get(KIND) {
        Some(1) => Ok(Kind::Branch),
        Some(2) => Ok(Kind::Leaf),
        Some(3) => Ok(Kind::Packed),
        _ => Err(Damage("an unknown kind of page")),
    }
}

/// Kind and level, as they stand there: one load, for descents.
#[inline(always)]
pub(super) fn kind_and_level(page: &[u8]) -> (u8, u8) {
    let both = load_u16(page, KIND).unwrap_or(0);
    (both as u8, (both >> 8) as u8)
}

/// Number of entries and length of the prefix of a usual page.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) count: usize,
    pub(super) prefix_len: usize,
}

impl Shape {
    /// No usual page has more entries, nor a longer prefix: both have nine bits.
    pub(super) const MOST: usize = 511;

    /// Of a usual page of this kind, with its level in the second byte, that has a prefix and heads.
    /// One load and one compare, for look-ups.
    #[inline(always)]
    pub(super) fn of(page: &[u8], kind_and_level: u32) -> Option<Shape> {
        const NO_MATTER: u64 = ((FLAG_DIRTY_RUNS | FLAG_COUNTED) as u64) << 16;
        const NUMBERS: u64 = (Shape::MOST as u64) << 32 | (Shape::MOST as u64) << 48;
        let fields = load_u64(page, KIND)?;
        let count = (fields >> 32) as usize & Shape::MOST;
        let prefix_len = (fields >> 48) as usize & Shape::MOST;
        // What is left shows what kind of page it is, and that the numbers are whole.
        let is_usual = fields & !(NO_MATTER | NUMBERS) == u64::from(kind_and_level);
        if is_usual { Some(Shape { count, prefix_len }) } else { None }
    }

    /// The same of any such page, as large as it may be.
    pub(super) fn of_any(page: &[u8], kind_and_level: u32) -> Option<Shape> {
        let is_it = u32::from(load_u16(page, KIND)?) == kind_and_level && !is_custom(page);
        let (count, prefix_len) = (usize::from(count(page)), usize::from(prefix_len(page)));
        is_it.then_some(Shape { count, prefix_len })
    }
}

/// Level of the page: 0 for leaves.
#[inline(always)]
pub(crate) fn level(page: &[u8]) -> u8 {
    page.get(LEVEL).copied().unwrap_or(u8::MAX)
}

/// Whether a branch stores how many records lie under each child.
#[inline]
pub(crate) fn is_counted(page: &[u8]) -> bool {
    flags(page) & FLAG_COUNTED != 0
}

/// Whether the page is of a table with a caller's order.
#[inline]
pub(super) fn is_custom(page: &[u8]) -> bool {
    flags(page) & FLAG_CUSTOM != 0
}

/// Sets all flag bits.
pub(crate) fn set_flags(page: &mut [u8], flags: u16) {
    set_flag_bits(page, flags);
}

/// Makes `page` an empty page of its kind.
///
/// What lay after the header stays until it is overwritten: a page's memory must come zeroed from
/// the allocator, so that only bytes of this store can reach its file.
pub(crate) fn init(page: &mut [u8], kind: Kind, level: u8, table: u32, custom: bool) {
    let len = page.len() as u32;
    if let Some(header) = page.get_mut(..HEADER) {
        header.fill(0);
        header[KIND] = kind as u8;
        header[LEVEL] = level;
    }
    set_flag_bits(page, if custom { FLAG_CUSTOM } else { 0 });
    set_heap(page, len);
    set_table(page, table);
}

/// Makes `page` an empty page like another one.
pub(crate) fn init_like(page: &mut [u8], like: &[u8]) -> Result<(), Damage> {
    init(page, kind(like)?, level(like), table(like), false);
    set_flag_bits(page, flags(like));
    set_item_size(page, item_size(like));
    Ok(())
}

/// Counts an entry whose record now starts the heap, with so much padding after it.
#[inline(always)]
pub(super) fn append(page: &mut [u8], count: usize, heap: usize, padding: usize) {
    set_count(page, count as u16);
    set_heap(page, heap as u32);
    if padding > 0 {
        let sum = garbage(page).saturating_add(padding as u32);
        set_garbage(page, sum);
    }
}

/// The stored checksum.
pub(crate) fn checksum(page: &[u8]) -> u64 {
    load_u64(page, 0).unwrap_or(0)
}

/// Who wrote a page: birth and opening together name one commit among all that ever had its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The transaction.
    pub(crate) birth: u64,
    /// The number by chance of the open that it was written in, not 0.
    pub(crate) opening: u32,
}

/// Gives the page its place in the file: number, origin, checksum. Pages that refer to nothing name no opening.
pub(crate) fn seal(page: &mut [u8], number: u64, by: Origin) -> u64 {
    set_number(page, number);
    set_birth(page, by.birth);
    if page.get(KIND) != Some(&(Kind::Packed as u8)) {
        set_opening(page, by.opening);
    }
    let sum = XxHash3_64::oneshot(page.get(8..).unwrap_or_default());
    let stored = store_u64(page, 0, sum);
    debug_assert!(stored);
    sum
}

/// Compares number and checksum.
pub(crate) fn verify(page: &[u8], expected: u64) -> Result<(), Damage> {
    if number(page) != expected {
        return Err(Damage("the page has another page's number"));
    }
    let sum = XxHash3_64::oneshot(page.get(8..).unwrap_or_default());
    if checksum(page) != sum && !has(Bug::PageNotVerified) {
        return Err(Damage("the page's checksum is wrong"));
    }
    Ok(())
}
