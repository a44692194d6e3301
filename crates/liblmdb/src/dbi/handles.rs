//! The handles of an environment.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::abi::{MAIN_DBI, MDB_dbi};
use crate::compare::Functions;
use crate::errors::{Code, Result};

/// First handle of a named table.
const FIRST: usize = MAIN_DBI as usize + 1;
/// Of a handle that belongs to a transaction.
const PRIVATE: u64 = u64::MAX;

/// What a handle stands for.
pub(crate) struct Handle {
    name: Box<[u8]>,
    comparators: Mutex<Functions>,
    /// Spares the lock where there are no comparators.
    compared: AtomicBool,
    /// The table cannot be brought into their order.
    refused: AtomicBool,
    /// Flags of an order of keys that a reader has opened the unnamed table with: for its first record.
    order: AtomicU32,
    /// The count of `Handles::now` from which on transactions see it.
    since: AtomicU64,
    closed: AtomicBool,
}

impl Handle {
    fn new(name: &[u8], since: u64) -> Handle {
        Handle {
            name: name.into(),
            comparators: Mutex::default(),
            compared: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            order: AtomicU32::new(0),
            since: AtomicU64::new(since),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether a transaction that began at `seen` may use it.
    pub(super) fn is_seen(&self, seen: u64) -> bool {
        self.since.load(Ordering::Acquire) <= seen
    }

    /// The program's comparisons of keys and of values.
    pub(crate) fn comparators(&self) -> Functions {
        if !self.compared.load(Ordering::Acquire) {
            return Functions::default();
        }
        *self.comparators.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes them.
    pub(super) fn compare_by(&self, change: impl FnOnce(&mut Functions)) {
        let mut both = self.comparators.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut both);
        self.refused.store(false, Ordering::Relaxed);
        self.compared.store(both.is_any(), Ordering::Release);
    }

    /// Whether the table could not be brought into the order of the functions.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// The order of keys that it is to get with its first record, as flags.
    #[inline]
    pub(super) fn order(&self) -> u32 {
        self.order.load(Ordering::Relaxed)
    }

    pub(super) fn set_order(&self, flags: u32) {
        self.order.store(flags, Ordering::Relaxed);
    }
}

/// All handles of an environment.
pub(crate) struct Handles {
    /// By number; the first, that of the free pages, is none of these.
    list: RwLock<Vec<Option<Arc<Handle>>>>,
    max: usize,
    /// How often handles have become visible.
    now: AtomicU64,
}

impl Handles {
    pub(crate) fn new(max_dbs: u32) -> Handles {
        let list = RwLock::new(vec![None, Some(Arc::new(Handle::new(b"", 0)))]);
        Handles { list, max: (max_dbs as usize).saturating_add(FIRST), now: AtomicU64::new(0) }
    }

    /// What a transaction that begins now may use, for `Handle::is_seen`.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    pub(super) fn get(&self, dbi: MDB_dbi) -> Option<Arc<Handle>> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.get(dbi as usize)?.clone()
    }

    /// The number of a name among those that `usable` says.
    pub(super) fn position(
        &self,
        name: &[u8],
        usable: impl Fn(MDB_dbi, &Handle) -> bool,
    ) -> Option<MDB_dbi> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let named = list.iter().enumerate().skip(FIRST);
        let mut named = named.filter_map(|(i, handle)| Some((i as MDB_dbi, handle.as_ref()?)));
        named.find(|(i, handle)| *handle.name == *name && usable(*i, handle)).map(|(i, _)| i)
    }

    /// Whether one more can be opened.
    pub(super) fn has_room(&self) -> bool {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.len() < self.max || list.iter().skip(FIRST).any(Option::is_none)
    }

    /// Opens one, which belongs to the transaction until it is published.
    pub(super) fn open(&self, name: &[u8]) -> Result<(MDB_dbi, Arc<Handle>)> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let handle = Arc::new(Handle::new(name, PRIVATE));
        if let Some(at) = list.iter().skip(FIRST).position(Option::is_none) {
            list[FIRST + at] = Some(handle.clone());
            return Ok(((FIRST + at) as MDB_dbi, handle));
        }
        if list.len() >= self.max {
            return Err(Code::DBS_FULL);
        }
        list.push(Some(handle.clone()));
        Ok(((list.len() - 1) as MDB_dbi, handle))
    }

    /// Transactions that begin from now on may use these.
    pub(crate) fn publish(&self, dbis: &[MDB_dbi]) {
        if dbis.is_empty() {
            return;
        }
        let next = self.now.load(Ordering::Acquire) + 1;
        for handle in dbis.iter().filter_map(|dbi| self.get(*dbi)) {
            handle.since.store(next, Ordering::Release);
        }
        self.now.store(next, Ordering::Release);
    }

    /// Closes one; those that use it find out.
    pub(crate) fn close(&self, dbi: MDB_dbi) {
        if (dbi as usize) < FIRST {
            return;
        }
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = list.get_mut(dbi as usize).and_then(Option::take) {
            handle.closed.store(true, Ordering::Release);
        }
    }
}
