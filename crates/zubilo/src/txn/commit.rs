//! The commit: one run of pages, one meta, one flush.
//!
//! Order of things, and why:
//! 1. descriptors of changed tables go into the catalogue, which may dirty more pages;
//! 2. pages are allocated (now their number is known), get their contents and go to the kernel;
//! 3. what was allocated and what died goes into the free-space log;
//! 4. the meta is handed to the kernel; in SYNC one flush makes pages and meta durable together.
//!    That is allowed only on top of a steady commit and for a commit small enough to be verified
//!    at open; else the pages are flushed before the meta is written;
//! 5. only then is the commit published, and only after that can its dead pages be reused.
//!
//! Until 5 an error leaves the store as it was: free pages hold other garbage than before.
//!
//! Each step is a type that the next one consumes: [`Settled`], [`Written`], [`Logged`]. So none can be
//! left out, done twice, or done after the one that follows it.

use twox_hash::XxHash3_64;

use crate::dirty::{Freed, no_list, with_room};
use crate::env::checkpoint::{MetaLock, flush, free_slot, wipe_unpublished};
use crate::env::facade;
use crate::env::log::Level;
use crate::env::mark::Mark;
use crate::env::meta::{META_COUNT, META_SIZE, Meta, RedoLog, Trust};
use crate::env::metas::{self, SlotState};
use crate::env::open::digest_of;
use crate::env::prepared;
use crate::env::{EnvInner, Root};
use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::planted::{Bug, has};
use crate::redo::{Place, reseed};
use crate::space::{Extent, Retired};

use super::clean::EXTENTS;
use super::commit_times::{CommitClock, CommitReport, Part};
use super::redo::RingChange;
use super::write::WriteTxn;
use super::writeback::Writeback;

/// Largest commit, in bytes, whose pages are verified at open instead of being flushed first.
const VERIFIED_MAX: u64 = 2 << 20;

impl WriteTxn {
    /// Makes the changes the newest state of the store, for everyone at once, and durable as the
    /// store's [`crate::Durability`] says. A transaction without changes commits nothing. Nested levels
    /// that are still open are part of it.
    ///
    /// After an error nothing was changed; the store can be used on, unless the error is that of a
    /// flush: then no later flush can be trusted, and writers get [`Error::Poisoned`] until the
    /// store is reopened.
    pub fn commit(mut self) -> Result<TxnId> {
        self.commit_in_place()
    }

    /// As [`WriteTxn::commit`]; returns where the time went and what was written. A transaction without
    /// changes reports zeros.
    pub fn commit_with_report(mut self) -> Result<CommitReport> {
        let txn = self.commit_in_place()?;
        Ok(self.clock.report_of(txn))
    }

    /// Commits; the transaction can only be dropped then, or begun anew.
    pub(super) fn commit_in_place(&mut self) -> Result<TxnId> {
        self.check()?;
        if !self.end_levels() {
            return Err(Error::Invalid("a closure cannot commit the transaction that it runs in"));
        }
        if !self.has_changes() {
            return Ok(TxnId(self.base.txn));
        }
        self.env.check_writable()?;
        self.clock.start();
        let _span = facade::span(&self.env, "commit");
        // Until the commit stands the space map in memory is half-way; the file's log is right.
        self.space.begin_commit();
        let result =
            self.settle().and_then(Settled::write).and_then(Written::log).and_then(Logged::seal);
        self.space.end_commit(result.is_ok() || has(Bug::MapKeptAfterError));
        let txn = result?;
        let sums = self.clock.sums();
        self.env.count_commit(&sums);
        facade::commit(&self.env, txn.0, &sums);
        if self.env.options.audit {
            (self.env.checks.audit)(&self.env, txn)?;
            self.clock.lap(Part::Audit);
        }
        Ok(txn)
    }

    /// As a commit, up to the meta, which gets a mark.
    pub(super) fn make_prepared(&mut self, mark: Mark) -> Result<TxnId> {
        let logged = self.settle().and_then(Settled::write).and_then(Written::log)?;
        logged.prepare(mark)
    }

