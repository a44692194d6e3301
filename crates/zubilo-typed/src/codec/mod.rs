//! Codecs: how types become bytes and come back. The type parameters of a table are codecs; for most
//! types the type is its own.

mod compound;
mod numbers;
mod text;

#[cfg(feature = "bytemuck")]
mod aligned;
mod native;
#[cfg(feature = "serde")]
mod postcard;
mod prefix;

use zubilo::KeyOrder;

use crate::error::Result;

#[cfg(feature = "bytemuck")]
pub use aligned::Aligned;
pub use native::Native;
#[cfg(feature = "serde")]
pub use postcard::Postcard;
pub use prefix::Prefix;

/// What can be filled in place: see [`WriteTable::reserve`](crate::WriteTable::reserve).
///
/// ```
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const FILES: Table<&str, &[u8]> = Table::new("files");
/// let mut txn = env.write()?;
/// let mut files = FILES.open_mut(&mut txn)?;
/// // For byte strings the room is bytes.
/// files.reserve("zeros and a one", 100)?[99] = 1;
/// assert_eq!(files.get("zeros and a one")?.map(<[u8]>::len), Some(100));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub trait Reserve: Value {
    /// The room: bytes, or numbers.
    type Room: ?Sized;

    /// The bytes of a room for `len` items; an error if no value is so long.
    fn room_len(len: usize) -> Result<usize>;

    /// The room in these bytes.
    fn room(bytes: &mut [u8]) -> Result<&mut Self::Room>;
}

/// What can be stored as a value.
///
/// ```
/// use zubilo_typed::{Result, Table, Value};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// /// A colour in three bytes.
/// struct Colour([u8; 3]);
///
/// impl Value for Colour {
///     type Input<'a> = &'a Colour;
///     type View<'a> = Colour;
///     type Owned = Colour;
///     const WIDTH: Option<usize> = Some(3);
///
///     fn tag(into: &mut String) {
///         into.push_str("colour");
///     }
///
///     fn encode(input: &Colour, into: &mut Vec<u8>) -> Result<()> {
///         into.extend_from_slice(&input.0);
///         Ok(())
///     }
///
///     fn decode(bytes: &[u8]) -> Result<Colour> {
///         let error = zubilo_typed::Error::Decode { ty: "colour", reason: "not three bytes" };
///         Ok(Colour(bytes.try_into().map_err(|_| error)?))
///     }
///
///     fn input(owned: &Colour) -> &Colour {
///         owned
///     }
///
///     fn own(view: Colour) -> Colour {
///         view
///     }
/// }
///
/// const COLOURS: Table<&str, Colour> = Table::new("colours");
/// let mut txn = env.write()?;
/// let mut colours = COLOURS.open_mut(&mut txn)?;
/// colours.put("red", &Colour([255, 0, 0]))?;
/// assert_eq!(colours.get("red")?.map(|colour| colour.0[0]), Some(255));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a typed table",
    label = "not a value of typed tables",
    note = "values are what can be a key, types that derive `Value`, `Postcard<T>` for types of serde, and `Aligned<T>` for plain data"
)]
pub trait Value: 'static {
    /// What is stored from: the type itself where it is small, else a reference.
    type Input<'a>: Copy;
    /// What reading gives: the type itself, or a reference into the store.
    type View<'a>;
    /// The value by itself, beyond the transaction: what `take` and `pop_first` give. `String` for `&str`.
    type Owned: 'static;

    /// Length of the encoding where it is always the same.
    const WIDTH: Option<usize> = None;
    /// Alignment that the view needs.
    const ALIGN: u8 = 1;

    /// Appends the type's name as the store notes it. It names the encoding, not the Rust type:
    /// types with one encoding share a name.
    fn tag(into: &mut String);

    /// Appends the encoding.
    fn encode(input: Self::Input<'_>, into: &mut Vec<u8>) -> Result<()>;

    /// Reads the encoding back; an error for bytes that [`Value::encode`] does not write.
    fn decode(bytes: &[u8]) -> Result<Self::View<'_>>;

    /// What is stored from an owned value.
    fn input(owned: &Self::Owned) -> Self::Input<'_>;

    /// Makes an owned value of what reading gave.
    fn own(view: Self::View<'_>) -> Self::Owned;

    /// Calls `with` with the encoding. To be overridden where it needs no allocation.
    fn encoded<R>(input: Self::Input<'_>, with: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let mut bytes = Vec::with_capacity(Self::WIDTH.unwrap_or(32));
        Self::encode(input, &mut bytes)?;
        Ok(with(&bytes))
    }
}

/// What can be a key, or one of many values of a key: sorted, the table keeps the order of the type.
///
/// ```
/// use zubilo_typed::{Key, Table, Value};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// /// Works for tables of any type of keys.
/// fn smallest<K: Key, V: Value>(
///     table: &Table<K, V>,
///     txn: &zubilo::ReadTxn,
/// ) -> zubilo_typed::Result<Option<K::Owned>> {
///     Ok(table.open(txn)?.first()?.map(|(key, _)| K::own(key)))
/// }
///
/// const TEMPERATURES: Table<f64, &str> = Table::new("temperatures");
/// env.try_update(|txn| {
///     let mut table = TEMPERATURES.open_mut(txn)?;
///     table.put(36.6, "a human")?;
///     table.put(-273.15, "nothing")
/// })?;
/// assert_eq!(smallest(&TEMPERATURES, &env.read()?)?, Some(-273.15));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key, or one of many values of a key",
    label = "not a key of typed tables",
    note = "keys are integers, floats, `bool`, `char`, strings, byte strings, arrays of bytes, options and tuples of these, and types that derive `Key`"
)]
pub trait Key: Value {
    /// The order of the encodings that is the order of the values.
    const ORDER: KeyOrder = KeyOrder::Bytes;
}

