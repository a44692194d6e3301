//! Strings and byte strings, as they are. Inside a tuple they are ended by 0 0, and a 0 of their own
//! becomes 0 255: so the shorter of two comes first, whatever follows.

use std::borrow::Cow;
use std::convert::identity;

use super::{ByteOrdered, Key, Part, Reserve, Value};
use crate::error::{Result, bad};

const ESCAPED: u8 = 255;

/// Appends a byte string that marks its own end.
fn escape(bytes: &[u8], into: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|&b| b == 0) {
        let (plain, behind) = rest.split_at(zero);
        into.extend_from_slice(plain);
        into.extend_from_slice(&[0, ESCAPED]);
        rest = behind.get(1..).unwrap_or_default();
    }
    into.extend_from_slice(rest);
    into.extend_from_slice(&[0, 0]);
}

/// Takes such a byte string off the front; it is copied only if it has zeros of its own.
fn unescape<'a>(bytes: &mut &'a [u8], ty: &'static str) -> Result<Cow<'a, [u8]>> {
    let mut owned: Option<Vec<u8>> = None;
    loop {
        let zero = bytes.iter().position(|&b| b == 0).ok_or(bad(ty, "without its end"))?;
        let (plain, behind) = bytes.split_at(zero);
        *bytes = behind.get(2..).ok_or(bad(ty, "without its end"))?;
        match (behind.get(1), &mut owned) {
            (Some(&0), None) => return Ok(Cow::Borrowed(plain)),
            (Some(&0), Some(owned)) => {
                owned.extend_from_slice(plain);
                return Ok(Cow::Owned(std::mem::take(owned)));
            }
            (Some(&ESCAPED), owned) => {
                let owned = owned.get_or_insert_default();
                owned.extend_from_slice(plain);
                owned.push(0);
            }
            _ => return Err(bad(ty, "with a 0 that is neither its end nor its own")),
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| bad("str", "not UTF-8"))
}

fn utf8_part(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>> {
    match bytes {
        Cow::Borrowed(bytes) => utf8(bytes).map(Cow::Borrowed),
        Cow::Owned(bytes) => {
            String::from_utf8(bytes).map(Cow::Owned).map_err(|_| bad("str", "not UTF-8"))
        }
    }
}

/// A codec of variable length: `$raw` gives the input's bytes, `$view` what reading gives, `$item`
/// the same from a tuple; `$own` and `$own_part` make `$owned` of them.
macro_rules! variable {
    (
        $type:ty, $tag:literal, $input:ty, $out:ty, $part:ty, $owned:ty,
        $raw:expr, $view:expr, $item:expr, $own:expr, $own_part:expr $(,)?
    ) => {
        impl Value for $type {
            type Input<'a> = $input;
            type View<'a> = $out;
            type Owned = $owned;

            fn tag(into: &mut String) {
                into.push_str($tag);
            }

            fn encode(input: Self::Input<'_>, into: &mut Vec<u8>) -> Result<()> {
                into.extend_from_slice($raw(input));
                Ok(())
            }

            fn decode(bytes: &[u8]) -> Result<Self::View<'_>> {
                $view(bytes)
            }

            fn input(owned: &$owned) -> Self::Input<'_> {
                owned
            }

            fn own(view: Self::View<'_>) -> $owned {
                $own(view)
            }

            fn encoded<R>(input: Self::Input<'_>, with: impl FnOnce(&[u8]) -> R) -> Result<R> {
                Ok(with($raw(input)))
            }
        }

        impl Key for $type {}
        impl ByteOrdered for $type {}

        impl Part for $type {
            type Item<'a> = $part;

            fn encode_part(input: Self::Input<'_>, into: &mut Vec<u8>) -> Result<()> {
                escape($raw(input), into);
                Ok(())
            }

            fn decode_part<'a>(bytes: &mut &'a [u8]) -> Result<Self::Item<'a>> {
                unescape(bytes, $tag).and_then($item)
            }

            fn own_item(item: Self::Item<'_>) -> $owned {
                $own_part(item)
            }
        }
    };
}

variable!(
    &'static str,
    "str",
    &'a str,
    &'a str,
    Cow<'a, str>,
    String,
    str::as_bytes,
    utf8,
    utf8_part,
    str::to_string,
    Cow::into_owned,
);
variable!(
    String,
    "str",
    &'a str,
    String,
    String,
    String,
    str::as_bytes,
    |bytes| utf8(bytes).map(str::to_string),
    |bytes| utf8_part(bytes).map(Cow::into_owned),
    identity,
    identity,
);
variable!(
    &'static [u8],
    "bytes",
    &'a [u8],
    &'a [u8],
    Cow<'a, [u8]>,
    Vec<u8>,
    <[u8]>::as_ref,
    Ok,
    Ok,
    <[u8]>::to_vec,
    Cow::into_owned,
);
variable!(
    Vec<u8>,
    "bytes",
    &'a [u8],
    Vec<u8>,
    Vec<u8>,
    Vec<u8>,
    <[u8]>::as_ref,
    |bytes: &[u8]| Ok(bytes.to_vec()),
    |bytes: Cow<'_, [u8]>| Ok(bytes.into_owned()),
    identity,
    identity,
);

/// Bytes can be filled in place.
macro_rules! reserve {
    ($($type:ty),*) => {
        $(impl Reserve for $type {
            type Room = [u8];

            fn room_len(len: usize) -> Result<usize> {
                Ok(len)
            }

            fn room(bytes: &mut [u8]) -> Result<&mut [u8]> {
                Ok(bytes)
            }
        })*
    };
}

reserve!(&'static [u8], Vec<u8>);

impl<const N: usize> Value for [u8; N] {
    type Input<'a> = &'a [u8; N];
    type View<'a> = &'a [u8; N];
    type Owned = [u8; N];

    const WIDTH: Option<usize> = Some(N);

    fn tag(into: &mut String) {
        into.push_str(&format!("bytes{N}"));
    }

    fn encode(input: &[u8; N], into: &mut Vec<u8>) -> Result<()> {
        into.extend_from_slice(input);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<&[u8; N]> {
        bytes.try_into().map_err(|_| bad("byte array", "of another length"))
    }

    fn input(owned: &[u8; N]) -> &[u8; N] {
        owned
    }

    fn own(view: &[u8; N]) -> [u8; N] {
        *view
    }

    fn encoded<R>(input: &[u8; N], with: impl FnOnce(&[u8]) -> R) -> Result<R> {
        Ok(with(input))
    }
}

impl<const N: usize> Key for [u8; N] {}
impl<const N: usize> ByteOrdered for [u8; N] {}

impl<const N: usize> Part for [u8; N] {
    type Item<'a> = &'a [u8; N];

    fn encode_part(input: &[u8; N], into: &mut Vec<u8>) -> Result<()> {
        Self::encode(input, into)
    }

    fn decode_part<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N]> {
        let (first, rest) = bytes.split_first_chunk::<N>().ok_or(bad("byte array", "too short"))?;
        *bytes = rest;
        Ok(first)
    }

    fn own_item(item: &[u8; N]) -> [u8; N] {
        *item
    }
}
