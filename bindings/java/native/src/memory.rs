//! Bytes of the caller's: addresses that Java gives, and answers written to them.
//!
//! The only callers are the classes of the Java package, which pass addresses of buffers that they own
//! and keep during the call, with their lengths. That is the promise behind each `unsafe` here.

use crate::error::Failure;

/// `len` bytes at an address that Java gave; nothing for a length of 0.
///
/// # Safety
/// The bytes are readable, and nobody writes them, during `'a`.
#[inline]
pub(crate) unsafe fn bytes<'a>(at: i64, len: i64) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if at <= 0 || len < 0 {
        return Err(Failure::Foreign);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(at as *const u8, len as usize) })
}

/// The same, to write.
///
/// # Safety
/// The bytes are writable, and only this call touches them, during `'a`.
#[inline]
pub(crate) unsafe fn room<'a>(at: i64, len: i64) -> Result<&'a mut [u8], Failure> {
    if len == 0 {
        return Ok(&mut []);
    }
    if at <= 0 || len < 0 {
        return Err(Failure::Foreign);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(at as *mut u8, len as usize) })
}

/// Numbers and bytes of a request, from the front.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn number(&mut self) -> Result<i64, Failure> {
        let (number, rest) = self.0.split_first_chunk().ok_or(Failure::Foreign)?;
        self.0 = rest;
        Ok(i64::from_le_bytes(*number))
    }

    pub(crate) fn length(&mut self) -> Result<usize, Failure> {
        let (number, rest) = self.0.split_first_chunk().ok_or(Failure::Foreign)?;
        self.0 = rest;
        usize::try_from(i32::from_le_bytes(*number)).map_err(|_| Failure::Foreign)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Failure> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Failure::Foreign)?;
        self.0 = rest;
        Ok(bytes)
    }
}

/// An answer, as far as there is room.
pub(crate) struct Output<'a> {
    pub(crate) room: &'a mut [u8],
    pub(crate) at: usize,
}

impl<'a> Output<'a> {
    pub(crate) fn new(room: &'a mut [u8]) -> Output<'a> {
        Output { room, at: 0 }
    }

    /// Whether `len` more bytes fit.
    #[inline]
    pub(crate) fn fits(&self, len: usize) -> bool {
        self.room.len() - self.at >= len
    }

    /// Appends bytes; false, and nothing written, if they do not fit.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        match self.room.get_mut(self.at..self.at + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.at += bytes.len();
                true
            }
            None => false,
        }
    }

    #[inline]
    pub(crate) fn number(&mut self, number: i64) -> bool {
        self.put(&number.to_le_bytes())
    }

    /// Address and length of bytes.
    #[inline]
    pub(crate) fn pointer(&mut self, bytes: &[u8]) -> bool {
        self.number(bytes.as_ptr() as i64) && self.number(bytes.len() as i64)
    }

    /// Says in the first number how much room is needed.
    pub(crate) fn ask(&mut self, needed: usize) -> Result<(), Failure> {
        self.at = 0;
        if self.number(needed as i64) { Ok(()) } else { Err(Failure::Foreign) }
    }
}

/// Writes a record: addresses and lengths of key and value, or lengths and the bytes themselves. False if
/// it does not fit.
#[inline]
pub(crate) fn put_record(out: &mut Output<'_>, copy: bool, key: &[u8], value: &[u8]) -> bool {
    if !out.fits(record_len(copy, key, value)) {
        return false;
    }
    if copy {
        out.put(&(key.len() as i32).to_le_bytes())
            && out.put(&(value.len() as i32).to_le_bytes())
            && out.put(key)
            && out.put(value)
    } else {
        out.pointer(key) && out.pointer(value)
    }
}

#[inline]
pub(crate) fn record_len(copy: bool, key: &[u8], value: &[u8]) -> usize {
    if copy { 8 + key.len() + value.len() } else { 32 }
}
