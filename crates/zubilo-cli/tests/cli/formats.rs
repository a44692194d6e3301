//! What is dumped can be loaded, in every format, whatever the bytes.

use std::io::Write;

use support::rng;

use zubilo::{KeyOrder, Options, TableOptions};

use crate::harness::{Model, Place, contents, random_model, run, run_with, small_model};
use crate::originals::original;

/// Names of formats with arguments for dump and load.
const FORMATS: [&[&str]; 6] = [
    &["-f", "bytevalue"],
    &["-f", "print"],
    &["-f", "jsonl"],
    &["-f", "csv", "-e", "escaped"],
    &["-f", "csv", "-e", "hex", "--delimiter", ";"],
    &["-f", "csv", "-e", "base64", "--delimiter", "\\t"],
];

fn dump(store: &str, format: &[&str]) -> Vec<u8> {
    run(&[&["dump", store], format].concat()).code(0).out
}

fn load(store: &str, format: &[&str], more: &[&str], input: &[u8]) {
    run_with(&[&["load", store, "--create"], format, more].concat(), input).ok();
}

#[test]
fn random_tables_survive_every_format() {
    let mut rng = rng();
    for round in 0..6 {
        let place = Place::new();
        let model = random_model(&mut rng);
        let store = place.store("source", &model);
        for (i, format) in FORMATS.iter().enumerate() {
            let dumped = dump(&store, format);
            let copy = place.arg(&format!("copy{i}"));
            let batch: &[&str] = if round % 2 == 0 { &[] } else { &["--batch", "37"] };
            load(&copy, format, batch, &dumped);
            assert!(contents(&copy) == model, "round {round}, {format:?}");
            assert!(dump(&copy, format) == dumped, "round {round}, {format:?}");
        }
    }
}

#[test]
fn text_in_csv_survives_as_it_is() {
    let place = Place::new();
    let records = [("a,b", "say \"hi\""), ("line\nbreak", "\r\n"), ("", " "), ("тест", "\\x41")];
    let records = records.map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec()));
    let model = Model::from([(b"main".to_vec(), records.into_iter().collect())]);
    let store = place.store("s", &model);
    let dumped = dump(&store, &["-f", "csv"]);
    assert!(dumped.starts_with(b"table,key,value\n"));
    assert_eq!(dump(&store, &["-f", "csv", "-e", "text"]), dumped);
    assert!(dumped.windows(12).any(|w| w == b"\"line\nbreak\""));
    load(&place.arg("t"), &["-f", "csv"], &[], &dumped);
    assert_eq!(contents(place.path("t")), model);
}

/// `C:\new` from elsewhere was stored with a line feed, without a word.
#[test]
fn backslashes_in_csv_are_backslashes() {
    let place = Place::new();
    let input = b"table,key,value\n\\t,C:\\new,\\x41\\\n";
    let due = [(b"C:\\new".to_vec(), b"\\x41\\".to_vec())];
    let due = Model::from([(b"\\t".to_vec(), due.into_iter().collect())]);
    load(&place.arg("s"), &["-f", "csv"], &[], input);
    assert_eq!(contents(place.path("s")), due);
    let headless = b"\\t,C:\\new,\\x41\\\n";
    load(&place.arg("t"), &["-f", "csv", "--no-header"], &[], headless);
    assert_eq!(contents(place.path("t")), due);
}

/// What is not text is not written as text. What was written in another way says so, and is read by it.
#[test]
fn the_header_of_csv_says_how_its_fields_are_written() {
    let place = Place::new();
    let model = Model::from([(b"\xff".to_vec(), [(b"\\".to_vec(), b"\xfe".to_vec())].into())]);
    let store = place.store("s", &model);
    run(&["dump", &store, "-f", "csv"])
        .code(4)
        .says("not UTF-8")
        .says("--encoding, such as escaped");
    let cases: [(&[&str], &str); 3] = [
        (&["-e", "escaped"], "table:escaped,key:escaped,value:escaped\n\\xff,\\\\,\\xfe\n"),
        (&["-e", "hex"], "table:escaped,key:hex,value:hex\n\\xff,5c,fe\n"),
        (
            &["-e", "text", "--value-encoding", "base64"],
            "table:escaped,key,value:base64\n\\xff,\\,/g==\n",
        ),
    ];
    for (i, (how, due)) in cases.into_iter().enumerate() {
        let dumped = dump(&store, &[&["-f", "csv"], how].concat());
        assert_eq!(String::from_utf8_lossy(&dumped), due);
        load(&place.arg(&i.to_string()), &["-f", "csv"], &[], &dumped);
        assert_eq!(contents(place.path(&i.to_string())), model, "{how:?}");
    }
    let salvaged = run(&["salvage", &store, "-f", "csv"]).ok();
    load(&place.arg("salvaged"), &["-f", "csv"], &[], salvaged.as_bytes());
    assert_eq!(contents(place.path("salvaged")), model);
}

