//! Which pages a commit, an early write and the free-space log get.

use crate::dirty::{no_list, with_room};
use crate::env::meta::{Meta, StoredGeometry};
use crate::env::{EnvInner, WriterState};
use crate::error::{Error, Result};
use crate::space::log::SegmentWriter;
use crate::space::{Delta, Extent, Policy, Retired, Space};

use super::layout::{Allocated, write_padded};
use super::write::WriteTxn;

impl WriteTxn {
    fn policy(&self) -> Policy {
        match (self.compaction.low, self.env.is_sync()) {
            (true, _) => Policy::Low,
            (false, true) => Policy::Contiguous,
            (false, false) => Policy::Recent,
        }
    }

    /// Adds the commit of `meta`, which wrote `allocated` and set `released` free, to the free-space
    /// log; gives the pages that this took.
    pub(super) fn log_commit(
        &mut self,
        meta: &mut Meta,
        allocated: Vec<Extent>,
        released: Vec<Retired>,
    ) -> Result<u64> {
        let (geometry, policy) = (self.bounds(), self.policy());
        let mut pages = LogPages { env: &self.env, geometry, policy };
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let WriterState { log, space, .. } = &mut **state;
        let delta = Delta { txn: meta.txn, allocated, released, end: 0 };
        let written =
            log.append(&mut meta.log, space, delta, self.compaction.rebase, &mut pages)?;
        meta.end = space.end();
        // A map with gaps must not be written down.
        if space.lacks_memory() { Err(no_list()) } else { Ok(written) }
    }

    /// Pages for a commit or spill. One run for everything if there is one; else large values get
    /// runs of their own. Where a flush follows, hot pages are kept apart from those that stay:
    /// holes in their region close soon, so both kinds find long runs.
    pub(super) fn allocate(&mut self, pages: u64) -> Result<Allocated> {
        let (geometry, policy) = (self.bounds(), self.policy());
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let limit = self.env.page_limit(&geometry);
        let sizes = self.ws.run_sizes()?;
        let hot = match policy {
            Policy::Contiguous if pages <= LARGE => self.ws.arena().hot() as u64,
            _ => 0,
        };
        let space = &mut state.space;
        let mut allocated = take(space, pages - hot, hot, policy, limit);
        if allocated.as_ref().is_some_and(|a| a.cold.len() > 1) && !sizes.is_empty() {
            give_back(space, allocated.take());
            let run_pages = sizes.iter().map(|(_, size)| size).sum::<u64>();
            allocated = take(space, pages - run_pages - hot, hot, policy, limit);
            allocated = allocated.and_then(|a| take_runs(space, a, &sizes, limit));
        }
        if space.lacks_memory() {
            return Err(no_list());
        }
        let allocated = allocated.ok_or_else(|| self.env.full(&geometry))?;
        if let Err(error) = self.env.ensure_len(&geometry, space.end()) {
            give_back(space, Some(allocated));
            return Err(error);
        }
        Ok(allocated)
    }
}
/// Where the free-space log goes.
struct LogPages<'t> {
    env: &'t EnvInner,
    geometry: StoredGeometry,
    policy: Policy,
}

impl SegmentWriter for LogPages<'_> {
    fn place(&mut self, space: &mut Space, pages: u64) -> Result<Vec<Extent>> {
        let limit = self.env.page_limit(&self.geometry);
        let grow_to = grow_to(space, self.policy, pages);
        let placed = space.allocate(pages, self.policy, grow_to, limit);
        let placed = placed.ok_or_else(|| self.env.full(&self.geometry))?;
        self.env.ensure_len(&self.geometry, space.end())?;
        Ok(placed)
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        write_padded(self.env, first, bytes)
    }
}

/// Pages for trees; none are taken when they do not fit.
fn take(space: &mut Space, cold: u64, hot: u64, policy: Policy, limit: u64) -> Option<Allocated> {
    if hot == 0 {
        let cold = space.allocate(cold, policy, grow_to(space, policy, cold + hot), limit)?;
        return Some(Allocated { cold, hot: None, runs: None });
    }
    let split = space.allocate_split(cold, hot, grow_to(space, policy, cold + hot), limit)?;
    Some(Allocated { cold: split.cold, hot: Some(split.hot), runs: None })
}

/// A run for each large value; when one finds none, all that was taken goes back.
fn take_runs(
    space: &mut Space,
    mut allocated: Allocated,
    sizes: &[(u32, u64)],
    limit: u64,
) -> Option<Allocated> {
    let Some(mut runs) = with_room(sizes.len()) else {
        space.lack_memory();
        return None;
    };
    for (index, size) in sizes {
        match space.allocate_run(*size, limit) {
            Some(extent) => runs.push((*index, extent)),
            None => {
                allocated.runs = Some(runs);
                give_back(space, Some(allocated));
                return None;
            }
        }
    }
    allocated.runs = Some(runs);
    Some(allocated)
}

fn give_back(space: &mut Space, allocated: Option<Allocated>) {
    match allocated.map(|a| a.all()) {
        Some(Ok(all)) => all.into_iter().for_each(|extent| space.give_back(extent)),
        Some(Err(_)) => space.lack_memory(),
        None => {}
    }
}

/// What a small store may have besides, in commits of the size at hand: where a commit replaces a
/// good part of all pages, no run falls free in less.
const SLACK_COMMITS: u64 = 16;
/// The same, bounded, in pages.
const SLACK_MAX: u64 = 2048;

/// Commits of more pages take runs of their own for hot and cold pages alike, and may leave more
/// space unused: in less, moving what lies between the holes would cost more than it saves.
const LARGE: u64 = 128;

/// How far the file may grow to keep runs long: half the live data more than that, or, for large commits,
/// three quarters and half of what readers hold back.
fn grow_to(space: &Space, policy: Policy, pages: u64) -> u64 {
    match policy {
        Policy::Contiguous => {
            let held = space.retired_pages();
            let live = space.end() - space.free_pages() - held;
            let room = if pages > LARGE { live / 4 * 3 + held / 2 } else { live / 2 };
            live + room + 64 + pages.saturating_mul(SLACK_COMMITS).min(SLACK_MAX)
        }
        Policy::Recent | Policy::Low => 0,
    }
}