    /// Makes the trees final: nothing dirties a page after this, so none that was written early is taken
    /// back any more.
    fn settle(&mut self) -> Result<Settled<'_>> {
        self.attempt.begin(&self.env.shared, self.id().0);
        self.catalogue.store_changed(&mut self.ws)?;
        self.space.renew_pins()?;
        let pages = self.ws.arena().live() as u64;
        let log = self.log_to_append(pages + self.ws.run_pages())?;
        if log.is_some() {
            self.space.set_unflushed();
        }
        if pages > 0 && self.clean(pages)? {
            self.catalogue.store_changed(&mut self.ws)?;
        }
        self.space.reuse_returned(&mut self.ws)?;
        self.check_freed()?;
        let pages = self.ws.arena().live() as u64 + self.ws.run_pages();
        self.clock.lap(Part::Prepare);
        Ok(Settled { txn: self, pages, log })
    }

    /// What the trees have set free must be pages in use, each once. Damaged trees share pages, or
    /// hold some that the space map calls free: that must not bring the map into disorder too.
    fn check_freed(&mut self) -> Result<()> {
        let mut from = META_COUNT;
        for freed in self.ws.freed() {
            if freed.first < from || !self.space.is_used(freed.first, freed.count) {
                return Err(Error::Corrupted {
                    page: PageNo(freed.first),
                    reason: "a page of a tree is free, or belongs to another one too",
                });
            }
            from = freed.first + freed.count;
        }
        Ok(())
    }

    /// Whether one flush may do for pages and meta.
    fn verifiable(&self, pages: u64) -> bool {
        self.env.is_sync()
            && pages << self.env.shift <= VERIFIED_MAX
            && (self.env.steady() == self.base.txn || has(Bug::OneFlushOnWeak))
    }

    /// Whether a commit must be flushed so that later weak ones can be judged by their pages: these show by
    /// their birth whether they are those that were written last.
    pub(super) fn is_hard_to_judge(&self) -> bool {
        // Births are known since the base of the log. Where the run of the system is known none is asked for.
        // Whoever opens the store next may be one of those who do not know it.
        let is_hidden = self.env.boot_id == [0; 16] || self.env.shared.has_hidden_users();
        (self.attempt.is_retry() || is_hidden && self.space.log_base() > self.env.steady())
            && !has(Bug::AttemptsForgotten)
    }

    /// The meta of this commit, but for free-space log and digest.
    fn next_meta(&self) -> Result<Meta> {
        let mut meta = self.space.meta()?.clone();
        meta.txn = self.base.txn + 1;
        meta.boot_id = self.env.boot_id;
        meta.opening = self.env.opening();
        self.catalogue.describe(&mut meta);
        meta.geometry = self.space.stored_geometry();
        // Without a record the log goes on from another seed, whatever lies at its place.
        let salted = |log: RedoLog| {
            let chain = reseed(log.next.chain, meta.txn, meta.opening);
            let next = Place { chain, ..log.next };
            RedoLog { next, is_logged: false, has_unflushed: false, ..log }
        };
        meta.redo = self.replayed().or(meta.redo.map(salted));
        Ok(meta)
    }
}

/// The trees are final; their dirty pages have no places yet.
struct Settled<'t> {
    txn: &'t mut WriteTxn,
    /// How many places they need.
    pages: u64,
    /// The redo log that the commit is appended to. Nothing else of it is flushed.
    log: Option<RedoLog>,
}

impl<'t> Settled<'t> {
    /// Gives all dirty pages their places and hands them to the kernel. With a digest, if one flush may
    /// do for the commit.
    fn write(self) -> Result<Written<'t>> {
        let Settled { txn, pages, log } = self;
        let (mut allocated, digest) = match pages {
            0 => (vec![], Some(XxHash3_64::oneshot(&[]))),
            _ => Settled::write_pages(txn, pages, log.is_none())?,
        };
        let spilled = txn.ws.take_spilled();
        let change = if log.is_some() { RingChange::Stays } else { txn.ring_change()? };
        let ring = match change {
            RingChange::Comes(bytes) => txn.space.take_ring(bytes)?,
            RingChange::Stays | RingChange::Goes => None,
        };
        let old_goes = ring.is_some() || change == RingChange::Goes || txn.space.is_compacting();
        let early = !spilled.is_empty() || ring.is_some();
        if !has(Bug::SpilledForgotten) {
            allocated.try_reserve(spilled.len()).map_err(|_| no_list())?;
            allocated.extend(spilled);
        }
        if let Some(ring) = ring.filter(|_| !has(Bug::RingNotBooked)) {
            allocated.try_reserve(1).map_err(|_| no_list())?;
            allocated.push(ring);
        }
        allocated.sort_unstable_by_key(|e| e.first);
        merge(&mut allocated);
        Ok(Written { txn, pages, allocated, digest, early, log, ring, old_goes })
    }

    fn write_pages(
        txn: &mut WriteTxn,
        pages: u64,
        flushed: bool,
    ) -> Result<(Vec<Extent>, Option<u64>)> {
        let digest = flushed && txn.verifiable(pages) && txn.ws.spilled().is_empty();
        let allocated = txn.space.allocate(&txn.ws, pages)?;
        let extents = allocated.all()?;
        let mut writeback = Writeback::new(&mut txn.ws, allocated)?;
        txn.catalogue.place(&mut writeback)?;
        let mut placed = writeback.finish();
        txn.clock.lap(Part::Layout);
        let digest = placed.write(&txn.env, &txn.ws, (digest, flushed && txn.env.is_sync()))?;
        txn.clock.lap(Part::Write);
        Ok((extents, digest))
    }
}

