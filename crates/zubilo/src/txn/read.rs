//! Read transactions: snapshots of a commit.

use std::ops::RangeBounds;
use std::sync::Arc;

use crate::env::{EnvInner, Root};
use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::page::{Order, ValueKind};
use crate::shared::{ReaderId, RootWords};
use crate::tree::cursor::CursorState;
use crate::tree::place::{Place, TreeView};
use crate::tree::{Snapshot, Tree, TreeDesc, batch, lookup};

use super::cursor::Cursor;
use super::options::{NO_TABLE, TableOptions, builtin_tree, unordered_tree};
use super::table::{
    Iter, TableStats, ValueIter, bounds_of, count_of_key, first_and_count, has_pair, prefix_bounds,
    values_of_key,
};

/// A snapshot of the store. It can be used and sent everywhere, by many threads at once; what it
/// reads stays as it is until it is dropped. While it lives, the pages of this one snapshot are
/// not reused.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "old"))?;
/// let read = env.read()?;
/// env.update(|txn| txn.table("t")?.put("key", "new"))?;
/// // A snapshot stays as it is.
/// assert_eq!(read.table("t")?.get("key")?, Some(&b"old"[..]));
/// assert_eq!(env.read()?.table("t")?.get("key")?, Some(&b"new"[..]));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "the snapshot ends when it is dropped"]
pub struct ReadTxn {
    env: Arc<EnvInner>,
    reader: ReaderId,
    root: Root,
}

impl ReadTxn {
    pub(crate) fn begin(env: &Arc<EnvInner>) -> Result<ReadTxn> {
        env.check_alive()?;
        let mut words = RootWords::default();
        let reader = env.shared.begin_read_into(&mut words)?;
        // Made in one go and as the last thing: each move would wait for the words just stored.
        match readable(env, &words) {
            Ok(root) => Ok(ReadTxn { env: Arc::clone(env), reader, root }),
            Err(error) => {
                env.shared.end_read(reader);
                Err(error)
            }
        }
    }

    /// Moves this transaction to the newest commit, as ending it and beginning another would,
    /// but cheaper.
    pub fn refresh(&mut self) -> Result<()> {
        self.env.check_alive()?;
        // Nothing new: what is pinned stays pinned.
        if self.env.shared.newest() == self.root.txn {
            return Ok(());
        }
        self.repin()
    }

