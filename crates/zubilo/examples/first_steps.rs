//! First steps: open a store, write, read, look around, undo, copy, check.
//!
//! `cargo run --example first_steps`

use std::error::Error;

use zubilo::Options;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("fruit.zubilo");

    // The file is made if there is none. There is no size to guess: it grows by itself.
    let env = Options::new().open(&path)?;

    // One writer at a time. Nobody sees anything before the commit; then everybody sees all of it.
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

    // A snapshot. It stays as it is whatever is written meanwhile; what it gives are slices of the
    // memory map, without a copy.
    let read = env.read()?;
    let fruit = read.table("fruit")?;
    assert_eq!(fruit.get("banana")?, Some(&b"green"[..]));
    assert_eq!(fruit.len(), 4);

    let mut names = Vec::new();
    for record in fruit.prefix("b") {
        let (name, _colour) = record?;
        names.push(name);
    }
    assert_eq!(names, [&b"banana"[..], b"blueberry"]);

    let last = fruit.range("a"..="c").next_back().ok_or("nothing in the range")??;
    assert_eq!(last.0, b"blueberry", "\"cherry\" is behind \"c\"");

    // Many keys at once: their cache misses overlap.
    let found = fruit.get_many(&["apple", "durian", "cherry"])?;
    assert_eq!(found, [Some(&b"red"[..]), None, Some(&b"red"[..])]);

    // A part of a transaction can fail without the rest.
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
    assert_eq!(fruit.get("apple")?, Some(&b"red"[..]));
    assert_eq!(read.lag(), 1);
    let mut read = read;
    read.refresh()?;
    assert_eq!(read.table("fruit")?.get("apple")?, Some(&b"striped"[..]));

    // A copy of the living store is a store of its own.
    let copy_path = dir.path().join("copy.zubilo");
    env.copy_to_path(&copy_path, true, &mut |_done, _all| true)?;
    let copy = Options::new().read_only(true).open(&copy_path)?;
    assert_eq!(copy.read()?.table("fruit")?.len(), 4);

    // Every page, every key, every byte of free space.
    let report = env.check(&mut |_done, _all| true)?.into_result()?;
    println!("{} records in {} pages, all is well", report.entries, report.pages);

    env.close()?;
    Ok(())
}
