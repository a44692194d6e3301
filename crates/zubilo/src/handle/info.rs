//! What a store reports about itself.

use crate::env::counters::EnvCounters;
use crate::env::info::{EnvInfo, ReaderInfo};
use crate::error::Result;

use super::Env;

impl Env {
    /// State and size of the store.
    pub fn info(&self) -> Result<EnvInfo> {
        self.here()?.inner.info()
    }

    /// What this process has done with the store since it opened it: commits, pages, flushes, waits. Cheap
    /// enough to be asked for at any time.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let env = zubilo::Options::new().open(path)?;
    /// let before = env.counters();
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let done = env.counters().since(&before);
    /// assert_eq!(done.commits, 1);
    /// assert!(done.bytes_written >= 4096 && done.flushes >= 1);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn counters(&self) -> EnvCounters {
        self.here().map_or_else(|_| self.inner.counted(), |here| here.inner.counted())
    }

    /// What all processes have done with the store since the first of those that have it open opened it: the
    /// rates of a store whose programs tell nothing. Without a
    /// [lock file](crate::Options::lock_file) it is what this process has done.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let before = env.store_counters();
    /// // Other processes write ...
    /// # env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let done = env.store_counters().since(&before);
    /// let each = done.commit_flush_ns / done.commits.max(1);
    /// println!("{} commits, {} bytes, {each} ns for flushes in each", done.commits, done.bytes_written);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn store_counters(&self) -> EnvCounters {
        self.here().map_or_else(|_| EnvCounters::default(), |here| here.inner.counted_by_all())
    }

    /// The live read transactions of all processes.
    pub fn readers(&self) -> Vec<ReaderInfo> {
        self.inner.readers()
    }

    /// Ends a parked reader, of whatever process; see [`ReadTxn::park`](crate::ReadTxn::park). False if it is at
    /// work, or has ended by itself: nothing can take pages from under a reader that looks at them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut parked = env.read()?.park();
    /// for reader in env.readers().iter().filter(|reader| reader.is_parked) {
    ///     assert!(env.expire_reader(reader)?);
    /// }
    /// assert!(matches!(parked.with(|_| Ok(())), Err(zubilo::Error::Expired)));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn expire_reader(&self, reader: &ReaderInfo) -> Result<bool> {
        self.here()?.inner.expire_reader(reader)
    }

    /// Clears the slots of readers whose processes are gone, and gives their number. The writer
    /// does so by itself when such a reader holds pages back.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// assert_eq!(env.clean_readers()?, 0);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn clean_readers(&self) -> Result<u32> {
        self.here()?.inner.clean_readers()
    }
}
