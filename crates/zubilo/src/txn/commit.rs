//! The commit: one run of pages, one meta, one flush.
//!
//! Order of things, and why:
//! 1. descriptors of changed tables go into the main tree, which may dirty more pages;
//! 2. pages are allocated (now their number is known), laid out and handed to the kernel;
//! 3. what was allocated and what died goes into the free-space log;
//! 4. the meta is handed to the kernel; in SYNC one flush makes pages and meta durable together.
//!    That is allowed only on top of a steady commit and for a commit small enough to be verified
//!    at open; else the pages are flushed before the meta is written;
//! 5. only then is the commit published, and only after that can its dead pages be reused.
//!
//! Until 5 an error leaves the store as it was: free pages hold other garbage than before.

use twox_hash::XxHash3_64;

use crate::dirty::{no_list, with_room};
use crate::env::Root;
use crate::env::checkpoint::{MetaLock, flush, free_slot, wipe_unpublished};
use crate::env::log::Level;
use crate::env::meta::{META_COUNT, Meta, Trust};
use crate::env::metas::{self, SlotState};
use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::page::leaf;
use crate::planted::{Bug, has};
use crate::space::{Extent, Retired};
use crate::tree::{Ref, lookup};

use super::clean::PIECES;
use super::layout::Layout;
use super::write::WriteTxn;

/// Largest commit, in bytes, whose pages are verified at open instead of being flushed first.
const VERIFIED_MAX: u64 = 2 << 20;

/// The end of the used part is lowered every so many commits, and when most of it is free.
const TRIM_PERIOD: u64 = 64;

impl WriteTxn {
    /// Makes the changes the newest state of the store, for everyone at once, and durable as the
    /// store's [`crate::Durability`] says. A transaction without changes commits nothing. Nested levels
    /// that are still open are part of it.
    ///
    /// After an error nothing was changed; the store can be used on, unless the error is that of a
    /// flush: then no later flush can be trusted, and writers get [`Error::Poisoned`] until the
    /// store is reopened.
    pub fn commit(mut self) -> Result<TxnId> {
        self.check()?;
        if self.floor > 0 {
            return Err(Error::Invalid("a closure cannot commit the transaction that it runs in"));
        }
        while !self.savepoints.is_empty() {
            self.fold_level();
        }
        if !self.has_changes() {
            return Ok(TxnId(self.base.txn));
        }
        self.env.check_writable()?;
        // Until the commit stands the space map in memory is half-way; the file's log is right.
        self.forget_state = true;
        let result = self.commit_changes();
        self.forget_state = result.is_err() && !has(Bug::MapKeptAfterError);
        let txn = result?;
        self.audit(txn)?;
        Ok(txn)
    }

    fn commit_changes(&mut self) -> Result<TxnId> {
        self.store_changed_descs()?;
        self.renew_pins()?;
        if self.ws.arena().live() > 0 && !self.compaction.low {
            self.clean(self.ws.arena().live() as u64)?;
            self.store_changed_descs()?;
        }
        // From here on no page is made dirty, so none that was spilled is taken back any more.
        self.reuse_returned()?;
        self.check_freed()?;
        let pages = self.ws.arena().live() as u64 + self.ws.run_pages();
        let (extents, digest) = match pages {
            0 => (vec![], Some(XxHash3_64::oneshot(&[]))),
            _ => self.write_pages(pages)?,
        };
        let bytes = pages << self.env.shift;
        let spilled = !self.ws.spilled.is_empty();
        let mut allocated = extents;
        match has(Bug::SpilledForgotten) {
            true => self.ws.spilled.clear(),
            false => {
                allocated.try_reserve(self.ws.spilled.len()).map_err(|_| no_list())?;
                allocated.append(&mut self.ws.spilled);
            }
        }
        allocated.sort_unstable_by_key(|e| e.first);
        merge(&mut allocated);
        let pieces = allocated.len();
        let mut meta = self.next_meta()?;
        let released = self.released(meta.txn)?;
        let log_pages = self.log_commit(&mut meta, allocated, released)?;
        meta.digest = digest.unwrap_or(0);
        if let Some(state) = &mut self.state {
            state.scattered = pieces > PIECES;
        }
        let what = format_args!("commit {}: {pages} pages in {pieces} extents", meta.txn);
        self.env.log(Level::Debug, what);
        // Asked again, not anew: a checkpoint may have made the commit before steady meanwhile, and
        // then there is no digest.
        let one_flush = digest.is_some() && !spilled && self.verifiable(pages + log_pages);
        self.seal(meta, one_flush, bytes + (log_pages << self.env.shift))
    }

