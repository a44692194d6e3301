//! Tables by number: what a write transaction has opened can be named again without its name.

use crate::error::{Error, Result};

use super::options::TableOptions;
use super::write::WriteTxn;
use super::write_table::WriteTable;

/// A table that a write transaction has opened, for use in that transaction only; spares the look-up
/// of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId {
    txn: u64,
    table: usize,
    identity: u32,
}

impl WriteTxn {
    /// The table `name`, to be named by its number from here on.
    pub fn table_id(&mut self, name: impl AsRef<[u8]>) -> Result<TableId> {
        Ok(self.table(name)?.id())
    }

    /// As [`WriteTxn::table_id`], for a table that was created with these options.
    pub fn table_id_with(
        &mut self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<TableId> {
        Ok(self.table_with(name, options)?.id())
    }

    pub(super) fn id_of(&self, table: usize) -> TableId {
        let identity = self.tree(table).desc.table;
        TableId { txn: self.cursors.txn, table, identity }
    }

    /// The table that an identity names.
    pub fn at(&mut self, id: TableId) -> Result<WriteTable<'_>> {
        let index = self.index_of(id)?;
        Ok(WriteTable { txn: self, index })
    }

    pub(super) fn index_of(&self, id: TableId) -> Result<usize> {
        self.check()?;
        let known = self.tables.get(id.table).is_some_and(|t| {
            !t.gone && t.tree.desc.table == id.identity && id.txn == self.cursors.txn
        });
        if known { Ok(id.table) } else { Err(Error::NoSuchTable) }
    }
}
