//! [`Env`], the handle on an open store: the way in from outside to all that the layers below do.
//!
//! One process opens a file once: a second open of the same file gives a handle on the same store
//! (`registry`). A forked child may open it again (`heirs`). The last handle ends the store's threads and flushes (`owner`). The other files here hold
//! parts of the interface: `later` changes as futures, `info` what a store reports about itself,
//! `maintenance` what is done to a whole store, `raw` what the C interface needs.

mod heirs;
mod info;
pub(crate) mod later;
pub(crate) mod maintenance;
mod open;
mod owner;
mod prepared;
pub(crate) mod raw;
mod registry;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::env::info::StoredCommit;
use crate::env::options::{Durability, Options};
use crate::env::{EnvInner, checkpoint};
use crate::error::{Error, Result};
use crate::platform::DataFile;
use crate::txn::{ReadTxn, Reader, WriteTxn, group};

use later::Update;
use owner::Owner;

/// An open store. Clones are handles on the same store; the last one closes it.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// // Clones are handles on the same store, for other threads.
/// let other = env.clone();
/// let thread = std::thread::spawn(move || other.read()?.table("t").map(|table| table.len()));
/// assert_eq!(thread.join().unwrap()?, 1);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone)]
pub struct Env {
    pub(crate) inner: Arc<EnvInner>,
    /// Transactions do not hold it.
    owner: Arc<Owner>,
}

