//! Beginnings of keys: the first characters of a string, the first parts of a tuple.

use super::{ByteOrdered, Key, Part};
use crate::error::Result;

/// What a key of type `K` can begin with: for strings and byte strings the same, for a tuple a
/// tuple of its first parts, one to all but the last.
///
/// ```
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const WORDS: Table<&str, u32> = Table::new("words");
/// const PLACES: Table<(&str, u32, u32), &str> = Table::new("places");
/// let mut txn = env.write()?;
/// let mut words = WORDS.open_mut(&mut txn)?;
/// words.put("apple", 1)?;
/// words.put("apricot", 2)?;
/// assert_eq!(words.prefix("ap").count(), 2);
/// let mut places = PLACES.open_mut(&mut txn)?;
/// places.put(("fr", 69, 1), "Lyon")?;
/// places.put(("fr", 13, 1), "Marseille")?;
/// assert_eq!((places.prefix(("fr",)).count(), places.prefix(("fr", 69)).count()), (2, 1));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub trait Prefix<K: Key> {
    /// Appends the bytes with which the encodings of these keys begin.
    fn encode_prefix(self, into: &mut Vec<u8>) -> Result<()>;
}

macro_rules! raw {
    ($($key:ty, $type:ty, $raw:expr;)*) => {
        $(impl Prefix<$key> for &$type {
            fn encode_prefix(self, into: &mut Vec<u8>) -> Result<()> {
                into.extend_from_slice($raw(self));
                Ok(())
            }
        })*
    };
}

raw! {
    &'static str, str, str::as_bytes;
    String, str, str::as_bytes;
    &'static [u8], [u8], <[u8]>::as_ref;
    Vec<u8>, [u8], <[u8]>::as_ref;
}

impl<const N: usize> Prefix<[u8; N]> for &[u8] {
    fn encode_prefix(self, into: &mut Vec<u8>) -> Result<()> {
        into.extend_from_slice(self);
        Ok(())
    }
}

/// The first parts of a tuple whose other parts are `$rest` and `$last`.
macro_rules! parts {
    ($($first:ident $i:tt),+; $($rest:ident),*; $last:ident) => {
        impl<'a, $($first: Part,)+ $($rest: Part,)* $last: ByteOrdered>
            Prefix<($($first,)+ $($rest,)* $last,)> for ($($first::Input<'a>,)+)
        {
            fn encode_prefix(self, into: &mut Vec<u8>) -> Result<()> {
                $($first::encode_part(self.$i, into)?;)+
                Ok(())
            }
        }
    };
}

parts!(A 0; ; B);
parts!(A 0; B; C);
parts!(A 0, B 1; ; C);
parts!(A 0; B, C; D);
parts!(A 0, B 1; C; D);
parts!(A 0, B 1, C 2; ; D);
parts!(A 0; B, C, D; E);
parts!(A 0, B 1; C, D; E);
parts!(A 0, B 1, C 2; D; E);
parts!(A 0, B 1, C 2, D 3; ; E);
parts!(A 0; B, C, D, E; F);
parts!(A 0, B 1; C, D, E; F);
parts!(A 0, B 1, C 2; D, E; F);
parts!(A 0, B 1, C 2, D 3; E; F);
parts!(A 0, B 1, C 2, D 3, E 4; ; F);