/// The pages are in the kernel's hands; the free-space log does not know of them.
struct Written<'t> {
    txn: &'t mut WriteTxn,
    pages: u64,
    /// All extents that the transaction has written to, ascending.
    allocated: Vec<Extent>,
    digest: Option<u64>,
    /// Some pages were written before the commit: the digest does not have them.
    early: bool,
    log: Option<RedoLog>,
    /// Pages that become a redo log.
    ring: Option<Extent>,
    /// The pages of the one before become free.
    old_goes: bool,
}

impl<'t> Written<'t> {
    /// Adds the commit to the free-space log.
    fn log(self) -> Result<Logged<'t>> {
        let Written { txn, pages, allocated, digest, early, log, ring, old_goes } = self;
        let extents = allocated.len();
        let mut meta = txn.next_meta()?;
        let mut released = released(txn.ws.take_freed(), meta.txn)?;
        let old = meta.redo.take_if(|_| old_goes);
        if let Some(old) = old.filter(|_| !has(Bug::OldRingNotFreed)) {
            let (first, count) = (old.first, old.pages(txn.env.shift));
            let birth = if has(Bug::OldRingNotPinned) { meta.txn } else { old.birth };
            released.try_reserve(1).map_err(|_| no_list())?;
            released.push(Retired { first, count, birth, death: meta.txn });
        }
        if let Some(Extent { first, count }) = ring {
            let next = Place { pos: 0, chain: reseed(meta.txn, meta.txn, meta.opening) };
            let (bytes, birth) = (count << txn.env.shift, meta.txn);
            let (is_logged, has_unflushed) = (false, false);
            meta.redo = Some(RedoLog { first, bytes, birth, next, is_logged, has_unflushed });
        }
        let log_pages = txn.space.log_commit(&mut meta, allocated, released)?;
        meta.digest = digest.map_or(0, |sum| digest_of(txn.env.data.as_ref(), sum));
        let what = format_args!("commit {}: {pages} pages in {extents} extents", meta.txn);
        txn.env.log(Level::Debug, what);
        // Asked again, not anew: a checkpoint may have made the commit before steady meanwhile, and
        // then there is no digest.
        let one_flush = digest.is_some() && !early && txn.verifiable(pages + log_pages);
        let bytes = (pages + log_pages) << txn.env.shift;
        let (report, counts) = (&mut txn.clock.report, txn.ws.counts);
        (report.pages, report.runs) = (pages, extents as u64);
        (report.pages_copied, report.pages_spilled) = (counts.copied, counts.spilled);
        (report.pages_split, report.pages_merged) = (counts.split, counts.merged);
        report.bytes = bytes + META_SIZE as u64;
        txn.clock.lap(Part::Log);
        Ok(Logged { txn, meta, one_flush, bytes, scattered: extents > EXTENTS, log })
    }
}

/// What the commit freed, as the free-space log has it.
fn released(mut freed: Vec<Freed>, death: u64) -> Result<Vec<Retired>> {
    if has(Bug::FreedForgotten) {
        freed.clear();
    }
    let entry = |f: Freed| Retired { first: f.first, count: f.count, birth: f.birth, death };
    let mut released = with_room(freed.len()).ok_or_else(no_list)?;
    released.extend(freed.into_iter().map(entry));
    Ok(released)
}

/// All but the meta is in the kernel's hands.
struct Logged<'t> {
    txn: &'t mut WriteTxn,
    meta: Meta,
    /// One flush may do for pages and meta.
    one_flush: bool,
    /// Bytes that were written.
    bytes: u64,
    /// The commit found no long run.
    scattered: bool,
    /// The redo log that the commit is appended to.
    log: Option<RedoLog>,
}

