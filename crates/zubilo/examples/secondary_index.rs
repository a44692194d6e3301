//! A secondary index: people by number, and their numbers by e-mail address. Both tables change
//! in one transaction, so no reader ever sees one without the other.
//!
//! `cargo run --example secondary_index`

use std::error::Error;

use zubilo::{Env, Options, ReadTxn, Result, WriteTxn};

/// Big-endian numbers sort as bytes the way they sort as numbers.
fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

/// The address in front, the number after a zero byte: many people may share an address.
fn index_key(mail: &str, id: u64) -> Vec<u8> {
    [mail.as_bytes(), &[0], &key(id)].concat()
}

/// Inserts or changes a person and keeps the index in step.
fn save(txn: &mut WriteTxn, id: u64, mail: &str) -> Result<()> {
    let mut people = txn.table_or_create("people")?;
    let old = people.get(key(id))?.map(|m| String::from_utf8_lossy(m).into_owned());
    people.put(key(id), mail)?;
    let mut by_mail = txn.table_or_create("people by mail")?;
    if let Some(old) = old {
        by_mail.delete(index_key(&old, id))?;
    }
    by_mail.put(index_key(mail, id), "")
}

fn remove(txn: &mut WriteTxn, id: u64) -> Result<bool> {
    let mut people = txn.table("people")?;
    let Some(mail) = people.get(key(id))?.map(|m| String::from_utf8_lossy(m).into_owned()) else {
        return Ok(false);
    };
    people.delete(key(id))?;
    txn.table("people by mail")?.delete(index_key(&mail, id))
}

/// The numbers of all who have this address.
fn find(txn: &ReadTxn, mail: &str) -> Result<Vec<u64>> {
    let mut prefix = mail.as_bytes().to_vec();
    prefix.push(0);
    let index = txn.table("people by mail")?;
    let mut ids = Vec::new();
    for record in index.prefix(prefix) {
        let (key, _) = record?;
        ids.extend(key.last_chunk().map(|id| u64::from_be_bytes(*id)));
    }
    Ok(ids)
}

/// Each record has its index entry, and there are no others.
fn assert_in_step(txn: &ReadTxn) -> Result<()> {
    let (people, index) = (txn.table("people")?, txn.table("people by mail")?);
    assert_eq!(people.len(), index.len());
    for record in people.iter() {
        let (id, mail) = record?;
        let wanted = [mail, &[0], id].concat();
        assert!(index.get(wanted)?.is_some());
    }
    Ok(())
}

/// Builds the index anew from the records: for a store that had none.
fn rebuild(env: &Env) -> Result<()> {
    let mut write = env.write()?;
    let mut entries = Vec::new();
    for record in write.table("people")?.iter() {
        let (id, mail) = record?;
        entries.push([mail, &[0], id].concat());
    }
    write.drop_table("people by mail")?;
    let mut index = write.table_or_create("people by mail")?;
    for entry in entries {
        index.put(entry, "")?;
    }
    write.commit().map(drop)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let env = Options::new().open(dir.path().join("people.zubilo"))?;

    let mut write = env.write()?;
    save(&mut write, 1, "ada@example.org")?;
    save(&mut write, 2, "blaise@example.org")?;
    save(&mut write, 3, "ada@example.org")?;
    write.commit()?;

    let before = env.read()?;
    assert_eq!(find(&before, "ada@example.org")?, [1, 3]);

    // Closures are an alternative to transactions by hand; they commit together, see
    // `queue_group_commit`.
    env.update(|txn| save(txn, 3, "charles@example.org"))?;
    assert!(env.update(|txn| remove(txn, 2))?);

    // Still as it was for the snapshot; new for the next one.
    assert_eq!(find(&before, "ada@example.org")?, [1, 3]);
    let after = env.read()?;
    assert_eq!(find(&after, "ada@example.org")?, [1]);
    assert_eq!(find(&after, "charles@example.org")?, [3]);
    assert!(find(&after, "blaise@example.org")?.is_empty());
    assert_in_step(&before)?;
    assert_in_step(&after)?;

    rebuild(&env)?;
    assert_in_step(&env.read()?)?;
    println!("records and index are in step");
    Ok(())
}
