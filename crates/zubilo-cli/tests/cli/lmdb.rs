//! `import` and `export` against files that LMDB wrote, and against its tools.

use std::fs;
use std::io::Write;

use support::{Rng, rng};

use zubilo::{KeyOrder, Options};

use crate::harness::{Place, random_bytes, run, small_model};
use crate::original::{self, Contents, Sample, write};
use crate::originals::{original as tool, records};

/// All combinations of flags that LMDB accepts.
fn all_flags() -> Vec<u32> {
    use original::*;
    let many = [0, REVERSEDUP, DUPFIXED, DUPFIXED | INTEGERDUP, DUPFIXED | REVERSEDUP];
    let values = std::iter::once(0).chain(many.map(|flags| DUPSORT | flags));
    values.flat_map(|v| [0, REVERSEKEY, INTEGERKEY].map(|k| k | v)).collect()
}

/// Records for a table with these flags.
fn contents(rng: &mut Rng, flags: u32) -> Contents {
    let mut all = Contents::new();
    for _ in 0..rng.range(1..80) {
        let mut key = random_bytes(rng, 100);
        key.push(rng.byte());
        if flags & original::INTEGERKEY != 0 {
            key = rng.next().to_le_bytes().to_vec();
        }
        if flags & original::DUPSORT == 0 {
            let max = if rng.one_in(10) { 20_000 } else { 200 };
            all.push((key, random_bytes(rng, max)));
            continue;
        }
        let count = if rng.one_in(20) { 2000 } else { rng.range(1..6) };
        for _ in 0..count {
            let value = match flags & original::DUPFIXED {
                0 => [random_bytes(rng, 60), vec![rng.byte()]].concat(),
                _ => (rng.next() as u32).to_le_bytes().to_vec(),
            };
            all.push((key.clone(), value));
        }
    }
    all
}

fn samples(rng: &mut Rng) -> Vec<(Sample, Contents)> {
    let unnamed = (Sample { name: None, flags: 0 }, contents(rng, 0));
    let named = all_flags().into_iter().map(|flags| {
        let name = Some(format!("table {flags:02x}").into_bytes());
        (Sample { name, flags }, contents(rng, flags))
    });
    std::iter::once(unnamed).chain(named).collect()
}

/// Flags and records of all tables of a store, by name; the unnamed database without one.
fn in_store(path: &std::path::Path) -> Vec<(Sample, Contents)> {
    let env = Options::new().read_only(true).open(path).unwrap();
    env.check(&mut |_, _| true).unwrap().into_result().expect("the store is whole");
    let read = env.read().unwrap();
    let order = |order, reversed, integer| match order {
        KeyOrder::Reversed => reversed,
        KeyOrder::Integer => integer,
        _ => 0,
    };
    let tables = read.tables().unwrap().into_iter().map(|name| {
        use original::*;
        let table = read.table(&name).unwrap();
        let options = table.options();
        let flags = order(options.keys(), REVERSEKEY, INTEGERKEY)
            | order(options.values(), REVERSEDUP, INTEGERDUP)
            | if options.has_duplicates() { DUPSORT } else { 0 }
            | if options.has_fixed_values() { DUPFIXED } else { 0 };
        let records = table.iter().map(|record| {
            let (key, value) = record.unwrap();
            (key.to_vec(), value.to_vec())
        });
        let name = Some(name).filter(|name| !name.is_empty());
        (Sample { name, flags }, records.collect())
    });
    let mut tables: Vec<_> = tables.collect();
    let mut unnamed = Contents::new();
    read.raw_records(|key, value| -> zubilo::Result<()> {
        unnamed.push((key.to_vec(), value.to_vec()));
        Ok(())
    })
    .unwrap();
    if !unnamed.is_empty() {
        tables.push((Sample { name: None, flags: 0 }, unnamed));
    }
    tables.sort_by(|(a, _), (b, _): &(Sample, Contents)| a.name.cmp(&b.name));
    tables
}

#[test]
fn all_kinds_of_tables_are_imported() {
    let mut rng = rng();
    let place = Place::new();
    let (_dir, old, expected) = write(&samples(&mut rng));
    let total: usize = expected.iter().map(|(_, contents)| contents.len()).sum();
    let run = run(&["import", old.to_str().unwrap(), &place.arg("new"), "--json"]).code(0);
    let report = run.json();
    assert_eq!(report["records"], total);
    assert_eq!(report["tables"], expected.len());
    assert_eq!(report["verified"], true);
    assert!(in_store(&place.path("new")) == expected, "the store differs from the file");
}

