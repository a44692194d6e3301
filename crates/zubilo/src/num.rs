//! The numbers of the format, each a type of its own, and the only code that turns bytes into
//! numbers. Everything on disk is little-endian; a load past the end of a slice gives `None`.

use std::fmt;

/// Number of a page in the data file; its byte offset is the number times the page size.
///
/// ```
/// use zubilo::{Error, PageNo};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let error = Error::Corrupted { page: PageNo(7), reason: "a wrong checksum" };
/// assert!(error.to_string().contains("page 7"));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageNo(pub u64);

/// Number of a transaction. Commits of one store are numbered without repeats, upwards.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let before = env.read()?.id();
/// let commit = env.write()?.commit()?;
/// assert!(commit >= before);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TxnId(pub u64);

impl fmt::Debug for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}", self.0)
    }
}

impl fmt::Display for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "txn {}", self.0)
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! little_endian {
    ($load:ident, $store:ident, $int:ty) => {
        /// Loads a little-endian integer at `at`.
        #[inline(always)]
        pub(crate) fn $load(bytes: &[u8], at: usize) -> Option<$int> {
            bytes.get(at..)?.first_chunk().map(|b| <$int>::from_le_bytes(*b))
        }

        /// Stores a little-endian integer at `at`; false when it does not fit.
        #[inline(always)]
        #[must_use]
        pub(crate) fn $store(bytes: &mut [u8], at: usize, value: $int) -> bool {
            match bytes.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
                Some(b) => {
                    *b = value.to_le_bytes();
                    true
                }
                None => false,
            }
        }
    };
}

little_endian!(load_u16, store_u16, u16);
little_endian!(load_u32, store_u32, u32);
little_endian!(load_u64, store_u64, u64);
