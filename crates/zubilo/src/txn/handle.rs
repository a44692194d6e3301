//! Handles on tables that outlive transactions: the name, the orders with their comparators, and
//! which table it was.

use crate::error::{Error, Result};
use crate::tree::{Tree, TreeDesc};

use super::options::TableOptions;
use super::read::{ReadTable, ReadTxn};
use super::write::WriteTxn;
use super::write_table::WriteTable;

/// A table, known beyond the transaction that opened it. Opening it in another spares the caller to
/// repeat its options; it is not found when the table was dropped, renamed, or made anew.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let handle = env.read()?.handle("t")?;
/// // In any later transaction, without its options.
/// assert_eq!(env.read()?.open(&handle)?.len(), 1);
/// let mut txn = env.write()?;
/// assert_eq!(txn.open(&handle)?.len(), 1);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct TableHandle {
    name: Box<[u8]>,
    identity: u32,
    options: TableOptions,
}

impl TableHandle {
    fn new(name: &[u8], tree: &Tree) -> TableHandle {
        let options = TableOptions::of_tree(tree);
        TableHandle { name: name.into(), identity: tree.desc.table, options }
    }

    /// The table's name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The table's options, with the comparators it was opened with.
    pub fn options(&self) -> &TableOptions {
        &self.options
    }

    /// Refuses another table of the same name.
    fn check(&self, desc: &TreeDesc) -> Result<()> {
        if desc.table != self.identity {
            return Err(Error::no_such_table(&self.name));
        }
        self.options.check_same(&desc.options).map_err(|error| error.of_table(&self.name))
    }
}

impl ReadTxn {
    /// A handle on the table `name`, which must need no comparator.
    pub fn handle(&self, name: impl AsRef<[u8]>) -> Result<TableHandle> {
        let name = name.as_ref();
        Ok(TableHandle::new(name, self.table(name)?.tree()))
    }

    /// A handle on the table `name`, which must have been created with these options.
    pub fn handle_with(
        &self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<TableHandle> {
        let name = name.as_ref();
        Ok(TableHandle::new(name, self.table_with(name, options)?.tree()))
    }

    /// The table of a handle.
    pub fn open(&self, handle: &TableHandle) -> Result<ReadTable<'_>> {
        let desc = self.table_desc(&handle.name)?;
        handle.check(&desc)?;
        Ok(ReadTable::new(self.snapshot(), handle.options.tree(desc)?))
    }
}

impl WriteTxn {
    /// The table of a handle.
    pub fn open(&mut self, handle: &TableHandle) -> Result<WriteTable<'_>> {
        let table = self.open_with(&handle.name, &handle.options)?;
        let table = table.ok_or_else(|| Error::no_such_table(&handle.name))?;
        handle.check(&self.tree(table)?.desc)?;
        Ok(WriteTable { txn: self, table })
    }
}

impl WriteTable<'_> {
    /// A handle on the table. If it was created in this transaction, or in a nested level, the handle
    /// finds it elsewhere only after that has committed.
    pub fn handle(&self) -> TableHandle {
        TableHandle::new(self.txn.catalogue.name(self.table), self.tree())
    }
}
