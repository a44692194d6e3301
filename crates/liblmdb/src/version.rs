//! What the library says of itself.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::errors::describe;

/// The version of LMDB whose behaviour is followed. Some programs refuse any but the one they were
/// compiled with: `ZUBILO_LMDB_VERSION` in the environment sets another.
const DEFAULT: (c_int, c_int, c_int) = (0, 9, 33);
const VARIABLE: &CStr = c"ZUBILO_LMDB_VERSION";

struct Version {
    numbers: (c_int, c_int, c_int),
    text: CString,
}

fn version() -> &'static Version {
    // No lock: a child may be forked while another thread asks for the first time.
    static VERSION: AtomicPtr<Version> = AtomicPtr::new(std::ptr::null_mut());
    // SAFETY: what is stored there was leaked below.
    if let Some(version) = unsafe { VERSION.load(Ordering::Acquire).as_ref() } {
        return version;
    }
    let wanted = std::env::var(VARIABLE.to_str().unwrap_or_default()).ok();
    let numbers = wanted.and_then(|w| parse(&w)).unwrap_or(DEFAULT);
    let (major, minor, patch) = numbers;
    let text = format!("LMDB {major}.{minor}.{patch}: (Zubilo {})", env!("CARGO_PKG_VERSION"));
    let text = CString::new(text).unwrap_or_default();
    // Of several threads that ask at once each makes one; they are equal, and the texts stay.
    let version: &'static Version = Box::leak(Box::new(Version { numbers, text }));
    VERSION.store(std::ptr::from_ref(version).cast_mut(), Ordering::Release);
    version
}

fn parse(text: &str) -> Option<(c_int, c_int, c_int)> {
    let mut parts = text.split('.').map(|part| part.parse().ok().filter(|n: &c_int| *n >= 0));
    let numbers = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(numbers)
}

/// The version; any of the pointers can be null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_version(
    major: *mut c_int,
    minor: *mut c_int,
    patch: *mut c_int,
) -> *mut c_char {
    let version = version();
    let (a, b, c) = version.numbers;
    for (to, number) in [(major, a), (minor, b), (patch, c)] {
        if !to.is_null() {
            // SAFETY: by the contract it points to an int.
            unsafe { to.write(number) };
        }
    }
    version.text.as_ptr().cast_mut()
}

/// The text of a code.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mdb_strerror(code: c_int) -> *mut c_char {
    describe(code).cast_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers() {
        assert_eq!(parse("0.9.29"), Some((0, 9, 29)));
        for wrong in ["", "0.9", "0.9.x", "0.9.29.1", "-1.0.0"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
