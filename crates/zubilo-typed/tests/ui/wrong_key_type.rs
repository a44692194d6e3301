//! A key of another type is looked up.
use zubilo_typed::ReadTable;

fn get(table: &ReadTable<'_, u8, u8>) -> zubilo_typed::Result<Option<u8>> {
    table.get("one")
}

fn main() {}
