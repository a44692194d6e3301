//! Readers: read transactions begun and ended again and again in one place, which is what makes
//! that cheap. Between two of them nothing is pinned, but the slot in the reader table is kept.

use std::ops::Deref;
use std::sync::Arc;

use crate::env::EnvInner;
use crate::error::Result;

use super::read::ReadTxn;

/// Begins read transactions, one after the other, for less than [`Env::read`](crate::Env::read)
/// does. It takes a slot of the reader table from the moment it is made until it is dropped.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let mut reader = env.reader()?;
/// for _ in 0..1000 {
///     // Each one sees the newest commit.
///     let txn = reader.begin()?;
///     assert!(txn.table("t")?.contains_key("key")?);
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub struct Reader {
    txn: ReadTxn,
}

impl Reader {
    pub(crate) fn new(env: &Arc<EnvInner>) -> Result<Reader> {
        let txn = ReadTxn::begin(env)?;
        txn.unpin();
        Ok(Reader { txn })
    }

    /// Begins a read transaction, a snapshot of the newest commit, that ends with the guard.
    #[inline]
    pub fn begin(&mut self) -> Result<ReadGuard<'_>> {
        if let Err(error) = self.txn.repin() {
            self.txn.unpin();
            return Err(error);
        }
        Ok(ReadGuard { txn: &mut self.txn })
    }
}

/// A read transaction of a [`Reader`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut reader = env.reader()?;
/// let txn = reader.begin()?;
/// assert!(txn.tables()?.is_empty());
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "the snapshot ends when it is dropped"]
pub struct ReadGuard<'r> {
    txn: &'r mut ReadTxn,
}

impl Deref for ReadGuard<'_> {
    type Target = ReadTxn;

    #[inline]
    fn deref(&self) -> &ReadTxn {
        self.txn
    }
}

impl Drop for ReadGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.txn.unpin();
    }
}

#[cfg(test)]
mod tests {
    use crate::Options;

    #[test]
    fn each_begin_sees_the_newest_commit_and_nothing_is_pinned_between() {
        let dir = tempfile::tempdir().expect("directory");
        let env = Options::new().open(dir.path().join("store")).expect("open");
        let put = |value: &[u8]| {
            let mut write = env.write().expect("begin");
            write.table_or_create("t").expect("table").put("key", value).expect("put");
            write.commit().expect("commit");
        };
        put(b"1");
        let mut reader = env.reader().expect("reader");
        assert!(env.readers().is_empty());
        for value in [b"1", b"1", b"2", b"3"] {
            put(value);
            let read = reader.begin().expect("begin");
            assert_eq!(env.readers().len(), 1);
            let seen = read.table("t").and_then(|t| t.get("key")).expect("get");
            assert_eq!(seen, Some(&value[..]));
            put(b"later");
            let seen = read.table("t").and_then(|t| t.get("key")).expect("get");
            assert_eq!(seen, Some(&value[..]), "a snapshot does not change");
        }
        // A guard that never ends does no harm to the next one.
        std::mem::forget(reader.begin().expect("begin"));
        put(b"4");
        let read = reader.begin().expect("begin");
        let seen = read.table("t").and_then(|t| t.get("key")).expect("get");
        assert_eq!(seen, Some(&b"4"[..]));
        drop(read);
        drop(reader);
        assert!(env.readers().is_empty());
    }
}
