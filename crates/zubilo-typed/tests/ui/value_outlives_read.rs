//! A value, here read in place, is kept beyond its read transaction.
use zubilo_typed::Table;

const TABLE: Table<u8, &str> = Table::new("t");

fn kept(env: &zubilo::Env) -> zubilo_typed::Result<()> {
    let read = env.read()?;
    let value = TABLE.open(&read)?.get(1)?;
    drop(read);
    println!("{value:?}");
    Ok(())
}

fn main() {}