#[test]
fn what_was_imported_goes_back_to_the_original() {
    let mut rng = rng();
    let place = Place::new();
    let (_dir, old, _) = write(&samples(&mut rng));
    let (old, new) = (old.to_str().unwrap(), place.arg("new"));
    run(&["import", old, &new]).code(0);
    for print in [false, true] {
        let mut args = vec!["export", &new];
        args.extend(print.then_some("--print"));
        let dump = run(&args).code(0).out;
        let back = place.arg(&format!("back {print}.mdb"));
        if tool("mdb_load", &["-n", &back], &dump).is_none() {
            // Past the test harness, which would swallow it.
            let note = b"mdb_load is not on this machine: exports were not compared\n";
            std::io::stderr().write_all(note).unwrap();
            return;
        }
        let dump = |file: &str| tool("mdb_dump", &["-n", "-a", file], &[]).expect("mdb_dump");
        assert!(records(&dump(&back)) == records(&dump(old)), "the named tables differ");
        // The unnamed one, which the tool shows with the names in it, by our own reader.
        let again = place.arg(&format!("again {print}"));
        run(&["import", &back, &again]).code(0);
        assert!(in_store(again.as_ref()) == in_store(new.as_ref()));
    }
}

#[test]
fn a_programs_own_order_is_reported_and_compared_all_the_same() {
    let place = Place::new();
    let sample = Sample { name: Some(b"own".to_vec()), flags: 0 };
    let text = |s: &str| s.as_bytes().to_vec();
    let contents = ["b", "A", "c", "B"].map(|key| (text(key), text("v"))).to_vec();
    let (_dir, old) = original::write_backwards(&sample, &contents);
    let run = run(&["import", old.to_str().unwrap(), &place.arg("new")]).code(0);
    run.says("\"own\"").says("own comparison");
    let keys: Vec<_> = in_store(&place.path("new")).remove(0).1.into_iter().map(|r| r.0).collect();
    assert_eq!(keys, ["A", "B", "b", "c"].map(text));
}

#[test]
fn damaged_files_are_errors_and_leave_nothing() {
    let mut rng = rng();
    let place = Place::new();
    let (_dir, old, _) = write(&samples(&mut rng));
    let whole = fs::read(old).unwrap();
    let file = place.path("damaged.mdb");
    let mut refused = 0;
    for _ in 0..40 {
        let mut bytes = whole.clone();
        let page = rng.range(2..bytes.len() / 4096);
        bytes[page * 4096 + rng.range(8..14)] ^= 1 << rng.below(8);
        fs::write(&file, bytes).unwrap();
        let new = place.path("new");
        let run = run(&["import", file.to_str().unwrap(), new.to_str().unwrap()]);
        match run.code {
            // A free page was hit.
            0 => fs::remove_file(&new).unwrap(),
            _ => refused += 1,
        }
        assert!([0, 3, 4].contains(&run.code), "{run:?}");
        assert!(!new.exists(), "{run:?}");
        let _ = fs::remove_file(place.path("new-lock"));
    }
    assert!(refused > 0);
}

#[test]
fn one_meta_is_read_on_request_only() {
    let place = Place::new();
    let sample = (Sample { name: None, flags: 0 }, vec![(b"k".to_vec(), b"v".to_vec())]);
    let (_dir, old, expected) = write(&[sample]);
    let mut bytes = fs::read(old).unwrap();
    let newest = lmdb_file::LmdbFile::new(&*bytes).unwrap().info().txn;
    // LMDB writes even transactions to the first meta.
    let older = (newest as usize + 1) % 2 * 4096;
    bytes[older..older + 200].fill(0);
    fs::write(place.path("old.mdb"), bytes).unwrap();
    let (old, new) = (place.arg("old.mdb"), place.arg("new"));
    run(&["import", &old, &new]).code(3).says("one of its two metas").says("--one-meta");
    assert!(!place.path("new").exists());
    run(&["import", &old, &new, "--one-meta"]).code(0);
    assert!(in_store(&place.path("new")) == expected);
}

