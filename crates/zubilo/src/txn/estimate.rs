//! About how many records a range has, and where to cut it into even parts: for planners of queries, and for
//! scans by many threads.

use std::ops::{Bound, RangeBounds};

use crate::error::Result;
use crate::tree::range::{Bounds, OwnedKey};
use crate::tree::{Pages, Tree, estimate, split};

use super::counted::range_len;
use super::read::ReadTable;
use super::table::bounds_of;
use super::view::ViewTable;
use super::write_table::WriteTable;

/// Both bounds of a range of keys; what `range`, `estimate_len` and `split` take.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| {
///     let mut table = txn.table_or_create("t")?;
///     (0..1000u32).try_for_each(|n| table.put(n.to_be_bytes(), "value"))
/// })?;
/// let read = env.read()?;
/// let table = read.table("t")?;
/// let parts: Vec<zubilo::KeyRange> = table.split::<&[u8]>(.., 3)?;
/// assert_eq!(parts.into_iter().map(|part| table.range(part).count()).sum::<usize>(), 1000);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn parts<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    bounds: &Bounds,
    parts: usize,
) -> Result<Vec<KeyRange>> {
    let own = |bound: &Bound<OwnedKey>| bound.as_ref().map(|key| key.to_vec());
    let mut start = own(&bounds.start);
    let mut ranges = Vec::new();
    for cut in split::cuts(pages, tree, bounds, parts)? {
        let next = Bound::Included(cut.to_vec());
        ranges.push((std::mem::replace(&mut start, next), Bound::Excluded(cut.to_vec())));
    }
    ranges.push((start, own(&bounds.end)));
    Ok(ranges)
}

/// About how many records of a table have keys inside a range.
pub(super) fn estimate_len<'p, P: Pages<'p>, K: AsRef<[u8]>>(
    pages: &P,
    tree: &Tree,
    range: impl RangeBounds<K>,
) -> Result<u64> {
    if tree.desc.options.is_counted() {
        return range_len(pages, tree, range);
    }
    estimate::records(pages, tree, &bounds_of(range))
}

/// The methods of both kinds of tables; `$this` gives the pages and the tree.
macro_rules! estimating {
    ($this:ident => $parts:expr) => {
        /// About how many records have keys inside `range`; each value of a key is one. It reads the two ends of
        /// the range and up to some dozens of pages between them. A counted table, and a range within a few
        /// leaves, give the exact number.
        ///
        /// ```
        /// # let dir = tempfile::tempdir().unwrap();
        /// # let path = dir.path().join("store");
        /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
        /// let env = zubilo::Options::new().open(path)?;
        /// let mut write = env.write()?;
        /// let mut table = write.table_or_create("t")?;
        /// for n in 0..1000u32 {
        ///     table.put(n.to_be_bytes(), "some value")?;
        /// }
        /// let about = table.estimate_len(100u32.to_be_bytes()..900u32.to_be_bytes())?;
        /// assert!((700..900).contains(&about));
        /// # Ok(())
        /// # }
        /// # show(&path).unwrap();
        /// ```
        pub fn estimate_len<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
            let $this = self;
            let (pages, tree) = $parts;
            self::estimate_len(&pages, tree, range)
        }

        /// Cuts `range` into at most `parts` ranges that follow each other and have about as many records each:
        /// one for each thread of a scan. Fewer if there are not as many keys, but at least one. It reads up to some
        /// dozens of pages for each part.
        ///
        /// ```
        /// # let dir = tempfile::tempdir().unwrap();
        /// # let path = dir.path().join("store");
        /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
        /// # let env = zubilo::Options::new().open(path)?;
        /// # let mut write = env.write()?;
        /// # let mut table = write.table_or_create("t")?;
        /// # (0..1000u32).try_for_each(|n| table.put(n.to_be_bytes(), "value"))?;
        /// # write.commit()?;
        /// let read = env.read()?;
        /// let table = read.table("t")?;
        /// let parts = table.split::<&[u8]>(.., 4)?;
        /// let records: usize = std::thread::scope(|scope| {
        ///     let scan = |part| scope.spawn(|| table.range(part).count());
        ///     let threads: Vec<_> = parts.into_iter().map(scan).collect();
        ///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        /// });
        /// assert_eq!(records, 1000);
        /// # Ok(())
        /// # }
        /// # show(&path).unwrap();
        /// ```
        pub fn split<K: AsRef<[u8]>>(
            &self,
            range: impl RangeBounds<K>,
            parts: usize,
        ) -> Result<Vec<KeyRange>> {
            let $this = self;
            let (pages, tree) = $parts;
            self::parts(&pages, tree, &bounds_of(range), parts)
        }
    };
}

impl ReadTable<'_> {
    estimating!(this => (this.snapshot(), this.tree()));
}

impl ViewTable<'_> {
    estimating!(this => this.parts());
}

impl WriteTable<'_> {
    estimating!(this => {
        this.txn.check()?;
        (this.txn.ws.view(), this.txn.tree(this.table)?)
    });
}