    /// Another read transaction of the same snapshot, with a slot of its own in the reader table: one may be
    /// refreshed or end while the other stays. To share one among threads needs no copy.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut read = env.read()?;
    /// let other = read.try_clone()?;
    /// env.update(|txn| txn.table_or_create("t").map(drop))?;
    /// read.refresh()?;
    /// assert!(other.id() < read.id());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn try_clone(&self) -> Result<ReadTxn> {
        self.env.check_alive()?;
        let reader = self.env.shared.pin_again(&self.reader)?;
        Ok(ReadTxn { env: Arc::clone(&self.env), reader, root: self.root })
    }

    /// Pins the newest snapshot instead of what this one pins, which may be nothing.
    #[inline]
    pub(super) fn repin(&mut self) -> Result<()> {
        let mut words = RootWords::default();
        if self.env.shared.renew(&self.reader, self.root.txn, &mut words)? {
            // Should it fail, the old snapshot is pinned no longer.
            self.root = NO_ROOT;
            self.root = readable(&self.env, &words)?;
        }
        Ok(())
    }

    /// Pins nothing until `repin`.
    #[inline]
    pub(super) fn unpin(&self) {
        self.env.shared.park(&self.reader);
    }

    pub(super) fn reader(&self) -> &ReaderId {
        &self.reader
    }

    /// The commit whose state this is.
    pub fn id(&self) -> TxnId {
        TxnId(self.root.txn)
    }

    /// Commits made since this snapshot.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let read = env.read()?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// assert_eq!(read.lag(), 1);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn lag(&self) -> u64 {
        self.env.shared.newest().saturating_sub(self.root.txn)
    }

    pub(crate) fn env(&self) -> &Arc<EnvInner> {
        &self.env
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    #[inline]
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        let env = &*self.env;
        // SAFETY: the reader's slot keeps the pages of this snapshot from being written, and
        // `check_reach` bounded it by the reservation; `end` pages lie inside the file, because
        // the file is not cut below what a published commit or a pinned page needs.
        unsafe {
            Snapshot::new(
                env.data.base(),
                env.shift,
                self.root.end,
                self.root.txn,
                env.verifier.as_ref(),
            )
        }
    }

    /// The table `name`.
    pub fn table(&self, name: impl AsRef<[u8]>) -> Result<ReadTable<'_>> {
        let name = name.as_ref();
        let tree = builtin_tree(self.table_desc(name)?).map_err(|error| error.of_table(name))?;
        Ok(ReadTable { snapshot: self.snapshot(), tree })
    }

    /// The table `name`, which must have been created with the same options; with the comparators
    /// that they hold.
    ///
    /// ```
    /// use zubilo::TableOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let by_length = TableOptions::new().compare_keys(|a, b| a.len().cmp(&b.len()).then(a.cmp(b)));
    /// env.update(|txn| txn.table_or_create_with("words", &by_length)?.put("long", ""))?;
    /// let read = env.read()?;
    /// // The function is not in the file: whoever reads the table gives it.
    /// assert_eq!(read.table_with("words", &by_length)?.len(), 1);
    /// assert!(read.table("words").is_err());
    /// // What needs no order needs no function.
    /// assert_eq!(read.table_stats("words")?.entries, 1);
    /// assert!(!read.table_options("words")?.has_duplicates());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn table_with(
        &self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<ReadTable<'_>> {
        let name = name.as_ref();
        let desc = self.table_desc(name)?;
        let same = options.check_same(&desc.options).and_then(|()| options.tree(desc));
        let tree = same.map_err(|error| error.of_table(name))?;
        Ok(ReadTable { snapshot: self.snapshot(), tree })
    }

    /// The options of the table `name`, without comparators.
    pub fn table_options(&self, name: impl AsRef<[u8]>) -> Result<TableOptions> {
        let desc = self.table_desc(name.as_ref())?;
        Ok(TableOptions::of_tree(&unordered_tree(desc)).without_comparators())
    }

    /// Figures of the table `name`, which may be in a caller's order.
    pub fn table_stats(&self, name: impl AsRef<[u8]>) -> Result<TableStats> {
        Ok(TableStats::of(&self.table_desc(name.as_ref())?))
    }

    pub(super) fn table_desc(&self, name: &[u8]) -> Result<TreeDesc> {
        // In a forked child nothing keeps the snapshot: the parent may end it at any time.
        self.env.check_alive()?;
        let snapshot = self.snapshot();
        let found = lookup::get_entry(&snapshot, &self.root.main, &Order::Bytes, name)?;
        let Some((at, entry)) = found else { return Err(Error::no_such_table(name)) };
        if entry.kind != ValueKind::Tree {
            return Err(NO_TABLE.of_table(name));
        }
        TreeDesc::from_bytes(entry.value).map_err(at.damaged())
    }

    /// The names of all tables, in order.
    pub fn tables(&self) -> Result<Vec<Vec<u8>>> {
        self.env.check_alive()?;
        table_names(&self.snapshot(), &self.root.main)
    }

    /// Shares the transaction, for values that carry it with them ([`ReadTxn::get_owned`]).
    pub fn into_shared(self) -> Arc<ReadTxn> {
        Arc::new(self)
    }

    /// The value of `key` in `table`, together with a share of the transaction: it borrows
    /// nothing, so it can be sent anywhere and kept.
    pub fn get_owned(
        self: &Arc<Self>,
        table: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<OwnedValue>> {
        let value = self.table(table)?.get(key)?;
        Ok(value.map(|value| OwnedValue::new(self, value)))
    }
}

