//! The descriptor of a tree: 80 bytes that a table's record, the metas and the lock file hold.

use crate::num::load_u64;
use crate::page::{Damage, Order};

use super::Ref;

/// Bytes of a stored descriptor.
pub(crate) const DESC_SIZE: usize = 80;
/// The same in 8-byte words.
pub(crate) const DESC_WORDS: usize = DESC_SIZE / 8;
/// More levels than any tree of 2^48 pages can have; descents are bounded by it.
pub(crate) const MAX_DEPTH: usize = 32;

/// The table keeps many sorted values under a key.
pub(crate) const FLAG_DUPLICATES: u16 = 1;
/// All values of the table have one size. Without `FLAG_DUPLICATES`: a tree of such values.
pub(crate) const FLAG_FIXED: u16 = 2;
/// Order of the values, coded as that of the keys.
const VALUE_ORDER_SHIFT: u32 = 2;
const VALUE_ORDER: u16 = 3 << VALUE_ORDER_SHIFT;
/// The tree's branches hold how many records lie under each child.
pub(crate) const FLAG_COUNTED: u16 = 16;
const KNOWN_FLAGS: u16 = FLAG_DUPLICATES | FLAG_FIXED | VALUE_ORDER | FLAG_COUNTED;

/// Code of the order of native integers.
pub(crate) const ORDER_INTEGER: u8 = 2;
/// Code of a caller's order.
pub(crate) const ORDER_CUSTOM: u8 = 3;

/// In the identity of a table: the page belongs to a tree of values, not to the table's own tree.
pub(crate) const OF_VALUES: u32 = 1 << 31;

/// Options of a tree that are fixed when it is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeOptions {
    /// 0 byte order, 1 reversed bytes, 2 native integers, 3 caller's comparator.
    pub(crate) order: u8,
    /// Alignment of small values: 1, 2, 4, 8 or 16.
    pub(crate) align: u8,
    /// `FLAG_DUPLICATES` and the like.
    pub(crate) flags: u16,
}

/// The order with this code, if it needs no caller's function.
fn builtin(code: u8) -> Option<Order> {
    match code {
        0 => Some(Order::Bytes),
        1 | 2 => Some(Order::Reversed),
        _ => None,
    }
}

impl TreeOptions {
    /// The order of keys, for the orders that need no caller's function.
    pub(crate) fn builtin_order(&self) -> Option<Order> {
        builtin(self.order)
    }

    /// Many values under a key.
    #[inline]
    pub(crate) fn has_duplicates(&self) -> bool {
        self.flags & FLAG_DUPLICATES != 0
    }

    /// All values of one size.
    #[inline]
    pub(crate) fn is_fixed(&self) -> bool {
        self.flags & FLAG_FIXED != 0
    }

    /// Branches count records.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.flags & FLAG_COUNTED != 0
    }

    /// Code of the order of values.
    pub(crate) fn value_order_code(&self) -> u8 {
        ((self.flags & VALUE_ORDER) >> VALUE_ORDER_SHIFT) as u8
    }

    /// The order of values, for the orders that need no caller's function.
    pub(crate) fn builtin_value_order(&self) -> Option<Order> {
        builtin(self.value_order_code())
    }

    /// The same with this order of values.
    pub(crate) fn with_value_order(mut self, code: u8) -> TreeOptions {
        self.flags = self.flags & !VALUE_ORDER | u16::from(code) << VALUE_ORDER_SHIFT;
        self
    }

    /// Options of the tree that holds the values of one key.
    pub(crate) fn of_values(&self) -> TreeOptions {
        let flags = self.flags & (FLAG_FIXED | FLAG_COUNTED);
        TreeOptions { order: self.value_order_code(), align: 1, flags }
    }
}

/// Greater counts of records or pages are damage.
const COUNT_MAX: u64 = 1 << 60;

/// Where a tree is and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeDesc {
    /// Root page; none when the tree is empty.
    pub(crate) root: Ref,
    /// Records.
    pub(crate) entries: u64,
    /// Pages on level 0.
    pub(crate) leaf_pages: u64,
    /// Pages above.
    pub(crate) branch_pages: u64,
    /// Pages of value runs.
    pub(crate) run_pages: u64,
    /// Identity of the table, in each of its pages.
    pub(crate) table: u32,
    /// Levels; 0 when empty.
    pub(crate) depth: u8,
    /// What was fixed at creation.
    pub(crate) options: TreeOptions,
    /// Size of the values where all have one; that of the first while there are any.
    pub(crate) item_size: u16,
    /// Transaction of the last change.
    pub(crate) modified: u64,
    /// The table's persistent sequence.
    pub(crate) sequence: u64,
    /// Pages of the trees that hold the values of one key each.
    pub(crate) value_pages: u64,
}

impl TreeDesc {
    /// The root and how many levels there are from it down.
    #[inline(always)]
    pub(crate) fn top(&self) -> (Ref, u8) {
        (self.root, self.depth)
    }

    /// An empty tree.
    pub(crate) fn empty(table: u32, options: TreeOptions) -> TreeDesc {
        TreeDesc {
            root: Ref::NONE,
            entries: 0,
            leaf_pages: 0,
            branch_pages: 0,
            run_pages: 0,
            table,
            depth: 0,
            options,
            item_size: 0,
            modified: 0,
            sequence: 0,
            value_pages: 0,
        }
    }