#[test]
fn wrong_arguments_are_reported() {
    let place = Place::new();
    let both = |name| (Sample { name, flags: 0 }, vec![(b"k".to_vec(), b"v".to_vec())]);
    let (_dir, old, _) = write(&[both(None), both(Some(b"main".to_vec()))]);
    let (old, new) = (old.to_str().unwrap(), place.arg("new"));
    run(&["import", old, &new, "--main-table", "main"]).code(2).says("--main-table");
    run(&["import", old, &new, "--main-table", "rest"]).code(0);
    run(&["import", old, &new, "--main-table", "rest"]).code(4).says("exists");
    run(&["import", &place.arg("none"), &place.arg("n")]).code(4).says("check the path");
    let store = place.small_store("s");
    run(&["import", &store, &place.arg("n")]).code(3).says("a Zubilo store already");
    assert!(!place.path("n").exists());
}

#[test]
fn what_lmdb_cannot_hold_is_not_exported() {
    let place = Place::new();
    let refused = |name: &str, table: &[u8], key: &[u8], cause: &str| {
        let mut model = small_model();
        model.entry(table.to_vec()).or_default().insert(key.to_vec(), b"v".to_vec());
        let store = place.store(name, &model);
        run(&["export", &store]).code(4).says(cause);
        run(&["export", &store, "-t", "main"]).code(0);
    };
    refused("a", b"other", b"", "no empty keys");
    refused("b", b"other", &[b'k'; 512], "511 bytes");
    refused("c", b"two\nlines", b"k", "no such names");
    refused("d", b"", b"k", "no such names");
    let mut model = small_model();
    model.entry(b"main".to_vec()).or_default().insert(b"other".to_vec(), b"v".to_vec());
    let store = place.store("e", &model);
    run(&["export", &store, "--main-table", "main"]).code(4).says("name of the table");
    run(&["export", &store]).code(0);
}

#[test]
fn a_table_is_exported_without_its_name() {
    let place = Place::new();
    let store = place.small_store("s");
    let dump =
        String::from_utf8(run(&["export", &store, "--main-table", "main"]).code(0).out).unwrap();
    assert_eq!(dump.matches("database=").count(), 1, "{dump}");
    assert!(dump.contains("database=other"), "{dump}");
    let dump = String::from_utf8(run(&["export", &store]).code(0).out).unwrap();
    assert_eq!(dump.matches("database=").count(), 2, "{dump}");
}

/// Flags that name two orders: LMDB takes one of them.
#[test]
fn of_two_orders_the_one_in_force_is_kept() {
    use original::*;
    let mut rng = rng();
    let cases = [
        (REVERSEKEY | INTEGERKEY, REVERSEKEY),
        (DUPSORT | DUPFIXED | INTEGERDUP | REVERSEDUP, DUPSORT | DUPFIXED | INTEGERDUP),
        (REVERSEKEY | DUPSORT | INTEGERDUP, REVERSEKEY | DUPSORT | INTEGERDUP),
    ];
    for (flags, kept) in cases {
        let place = Place::new();
        let mut records = contents(&mut rng, flags);
        if flags & INTEGERDUP != 0 {
            records.iter_mut().for_each(|(_, value)| value.resize(4, 7));
        }
        let sample = Sample { name: Some(b"t".to_vec()), flags };
        let (_dir, old, mut expected) = write(&[(sample, records)]);
        let run = run(&["import", old.to_str().unwrap(), &place.arg("new")]).code(0);
        assert!(run.err.is_empty(), "{run:?}");
        expected.retain(|(sample, _)| sample.name.is_some());
        expected[0].0.flags = kept;
        assert!(in_store(&place.path("new")) == expected, "flags {flags:02x}");
    }
}

/// An unnamed database with flags of its own, alone in its file.
#[test]
fn an_unnamed_database_keeps_its_flags() {
    let mut rng = rng();
    for flags in all_flags() {
        let place = Place::new();
        let sample = (Sample { name: None, flags }, contents(&mut rng, flags));
        let (_dir, old, expected) = write(&[sample]);
        let (old, new) = (old.to_str().unwrap(), place.arg("new"));
        run(&["import", old, &new]).code(0);
        assert!(in_store(new.as_ref()) == expected, "flags {flags:02x}");
        let dump = run(&["export", &new]).code(0).out;
        let back = place.arg("back.mdb");
        if tool("mdb_load", &["-n", &back], &dump).is_some() {
            let dump = |file: &str| tool("mdb_dump", &["-n", file], &[]).expect("mdb_dump");
            assert!(records(&dump(&back)) == records(&dump(old)), "flags {flags:02x}");
        }
        let table = place.arg("table");
        run(&["import", old, &table, "--main-table", "t"]).code(0);
        let mut moved = expected.clone();
        moved[0].0.name = Some(b"t".to_vec());
        assert!(in_store(table.as_ref()) == moved, "flags {flags:02x}");
    }
}
