//! Compounds: nothing at all, options (none comes first), tuples (sorted by their first part, then
//! by the second, and so on).

use super::{ByteOrdered, Key, Part, Value};
use crate::error::{Result, bad};

impl Value for () {
    type Input<'a> = ();
    type View<'a> = ();
    type Owned = ();

    const WIDTH: Option<usize> = Some(0);

    fn tag(into: &mut String) {
        into.push_str("()");
    }

    fn encode((): (), _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() { Ok(()) } else { Err(bad("()", "not empty")) }
    }

    fn input((): &()) {}

    fn own((): ()) {}

    fn encoded<R>((): (), with: impl FnOnce(&[u8]) -> R) -> Result<R> {
        Ok(with(&[]))
    }
}

const NONE: u8 = 0;
const SOME: u8 = 1;

impl<T: Value> Value for Option<T> {
    type Input<'a> = Option<T::Input<'a>>;
    type View<'a> = Option<T::View<'a>>;
    type Owned = Option<T::Owned>;

    fn tag(into: &mut String) {
        // The byte in front would leave nothing aligned.
        const { assert!(T::ALIGN == 1, "an option of an aligned value cannot be cast in place") }
        into.push_str("option<");
        T::tag(into);
        into.push('>');
    }

    fn encode(input: Self::Input<'_>, into: &mut Vec<u8>) -> Result<()> {
        match input {
            Some(input) => {
                into.push(SOME);
                T::encode(input, into)
            }
            None => {
                into.push(NONE);
                Ok(())
            }
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self::View<'_>> {
        match bytes.split_first() {
            Some((&NONE, [])) => Ok(None),
            Some((&SOME, rest)) => T::decode(rest).map(Some),
            _ => Err(bad("option", "neither none nor some")),
        }
    }

    fn input(owned: &Self::Owned) -> Self::Input<'_> {
        owned.as_ref().map(T::input)
    }

    fn own(view: Self::View<'_>) -> Self::Owned {
        view.map(T::own)
    }
}

impl<T: ByteOrdered> Key for Option<T> {}
impl<T: ByteOrdered> ByteOrdered for Option<T> {}

impl<T: Part> Part for Option<T> {
    type Item<'a> = Option<T::Item<'a>>;

    fn encode_part(input: Self::Input<'_>, into: &mut Vec<u8>) -> Result<()> {
        match input {
            Some(input) => {
                into.push(SOME);
                T::encode_part(input, into)
            }
            None => {
                into.push(NONE);
                Ok(())
            }
        }
    }

    fn decode_part<'a>(bytes: &mut &'a [u8]) -> Result<Self::Item<'a>> {
        let (&mark, rest) = bytes.split_first().ok_or(bad("option", "too short"))?;
        *bytes = rest;
        match mark {
            NONE => Ok(None),
            SOME => T::decode_part(bytes).map(Some),
            _ => Err(bad("option", "neither none nor some")),
        }
    }

    fn own_item(item: Self::Item<'_>) -> Self::Owned {
        item.map(T::own_item)
    }
}

/// The sum of two widths, where both are known.
const fn sum(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        _ => None,
    }
}

/// Tuples: all parts but the last mark their own end; the last one takes the rest, as it is when it
/// stands alone.
macro_rules! tuple {
    ($($part:ident $i:tt),+; $last:ident $l:tt) => {
        impl<$($part: Part,)+ $last: ByteOrdered> Value for ($($part,)+ $last,) {
            type Input<'a> = ($($part::Input<'a>,)+ $last::Input<'a>,);
            type View<'a> = ($($part::Item<'a>,)+ $last::View<'a>,);
            type Owned = ($($part::Owned,)+ $last::Owned,);

            const WIDTH: Option<usize> = {
                let width = $last::WIDTH;
                $(let width = sum(width, $part::WIDTH);)+
                width
            };

            fn tag(into: &mut String) {
                into.push('(');
                $($part::tag(into); into.push(',');)+
                $last::tag(into);
                into.push(')');
            }

            fn encode(input: Self::Input<'_>, into: &mut Vec<u8>) -> Result<()> {
                $($part::encode_part(input.$i, into)?;)+
                $last::encode(input.$l, into)
            }

            fn decode(bytes: &[u8]) -> Result<Self::View<'_>> {
                let mut rest = bytes;
                Ok(($($part::decode_part(&mut rest)?,)+ $last::decode(rest)?,))
            }

            fn input(owned: &Self::Owned) -> Self::Input<'_> {
                ($($part::input(&owned.$i),)+ $last::input(&owned.$l),)
            }

            fn own(view: Self::View<'_>) -> Self::Owned {
                ($($part::own_item(view.$i),)+ $last::own(view.$l),)
            }
        }

        impl<$($part: Part,)+ $last: ByteOrdered> Key for ($($part,)+ $last,) {}
        impl<$($part: Part,)+ $last: ByteOrdered> ByteOrdered for ($($part,)+ $last,) {}

        impl<$($part: Part,)+ $last: Part> Part for ($($part,)+ $last,) {
            type Item<'a> = ($($part::Item<'a>,)+ $last::Item<'a>,);

            fn encode_part(input: Self::Input<'_>, into: &mut Vec<u8>) -> Result<()> {
                $($part::encode_part(input.$i, into)?;)+
                $last::encode_part(input.$l, into)
            }

            fn decode_part<'a>(bytes: &mut &'a [u8]) -> Result<Self::Item<'a>> {
                Ok(($($part::decode_part(bytes)?,)+ $last::decode_part(bytes)?,))
            }

            fn own_item(item: Self::Item<'_>) -> Self::Owned {
                ($($part::own_item(item.$i),)+ $last::own_item(item.$l),)
            }
        }
    };
}

tuple!(A 0; B 1);
tuple!(A 0, B 1; C 2);
tuple!(A 0, B 1, C 2; D 3);
tuple!(A 0, B 1, C 2, D 3; E 4);
tuple!(A 0, B 1, C 2, D 3, E 4; F 5);