/// A key whose encodings, compared byte by byte, have the order of its values: every one but
/// [`Native`]. It can be the last part of a tuple.
///
/// ```
/// use zubilo_typed::{ByteOrdered, Part, Table};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// /// Tables by tenant, with keys of their own.
/// fn of_tenants<K: ByteOrdered>() -> Table<(u32, K), &'static str>
/// where
///     (u32, K): zubilo_typed::Key,
/// {
///     Table::named("by tenant")
/// }
/// let table = of_tenants::<&str>();
/// env.try_update(|txn| table.open_mut(txn)?.put((7, "key"), "value"))?;
/// assert_eq!(table.open(&env.read()?)?.prefix((7,)).count(), 1);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub trait ByteOrdered: Key {}

/// What can be any part of a tuple: it has an encoding that marks its own end and keeps the order
/// also when something follows.
///
/// ```
/// use zubilo_typed::{Key, Part, Prefix, Table};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// /// How many keys begin with this part?
/// fn count<A: Part, B>(
///     table: &Table<(A, B), u32>,
///     txn: &zubilo::ReadTxn,
///     first: A::Input<'_>,
/// ) -> zubilo_typed::Result<usize>
/// where
///     (A, B): Key,
///     for<'a> (A::Input<'a>,): Prefix<(A, B)>,
/// {
///     Ok(table.open(txn)?.prefix((first,)).count())
/// }
///
/// const PLACES: Table<(&str, &str), u32> = Table::new("places");
/// env.try_update(|txn| PLACES.open_mut(txn)?.put(("fr", "Lyon"), 522_250))?;
/// assert_eq!(count(&PLACES, &env.read()?, "fr")?, 1);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a key that others follow",
    label = "not a part of keys",
    note = "all keys of typed tables can but `()` and `Native`"
)]
pub trait Part: ByteOrdered {
    /// What reading gives. Other than [`Value::View`] it may have to be put together.
    type Item<'a>;

    /// Appends the encoding.
    fn encode_part(input: Self::Input<'_>, into: &mut Vec<u8>) -> Result<()>;

    /// Reads the encoding off the front.
    fn decode_part<'a>(bytes: &mut &'a [u8]) -> Result<Self::Item<'a>>;

    /// Makes an owned value of what reading gave.
    fn own_item(item: Self::Item<'_>) -> Self::Owned;
}
