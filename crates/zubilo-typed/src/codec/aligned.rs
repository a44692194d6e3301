//! Plain data that is read in place: the table aligns its values, and reading is a checked cast.

use std::marker::PhantomData;

use bytemuck::Pod;

use super::{Reserve, Value};
use crate::error::{Result, bad};

/// Plain data as a value, or with `Aligned<[T]>` a slice of it: a reference into the store is given,
/// nothing is copied. The bytes are those of the memory, so a store is refused on a machine of the
/// other byte order; what the fields mean is not noted: see [`version`](crate::Table::version).
///
/// ```
/// use zubilo_typed::{Aligned, Table};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const VECTORS: Table<u32, Aligned<[f32]>> = Table::new("vectors");
/// let mut txn = env.write()?;
/// let mut vectors = VECTORS.open_mut(&mut txn)?;
/// vectors.put(7, &[0.5, 1.5])?;
/// // A slice of floats in the store.
/// let sum: f32 = vectors.get(7)?.unwrap_or_default().iter().sum();
/// assert_eq!(sum, 2.0);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct Aligned<T: ?Sized>(PhantomData<fn() -> Box<T>>);

const BYTE_ORDER: &str = if cfg!(target_endian = "little") { "le" } else { "be" };

/// The alignment of a type, where the engine has it.
const fn align_of_values<T>() -> u8 {
    const { assert!(align_of::<T>() <= 16, "values can be aligned to 16 bytes at most") }
    align_of::<T>() as u8
}

fn cast_error(error: bytemuck::PodCastError) -> crate::Error {
    let reason = match error {
        bytemuck::PodCastError::TargetAlignmentGreaterAndInputNotAligned => "not aligned",
        _ => "of another length",
    };
    bad("aligned value", reason)
}

impl<T: Pod> Value for Aligned<T> {
    type Input<'a> = &'a T;
    type View<'a> = &'a T;
    type Owned = T;

    const WIDTH: Option<usize> = Some(size_of::<T>());
    const ALIGN: u8 = align_of_values::<T>();

    fn tag(into: &mut String) {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        into.push_str(&format!("aligned<{size}/{align} {BYTE_ORDER}>"));
    }

    fn encode(input: &T, into: &mut Vec<u8>) -> Result<()> {
        into.extend_from_slice(bytemuck::bytes_of(input));
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<&T> {
        bytemuck::try_from_bytes(bytes).map_err(cast_error)
    }

    fn input(owned: &T) -> &T {
        owned
    }

    fn own(view: &T) -> T {
        *view
    }

    fn encoded<R>(input: &T, with: impl FnOnce(&[u8]) -> R) -> Result<R> {
        Ok(with(bytemuck::bytes_of(input)))
    }
}

impl<T: Pod> Value for Aligned<[T]> {
    type Input<'a> = &'a [T];
    type View<'a> = &'a [T];
    type Owned = Vec<T>;

    const ALIGN: u8 = {
        const { assert!(size_of::<T>() > 0, "how many there are of nothing cannot be stored") }
        align_of_values::<T>()
    };

    fn tag(into: &mut String) {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        into.push_str(&format!("aligned<[{size}/{align}] {BYTE_ORDER}>"));
    }

    fn encode(input: &[T], into: &mut Vec<u8>) -> Result<()> {
        into.extend_from_slice(bytemuck::cast_slice(input));
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<&[T]> {
        // An empty value need not stand anywhere in particular.
        if bytes.is_empty() {
            return Ok(&[]);
        }
        bytemuck::try_cast_slice(bytes).map_err(cast_error)
    }

    fn input(owned: &Vec<T>) -> &[T] {
        owned
    }

    fn own(view: &[T]) -> Vec<T> {
        view.to_vec()
    }

    fn encoded<R>(input: &[T], with: impl FnOnce(&[u8]) -> R) -> Result<R> {
        Ok(with(bytemuck::cast_slice(input)))
    }
}

impl<T: Pod> Reserve for Aligned<[T]> {
    type Room = [T];

    fn room_len(len: usize) -> Result<usize> {
        let too_long = zubilo::Error::Invalid("no value is so long");
        len.checked_mul(size_of::<T>()).ok_or(too_long.into())
    }

    fn room(bytes: &mut [u8]) -> Result<&mut [T]> {
        if bytes.is_empty() {
            return Ok(&mut []);
        }
        bytemuck::try_cast_slice_mut(bytes).map_err(cast_error)
    }
}
