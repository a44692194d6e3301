//! First steps: open a store, write, read, look around, undo, copy, check.
//!
//! `cargo run --example first_steps`

use std::error::Error;
use std::path::Path;

use zubilo::{Env, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    // The file is made if there is none. There is no size to guess: it grows by itself.
    let env = Options::new().open(dir.path().join("fruit.zubilo"))?;
    write(&env)?;
    read(&env)?;
    undo_a_part(&env)?;
    copy_and_check(&env, &dir.path().join("copy.zubilo"))?;
    env.close()?;
    Ok(())
}

/// One writer at a time. Nobody sees anything before the commit; then everybody sees all of it.
fn write(env: &Env) -> zubilo::Result<()> {
    let mut write = env.write()?;
    let mut fruit = write.table_or_create("fruit")?;
    for (name, colour) in [("apple", "red"), ("banana", "yellow"), ("blueberry", "blue")] {
        fruit.put(name, colour)?;
    }
    assert!(!fruit.insert("apple", "green")?, "insert leaves what is there");
    assert!(fruit.delete("banana")?);
    fruit.put("banana", "green")?;
    // Room to be filled in place: no copy in between.
    fruit.reserve("cherry", 3)?.copy_from_slice(b"red");
    write.commit()?;
    Ok(())
}

/// A snapshot stays as it is whatever is written meanwhile; what it gives are slices of the memory
/// map, without a copy.
fn read(env: &Env) -> Result<(), Box<dyn Error>> {
    let read = env.read()?;
    let fruit = read.table("fruit")?;
    assert_eq!(fruit.get("banana")?, Some(&b"green"[..]));
    assert_eq!(fruit.len(), 4);

    let names: zubilo::Result<Vec<&[u8]>> = fruit.prefix("b").map(|r| Ok(r?.0)).collect();
    assert_eq!(names?, [&b"banana"[..], b"blueberry"]);

    let last = fruit.range("a"..="c").next_back().ok_or("nothing in the range")??;
    assert_eq!(last.0, b"blueberry", "\"cherry\" is behind \"c\"");

    // Many keys at once: their cache misses overlap.
    let found = fruit.get_many(&["apple", "durian", "cherry"])?;
    assert_eq!(found, [Some(&b"red"[..]), None, Some(&b"red"[..])]);
    Ok(())
}

/// A part of a transaction can fail without the rest.
fn undo_a_part(env: &Env) -> zubilo::Result<()> {
    let mut before = env.read()?;
    let mut write = env.write()?;
    write.table("fruit")?.put("apple", "striped")?;
    let tried: zubilo::Result<()> = write.nested(|txn| {
        txn.table("fruit")?.clear()?;
        Err(zubilo::Error::Stopped)
    });
    assert!(tried.is_err());
    assert_eq!(write.table("fruit")?.len(), 4, "the nested level was undone");
    write.commit()?;

    // The old snapshot has not moved; a refreshed one sees the new state.
    assert_eq!(before.table("fruit")?.get("apple")?, Some(&b"red"[..]));
    assert_eq!(before.lag(), 1);
    before.refresh()?;
    assert_eq!(before.table("fruit")?.get("apple")?, Some(&b"striped"[..]));
    Ok(())
}

/// A copy of the living store is a store of its own.
fn copy_and_check(env: &Env, path: &Path) -> zubilo::Result<()> {
    env.copy_to_path(path, true, &mut |_done, _all| true)?;
    let copy = Options::new().read_only(true).open(path)?;
    assert_eq!(copy.read()?.table("fruit")?.len(), 4);

    // Every page, every key, every byte of free space.
    let report = env.check(&mut |_done, _all| true)?.into_result()?;
    println!("{} records in {} pages, all is well", report.entries, report.pages);
    Ok(())
}
