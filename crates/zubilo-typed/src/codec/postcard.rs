//! Values of any type that serde knows, in the format postcard.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Value;
use crate::error::{Error, Result, bad};

/// A serde type as a value. Postcard writes no names of fields: a changed type reads old values
/// wrongly or not at all. Give the definition another [`version`](crate::Table::version) then.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use zubilo_typed::{Postcard, Table};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// #[derive(Serialize, Deserialize)]
/// struct Person {
///     name: String,
///     friends: Vec<u32>,
/// }
///
/// const PEOPLE: Table<u32, Postcard<Person>> = Table::new("people");
/// let mut txn = env.write()?;
/// let mut people = PEOPLE.open_mut(&mut txn)?;
/// people.put(7, &Person { name: "Ada".to_string(), friends: vec![8, 9] })?;
/// assert_eq!(people.get(7)?.map(|person| person.friends.len()), Some(2));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct Postcard<T>(PhantomData<fn() -> T>);

impl<T: Serialize + DeserializeOwned + 'static> Value for Postcard<T> {
    type Input<'a> = &'a T;
    type View<'a> = T;
    type Owned = T;

    fn tag(into: &mut String) {
        into.push_str("postcard");
    }

    fn encode(input: &T, into: &mut Vec<u8>) -> Result<()> {
        let old = std::mem::take(into);
        *into = postcard::to_extend(input, old).map_err(|e| Error::Encode(Box::new(e)))?;
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<T> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(value),
            Ok(_) => Err(bad("postcard", "followed by more")),
            Err(_) => Err(bad("postcard", "not what serde writes for this type")),
        }
    }

    fn input(owned: &T) -> &T {
        owned
    }

    fn own(view: T) -> T {
        view
    }
}
