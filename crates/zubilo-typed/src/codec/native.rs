//! Little-endian numbers sorted by the engine as such: what programs written for LMDB keep in tables
//! with `INTEGERKEY` or `INTEGERDUP`. Within Zubilo alone the plain numbers are better: their keys are
//! searched as they are, these must be turned round first.

use std::marker::PhantomData;

use zubilo::KeyOrder;

use super::numbers::whole;
use super::{Key, Value};
use crate::error::Result;

/// A `u32` or `u64` in a table of [`KeyOrder::Integer`], little-endian.
///
/// ```
/// use zubilo_typed::{Native, Table};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const NUMBERS: Table<Native<u64>, &str> = Table::new("numbers");
/// let mut txn = env.write()?;
/// let mut numbers = NUMBERS.open_mut(&mut txn)?;
/// numbers.put(256, "more")?;
/// numbers.put(1, "less")?;
/// assert_eq!(numbers.first()?, Some((1, "less")));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct Native<T>(PhantomData<fn() -> T>);

macro_rules! native {
    ($($type:ty, $tag:literal;)*) => {
        $(impl Value for Native<$type> {
            type Input<'a> = $type;
            type View<'a> = $type;
            type Owned = $type;

            const WIDTH: Option<usize> = Some(size_of::<$type>());

            fn tag(into: &mut String) {
                into.push_str($tag);
            }

            fn encode(input: $type, into: &mut Vec<u8>) -> Result<()> {
                into.extend_from_slice(&input.to_le_bytes());
                Ok(())
            }

            fn decode(bytes: &[u8]) -> Result<$type> {
                whole(bytes, $tag).map(<$type>::from_le_bytes)
            }

            fn input(owned: &$type) -> $type {
                *owned
            }

            fn own(view: $type) -> $type {
                view
            }

            fn encoded<R>(input: $type, with: impl FnOnce(&[u8]) -> R) -> Result<R> {
                Ok(with(&input.to_le_bytes()))
            }
        }

        impl Key for Native<$type> {
            const ORDER: KeyOrder = KeyOrder::Integer;
        })*
    };
}

native! { u32, "native-u32"; u64, "native-u64"; }