#[test]
fn tables_without_records() {
    let place = Place::new();
    let model = Model::from([(b"empty".to_vec(), Default::default())]);
    let store = place.store("s", &model);
    for (name, format) in [("b", "bytevalue"), ("p", "print"), ("j", "jsonl")] {
        load(&place.arg(name), &["-f", format], &[], &dump(&store, &["-f", format]));
        assert_eq!(contents(place.path(name)), model, "{format}");
    }
    run(&["dump", &store, "-f", "csv"]).code(0).says("leaves it out");
}

#[test]
fn a_store_without_tables_is_code_1() {
    let place = Place::new();
    let store = place.store("s", &Model::new());
    for format in FORMATS {
        assert_eq!(run(&[&["dump", &store], format].concat()).code(1).out, b"");
    }
}

#[test]
fn chosen_tables_only() {
    let place = Place::new();
    let store = place.small_store("s");
    let dumped = run(&["dump", &store, "-t", "other", "--json"]).ok();
    assert_eq!(
        dumped,
        "{\"table\":\"other\"}\n{\"table\":\"other\",\"key\":\"x\",\"value\":\"24\"}\n"
    );
    run(&["dump", &store, "-t", "other", "-t", "none"]).code(1).says("no such table");
}

#[test]
fn the_name_of_the_input_tells_its_format() {
    let place = Place::new();
    let store = place.small_store("s");
    for (file, format) in [("d.csv", "csv"), ("d.jsonl", "jsonl"), ("d.dump", "bytevalue")] {
        std::fs::write(place.path(file), dump(&store, &["-f", format])).unwrap();
        let target = place.arg(&format!("from-{file}"));
        let shown = run(&["load", &target, "--create", &place.arg(file), "--json"]).code(0).json();
        assert_eq!((&shown["records"], &shown["tables"]), (&5.into(), &2.into()), "{shown}");
        assert_eq!((&shown["commits"], &shown["kept"]), (&1.into(), &0.into()), "{shown}");
        assert_eq!(contents(&target), small_model(), "{file}");
    }
}

#[test]
fn records_that_name_no_table_go_into_the_table_of_the_option() {
    let place = Place::new();
    let inputs = [
        ("jsonl", &[][..], "{\"key\":\"k\",\"value\":\"v\"}\n"),
        ("csv", &[], "value,more,key\nv,ignored,k\n"),
        ("csv", &["--no-header"], "k,v\n"),
        ("csv", &["--key-column", "id", "--value-column", "name"], "id,name\r\nk,v\r\n"),
        ("bytevalue", &[], "VERSION=3\nformat=print\ntype=btree\nHEADER=END\n k\n v\nDATA=END\n"),
    ];
    for (i, (format, more, input)) in inputs.into_iter().enumerate() {
        let store = place.arg(&i.to_string());
        load(&store, &["-f", format, "-t", "mine"], more, input.as_bytes());
        assert_eq!(run(&["get", &store, "-t", "mine", "k"]).ok(), "v\n", "{input}");
        assert_eq!(contents(&store).len(), 1);
    }
}

#[test]
fn existing_keys_are_replaced_kept_or_refused() {
    let place = Place::new();
    let store = place.small_store("s");
    let input = b"key,value\na,new\nz,new\n";
    let load =
        |how: &str| run_with(&["load", &store, "-f", "csv", "--json", "--existing", how], input);
    load("fail").code(4).says("line 2").says("the key \\\"a\\\" exists").says("nothing was");
    assert_eq!(contents(&store), small_model());
    let shown = load("keep").code(0).json();
    assert_eq!((&shown["records"], &shown["kept"]), (&2.into(), &1.into()));
    assert_eq!(run(&["get", &store, "a", "z"]).ok(), "1\nnew\n");
    load("replace").code(0);
    assert_eq!(run(&["get", &store, "a"]).ok(), "new\n");
}