impl Env {
    /// Opens the store at `path`, creating it if the options say so. The file's lock file lies
    /// beside it, with `-lock` added to its name (a symbolic link is followed first; a file with
    /// two names must be opened by one of them). A second open of the same file in one process
    /// gives a handle on the same store, with the options of the first.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Env> {
        open::open(path.as_ref(), options)
    }

    /// The commits that the meta pages of the file at `path` still name, newest first; empty where none is readable.
    /// Nothing is changed, no lock is taken, and the store may be in use.
    /// [`Options::at_commit`] opens one of them.
    pub fn stored_commits(path: impl AsRef<Path>) -> Result<Vec<StoredCommit>> {
        open::stored_commits(path.as_ref(), &Options::new())
    }

    /// As [`Env::stored_commits`], of an encrypted store with the key or passphrase of `options`.
    ///
    /// ```
    /// use zubilo::{Env, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let options = Options::new(); // with a key
    /// options.clone().open(path)?.close()?;
    /// assert!(!Env::stored_commits_as(path, &options)?.is_empty());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn stored_commits_as(
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Vec<StoredCommit>> {
        open::stored_commits(path.as_ref(), options)
    }

    /// As [`Env::stored_commits`], for a given file and system.
    #[doc(hidden)]
    pub fn stored_commits_of(data: &dyn DataFile, boot_id: [u8; 16]) -> Result<Vec<StoredCommit>> {
        open::commits_of(data, boot_id)
    }

    /// A store on a given file and system: for simulation.
    #[doc(hidden)]
    pub fn open_parts(data: Box<dyn DataFile>, boot_id: [u8; 16], options: Options) -> Result<Env> {
        open::open_parts(data, None, boot_id, options)
    }

    /// As [`Env::open_parts`], with the lock file of a store at `path`: several stores opened on one
    /// file and one path are as the handles of several processes.
    #[doc(hidden)]
    pub fn open_parts_shared(
        data: Box<dyn DataFile>,
        path: &Path,
        boot_id: [u8; 16],
        options: Options,
    ) -> Result<Env> {
        open::open_parts(data, Some(path), boot_id, options)
    }

    /// Begins a read transaction: a snapshot of the newest commit. Never waits.
    pub fn read(&self) -> Result<ReadTxn> {
        ReadTxn::begin(&self.here()?.inner)
    }

    /// For many short read transactions in one place: a [`Reader`] begins each of them faster.
    pub fn reader(&self) -> Result<Reader> {
        Reader::new(&self.here()?.inner)
    }

    /// Begins the write transaction; waits while another thread or process has it. The transaction
    /// belongs to this thread. A second one in the same thread is [`Error::Busy`].
    pub fn write(&self) -> Result<WriteTxn> {
        let txn = WriteTxn::begin(&self.here()?.inner, true)?;
        txn.ok_or(Error::Busy("the writer lock is taken"))
    }

    /// Begins the write transaction if no one else has it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// match env.try_write()? {
    ///     Some(mut txn) => txn.table_or_create("t")?.put("key", "value")?,
    ///     None => println!("somebody else writes: later"),
    /// }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn try_write(&self) -> Result<Option<WriteTxn>> {
        WriteTxn::begin(&self.here()?.inner, false)
    }

    /// Runs `change` in a write transaction of its own and commits it. Calls that come while a
    /// commit is under way are gathered: each runs in a nested transaction, and all share one
    /// commit and one flush. An error or panic undoes its own closure's changes only.
    ///
    /// `change` may run on another thread (one that is waiting in `update` itself), where it gets
    /// [`Error::Busy`] if it begins to write, or calls `update`: so does the `Drop` of what it holds.
    /// What it gives is dropped on the caller's own thread, outside of the transaction and of all locks.
    /// Nested levels that it opens end with it; it can neither end those of others nor commit.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| {
    ///     txn.table_or_create("stock")?.put("nails", "500")?;
    ///     txn.table_or_create("log")?.put("1", "nails came")?;
    ///     Ok(())
    /// })?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    ///
    /// The error is the store's, so that a closure may end with a plain `Ok(..)`. For errors of your own, those of
    /// typed tables and `anyhow` there is [`Env::try_update`].
    pub fn update<T, F>(&self, change: F) -> Result<T>
    where
        F: FnOnce(&mut WriteTxn) -> Result<T> + Send,
        T: Send,
    {
        self.try_update(change)
    }

    /// As [`Env::update`], with any error that the store's can become: one of your own, that of typed tables, a
    /// `Box<dyn Error + Send + Sync>`, `anyhow::Error`. Where the closure's type does not say which, the call has to:
    ///
    /// ```
    /// type Failure = Box<dyn std::error::Error + Send + Sync>;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> Result<(), Failure> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// # env.update(|txn| txn.table_or_create("stock")?.put("nails", "500"))?;
    /// let nails = env.try_update(|txn| -> Result<u32, Failure> {
    ///     let mut stock = txn.table("stock")?;
    ///     let nails = std::str::from_utf8(stock.get("nails")?.unwrap_or(b"0"))?.parse::<u32>()?;
    ///     stock.put("nails", (nails + 1).to_string())?;
    ///     Ok(nails)
    /// })?;
    /// assert_eq!(nails, 500);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn try_update<T, E, F>(&self, change: F) -> Result<T, E>
    where
        F: FnOnce(&mut WriteTxn) -> Result<T, E> + Send,
        T: Send,
        E: From<Error> + Send,
    {
        let here = self.here()?;
        group::update(&here.inner, &here.owner.group, change)
    }

    /// As [`Env::update`] for code that must not block, with any executor: `change` is queued at once, a thread of
    /// the store runs and commits it together with others, and the future ends with the commit. Dropping the
    /// future does not take the change back; the last handle on the store waits for what is queued.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(end) = future.as_mut().poll(&mut context) { return end; }
    /// #         std::thread::yield_now();
    /// #     }
    /// # }
    /// async fn rename(env: &zubilo::Env, id: u32, name: String) -> zubilo::Result<Option<Vec<u8>>> {
    ///     env.update_async(move |txn| txn.table_or_create("names")?.replace(id.to_be_bytes(), name)).await
    /// }
    /// # let env = zubilo::Options::new().open(path).unwrap();
    /// # assert_eq!(block_on(rename(&env, 7, "seven".into())).unwrap(), None);
    /// # assert_eq!(block_on(rename(&env, 7, "sieben".into())).unwrap(), Some(b"seven".to_vec()));
    /// ```
    pub fn update_async<T, F>(&self, change: F) -> Update<T>
    where
        F: FnOnce(&mut WriteTxn) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        self.try_update_async(change)
    }

    /// As [`Env::update_async`], with any error that the store's can become; see [`Env::try_update`].
    ///
    /// ```
    /// use zubilo::Error;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// #[derive(Debug)]
    /// enum Refused {
    ///     Empty,
    ///     Store(Error),
    /// }
    ///
    /// impl From<Error> for Refused {
    ///     fn from(error: Error) -> Refused {
    ///         Refused::Store(error)
    ///     }
    /// }
    ///
    /// async fn sell(env: &zubilo::Env) -> Result<(), Refused> {
    ///     env.try_update_async(|txn| {
    ///         let sold = txn.table_or_create("stock")?.delete("nails")?;
    ///         if sold { Ok(()) } else { Err(Refused::Empty) }
    ///     })
    ///     .await
    /// }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn try_update_async<T, E, F>(&self, change: F) -> Update<T, E>
    where
        F: FnOnce(&mut WriteTxn) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let here = self.here();
        match here.and_then(|here| here.inner.check_writable().map(|()| here)) {
            Ok(here) => here.owner.update_later(change),
            Err(error) => Update::refused(&self.inner, error.into()),
        }
    }

    /// Makes everything committed so far durable. Waits for the disk, not for transactions.
    pub fn sync(&self) -> Result<()> {
        self.here()?.inner.sync()
    }

    /// Makes what is committed durable and closes this handle. Dropping the last handle does the
    /// same but cannot report an error.
    pub fn close(self) -> Result<()> {
        if self.inner.options.read_only {
            return Ok(());
        }
        let here = self.here()?;
        here.inner.check_alive()?;
        checkpoint::checkpoint(&here.inner)
    }

    /// Closes this handle; if it is the last one, without making weak commits durable first.
    ///
    /// ```
    /// use zubilo::{Durability, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// // A scratch store, whose end no power cut need survive.
    /// let env = Options::new().durability(Durability::NoSync).open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// env.close_without_sync();
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn close_without_sync(self) {
        if Arc::strong_count(&self.owner) == 1 {
            self.inner.close_without_sync.store(true, Ordering::SeqCst);
            if let Some(heir) = heirs::of(&self.owner).filter(|_| self.inner.is_forked()) {
                heir.inner.close_without_sync.store(true, Ordering::SeqCst);
            }
        }
    }

    /// In a store opened with [`Durability::Sync`]: from now on commits of this process are as with
    /// [`Durability::LAZY`], or durable again. What was committed before the change keeps its kind.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// // A load of many small commits, on disk with its last one.
    /// env.set_lazy(true)?;
    /// for n in 0..100u32 {
    ///     env.update(|txn| txn.table_or_create("t")?.put(n.to_be_bytes(), "value"))?;
    /// }
    /// env.set_lazy(false)?;
    /// env.sync()?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn set_lazy(&self, lazy: bool) -> Result<()> {
        let here = self.here()?;
        here.inner.check_writable()?;
        let is_lazy = matches!(here.inner.options.durability, Durability::Lazy { .. });
        if lazy && !is_lazy {
            here.owner.start_flusher(Durability::LAZY_BOUNDS)?;
        } else if !lazy && here.inner.lazy_now.load(Ordering::Relaxed) && here.inner.redo_max() > 0
        {
            // The thread will wait for the redo log to fill.
            here.inner.flush_ring()?;
            here.owner.start_redo_flusher()?;
        }
        here.inner.lazy_now.store(lazy, Ordering::Relaxed);
        Ok(())
    }

    /// The data file's path.
    pub fn path(&self) -> &Path {
        self.inner.data.path()
    }

    /// The system's number for the open data file, for those who lock or examine it by their own
    /// means. Nothing must be written through it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// assert!(env.descriptor().is_some_and(|number| number >= 0));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn descriptor(&self) -> Option<i32> {
        self.inner.data.descriptor()
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    /// Longest key, in bytes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let longest = vec![b'k'; env.max_key_len()];
    /// env.update(|txn| txn.table_or_create("t")?.put(&longest, "value"))?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn max_key_len(&self) -> usize {
        crate::page::max_key(self.inner.page_size())
    }
}
