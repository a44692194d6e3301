//! Read transactions, and tables that know neither their transaction nor its snapshot.

use crate::error::{Error, Result};
use crate::page::{Order, ValueKind};
use crate::tree::place::{Place, TreeView};
use crate::tree::{Tree, batch, lookup};
use crate::txn::options::unordered_tree;
use crate::txn::read::{ReadTable, ReadTxn};

use super::{Named, RawCompare, TableInfo, find, set_orders, value_of};

/// A table of a read transaction; good as long as the transaction shows the same snapshot.
#[derive(Clone)]
pub struct RawTable {
    tree: Tree,
}

impl RawTable {
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What is known of it.
    pub fn info(&self) -> TableInfo {
        TableInfo::of(&self.tree.desc)
    }

    /// Takes comparators, where the table was made for a caller's; without one such a table is in
    /// byte order for look-ups.
    pub fn set_orders(&mut self, keys: Option<RawCompare>, values: Option<RawCompare>) {
        set_orders(&mut self.tree, keys, values);
    }
}

#[doc(hidden)]
impl ReadTxn {
    /// The table as others use it.
    pub(crate) fn raw_table(&self, table: &RawTable) -> ReadTable<'_> {
        ReadTable::new(self.snapshot(), table.tree.clone())
    }

    /// As `WriteTxn::raw_counter`.
    pub fn raw_counter(&self) -> u64 {
        self.root().main.sequence
    }

    /// The tree of names.
    pub fn raw_names(&self) -> RawTable {
        RawTable { tree: Tree::main(self.root().main) }
    }

    /// Hands out the plain records of the tree of names, in order.
    pub fn raw_records<E: From<Error>>(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let pages = self.snapshot();
        let tree = TreeView::new(pages, &self.root().main, &Order::Bytes);
        let mut place = Place::default();
        place.first(&tree)?;
        while let Some((at, entry)) = place.entry(&tree)? {
            if entry.kind != ValueKind::Tree {
                each(entry.key, lookup::value_of(&pages, at, &entry)?)?;
            }
            place.next(&tree)?;
        }
        Ok(())
    }

    /// What `name` stands for.
    pub fn raw_find(&self, name: &[u8]) -> Result<Named<RawTable>> {
        let names = Tree::main(self.root().main);
        Ok(match find(&self.snapshot(), &names, name)? {
            Named::Nothing => Named::Nothing,
            Named::Record => Named::Record,
            Named::Table(desc) => {
                let mut tree = unordered_tree(desc);
                set_orders(&mut tree, None, None);
                Named::Table(RawTable { tree })
            }
        })
    }

    /// The value under `key`, of several the first.
    #[inline]
    pub fn raw_get(&self, table: &RawTable, key: &[u8]) -> Result<Option<&[u8]>> {
        let (pages, tree) = (self.snapshot(), &table.tree);
        lookup::get_or(&pages, &tree.desc, &tree.order, key, |pages, at, entry| {
            value_of(pages, tree, at, entry)
        })
    }

    /// Looks many keys up at once and hands each value to `found` with the index of its key.
    pub fn raw_get_many<'t>(
        &'t self,
        table: &RawTable,
        keys: &[&[u8]],
        found: impl FnMut(usize, Option<&'t [u8]>),
    ) -> Result<()> {
        let tree = &table.tree;
        batch::get_many(&self.snapshot(), &tree.desc, &tree.order, keys, found)
    }

    /// Bytes up to the last page ever used.
    pub fn raw_used(&self) -> u64 {
        self.root().end << self.env().shift
    }

    /// Ends the pin of the snapshot and keeps the reader slot, until [`ReadTxn::raw_renew`].
    ///
    /// # Safety
    /// Writers may overwrite what the snapshot shows from now on: nothing is read of it, through this
    /// transaction or through what was made from it, before `raw_renew` has succeeded.
    pub unsafe fn raw_park(&mut self) {
        self.unpin();
    }

    /// After [`ReadTxn::raw_park`]: the newest commit. An error leaves it parked.
    pub fn raw_renew(&mut self) -> Result<()> {
        self.repin().inspect_err(|_| self.unpin())
    }
}
