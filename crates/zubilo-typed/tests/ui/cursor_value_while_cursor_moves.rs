//! What a changing cursor gave is kept while the cursor deletes.
use zubilo_typed::WriteCursor;

fn changed(cursor: &mut WriteCursor<'_, u8, &'static str>) -> zubilo_typed::Result<()> {
    let record = cursor.first()?;
    cursor.delete()?;
    println!("{record:?}");
    Ok(())
}

fn main() {}