    /// Puts the descriptors of changed tables under their names.
    fn store_changed_descs(&mut self) -> Result<()> {
        for index in 0..self.tables.len() {
            let table = &self.tables[index];
            if table.tree.desc != table.stored && !table.gone {
                let (name, desc) = (table.name.clone(), table.tree.desc);
                self.store_desc(&name, &desc)?;
            }
        }
        Ok(())
    }

    /// Readers may have ended since the transaction began. The snapshot it works on stays pinned
    /// until its successor is published.
    pub(super) fn look_for_pins(&mut self) -> Result<()> {
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        self.env.collect_pins(&mut state.pins);
        let base = self.base.txn;
        if let Err(at) = state.pins.binary_search(&base) {
            state.pins.insert(at, base);
        }
        state.space.set_pins(&state.pins);
        Ok(())
    }

    fn renew_pins(&mut self) -> Result<()> {
        self.look_for_pins()?;
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        // Now and then: what is set aside at the tail for the next commits should last.
        let base = self.base.txn;
        if base.is_multiple_of(TRIM_PERIOD)
            || self.compaction.low
            || state.space.free_pages() > state.space.end() / 2
        {
            state.space.trim_tail(META_COUNT);
        }
        Ok(())
    }

    /// Whether one flush may do for pages and meta.
    fn verifiable(&self, pages: u64) -> bool {
        self.env.is_sync()
            && pages << self.env.shift <= VERIFIED_MAX
            && (self.env.steady() == self.base.txn || has(Bug::OneFlushOnWeak))
    }

    /// Gives all dirty pages their places and hands them to the kernel. With a digest, if one flush may
    /// do for the commit.
    fn write_pages(&mut self, pages: u64) -> Result<(Vec<Extent>, Option<u64>)> {
        let digest = self.verifiable(pages) && self.ws.spilled.is_empty();
        let allocated = self.allocate(pages)?;
        let extents = allocated.all()?;
        let mut layout = Layout::new(&mut self.ws, allocated)?;
        for table in self.tables.iter_mut().filter(|t| !t.gone) {
            let root = layout.tree(table.tree.desc.root, table.tree.desc.depth)?;
            if table.tree.desc.root != root {
                table.tree.desc.root = root;
                let bytes = table.tree.desc.to_bytes();
                layout.replace_value(&self.main.desc, &table.name, &bytes)?;
            }
        }
        self.main.desc.root = layout.tree(self.main.desc.root, self.main.desc.depth)?;
        let mut written = layout.finish();
        let digest = written.write(&self.env, &self.ws, digest)?;
        Ok((extents, digest))
    }

    /// The meta of this commit, but for free-space log and digest.
    fn next_meta(&self) -> Result<Meta> {
        let state = self.state.as_ref().ok_or(Error::TxnBroken)?;
        let mut meta = state.meta.clone();
        meta.txn = self.base.txn + 1;
        meta.boot_id = self.env.boot_id;
        meta.main = self.main.desc;
        meta.next_table = self.next_table;
        meta.canary = self.canary;
        meta.geometry = self.stored_geometry();
        Ok(meta)
    }

    /// What the trees have set free must be pages in use, each once. Damaged trees share pages, or
    /// hold some that the space map calls free: that must not bring the map into disorder too.
    fn check_freed(&mut self) -> Result<()> {
        let state = self.state.as_ref().ok_or(Error::TxnBroken)?;
        // Sorted here once, as the log wants them, instead of there for each use.
        self.ws.freed.sort_unstable_by_key(|f| f.first);
        let mut from = META_COUNT;
        for freed in &self.ws.freed {
            if freed.first < from || !state.space.is_used(freed.first, freed.count) {
                return Err(Error::Corrupted {
                    page: PageNo(freed.first),
                    reason: "a page of a tree is free, or belongs to another one too",
                });
            }
            from = freed.first + freed.count;
        }
        Ok(())
    }

