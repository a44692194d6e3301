//! A table is changed beside a cursor that holds its place.
use zubilo_typed::WriteMultimap;

fn changed(table: &mut WriteMultimap<'_, u8, u64>) -> zubilo_typed::Result<()> {
    let mut cursor = table.cursor()?;
    table.delete_all(1)?;
    cursor.next()?;
    Ok(())
}

fn main() {}
