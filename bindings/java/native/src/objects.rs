//! What handles stand for: open stores, read transactions, write transactions, and the tables that
//! transactions have opened, which are numbers of theirs.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use zubilo::{Env, ReadTable, ReadTxn, TableId, TableOptions, WriteTable, WriteTxn};

use crate::error::Failure;
use crate::holder::{Borrowed, Holder};

/// What a handle stands for.
pub(crate) enum Object {
    Env(EnvObject),
    Read(Box<ReadObject>),
    Write(WriteObject),
}

/// An open store.
pub(crate) struct EnvObject {
    pub(crate) env: Env,
    pub(crate) holder: Holder,
}

/// Tables of the first chunk of a read transaction; each chunk is twice as long as the one before.
const FIRST_CHUNK: usize = 8;
const CHUNKS: usize = 16;

/// A read transaction. Any number of threads use it at once.
pub(crate) struct ReadObject {
    // Before the transaction, so that they go first.
    tables: [OnceLock<Box<[OnceLock<ReadTable<'static>>]>>; CHUNKS],
    count: Mutex<usize>,
    pub(crate) txn: ReadTxn,
}

impl ReadObject {
    pub(crate) fn new(txn: ReadTxn) -> ReadObject {
        ReadObject { tables: [const { OnceLock::new() }; CHUNKS], count: Mutex::new(0), txn }
    }

    /// Chunk and place of a table's number.
    fn place(index: usize) -> (usize, usize) {
        let n = index / FIRST_CHUNK + 1;
        let chunk = n.ilog2() as usize;
        (chunk, index - ((1 << chunk) - 1) * FIRST_CHUNK)
    }

    #[inline]
    pub(crate) fn table(&self, index: i64) -> Result<&ReadTable<'_>, Failure> {
        let index = usize::try_from(index).map_err(|_| Failure::Foreign)?;
        if index >= FIRST_CHUNK << CHUNKS {
            return Err(Failure::Foreign);
        }
        let (chunk, place) = ReadObject::place(index);
        let table = self.tables.get(chunk).and_then(OnceLock::get).and_then(|c| c.get(place));
        table.and_then(OnceLock::get).ok_or(Failure::Foreign)
    }

    /// Opens a table and gives its number.
    pub(crate) fn open(&self, name: &[u8], options: Option<&TableOptions>) -> Result<i64, Failure> {
        let table = match options {
            Some(options) => self.txn.table_with(name, options)?,
            None => self.txn.table(name)?,
        };
        // SAFETY: the table borrows pages and verifier of the transaction, whose addresses do not depend on
        // where it lies. It is kept beside the transaction, dropped before it, and lent out for no
        // longer than `self` is borrowed.
        let table = unsafe { std::mem::transmute::<ReadTable<'_>, ReadTable<'static>>(table) };
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let (chunk, place) = ReadObject::place(*count);
        let chunk = self
            .tables
            .get(chunk)
            .ok_or(Failure::TooMany)?
            .get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| OnceLock::new()).collect());
        let cell = chunk.get(place).ok_or(Failure::TooMany)?;
        cell.set(table).map_err(|_| Failure::TooMany)?;
        *count += 1;
        Ok(*count as i64 - 1)
    }
}

/// A write transaction, used by one thread at a time.
pub(crate) struct WriteObject {
    inner: Mutex<Option<Writing>>,
}

/// The transaction, and who owns it.
enum Owned {
    /// Lent by the store's holder: any thread may use and end it.
    Borrowed(Borrowed),
    /// Begun by the calling thread, which alone may use and end it.
    Own(OwnThread),
}

/// A transaction that stays on its thread.
struct OwnThread {
    txn: Option<Box<WriteTxn>>,
    thread: std::thread::ThreadId,
}

// SAFETY: every access looks at the thread first and touches the transaction on its own thread only; on
// another one it is never dropped, but forgotten.
unsafe impl Send for OwnThread {}

impl OwnThread {
    fn check(&self) -> Result<(), Failure> {
        if std::thread::current().id() == self.thread { Ok(()) } else { Err(Failure::Foreign) }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if self.check().is_err() {
            // The writer lock stays taken until its thread ends; nothing else would be safe.
            std::mem::forget(self.txn.take());
        }
    }
}

/// What Java holds of a write transaction.
pub(crate) struct Writing {
    owned: Owned,
    /// None once the nested level that opened them was undone: their numbers are not given again.
    tables: Vec<Option<TableId>>,
    /// How many tables were open when each nested level began.
    levels: Vec<usize>,
}

impl WriteObject {
    pub(crate) fn borrowed(txn: Borrowed) -> WriteObject {
        WriteObject::new(Owned::Borrowed(txn))
    }

    pub(crate) fn own(txn: WriteTxn) -> WriteObject {
        let thread = std::thread::current().id();
        WriteObject::new(Owned::Own(OwnThread { txn: Some(Box::new(txn)), thread }))
    }

    fn new(owned: Owned) -> WriteObject {
        let writing = Writing { owned, tables: Vec::new(), levels: Vec::new() };
        WriteObject { inner: Mutex::new(Some(writing)) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Writing>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the transaction, alone.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Writing) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        work(self.lock().as_mut().ok_or(Failure::Closed)?)
    }

    /// Commits or aborts; whoever comes later finds it closed.
    pub(crate) fn end(&self, commit: bool) -> Result<u64, Failure> {
        let mut inner = self.lock();
        if let Some(Writing { owned: Owned::Own(own), .. }) = &*inner {
            own.check()?;
        }
        let writing = inner.take().ok_or(Failure::Closed)?;
        drop(inner);
        match writing.owned {
            Owned::Borrowed(txn) => txn.end(commit),
            Owned::Own(mut own) => {
                let txn = own.txn.take().ok_or(Failure::Closed)?;
                if commit { Ok(txn.commit()?.0) } else { Ok(0) }
            }
        }
    }
}

impl Writing {
    #[inline]
    pub(crate) fn txn(&mut self) -> Result<&mut WriteTxn, Failure> {
        match &mut self.owned {
            Owned::Borrowed(txn) => txn.get(),
            Owned::Own(own) => {
                own.check()?;
                own.txn.as_deref_mut().ok_or(Failure::Closed)
            }
        }
    }

    #[inline]
    pub(crate) fn table(&mut self, index: i64) -> Result<WriteTable<'_>, Failure> {
        let id = usize::try_from(index).ok().and_then(|index| self.tables.get(index));
        let id = (*id.ok_or(Failure::Foreign)?)
            .ok_or(Failure::Engine(zubilo::Error::NoSuchTable { table: None }))?;
        Ok(self.txn()?.at(id)?)
    }

    pub(crate) fn add(&mut self, id: TableId) -> i64 {
        self.tables.push(Some(id));
        self.tables.len() as i64 - 1
    }

    /// Opens a nested level; gives its depth.
    pub(crate) fn begin_nested(&mut self) -> Result<i64, Failure> {
        self.txn()?.begin_nested()?;
        self.levels.push(self.tables.len());
        Ok(self.levels.len() as i64)
    }

    /// Ends the innermost level, which must be number `depth`.
    pub(crate) fn end_nested(&mut self, depth: i64, commit: bool) -> Result<i64, Failure> {
        if self.levels.len() as i64 != depth || depth == 0 {
            return Err(Failure::Foreign);
        }
        let txn = self.txn()?;
        if commit {
            txn.commit_nested()?;
        } else {
            txn.abort_nested()?;
        }
        let tables = self.levels.pop().unwrap_or_default();
        if !commit {
            self.tables.iter_mut().skip(tables).for_each(|id| *id = None);
        }
        Ok(0)
    }
}