    fn released(&mut self, death: u64) -> Result<Vec<Retired>> {
        let mut freed = std::mem::take(&mut self.ws.freed);
        if has(Bug::FreedForgotten) {
            freed.clear();
        }
        let entry = |f: crate::dirty::Freed| Retired {
            first: f.first,
            count: f.count,
            birth: f.birth,
            death,
        };
        let mut released = with_room(freed.len()).ok_or_else(no_list)?;
        released.extend(freed.into_iter().map(entry));
        Ok(released)
    }

    /// Meta, flush, publication.
    fn seal(&mut self, mut meta: Meta, one_flush: bool, bytes: u64) -> Result<TxnId> {
        let env = self.env.clone();
        let sync = env.is_sync();
        meta.trust = match (sync, one_flush) {
            (true, true) => Trust::Verified,
            (true, false) => {
                if !has(Bug::PagesNotFlushed) {
                    flush(&env)?;
                }
                Trust::Steady
            }
            (false, _) => Trust::Weak,
        };
        if meta.trust == Trust::Weak {
            meta.digest = env.data.home();
        }
        let txn = meta.txn;
        let lock = MetaLock::take(&env.shared)?;
        let slot = free_slot(&env)?;
        let state = if sync { SlotState::Pending } else { SlotState::Weak };
        metas::set_slot(&env.shared, slot, txn, state);
        let early = has(Bug::PublishedBeforeWritten);
        if early {
            env.shared.publish(&Root::of(&meta).to_words(env.shift));
        }
        if let Err(error) = metas::write(env.data.as_ref(), slot, &meta) {
            // What arrived of it may be a whole meta, which an open would believe.
            drop(lock);
            // Should this fail too, the next writer does it before anything else.
            let _ = wipe_unpublished(&env);
            return Err(error);
        }
        if sync && !has(Bug::AcknowledgedEarly) {
            flush(&env)?;
        }
        // Published before it is called steady: should this process be killed in between, the
        // commit counts for less than it is, not for more.
        if !early {
            env.shared.publish(&Root::of(&meta).to_words(env.shift));
        }
        if sync {
            metas::set_steady(&env.shared, slot, txn);
        }
        env.geometry_pending.store(false, std::sync::atomic::Ordering::Relaxed);
        let geometry = meta.geometry;
        let end = meta.end;
        let writer = self.state.as_mut().ok_or(Error::TxnBroken)?;
        writer.meta = meta;
        if sync {
            // The commit stands; a file that stays too long is no reason to fail it.
            let _ = env.cut_tail(&geometry, end, false);
        } else {
            env.flusher.committed(bytes + crate::env::meta::META_SIZE as u64);
        }
        Ok(TxnId(txn))
    }
}

/// Joins adjacent extents of a sorted list.
fn merge(sorted: &mut Vec<Extent>) {
    sorted.dedup_by(|next, last| {
        let adjacent = last.first + last.count == next.first;
        if adjacent {
            last.count += next.count;
        }
        adjacent
    });
}

impl Layout<'_> {
    /// Overwrites the value of `name` in a tree whose way to it is dirty already.
    fn replace_value(
        &mut self,
        main: &crate::tree::TreeDesc,
        name: &[u8],
        bytes: &[u8],
    ) -> Result<()> {
        let lost = || Error::Invalid("a table's record is not where it was stored");
        let (view, order) = (self.workspace().view(), crate::page::Order::Bytes);
        let mut path = crate::tree::Path::default();
        let mut buf = Default::default();
        let key = crate::page::SearchKey::new(&order, name, &mut buf);
        let found = lookup::descend(&view, main, &order, &key, &mut path)?;
        let step = path.last().filter(|_| found).ok_or_else(lost)?;
        let slot = step.page.slot().ok_or_else(lost)?;
        let damaged = Ref::dirty(slot).damaged();
        let page = self.workspace_mut().page_mut(slot)?;
        let value = leaf::value_mut(page, step.index as usize).map_err(damaged)?;
        if value.len() != bytes.len() {
            return Err(lost());
        }
        value.copy_from_slice(bytes);
        Ok(())
    }
}
