//! Serde's bytes do not sort like the values, so they are no keys.
use zubilo_typed::{Postcard, Table};

const TABLE: Table<Postcard<String>, u8> = Table::new("t");

fn main() {}
