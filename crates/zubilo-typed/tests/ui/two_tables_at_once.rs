//! Two tables of one write transaction are changed through references held at once; handles are for that.
use zubilo_typed::Table;

const A: Table<u8, u8> = Table::new("a");
const B: Table<u8, u8> = Table::new("b");

fn both(txn: &mut zubilo::WriteTxn) -> zubilo_typed::Result<()> {
    let mut a = A.open_mut(txn)?;
    let mut b = B.open_mut(txn)?;
    a.put(1, 1)?;
    b.put(1, 1)
}

fn main() {}
