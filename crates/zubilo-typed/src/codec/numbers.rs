//! Numbers, truth values and characters: big-endian, so that the order of the bytes is that of the
//! numbers; of signed ones the sign is flipped, of negative floats all bits are.

use super::{ByteOrdered, Key, Part, Value};
use crate::error::{Error, Result, bad};

/// Takes `N` bytes off the front.
pub(super) fn take<const N: usize>(bytes: &mut &[u8], ty: &'static str) -> Result<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>().ok_or(bad(ty, "too short"))?;
    *bytes = rest;
    Ok(*first)
}

/// The only `N` bytes there are.
pub(super) fn whole<const N: usize>(bytes: &[u8], ty: &'static str) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| bad(ty, "of another length"))
}

/// A codec of fixed width by `$to`, from the type to its bytes, and `$from` back.
macro_rules! fixed {
    ($type:ty, $tag:literal, $width:expr, $to:expr, $from:expr) => {
        impl Value for $type {
            type Input<'a> = $type;
            type View<'a> = $type;
            type Owned = $type;

            const WIDTH: Option<usize> = Some($width);

            fn tag(into: &mut String) {
                into.push_str($tag);
            }

            fn encode(input: $type, into: &mut Vec<u8>) -> Result<()> {
                let to: fn($type) -> [u8; $width] = $to;
                into.extend_from_slice(&to(input));
                Ok(())
            }

            fn decode(bytes: &[u8]) -> Result<$type> {
                let from: fn([u8; $width]) -> Result<$type> = $from;
                from(whole(bytes, $tag)?)
            }

            fn input(owned: &$type) -> $type {
                *owned
            }

            fn own(view: $type) -> $type {
                view
            }

            fn encoded<R>(input: $type, with: impl FnOnce(&[u8]) -> R) -> Result<R> {
                let to: fn($type) -> [u8; $width] = $to;
                Ok(with(&to(input)))
            }
        }

        impl Key for $type {}
        impl ByteOrdered for $type {}

        impl Part for $type {
            type Item<'a> = $type;

            fn encode_part(input: $type, into: &mut Vec<u8>) -> Result<()> {
                Self::encode(input, into)
            }

            fn decode_part(bytes: &mut &[u8]) -> Result<$type> {
                let from: fn([u8; $width]) -> Result<$type> = $from;
                from(take(bytes, $tag)?)
            }

            fn own_item(item: $type) -> $type {
                item
            }
        }
    };
}

macro_rules! unsigned {
    ($($type:ty, $tag:literal;)*) => {
        $(fixed!($type, $tag, size_of::<$type>(), <$type>::to_be_bytes, |b| {
            Ok(<$type>::from_be_bytes(b))
        });)*
    };
}

macro_rules! signed {
    ($($type:ty, $tag:literal;)*) => {
        $(fixed!(
            $type,
            $tag,
            size_of::<$type>(),
            |n| (n ^ <$type>::MIN).to_be_bytes(),
            |b| Ok(<$type>::from_be_bytes(b) ^ <$type>::MIN)
        );)*
    };
}

/// Floats in their total order (`total_cmp`): negative NaN, negative numbers, -0, 0, positive ones,
/// positive NaN.
macro_rules! float {
    ($($type:ty, $bits:ty, $tag:literal;)*) => {
        $(fixed!(
            $type,
            $tag,
            size_of::<$type>(),
            |x| {
                let bits = x.to_bits();
                let sign = 1 << (<$bits>::BITS - 1);
                (if bits & sign == 0 { bits | sign } else { !bits }).to_be_bytes()
            },
            |b| {
                let bits = <$bits>::from_be_bytes(b);
                let sign = 1 << (<$bits>::BITS - 1);
                Ok(<$type>::from_bits(if bits & sign == 0 { !bits } else { bits & !sign }))
            }
        );)*
    };
}

unsigned! { u8, "u8"; u16, "u16"; u32, "u32"; u64, "u64"; u128, "u128"; }
signed! { i8, "i8"; i16, "i16"; i32, "i32"; i64, "i64"; i128, "i128"; }
float! { f32, u32, "f32"; f64, u64, "f64"; }

fixed!(bool, "bool", 1, |b| [u8::from(b)], |[byte]| match byte {
    0 => Ok(false),
    1 => Ok(true),
    _ => Err::<bool, Error>(bad("bool", "neither 0 nor 1")),
});

fixed!(char, "char", 4, |c| u32::from(c).to_be_bytes(), |bytes| {
    char::from_u32(u32::from_be_bytes(bytes)).ok_or(bad("char", "no character has this number"))
});
