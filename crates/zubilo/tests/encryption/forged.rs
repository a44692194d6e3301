//! Pages that were encrypted by who has the key, but for something else; and a file that changes under an open store.

use std::os::unix::fs::FileExt;

use zubilo::{Durability, Env, Error, PageKind};

use super::{options, place};
use crate::common::memory::MemoryFile;
use crate::common::{fresh, put_all};

const PAGE: usize = 4096;
const RECORDS: u32 = 3000;
const LARGE: usize = 40 * PAGE;

/// Pages of a table.
fn pages(env: &Env, table: &[u8], kind: PageKind) -> Vec<usize> {
    let mut found = Vec::new();
    env.walk_pages(&mut |visit| {
        if visit.table == table && visit.kind == kind {
            found.extend(visit.page.0 as usize..(visit.page.0 + visit.count) as usize);
        }
        true
    })
    .unwrap();
    found
}

/// A store with a record, and a large value of these bytes beside it.
fn with_value(bytes: &[u8]) -> (MemoryFile, Env, Vec<usize>) {
    let file = MemoryFile::new(&[]);
    let env = file.open(options().durability(Durability::Sync)).unwrap();
    put_all(&env, "t", [("key", "true")]);
    put_all(&env, "chosen by others", [("value", bytes)]);
    let run = pages(&env, b"chosen by others", PageKind::Run);
    assert_eq!(run.len(), LARGE / PAGE);
    (file, env, run)
}

/// Somebody chooses the bytes of a large value so that each of its pages looks like a leaf of another table, and puts
/// such a page back when a leaf of that table is in its place.
#[test]
fn a_value_that_looks_like_a_leaf_is_none() {
    let plain = MemoryFile::new(&[]);
    let env = plain.open(zubilo::Options::new()).unwrap();
    put_all(&env, "t", [("key", "lies")]);
    let at = pages(&env, b"t", PageKind::Leaf)[0] * PAGE;
    let leaf = plain.image()[at..at + PAGE].to_vec();
    drop(env);

    let (_, _, run) = with_value(&vec![7; LARGE]);
    let mut chosen = Vec::new();
    for number in &run {
        let mut page = leaf.clone();
        page[8..16].copy_from_slice(&(*number as u64).to_le_bytes());
        let sum = twox_hash::XxHash3_64::oneshot(&page[8..]);
        page[..8].copy_from_slice(&sum.to_le_bytes());
        chosen.extend(page);
    }
    let (file, env, same) = with_value(&chosen);
    assert_eq!(same, run, "the places of pages do not depend on what is in them");
    let before = file.image();
    env.update(|txn| txn.drop_table("chosen by others")).unwrap();
    let mut tried = 0;
    for round in 0..20u8 {
        put_all(&env, "t", (0..RECORDS).map(|i| (format!("record {i}"), [round; 60])));
        // The newest commit would not be trusted: its pages are compared with a digest.
        for commit in 0..4u8 {
            put_all(&env, "other", [("key", [commit])]);
        }
        for number in pages(&env, b"t", PageKind::Leaf) {
            if !run.contains(&number) {
                continue;
            }
            tried += 1;
            let mut hostile = file.image();
            hostile[place(number)].copy_from_slice(&before[place(number)]);
            refuse(&hostile, "as it was");
            // And with another purpose in the nonce, where a value has 2.
            let purpose = &mut hostile[place(number).start + PAGE + 23];
            assert_eq!(*purpose, 2);
            *purpose = 1;
            refuse(&hostile, "as a page of a tree");
        }
        if tried > 0 {
            return;
        }
    }
    panic!("no leaf came to where the value was");
}

/// A record is what was written, or an error; and there is one of these.
#[track_caller]
fn refuse(image: &[u8], what: &str) {
    let env = MemoryFile::new(image).open(options()).unwrap();
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    let wrong = (0..RECORDS).filter(|i| match table.get(format!("record {i}")) {
        Ok(value) => {
            assert!(
                value.is_some_and(|value| value.len() == 60),
                "{what}: record {i} is {value:?}"
            );
            false
        }
        Err(Error::Corrupted { .. }) => true,
        Err(error) => panic!("{what}: {error}"),
    });
    assert!(wrong.count() > 0, "{what}");
}

/// What was read before is in memory; a check and a copy look at the file all the same.
#[test]
fn a_check_of_an_open_store_finds_what_has_changed_in_the_file() {
    for kind in [PageKind::Leaf, PageKind::Branch, PageKind::Run] {
        let (dir, path) = fresh();
        let env = options().open(&path).unwrap();
        put_all(&env, "t", (0..2000u32).map(|i| (i.to_be_bytes(), [7; 60])));
        put_all(&env, "t", [("large", vec![1; 20_000])]);
        super::check(&env, "before");
        let of_kind = pages(&env, b"t", kind);
        let number = *of_kind.last().unwrap();
        // A value is named by its first page.
        let named = if kind == PageKind::Run { of_kind[0] } else { number };
        let at = place(number).start + 99;
        let byte = std::fs::read(&path).unwrap()[at] ^ 4;
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[byte], at as u64).unwrap();
        let report = env.check(&mut |_, _| true).unwrap();
        let is_named = report.problems.iter().any(|problem| problem.page.0 as usize == named);
        assert!(is_named, "{kind:?}: {:?}", report.problems);
        for compact in [false, true] {
            let copied = env.copy_to_path(dir.path().join("copy"), compact, &mut |_, _| true);
            // A compact copy reads what is in memory, which is what was written.
            assert!(compact || matches!(copied, Err(Error::Corrupted { .. })), "{kind:?}");
        }
    }
}