/// The root that the words give, if this process can reach all of its pages.
#[inline(always)]
fn readable(env: &EnvInner, words: &RootWords) -> Result<Root> {
    match Root::from_words(words) {
        Some(root) if root.end <= env.reach() => Ok(root),
        Some(root) => env.reach_out(root.end).map(|()| root),
        None => Err(Error::Corrupted {
            page: PageNo(0),
            reason: "the lock file names an impossible root",
        }),
    }
}

const NO_ROOT: Root = Root {
    txn: 0,
    end: 0,
    main: TreeDesc {
        root: crate::tree::Ref::NONE,
        entries: 0,
        leaf_pages: 0,
        branch_pages: 0,
        run_pages: 0,
        table: 0,
        depth: 0,
        options: crate::tree::TreeOptions { order: 0, align: 1, flags: 0 },
        item_size: 0,
        modified: 0,
        sequence: 0,
        value_pages: 0,
    },
    user_words: [0; 4],
};

impl Drop for ReadTxn {
    fn drop(&mut self) {
        // In a forked child the slot is the parent's.
        if !self.env.is_forked() {
            self.env.shared.end_read(std::mem::take(&mut self.reader));
        }
    }
}

/// Names of the tables in a main tree.
pub(crate) fn table_names<'p, P: crate::tree::Pages<'p>>(
    pages: &P,
    main: &TreeDesc,
) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    let tree = TreeView::new(*pages, main, &Order::Bytes);
    let mut place = Place::default();
    place.first(&tree)?;
    while let Some((_, entry)) = place.entry(&tree)? {
        if entry.kind == ValueKind::Tree {
            names.push(entry.key.to_vec());
        }
        place.next(&tree)?;
    }
    Ok(names)
}

/// A value that keeps its snapshot alive.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let value = env.read()?.into_shared().get_owned("t", "key")?.expect("it is there");
/// // It keeps its snapshot, and can go anywhere.
/// let length = std::thread::spawn(move || value.len()).join().unwrap();
/// assert_eq!(length, 5);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub struct OwnedValue {
    txn: Arc<ReadTxn>,
    start: *const u8,
    len: usize,
}

// SAFETY: the bytes are immutable while the snapshot lives, which the value owns a share of.
unsafe impl Send for OwnedValue {}
// SAFETY: as above.
unsafe impl Sync for OwnedValue {}

impl OwnedValue {
    /// Of a slice of this snapshot.
    pub(super) fn new(txn: &Arc<ReadTxn>, value: &[u8]) -> OwnedValue {
        OwnedValue { txn: Arc::clone(txn), start: value.as_ptr(), len: value.len() }
    }

    /// The snapshot the value belongs to.
    pub fn txn(&self) -> &Arc<ReadTxn> {
        &self.txn
    }
}

impl std::ops::Deref for OwnedValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: start and len come from a slice of the snapshot that `txn` keeps alive.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl AsRef<[u8]> for OwnedValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for OwnedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedValue").field("len", &self.len).finish_non_exhaustive()
    }
}

/// A table as a read transaction sees it.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let read = env.read()?;
/// let table = read.table("t")?;
/// // Slices of the map: they live as long as `read`.
/// assert_eq!(table.get("key")?, Some(&b"value"[..]));
/// for record in table.range("a".."z") {
///     let (key, value) = record?;
///     assert_eq!((key, value), (&b"key"[..], &b"value"[..]));
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub struct ReadTable<'t> {
    snapshot: Snapshot<'t>,
    tree: Tree,
}

