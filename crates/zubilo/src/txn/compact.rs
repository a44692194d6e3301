//! A write transaction as a part of compaction: it walks on from where the part before ended, and
//! its commit takes the lowest free pages there are.

use crate::error::Result;
use crate::page::{Damage, Order, ValueKind};
use crate::tree::compact::{Budget, Part, Resume, Task, advance};
use crate::tree::lookup;
use crate::tree::place::{Place, TreeView};

use super::catalogue::TableRef;
use super::options::TableOptions;
use super::write::WriteTxn;

/// Plain records between the names of tables that are passed from one look at the clock to the next.
const LOOKS: u64 = 1024;

/// Where a walk through all tables stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// The named table; the main tree comes first.
    table: Option<Vec<u8>>,
    resume: Resume,
}

/// The space map as the transaction found it, in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// The first page never used.
    pub(crate) end: u64,
    pub(crate) free: u64,
    /// Replaced, but somebody may still read them.
    pub(crate) retired: u64,
    /// Where the last page of the free-space log ends.
    pub(crate) log_end: u64,
}

impl Account {
    /// Pages in use.
    pub(crate) fn live(&self) -> u64 {
        self.end.saturating_sub(self.free + self.retired)
    }
}

/// The table and whether it can be walked through; its options with comparators, for tables that need
/// some.
pub(crate) type Comparators<'o> = &'o [(Vec<u8>, TableOptions)];

impl WriteTxn {
    /// Begins a part of compaction; gives the account with free tail pages taken off.
    pub(crate) fn begin_compaction(&mut self) -> Result<Account> {
        self.check()?;
        self.space.begin_compaction()
    }

    /// The free-space log is to begin anew, if there are free pages for it before page `end`.
    pub(crate) fn rebase_log(&mut self, end: u64) {
        self.space.rebase_log(end);
    }

    /// Whether the commit would lower the end; it will then, whatever else it does.
    pub(crate) fn cut(&mut self) -> bool {
        self.space.cut()
    }

    /// Whether the transaction has anything to commit.
    pub(crate) fn is_changed(&self) -> bool {
        self.has_changes()
    }

    /// Goes on with a walk; true at its end. Tables whose order is not known are named in `skipped`.
    pub(crate) fn compact_part(
        &mut self,
        task: Task,
        walk: &mut Walk,
        budget: &mut Budget,
        comparators: Comparators<'_>,
        skipped: &mut Vec<Vec<u8>>,
    ) -> Result<bool> {
        loop {
            let table = match &walk.table {
                None => Some(TableRef::CATALOGUE),
                Some(name) => self.table_to_compact(name, comparators, skipped)?,
            };
            if let Some(table) = table
                && !self.guarded(|txn| txn.compact_table(table, task, &mut walk.resume, budget))?
            {
                return Ok(false);
            }
            let next = self.table_behind(walk.table.as_deref(), budget)?;
            if next.is_none() {
                return Ok(true);
            }
            *walk = Walk { table: next, resume: Resume::default() };
            if budget.is_spent(&self.ws) {
                return Ok(false);
            }
        }
    }

    fn compact_table(
        &mut self,
        table: TableRef,
        task: Task,
        resume: &mut Resume,
        budget: &mut Budget,
    ) -> Result<bool> {
        let mut tree = self.tree(table)?.clone();
        let mut part = Part { ws: &mut self.ws, task, budget, runs: &mut self.space };
        let done = advance(&mut part, &mut tree, resume)?;
        // The commit rewrites the way to the descriptor.
        self.catalogue.verify_path(&self.ws, table, &tree.desc)?;
        *self.parts(table)?.1 = tree;
        Ok(done)
    }

    /// A table that can be walked through.
    fn table_to_compact(
        &mut self,
        name: &[u8],
        comparators: Comparators<'_>,
        skipped: &mut Vec<Vec<u8>>,
    ) -> Result<Option<TableRef>> {
        let main = self.catalogue.main();
        if lookup::get_entry(&self.ws.view(), &main.desc, &main.order, name)?
            .is_some_and(|(_, entry)| entry.kind != ValueKind::Tree)
        {
            // Since the step before, somebody has put a plain record there.
            return Ok(None);
        }
        let options = comparators.iter().find(|(of, _)| of == name).map(|(_, options)| options);
        let table = match options {
            Some(options) => self.open_with(name, options)?,
            None => self.open_table(name)?,
        };
        let Some(table) = table else { return Ok(None) };
        if self.catalogue.is_ordered(table) {
            return Ok(Some(table));
        }
        if !skipped.iter().any(|known| known == name) {
            skipped.push(name.to_vec());
        }
        Ok(None)
    }

    /// The name of the first table after a name, or of all; or, if the part has done enough before it
    /// was found, that of a plain record on the way.
    fn table_behind(&self, name: Option<&[u8]>, budget: &mut Budget) -> Result<Option<Vec<u8>>> {
        // The main tree of a store without tables may have any number of records.
        if self.catalogue.next_table() <= 1 {
            return Ok(None);
        }
        let view = self.ws.view();
        let tree = TreeView::new(view, &self.catalogue.main().desc, &Order::Bytes);
        let mut place = Place::default();
        match name {
            Some(name) => drop(place.seek(&tree, name)?),
            None => place.first(&tree)?,
        }
        let mut passed = 0;
        let mut before = name;
        while let Some((at, entry)) = place.entry(&tree)? {
            if before.is_some_and(|before| entry.key < before) {
                return Err(at.damaged()(Damage("names are not in order")));
            }
            before = Some(entry.key);
            if entry.kind == ValueKind::Tree && Some(entry.key) != name {
                return Ok(Some(entry.key.to_vec()));
            }
            passed += 1;
            if passed % LOOKS == 0 {
                // As many as a page has, about.
                budget.seen += LOOKS / 64;
                if budget.is_spent(&self.ws) {
                    return Ok(Some(entry.key.to_vec()));
                }
            }
            place.next(&tree)?;
        }
        Ok(None)
    }
}
