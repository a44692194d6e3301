//! Plain data that was cast in place is returned without its transaction.
use zubilo_typed::{Aligned, Table};

const TABLE: Table<u8, Aligned<[f32]>> = Table::new("t");

fn vector(env: &zubilo::Env) -> zubilo_typed::Result<&'static [f32]> {
    let read = env.read()?;
    Ok(TABLE.open(&read)?.get(1)?.unwrap_or_default())
}

fn main() {}
