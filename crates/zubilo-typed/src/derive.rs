//! What the derived codecs call. Not for programs: it changes with the macros.

use crate::codec::{Part, Value};
use crate::error::{Result, bad};

/// What a field of a derived type holds: an owned value that is its own codec.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a stored type",
    label = "cannot be stored here",
    note = "fields are owned: integers, floats, `bool`, `char`, `String`, `Vec<u8>`, arrays of bytes, options and tuples of these, and types that derive `Key`"
)]
pub trait Field: Value<Owned = Self> {}

impl<T: Value<Owned = T>> Field for T {}

/// A field that others can follow.
pub fn part<T: Field + Part>() {}

/// The last field of a value.
pub fn value<T: Field>() {
    // What stands before it leaves nothing aligned.
    const { assert!(T::ALIGN == 1, "a field cannot be an aligned value") }
}

/// The width of fields one after the other.
pub const fn width(start: usize, mut fields: &[Option<usize>]) -> Option<usize> {
    let mut sum = start;
    while let [first, rest @ ..] = fields {
        match first {
            Some(width) => sum += *width,
            None => return None,
        }
        fields = rest;
    }
    Some(sum)
}

/// The width of variants, if they have one in common.
pub const fn one_width(variants: &[Option<usize>]) -> Option<usize> {
    let [Some(width), rest @ ..] = variants else { return None };
    let mut rest = rest;
    while let [first, others @ ..] = rest {
        match first {
            Some(other) if *other == *width => rest = others,
            _ => return None,
        }
    }
    Some(*width)
}

/// Takes the number of a variant off the front.
pub fn variant(bytes: &mut &[u8], ty: &'static str) -> Result<u8> {
    let (&number, rest) = bytes.split_first().ok_or(bad(ty, "too short"))?;
    *bytes = rest;
    Ok(number)
}

/// Refuses bytes after a value that has none, or no more.
pub fn at_end(bytes: &[u8], ty: &'static str) -> Result<()> {
    if bytes.is_empty() { Ok(()) } else { Err(bad(ty, "followed by more")) }
}