/// A table of every kind of layout, with a record that fits all.
fn layouts() -> Vec<(String, TableOptions)> {
    let orders = [KeyOrder::Bytes, KeyOrder::Reversed, KeyOrder::Integer];
    let mut all = Vec::new();
    for order in orders {
        let keys = || TableOptions::new().key_order(order);
        for align in [1, 2, 4, 8, 16] {
            all.push((format!("{order:?} {align}"), keys().align_values(align)));
        }
        all.push((format!("{order:?} many"), keys().duplicates()));
        all.push((format!("{order:?} fixed"), keys().fixed_duplicates()));
    }
    let counted = all.iter().map(|(n, o)| (format!("{n} counted"), o.clone().counted()));
    let counted: Vec<_> = counted.collect();
    all.into_iter().chain(counted).collect()
}

fn store_of_layouts(place: &Place) -> String {
    let env = Options::new().open(place.path("layouts")).unwrap();
    let mut txn = env.write().unwrap();
    for (name, options) in layouts() {
        let mut table = txn.create_table(&name, options).unwrap();
        for n in 0..20u64 {
            table.put(n.to_le_bytes(), (n * n).to_le_bytes()).unwrap();
        }
    }
    txn.commit().unwrap();
    env.close().unwrap();
    place.arg("layouts")
}

#[track_caller]
fn assert_layouts(store: &str) {
    let env = Options::new().read_only(true).open(store).unwrap();
    let read = env.read().unwrap();
    let all = layouts();
    assert_eq!(read.tables().unwrap().len(), all.len());
    for (name, options) in all {
        let table = read.table_with(&name, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(table.len(), 20, "{name}");
        assert_eq!(table.nth(3).is_ok(), options.is_counted(), "{name}");
        for record in table.iter() {
            let value = record.unwrap().1;
            assert!(value.as_ptr().addr().is_multiple_of(options.alignment().into()), "{name}");
        }
    }
}

#[test]
fn layouts_of_tables_survive_the_text_formats() {
    let place = Place::new();
    let store = store_of_layouts(&place);
    for format in ["bytevalue", "print"] {
        let dumped = dump(&store, &["-f", format]);
        let copy = place.arg(format);
        load(&copy, &["-f", format], &[], &dumped);
        assert_layouts(&copy);
        assert!(dump(&copy, &["-f", format]) == dumped, "{format}");
        // Into tables that exist so.
        load(&copy, &["-f", format], &[], &dumped);
        assert_layouts(&copy);
        // The original takes the dump, without what it does not know.
        let lmdb = place.arg(&format!("{format}.mdb"));
        if original("mdb_load", &["-n", &lmdb], &dumped).is_none() {
            // Past the test harness, which would swallow it.
            let note = b"mdb_load is not on this machine: dumps were not compared\n";
            std::io::stderr().write_all(note).unwrap();
            continue;
        }
        run(&["import", &lmdb, &place.arg(&format!("{format} back"))]).code(0);
        let back = contents(place.path(&format!("{format} back")));
        assert!(back == contents(&store), "{format}");
    }
}

#[test]
fn an_export_says_nothing_that_lmdb_does_not_know() {
    let place = Place::new();
    let store = store_of_layouts(&place);
    let dumped = run(&["export", &store]).ok();
    assert!(dumped.contains("dupfixed=1"));
    for word in ["align", "counted", "name_hex"] {
        assert!(!dumped.contains(&format!("{word}=")), "{word}");
    }
    // Tables that exist keep what such a dump does not record.
    run_with(&["load", &store], dumped.as_bytes()).ok();
    assert_layouts(&store);
    // What it records must be so.
    let header = b"VERSION=3\ndatabase=Bytes 1\ncounted=1\nHEADER=END\nDATA=END\n";
    run_with(&["load", &store], header).code(4).says("line 1, into the table \"Bytes 1\"");
    let header = b"VERSION=3\ndatabase=Bytes 4\nalign=8\nHEADER=END\nDATA=END\n";
    run_with(&["load", &store], header).code(4).says("line 1");
}

#[test]
fn tables_made_before_are_filled_by_formats_that_do_not_tell_their_layout() {
    let place = Place::new();
    let store = store_of_layouts(&place);
    for format in [&["-f", "csv", "-e", "escaped"][..], &["-f", "jsonl"]] {
        let run = run(&[&["dump", &store], format].concat()).code(0);
        let run = run.says("\"Bytes 1 counted\" has").says("\"Bytes many\" has");
        assert!(!run.err.contains("\"Bytes 1\" has"), "{}", run.err);
        run_with(&["drop", &store, "-t", "Bytes many", "--empty", "-y"], b"").code(0);
        load(&store, format, &[], &run.out);
        assert_layouts(&store);
    }
}
