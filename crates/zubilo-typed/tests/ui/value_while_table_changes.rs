//! A value of the write transaction is kept while its table changes.
use zubilo_typed::WriteTable;

fn changed(table: &mut WriteTable<'_, u8, &'static str>) -> zubilo_typed::Result<()> {
    let value = table.get(1)?;
    table.put(1, "new")?;
    println!("{value:?}");
    Ok(())
}

fn main() {}