impl<'t> ReadTable<'t> {
    /// The value under `key`, of several the first: a slice of the map, valid as long as the
    /// transaction.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<&'t [u8]>> {
        lookup::get(&self.snapshot, &self.tree.desc, &self.tree.order, key.as_ref())
    }

    /// The value under `key`, of several the first, and how many there are.
    ///
    /// ```
    /// use zubilo::TableOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut tags = txn.table_or_create_with("tags", &TableOptions::new().duplicates())?;
    /// ["a", "b", "c"].iter().try_for_each(|value| tags.put("key", value))?;
    /// assert_eq!(tags.get_with_count("key")?, Some((&b"a"[..], 3)));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn get_with_count(&self, key: impl AsRef<[u8]>) -> Result<Option<(&'t [u8], u64)>> {
        first_and_count(&self.snapshot, &self.tree, key.as_ref())
    }

    /// The values under many keys, in their order. Several times faster a key than
    /// [`ReadTable::get`] when the table is larger than the CPU's caches.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("b", "value"))?;
    /// let read = env.read()?;
    /// assert_eq!(read.table("t")?.get_many(&["a", "b"])?, [None, Some(&b"value"[..])]);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<&'t [u8]>>> {
        let mut values = vec![None; keys.len()];
        self.get_many_with(keys, |i, value| {
            if let Some(place) = values.get_mut(i) {
                *place = value;
            }
        })?;
        Ok(values)
    }

    /// As [`ReadTable::get_many`], handing each value to `found` with the index of its key.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("b", "value"))?;
    /// let read = env.read()?;
    /// let mut found = Vec::new();
    /// read.table("t")?.get_many_with(&["a", "b"], |n, value| found.push((n, value.is_some())))?;
    /// assert_eq!(found, [(0, false), (1, true)]);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&'t [u8]>),
    ) -> Result<()> {
        let mut group: [&[u8]; batch::GROUP] = [&[]; batch::GROUP];
        for (g, chunk) in keys.chunks(batch::GROUP).enumerate() {
            for (place, key) in group.iter_mut().zip(chunk) {
                *place = key.as_ref();
            }
            let first = g * batch::GROUP;
            let group = group.get(..chunk.len()).unwrap_or_default();
            batch::get_many(&self.snapshot, &self.tree.desc, &self.tree.order, group, |i, v| {
                found(first + i, v)
            })?;
        }
        Ok(())
    }

    /// All records in order; a key with many values comes with each of them.
    pub fn iter(&self) -> Iter<'t> {
        self.range::<&[u8]>(..)
    }

    /// The first record.
    pub fn first(&self) -> Result<Option<(&'t [u8], &'t [u8])>> {
        self.cursor().first()
    }

    /// The last record.
    pub fn last(&self) -> Result<Option<(&'t [u8], &'t [u8])>> {
        self.cursor().last()
    }

    /// The records with keys inside `range`, in order; `.rev()` goes backwards.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter<'t> {
        Iter::reading(self.snapshot, &self.tree, Ok(bounds_of(range)))
    }

    /// The records whose keys start with `prefix`. In a table of reversed order those whose keys end
    /// with it; in one with a custom order an error, for they need not lie together.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter<'t> {
        let bounds = prefix_bounds(&self.tree.order, prefix.as_ref());
        Iter::reading(self.snapshot, &self.tree, bounds)
    }

    /// The values under `key`, in order; at most one in a table without duplicates.
    pub fn get_all(&self, key: impl AsRef<[u8]>) -> Result<ValueIter<'t>> {
        values_of_key(self.snapshot, &self.tree, key.as_ref()).map(ValueIter::reading)
    }

    /// The number of values under `key`; it costs no more than [`ReadTable::get`].
    pub fn count(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        count_of_key(&self.snapshot, &self.tree, key.as_ref())
    }

    /// Whether `value` is one of those under `key`.
    pub fn contains(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        has_pair(&self.snapshot, &self.tree, key.as_ref(), value.as_ref())
    }

    pub(super) fn new(snapshot: Snapshot<'t>, tree: Tree) -> ReadTable<'t> {
        ReadTable { snapshot, tree }
    }

    /// The table's options, with the comparators it was opened with.
    pub fn options(&self) -> TableOptions {
        TableOptions::of_tree(&self.tree)
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'t> {
        self.snapshot
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// A cursor that stands nowhere yet.
    pub fn cursor(&self) -> Cursor<'t> {
        Cursor::reading(self.snapshot, &self.tree, CursorState::default())
    }

    /// Number of records: each value of a key counts.
    pub fn len(&self) -> u64 {
        self.tree.desc.entries
    }

    /// True without records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Figures of the table.
    pub fn stats(&self) -> TableStats {
        TableStats::of(&self.tree.desc)
    }
}
