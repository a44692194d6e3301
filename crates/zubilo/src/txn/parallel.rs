//! Scans by all threads of a pool (feature `rayon`).

use std::ops::RangeBounds;

use rayon::iter::plumbing::UnindexedConsumer;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::error::Result;

use super::estimate::KeyRange;
use super::read::ReadTable;

/// Parts for each thread of the pool: who is done sooner takes another one.
const PARTS_A_THREAD: usize = 8;

impl<'t> ReadTable<'t> {
    /// The records with keys inside `range`, read by the threads of the current rayon pool. The range is cut by
    /// [`ReadTable::split`]; adaptors that keep the order of items, such as `collect`, keep that of the keys.
    ///
    /// ```
    /// use rayon::iter::ParallelIterator;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// # let mut write = env.write()?;
    /// # let mut table = write.table_or_create("t")?;
    /// # (0..1000u32).try_for_each(|n| table.put(n.to_be_bytes(), "value"))?;
    /// # write.commit()?;
    /// let read = env.read()?;
    /// let bytes = read.table("t")?.par_range::<&[u8]>(..)?;
    /// let bytes: usize = bytes.map(|record| record.map(|(_, value)| value.len())).sum::<zubilo::Result<_>>()?;
    /// assert_eq!(bytes, 5000);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn par_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<ParRange<'t>> {
        let parts = self.split(range, rayon::current_num_threads() * PARTS_A_THREAD)?;
        Ok(ParRange { table: ReadTable::new(self.snapshot(), self.tree().clone()), parts })
    }
}

/// The records of a range, for the threads of a pool: see [`ReadTable::par_range`].
///
/// ```
/// use rayon::iter::ParallelIterator;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let read = env.read()?;
/// let records = read.table("t")?.par_range::<&[u8]>(..)?;
/// assert_eq!(records.count(), 1);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "iterators read nothing until they are advanced"]
pub struct ParRange<'t> {
    table: ReadTable<'t>,
    parts: Vec<KeyRange>,
}

impl<'t> ParallelIterator for ParRange<'t> {
    type Item = Result<(&'t [u8], &'t [u8])>;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        let ParRange { table, parts } = self;
        parts.into_par_iter().flat_map_iter(|part| table.range(part)).drive_unindexed(consumer)
    }
}
