//! Values as programs hand them in and get them: from pointers to slices and back.
//!
//! A program may hand in pointers to what it was just given: a change moves those bytes, so keys
//! and small values are copied before it ([`Copied`]).

use std::mem::MaybeUninit;

use crate::abi::MDB_val;
use crate::errors::{Code, Result};

/// The bytes of a value of the program's.
#[inline]
pub(crate) fn bytes<'v>(val: *const MDB_val) -> Result<&'v [u8]> {
    if val.is_null() {
        return Err(Code::EINVAL);
    }
    // SAFETY: by the contract it points to a value, and that to its bytes, for the time of a call.
    unsafe {
        let val = &*val;
        match (val.mv_data.is_null(), val.mv_size) {
            (_, 0) => Ok(&[]),
            (true, _) => Err(Code::EINVAL),
            (false, len) if len > isize::MAX as usize => Err(Code::BAD_VALSIZE),
            (false, len) => Ok(std::slice::from_raw_parts(val.mv_data.cast(), len)),
        }
    }
}

/// Bytes as a value. Nobody writes through the pointer.
pub(crate) fn val(bytes: &[u8]) -> MDB_val {
    MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

/// Gives the program the place of bytes.
#[inline]
pub(crate) fn give(to: *mut MDB_val, bytes: &[u8]) {
    if !to.is_null() {
        // SAFETY: by the contract it points to a value.
        unsafe { to.write(val(bytes)) };
    }
}

/// Key and value as programs get them: pointers, good until the next change.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) key: MDB_val,
    pub(crate) value: MDB_val,
}

impl Found {
    #[inline]
    pub(crate) fn new((key, value): (&[u8], &[u8])) -> Found {
        Found { key: val(key), value: val(value) }
    }
}

/// Gives the program the place of bytes that were found.
#[inline]
pub(crate) fn pass(to: *mut MDB_val, found: MDB_val) {
    if !to.is_null() {
        // SAFETY: by the contract it points to a value.
        unsafe { to.write(found) };
    }
}

/// Bytes in the caller's frame, copied if they fit.
pub(crate) struct Copied<const N: usize>([MaybeUninit<u8>; N]);

impl<const N: usize> Copied<N> {
    #[inline]
    pub(crate) fn new() -> Copied<N> {
        Copied([MaybeUninit::uninit(); N])
    }

    #[inline]
    pub(crate) fn keep<'c>(&'c mut self, bytes: &'c [u8]) -> &'c [u8] {
        if bytes.len() > N {
            return bytes;
        }
        // Keys are often so: two words that overlap, without a call.
        if N >= 16
            && let (Some(first), Some(last), 8..=16) =
                (bytes.first_chunk::<8>(), bytes.last_chunk::<8>(), bytes.len())
        {
            let start = self.0.as_mut_ptr().cast::<u8>();
            // SAFETY: both words end within `N` bytes, and the bytes up to the end of the second are
            // then written.
            return unsafe {
                start.cast::<[u8; 8]>().write(*first);
                start.add(bytes.len() - 8).cast::<[u8; 8]>().write(*last);
                std::slice::from_raw_parts(start, bytes.len())
            };
        }
        // SAFETY: both have room for as many bytes, and they are in different places.
        unsafe {
            let start = self.0.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            std::slice::from_raw_parts(start, bytes.len())
        }
    }
}
