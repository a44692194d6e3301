//! A table is used after its transaction was committed.
use zubilo_typed::Multimap;

const TABLE: Multimap<u8, u8> = Multimap::new("t");

fn late(env: &zubilo::Env) -> zubilo_typed::Result<()> {
    let mut txn = env.write()?;
    let mut table = TABLE.open_mut(&mut txn)?;
    txn.commit()?;
    table.insert(1, 1)?;
    Ok(())
}

fn main() {}
