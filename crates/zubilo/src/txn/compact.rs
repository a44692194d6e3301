//! A write transaction as a part of compaction: it walks on from where the part before ended, and
//! its commit takes the lowest free pages there are.

use crate::dirty::Workspace;
use crate::env::meta::{META_COUNT, StoredGeometry};
use crate::env::{EnvInner, WriterState};
use crate::error::{Error, Result};
use crate::page::{Damage, Leaf, Order, ValueKind};
use crate::space::Extent;
use crate::tree::compact::{LowerRun, Meter, Part, Spot, Task, advance, verify_way};
use crate::tree::cursor::Cursor;
use crate::tree::{Pages, Ref, RunRef, lookup, run};

use super::layout::write_padded;
use super::options::TableOptions;
use super::write::{MAIN, WriteTxn};

/// Plain records between the names of tables that are passed from one look at the clock to the next.
const LOOKS: u64 = 1024;

/// How a transaction of compaction differs from others.
#[derive(Clone, Copy, Default)]
pub(super) struct Compaction {
    /// Pages are taken from below.
    pub(super) low: bool,
    /// The free-space log begins anew with this commit.
    pub(super) rebase: bool,
    /// There is something to commit even if no tree has changed: the end.
    pub(super) cut: bool,
}

/// Where a walk through all tables stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// The named table; the main tree comes first.
    table: Option<Vec<u8>>,
    spot: Spot,
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
        self.compaction.low = true;
        self.look_for_pins()?;
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        state.space.trim_tail(META_COUNT);
        Ok(Account {
            end: state.space.end(),
            free: state.space.free_pages(),
            retired: state.space.retired_pages(),
            log_end: state.log.pages_end(),
        })
    }

    /// The free-space log is to begin anew, if there are free pages for it before page `end`.
    pub(crate) fn rebase_log(&mut self, end: u64) {
        if let Some(state) = &mut self.state {
            // What the commit itself changes makes it longer.
            let pages = (state.space.encoded_len_bound() as u64 >> self.env.shift) + 2;
            self.compaction.rebase = state.space.free_below(end) >= pages;
        }
    }

    /// Whether the commit would lower the end; it will then, whatever else it does.
    pub(crate) fn cut(&mut self) -> bool {
        let lower = self.state.as_ref().is_some_and(|s| s.space.end() < self.base.end);
        self.compaction.cut = lower;
        lower
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
        meter: &mut Meter,
        comparators: Comparators<'_>,
        skipped: &mut Vec<Vec<u8>>,
    ) -> Result<bool> {
        loop {
            let index = match &walk.table {
                None => Some(MAIN),
                Some(name) => self.table_to_compact(name, comparators, skipped)?,
            };
            if let Some(index) = index
                && !self.guarded(|txn| txn.compact_table(index, task, &mut walk.spot, meter))?
            {
                return Ok(false);
            }
            let next = self.table_behind(walk.table.as_deref(), meter)?;
            if next.is_none() {
                return Ok(true);
            }
            *walk = Walk { table: next, spot: Spot::default() };
            if meter.is_spent(&self.ws) {
                return Ok(false);
            }
        }
    }

    fn compact_table(
        &mut self,
        index: usize,
        task: Task,
        spot: &mut Spot,
        meter: &mut Meter,
    ) -> Result<bool> {
        let geometry = self.bounds();
        let mut tree = self.tree(index).clone();
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let mut runs = LowRuns { env: &self.env, state, geometry };
        let mut part = Part { ws: &mut self.ws, task, meter, runs: &mut runs };
        let done = advance(&mut part, &mut tree, spot)?;
        if let Some(table) = self.tables.get(index).filter(|table| table.stored != tree.desc) {
            // The commit rewrites these for the descriptor.
            verify_way(&self.ws, &self.main, &table.name)?;
        }
        *self.parts(index).1 = tree;
        Ok(done)
    }

    /// Index of a table that can be walked through.
    fn table_to_compact(
        &mut self,
        name: &[u8],
        comparators: Comparators<'_>,
        skipped: &mut Vec<Vec<u8>>,
    ) -> Result<Option<usize>> {
        if lookup::get_entry(&self.ws.view(), &self.main.desc, &self.main.order, name)?
            .is_some_and(|(_, entry)| entry.kind != ValueKind::Tree)
        {
            // Since the step before, somebody has put a plain record there.
            return Ok(None);
        }
        let options = comparators.iter().find(|(of, _)| of == name).map(|(_, options)| options);
        let index = match options {
            Some(options) => self.open_with(name, options)?,
            None => self.open_table(name)?,
        };
        let Some(index) = index else { return Ok(None) };
        if self.tables.get(index).is_some_and(|table| table.ordered) {
            return Ok(Some(index));
        }
        if !skipped.iter().any(|known| known == name) {
            skipped.push(name.to_vec());
        }
        Ok(None)
    }

    /// The name of the first table behind a name, or of all; or, if the part has done enough before it
    /// was found, that of a plain record on the way.
    fn table_behind(&self, name: Option<&[u8]>, meter: &mut Meter) -> Result<Option<Vec<u8>>> {
        // The main tree of a store without tables may have any number of records.
        if self.next_table <= 1 {
            return Ok(None);
        }
        let view = self.ws.view();
        let mut cursor = Cursor::<_, Leaf<'_>>::new(view, &self.main.desc, Order::Bytes);
        match name {
            Some(name) => drop(cursor.seek(name)?),
            None => cursor.first()?,
        }
        let mut passed = 0;
        let mut before = name;
        while let Some((at, entry)) = cursor.entry()? {
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
                meter.seen += LOOKS / 64;
                if meter.is_spent(&self.ws) {
                    return Ok(Some(entry.key.to_vec()));
                }
            }
            cursor.next()?;
        }
        Ok(None)
    }
}

/// Moves large values, which are written at once: they may be larger than memory.
struct LowRuns<'t> {
    env: &'t EnvInner,
    state: &'t mut WriterState,
    geometry: StoredGeometry,
}

impl LowerRun for LowRuns<'_> {
    fn lower(&mut self, ws: &mut Workspace, holder: Ref, old: &RunRef) -> Result<Option<RunRef>> {
        let pages = old.pages(ws.page_shift());
        let Some(first) = self.state.space.take_below(pages, old.first) else { return Ok(None) };
        ws.spilled.try_reserve(1).map_err(|_| crate::dirty::no_list())?;
        ws.spilled.push(Extent { first, count: pages });
        self.env.ensure_len(&self.geometry, self.state.space.end())?;
        let view = ws.view();
        let value = view.run(holder, old)?;
        old.verify(value).map_err(Ref(old.first).damaged())?;
        write_padded(self.env, first, value)?;
        let checksum = run::checksum(value);
        Ok(Some(RunRef { first, len: old.len, checksum, birth: ws.txn() }))
    }
}