impl Logged<'_> {
    /// Flush, meta with a mark, flush.
    fn prepare(self, mark: Mark) -> Result<TxnId> {
        let Logged { txn, mut meta, .. } = self;
        if !has(Bug::PreparedBeforePages) {
            flush_timed(&txn.env, &mut txn.clock)?;
        }
        (meta.trust, meta.digest) = (Trust::Steady, 0);
        meta.prepared = Some(mark.clone());
        prepared::prepare(&txn.env, &meta, &mark)?;
        Ok(TxnId(meta.txn))
    }

    /// Meta, flush, publication.
    fn seal(self) -> Result<TxnId> {
        let Logged { txn, mut meta, one_flush, mut bytes, scattered, log } = self;
        let sync = log.is_none() && (txn.env.is_sync() || txn.is_hard_to_judge());
        let mut record = Vec::new();
        if let Some(log) = log {
            // Before its meta: a meta that names a record that is not there would break the log.
            record = txn.take_record();
            bytes = record.len() as u64;
            let next = txn.env.seal_record(&log, meta.txn, &mut record);
            if !has(Bug::RecordAfterMeta) {
                txn.append_record(&log, &record)?;
            }
            meta.redo = Some(next);
        }
        let (env, clock) = (&txn.env, &mut txn.clock);
        meta.trust = match (sync, one_flush) {
            (true, true) => Trust::Verified,
            (true, false) => {
                flush_timed(env, clock)?;
                Trust::Steady
            }
            (false, _) => Trust::Weak,
        };
        if meta.trust == Trust::Weak {
            meta.digest = env.data.home();
        }
        let published = publish(env, clock, &meta, sync);
        if let (Err(_), Some(log)) = (&published, &log)
            && !has(Bug::RecordNotVoided)
        {
            // No open is to find the record. Should this fail, the store is poisoned.
            let _ = env.void_record(log);
        }
        published?;
        if let Some(log) = log.filter(|_| has(Bug::RecordAfterMeta)) {
            env.append_record(&log, &record, Some(log.next.pos))?;
        }
        let (number, is_record) = (meta.txn, log.is_some());
        env.geometry_pending.store(false, std::sync::atomic::Ordering::Relaxed);
        let (geometry, end) = (meta.geometry, meta.end);
        txn.space.committed(meta, scattered, is_record)?;
        if sync {
            // The commit stands; a file that stays too long is no reason to fail it.
            let _ = env.cut_tail(&geometry, end, false);
        } else if let Some(log) = &log {
            env.ring_filled(log, bytes);
        } else {
            env.flusher.committed(bytes + META_SIZE as u64);
        }
        clock.lap(Part::Publish);
        Ok(TxnId(number))
    }
}

/// Flushes; the time since the last part is of publication.
fn flush_timed(env: &EnvInner, clock: &mut CommitClock) -> Result<()> {
    clock.lap(Part::Publish);
    flush(env)?;
    clock.lap(Part::Flush);
    clock.report.flushes += 1;
    Ok(())
}

/// Hands the meta to the kernel, flushes it if it is to be durable by itself, and lets everyone see the commit.
fn publish(env: &EnvInner, clock: &mut CommitClock, meta: &Meta, sync: bool) -> Result<()> {
    let lock = MetaLock::take(&env.shared)?;
    let slot = free_slot(env)?;
    let state = if sync { SlotState::Pending } else { SlotState::Weak };
    metas::set_slot(&env.shared, slot, meta.txn, state);
    let early = has(Bug::PublishedBeforeWritten);
    if early {
        env.shared.publish(&Root::of(meta).to_words(env.shift));
    }
    if let Err(error) = metas::write(env.data.as_ref(), &env.shared, slot, meta) {
        // What arrived of it may be a whole meta, which an open would trust.
        drop(lock);
        // Should this fail too, the next writer does it before anything else.
        let _ = wipe_unpublished(env);
        return Err(error);
    }
    if sync {
        flush_timed(env, clock)?;
    }
    // Published before it is called steady: should this process be killed in between, the
    // commit counts for less than it is, not for more.
    if !early {
        env.shared.publish(&Root::of(meta).to_words(env.shift));
    }
    if sync {
        metas::set_steady(&env.shared, slot, meta.txn);
    }
    Ok(())
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