    /// The tree of one key's values: its leaves are packed.
    #[inline]
    pub(crate) fn is_packed(&self) -> bool {
        self.table & OF_VALUES != 0
    }

    /// Pages of the tree itself.
    pub(crate) fn pages(&self) -> u64 {
        self.leaf_pages.saturating_add(self.branch_pages)
    }

    /// Counts pages that were added to the tree, or taken away.
    pub(super) fn count_pages(&mut self, leaves: bool, by: i64) {
        let pages = if leaves { &mut self.leaf_pages } else { &mut self.branch_pages };
        *pages = pages.saturating_add_signed(by);
    }

    /// An empty tree for the values of one key of this table.
    pub(crate) fn of_values(&self) -> TreeDesc {
        let mut desc = TreeDesc::empty(self.table | OF_VALUES, self.options.of_values());
        desc.item_size = self.item_size;
        desc
    }

    /// As 8-byte words, for the lock file.
    pub(crate) fn to_words(self) -> [u64; DESC_WORDS] {
        let o = self.options;
        let shape = u64::from(self.table)
            | u64::from(self.depth) << 32
            | u64::from(o.order) << 40
            | u64::from(o.align) << 48;
        [
            self.root.0,
            self.entries,
            self.leaf_pages,
            self.branch_pages,
            self.run_pages,
            shape,
            u64::from(o.flags) | u64::from(self.item_size) << 16,
            self.modified,
            self.sequence,
            self.value_pages,
        ]
    }

    /// From 8-byte words; `None` when they describe no tree.
    #[inline(always)]
    pub(crate) fn from_words(w: &[u64; DESC_WORDS]) -> Option<TreeDesc> {
        let options = TreeOptions {
            order: (w[5] >> 40) as u8,
            align: (w[5] >> 48) as u8,
            flags: w[6] as u16,
        };
        let depth = (w[5] >> 32) as u8;
        let sane = matches!(options.align, 1 | 2 | 4 | 8 | 16)
            && options.order <= ORDER_CUSTOM
            && options.flags & !KNOWN_FLAGS == 0
            && w[6] >> 32 == 0
            && depth as usize <= MAX_DEPTH
            && (depth == 0) == (w[0] == 0)
            // No counter of a real tree comes near; sums need no checks.
            && (w[1] | w[2] | w[3] | w[4]) < COUNT_MAX;
        sane.then_some(TreeDesc {
            root: Ref(w[0]),
            entries: w[1],
            leaf_pages: w[2],
            branch_pages: w[3],
            run_pages: w[4],
            table: w[5] as u32,
            depth,
            options,
            item_size: (w[6] >> 16) as u16,
            modified: w[7],
            sequence: w[8],
            value_pages: w[9],
        })
    }

    /// As stored.
    pub(crate) fn to_bytes(self) -> [u8; DESC_SIZE] {
        let mut out = [0; DESC_SIZE];
        for (chunk, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(self.to_words()) {
            *chunk = word.to_le_bytes();
        }
        out
    }

    /// From stored bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<TreeDesc, Damage> {
        let mut words = [0; DESC_WORDS];
        if bytes.len() != DESC_SIZE {
            return Err(Damage("a tree descriptor has the wrong size"));
        }
        for (i, word) in words.iter_mut().enumerate() {
            *word = load_u64(bytes, i * 8).unwrap_or_default();
        }
        TreeDesc::from_words(&words).ok_or(Damage("a tree descriptor holds impossible values"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_survive_the_round_trip() {
        let mut desc = TreeDesc::empty(7, TreeOptions { order: 2, align: 8, flags: 5 });
        desc.root = Ref(99);
        desc.depth = 3;
        desc.entries = COUNT_MAX - 1;
        desc.sequence = 12;
        desc.item_size = 700;
        desc.value_pages = 3;
        assert_eq!(TreeDesc::from_bytes(&desc.to_bytes()), Ok(desc));
    }

    #[test]
    fn impossible_descriptors_are_refused() {
        let mut desc = TreeDesc::empty(1, TreeOptions { order: 0, align: 1, flags: 0 });
        desc.depth = 33;
        desc.root = Ref(5);
        assert!(TreeDesc::from_bytes(&desc.to_bytes()).is_err());
        desc.depth = 0;
        assert!(TreeDesc::from_bytes(&desc.to_bytes()).is_err());
        desc.root = Ref::NONE;
        assert!(TreeDesc::from_bytes(&desc.to_bytes()).is_ok());
        desc.run_pages = COUNT_MAX;
        assert!(TreeDesc::from_bytes(&desc.to_bytes()).is_err());
        assert!(TreeDesc::from_bytes(&[0; 79]).is_err());
        for impossible in [(4, 0), (0, 1 << 15)] {
            let (order, flags) = impossible;
            let options = TreeOptions { order, align: 1, flags };
            let bytes = TreeDesc::empty(1, options).to_bytes();
            assert!(TreeDesc::from_bytes(&bytes).is_err(), "{impossible:?}");
        }
    }
}
