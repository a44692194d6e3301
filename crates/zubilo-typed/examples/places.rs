//! Typed tables at work: places by number, an index by country and name, vectors cast in place.
//!
//! `cargo run -p zubilo-typed --example places`

use serde::{Deserialize, Serialize};
use zubilo::{Env, Options, WriteTxn};
use zubilo_typed::{Aligned, Multimap, Postcard, Result, Table};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Place {
    country: String,
    name: String,
    people: Option<u64>,
}

/// The places themselves. The version names the fields: whoever changes `Place` raises it.
const PLACES: Table<u32, Postcard<Place>> = Table::new("places").version("place 1");
/// Which places have this country and name.
const BY_NAME: Multimap<(&str, &str), u32> = Multimap::new("places by name");
/// A vector for each place.
const VECTORS: Table<u32, Aligned<[f32]>> = Table::new("vectors");

fn add(txn: &mut WriteTxn, id: u32, place: &Place, vector: &[f32]) -> Result<()> {
    // The place and its index together or not at all, also within a larger transaction.
    txn.try_nested(|txn| {
        PLACES.open_mut(txn)?.put(id, place)?;
        BY_NAME.open_mut(txn)?.insert((&place.country, &place.name), id)?;
        VECTORS.open_mut(txn)?.put(id, vector)
    })
}

fn fill(env: &Env) -> Result<()> {
    let mut txn = env.write()?;
    let places = [
        ("DE", "Neustadt", None),
        ("FR", "Lyon", Some(522_250)),
        ("DE", "Köln", Some(1_087_353)),
        ("DE", "Neustadt", Some(53_506)),
    ];
    for (id, (country, name, people)) in (1u32..).zip(places) {
        let place = Place { country: country.into(), name: name.into(), people };
        add(&mut txn, id, &place, &[id as f32, 0.5])?;
    }
    txn.commit()?;
    Ok(())
}

/// Fills a store and looks into it.
pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().map_err(|e| zubilo::Error::Io {
        op: "make a folder",
        path: None,
        source: e,
    })?;
    let env = Options::new().open(dir.path().join("places.zubilo"))?;
    fill(&env)?;

    let read = env.read()?;
    let (places, by_name) = (PLACES.open(&read)?, BY_NAME.open(&read)?);

    // All places of a country in the order of their names: a prefix of the tuple.
    let mut german = Vec::new();
    for record in by_name.prefix(("DE",)) {
        let ((_, name), id) = record?;
        german.push((name.to_owned(), id));
    }
    assert_eq!(german, [("Köln".into(), 3), ("Neustadt".into(), 1), ("Neustadt".into(), 4)]);

    // The values of one key, and the records they lead to.
    for id in by_name.get(("DE", "Neustadt"))? {
        let id = id?;
        println!("{id}: {:?}", places.get(id)?);
    }

    // A slice of floats in the store, without a copy.
    let vectors = VECTORS.open(&read)?;
    let vector: &[f32] = vectors.get(3)?.unwrap_or_default();
    assert_eq!(vector, [3.0, 0.5]);

    // Opened as something else the table is refused.
    let error = Table::<u64, &str>::new("places").open(&read).err();
    println!("{}", error.as_ref().map(ToString::to_string).unwrap_or_default());
    assert!(matches!(error, Some(zubilo_typed::Error::Types { .. })));
    Ok(())
}
