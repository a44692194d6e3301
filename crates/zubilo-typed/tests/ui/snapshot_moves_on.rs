//! The read transaction moves to a newer snapshot under a value of the old one.
use zubilo_typed::Table;

const TABLE: Table<u8, &[u8]> = Table::new("t");

fn moved(env: &zubilo::Env) -> zubilo_typed::Result<()> {
    let mut read = env.read()?;
    let value = TABLE.open(&read)?.get(1)?;
    read.refresh()?;
    println!("{value:?}");
    Ok(())
}

fn main() {}
