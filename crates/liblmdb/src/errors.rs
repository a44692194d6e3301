//! Codes, their texts, and which of them an error of the engine becomes.

use std::ffi::{CStr, c_char, c_int};

use zubilo::Error;

/// A code other than 0: one of LMDB's, negative, or the system's, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub c_int);

pub(crate) type Result<T, E = Code> = std::result::Result<T, E>;

macro_rules! codes {
    ($($name:ident $number:literal $text:literal;)*) => {
        impl Code {
            $(
                #[allow(dead_code, reason = "some LMDB can give, and this library never")]
                pub(crate) const $name: Code = Code($number);
            )*
        }

        fn text(code: c_int) -> Option<&'static CStr> {
            match code {
                $($number => Some($text),)*
                _ => None,
            }
        }
    };
}

codes! {
    KEYEXIST -30799 c"MDB_KEYEXIST: Key/data pair already exists";
    NOTFOUND -30798 c"MDB_NOTFOUND: No matching key/data pair found";
    PAGE_NOTFOUND -30797 c"MDB_PAGE_NOTFOUND: Requested page not found";
    CORRUPTED -30796 c"MDB_CORRUPTED: Located page was wrong type";
    PANIC -30795 c"MDB_PANIC: Update of meta page failed or environment had fatal error";
    VERSION_MISMATCH -30794 c"MDB_VERSION_MISMATCH: Database environment version mismatch";
    INVALID -30793 c"MDB_INVALID: File is not an LMDB file";
    MAP_FULL -30792 c"MDB_MAP_FULL: Environment mapsize limit reached";
    DBS_FULL -30791 c"MDB_DBS_FULL: Environment maxdbs limit reached";
    READERS_FULL -30790 c"MDB_READERS_FULL: Environment maxreaders limit reached";
    TLS_FULL -30789 c"MDB_TLS_FULL: Thread-local storage keys full - too many environments open";
    TXN_FULL -30788 c"MDB_TXN_FULL: Transaction has too many dirty pages - transaction too big";
    CURSOR_FULL -30787 c"MDB_CURSOR_FULL: Internal error - cursor stack limit reached";
    PAGE_FULL -30786 c"MDB_PAGE_FULL: Internal error - page has no more space";
    MAP_RESIZED -30785 c"MDB_MAP_RESIZED: Database contents grew beyond environment mapsize";
    INCOMPATIBLE -30784 c"MDB_INCOMPATIBLE: Operation and DB incompatible, or DB flags changed";
    BAD_RSLOT -30783 c"MDB_BAD_RSLOT: Invalid reuse of reader locktable slot";
    BAD_TXN -30782 c"MDB_BAD_TXN: Transaction must abort, has a child, or is invalid";
    BAD_VALSIZE -30781 c"MDB_BAD_VALSIZE: Unsupported size of key/DB name/data, or wrong DUPFIXED size";
    CRYPTO_FAIL -30777 c"MDB_CRYPTO_FAIL: Page encryption or decryption failed";
    ENV_ENCRYPTION -30776 c"MDB_ENV_ENCRYPTION: Environment encryption mismatch";
    BAD_DBI -30780 c"MDB_BAD_DBI: The specified DBI handle was closed/changed unexpectedly";
}

impl Code {
    pub(crate) const EINVAL: Code = Code(libc::EINVAL);
    pub(crate) const EACCES: Code = Code(libc::EACCES);
    pub(crate) const ENOENT: Code = Code(libc::ENOENT);
}

impl From<Error> for Code {
    fn from(error: Error) -> Code {
        match &error {
            Error::Io { source, .. } => Code(match source.raw_os_error() {
                Some(code) => code,
                // Memory of the process, which gives no number.
                None if source.kind() == std::io::ErrorKind::OutOfMemory => libc::ENOMEM,
                None if source.kind() == std::io::ErrorKind::AlreadyExists => libc::EEXIST,
                None => libc::EIO,
            }),
            Error::Corrupted { .. } => Code::CORRUPTED,
            Error::NotAStore { .. } => Code::INVALID,
            Error::Version { .. } => Code::VERSION_MISMATCH,
            Error::WrongKey => Code::CRYPTO_FAIL,
            Error::KeyMissing | Error::NotEncrypted => Code::ENV_ENCRYPTION,
            Error::Invalid(_) | Error::ForeignChanges { .. } => Code::EINVAL,
            Error::KeyTooLong { .. } | Error::ValueTooLong { .. } => Code::BAD_VALSIZE,
            Error::MapFull { .. } => Code::MAP_FULL,
            Error::ReadersFull { .. } => Code::READERS_FULL,
            Error::Busy(_) | Error::Prepared { .. } => Code(libc::EBUSY),
            Error::NotPrepared => Code::NOTFOUND,
            Error::Forked | Error::Poisoned { .. } => Code::PANIC,
            Error::ReadOnly => Code::EACCES,
            Error::NoSuchTable { .. } => Code::NOTFOUND,
            Error::TableExists { .. } => Code::KEYEXIST,
            Error::Incompatible { .. } => Code::INCOMPATIBLE,
            Error::TxnBroken | Error::NoNestedLevel | Error::Outdated { .. } | Error::Expired => {
                Code::BAD_TXN
            }
            Error::Stopped => Code(libc::EINTR),
            _ => Code::PANIC,
        }
    }
}

/// The text of a code; it stays.
pub(crate) fn describe(code: c_int) -> *const c_char {
    if code == 0 {
        return c"Successful return: 0".as_ptr();
    }
    if let Some(text) = text(code) {
        return text.as_ptr();
    }
    if code < 0 {
        return c"Invalid error code".as_ptr();
    }
    // SAFETY: takes any number; the text it gives is the C library's, whose life is the contract
    // of LMDB's function too.
    unsafe { libc::strerror(code) }
}
