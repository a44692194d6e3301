//! An iterator is returned that borrows from a transaction of the function.
use zubilo_typed::{Records, Table};

const TABLE: Table<u8, u8> = Table::new("t");

fn records(env: &zubilo::Env) -> zubilo_typed::Result<Records<'static, u8, u8>> {
    let read = env.read()?;
    Ok(TABLE.open(&read)?.iter())
}

fn main() {}
