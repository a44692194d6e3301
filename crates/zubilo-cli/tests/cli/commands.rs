//! Each command: what it does, prints, and which exit code it gives.

use serde_json::{Value, json};

use crate::harness::{Place, contents, run, run_with, small_model};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn put_makes_a_store_only_when_asked() {
    let place = Place::new();
    let store = place.arg("s");
    run(&["put", &store, "k", "v"]).code(4).says("--create");
    assert!(!place.path("s").exists() && !place.path("s-lock").exists());
    run(&["put", &store, "k", "v", "--create"]).ok();
    run(&["put", &store, "k", "w"]).ok();
    run(&["put", &store, "-t", "new", "k", "v"]).code(1).says("--create");
    run(&["put", &store, "-t", "new", "k", "v", "--create"]).ok();
    assert_eq!(run(&["get", &store, "k"]).ok(), "w\n");
    let shown = run(&["put", &store, "j", "v", "--json"]).code(0).json();
    assert_eq!(shown, json!({ "table": "main", "key": "j", "stored": true }));
}

#[test]
fn put_if_absent_keeps_what_is_there() {
    let place = Place::new();
    let store = place.small_store("s");
    run(&["put", &store, "a", "new", "--if-absent"]).code(1).says("left as it is");
    let shown = run(&["put", &store, "a", "new", "--if-absent", "--json"]).code(1).json();
    assert_eq!(shown["stored"], false);
    run(&["put", &store, "z", "new", "--if-absent"]).ok();
    assert_eq!(run(&["get", &store, "a", "z"]).ok(), "1\nnew\n");
}

#[test]
fn values_come_from_files_and_go_out_raw() {
    let place = Place::new();
    let store = place.arg("s");
    let bytes: Vec<u8> = (0..200_000u32).map(|i| (i * 7) as u8).collect();
    std::fs::write(place.path("value"), &bytes).unwrap();
    run(&["put", &store, "--create", "f", "--value-file", &place.arg("value")]).ok();
    run_with(&["put", &store, "p", "--value-file", "-"], &bytes).ok();
    for key in ["f", "p"] {
        assert!(run(&["get", &store, key, "--raw"]).code(0).out == bytes, "{key}");
    }
    run(&["get", &store, "f", "p", "--raw"]).code(2);
    run(&["put", &store, "f", "--value-file", &place.arg("missing")]).code(4).says("missing");
}

#[test]
fn page_size_is_that_of_the_new_store() {
    let place = Place::new();
    let store = place.arg("s");
    let long = "k".repeat(3000);
    run(&["put", &store, "--create", &long, "v"]).code(4).says("too long").says("larger pages");
    let big = place.arg("big");
    run(&["put", &big, "--create", "--page-size", "16384", &long, "v"]).ok();
    assert_eq!(run(&["stat", &big, "--json"]).json()["page_size"], 16384);
    run(&["put", &big, "--create", "--page-size", "5000", "k", "v"]).code(2);
}

#[test]
fn get_reports_what_is_missing() {
    let place = Place::new();
    let store = place.small_store("s");
    let got = run(&["get", &store, "a", "nothing", "b"]).code(1).says("\"nothing\"");
    assert_eq!(got.out, b"1\n3\n");
    let got = run(&["get", &store, "--json", "a", "nothing"]).code(1);
    let lines: Vec<Value> =
        got.out.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
    assert_eq!(lines[0], json!({ "table": "main", "key": "a", "found": true, "value": "1" }));
    assert_eq!(lines[1], json!({ "table": "main", "key": "nothing", "found": false }));
    run(&["get", &store, "-t", "nowhere", "a"]).code(1).says("no such table");
}

#[test]
fn del_takes_keys_or_a_range() {
    let place = Place::new();
    let store = place.small_store("s");
    run(&["del", &store]).code(2);
    run(&["del", &store, "a", "--prefix", "b"]).code(2);
    assert_eq!(run(&["del", &store, "c", "q"]).code(1).says("\"q\"").out, b"1 record deleted\n");
    let shown = run(&["del", &store, "--prefix", "a", "--json"]).code(0).json();
    assert_eq!(shown, json!({ "table": "main", "deleted": 2 }));
    run(&["del", &store, "--prefix", "a"]).code(1);
    run(&["del", &store, "--from", "z", "--to", "a"]).code(1);
    assert_eq!(contents(&store)[&b"main"[..]].keys().collect::<Vec<_>>(), [b"b"]);
}

#[test]
fn tables_lists_them() {
    let place = Place::new();
    let store = place.small_store("s");
    let shown = run(&["tables", &store]).ok();
    assert!(shown.contains("records") && shown.contains("other"), "{shown}");
    assert_eq!(run(&["tables", &store, "--names"]).ok(), "main\nother\n");
    let shown = run(&["tables", &store, "--json"]).json();
    assert_eq!(shown["tables"][0]["name"], "main");
    assert_eq!(shown["tables"][0]["entries"], 4);
    let names = [
        "branch_pages",
        "bytes",
        "depth",
        "entries",
        "leaf_pages",
        "modified",
        "name",
        "options",
        "run_pages",
        "types",
    ];
    assert_eq!(keys(&shown["tables"][1]), names);
    let empty = place.store("empty", &Default::default());
    assert_eq!(run(&["tables", &empty]).code(1).out, b"");
    assert_eq!(run(&["tables", &empty, "--json"]).code(1).json(), json!({ "tables": [] }));
}

#[test]
fn stat_adds_up() {
    let place = Place::new();
    let store = place.small_store("s");
    let shown = run(&["stat", &store]).ok();
    for part in ["4.00 KiB", "on disk", "0 of 1024", "any size", "other"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = run(&["stat", &store, "--json"]).code(0).json();
    let names = [
        "encrypted",
        "file_bytes",
        "free_bytes",
        "free_space_log_bytes",
        "geometry",
        "max_readers",
        "newest",
        "page_size",
        "path",
        "prepared",
        "readers",
        "redo_log_bytes",
        "retired_bytes",
        "steady",
        "tables",
        "tail_bytes",
        "unflushed_commits",
        "untrusted",
        "used_bytes",
        "uuid",
    ];
    assert_eq!(keys(&shown), names);
    assert_eq!(keys(&shown["geometry"]), ["growth", "lower", "shrink", "upper"]);
    let number = |name: &str| shown[name].as_u64().unwrap_or_else(|| panic!("{name}: {shown}"));
    assert_eq!(number("file_bytes"), std::fs::metadata(&store).unwrap().len());
    assert_eq!(number("used_bytes") + number("tail_bytes"), number("file_bytes"));
    assert!(number("free_bytes") < number("used_bytes"));
    assert_eq!(number("newest"), number("steady"));
    assert_eq!(shown["tables"].as_array().map(Vec::len), Some(2));
}

#[test]
fn chk_finds_a_good_store_good() {
    let place = Place::new();
    let store = place.small_store("s");
    assert!(run(&["chk", &store]).ok().contains("all is well"));
    assert_eq!(run(&["chk", &store, "--quiet"]).ok(), "");
    let shown = run(&["chk", &store, "--json"]).code(0).json();
    let names = [
        "branch_pages",
        "entries",
        "free_pages",
        "free_space_log_pages",
        "leaf_pages",
        "ok",
        "pages",
        "problems",
        "redo_log_pages",
        "retired_pages",
        "run_pages",
        "tables",
        "txn",
        "untrusted",
    ];
    assert_eq!(keys(&shown), names);
    assert_eq!((&shown["ok"], &shown["entries"]), (&json!(true), &json!(5)));
}

#[test]
fn compact_makes_the_store_smaller() {
    let place = Place::new();
    let store = place.small_store("s");
    let keys_of = |from: u32, to: u32| (from..to).map(|n| format!("filler {n:06}"));
    let records: String = keys_of(0, 20_000).map(|key| format!("{key},some value\n")).collect();
    let records = format!("key,value\n{records}");
    std::fs::write(place.path("records"), records).unwrap();
    run(&["load", &store, &place.arg("records"), "--format", "csv"]).ok();
    run(&["del", &store, "--prefix", "filler 00"]).ok();
    let before = std::fs::metadata(place.path("s")).unwrap().len();
    let shown = run(&["compact", &store, "--fill", "100", "--json"]).code(0).json();
    assert_eq!(
        keys(&shown),
        [
            "commits",
            "file_after",
            "file_before",
            "finished",
            "held_by",
            "held_bytes",
            "left_alone",
            "pages_moved",
            "pages_saved",
            "used_after",
            "used_before",
        ]
    );
    let after = std::fs::metadata(place.path("s")).unwrap().len();
    assert_eq!((&shown["file_before"], &shown["file_after"]), (&json!(before), &json!(after)));
    assert!(after < before && shown["finished"] == true, "{shown}");
    run(&["chk", &store]).ok();
    let shown = run(&["compact", &store, "--fill", "100"]).ok();
    assert!(shown.contains("nothing to do"), "{shown}");
    std::fs::File::options().write(true).open(&store).unwrap().set_len(after + (4 << 20)).unwrap();
    let shown = run(&["compact", &store, "--fill", "100"]).ok();
    assert!(shown.contains("the free end was cut off"), "{shown}");
    run(&["compact", &store, "--fill", "30"]).code(2);
    run(&["del", &store, "--prefix", "filler"]).ok();
    assert_eq!(contents(place.path("s")), small_model());
}

#[test]
fn copy_makes_a_store_of_its_own() {
    let place = Place::new();
    let store = place.small_store("s");
    let shown = run(&["copy", &store, &place.arg("plain")]).ok();
    assert!(shown.contains("copied"), "{shown}");
    run(&["copy", &store, &place.arg("plain")]).code(4).says("choose another name");
    let shown = run(&["copy", &store, &place.arg("compact"), "--compact", "--json"]).code(0).json();
    assert_eq!(keys(&shown), ["bytes", "compact", "path", "txn"]);
    assert_eq!(shown["bytes"], std::fs::metadata(place.path("compact")).unwrap().len());
    for (name, compact) in [("piped", false), ("piped-compact", true)] {
        let flag = if compact { "--compact" } else { "--json" };
        let copied = run(&["copy", &store, "-", flag]).code(0);
        std::fs::write(place.path(name), copied.out).unwrap();
    }
    for name in ["plain", "compact", "piped", "piped-compact"] {
        assert_eq!(contents(place.path(name)), small_model(), "{name}");
        run(&["put", &place.arg(name), "of its own", "yes"]).ok();
    }
    assert_eq!(contents(&store), small_model());
}

#[test]
fn changes_are_copied_and_restored() {
    let place = Place::new();
    let store = place.small_store("s");
    let txn = |shown: &serde_json::Value| shown["txn"].as_u64().unwrap().to_string();
    let full = run(&["copy", &store, &place.arg("full"), "--json"]).json();
    run(&["put", &store, "one", "more"]).ok();
    let monday = ["copy", &store, &place.arg("monday"), "--since", &txn(&full), "--json"];
    let monday = run(&monday).code(0).json();
    assert_eq!(keys(&monday), ["bytes", "compact", "path", "since", "txn"]);
    run(&["put", &store, "two", "more"]).ok();
    let piped = run(&["copy", &store, "-", "--since", &txn(&monday)]).code(0);
    let next = monday["txn"].as_u64().unwrap() + 1;
    let piped = piped.says(&format!("the next are those --since {next}")).out;
    std::fs::write(place.path("tuesday"), piped).unwrap();
    run(&["copy", &store, &place.arg("monday"), "--since", "1"]).code(4).says("exist");
    run(&["copy", &store, &place.arg("n"), "--since", "99999"]).code(4).says("not yet");
    assert!(!place.path("n").exists());
    run(&["copy", &store, &place.arg("n"), "--since", "1", "--compact"]).code(2);

    let (full, new) = (place.arg("full"), place.arg("new"));
    let (monday, tuesday) = (place.arg("monday"), place.arg("tuesday"));
    run(&["restore", &full, &new, &tuesday]).code(4).says("earlier commit").says("order");
    run(&["restore", &full, &new, "-", "-"]).code(2).says("once");
    run(&["restore", &full, &new, &full]).code(4).says("something else");
    run(&["restore", &full, &new, &place.arg("none")]).code(4).says("none");
    assert!(!place.path("new").exists() && !place.path("new-part").exists());
    let shown = run(&["restore", &full, &new, &monday, &tuesday, "--json"]).code(0).json();
    assert_eq!(keys(&shown), ["bytes", "path", "txn"]);
    assert_eq!(contents(&new), contents(&store));
    run(&["chk", &new]).ok();
    run(&["restore", &full, &new, &monday]).code(4).says("exist");
    assert_eq!(contents(&new), contents(&store));
    assert!(run(&["restore", &full, &place.arg("as-it-was")]).ok().contains("restored to"));
    assert_eq!(contents(place.path("as-it-was")), small_model());
}

#[test]
fn drop_removes_a_table_or_its_records() {
    let place = Place::new();
    let store = place.small_store("s");
    run(&["drop", &store]).code(2);
    run(&["drop", &store, "-t", "main"]).code(2).says("no terminal").says("--yes");
    run(&["drop", &store, "-t", "none", "--yes"]).code(1).says("no such table");
    let shown = run(&["drop", &store, "-t", "main", "--empty", "--yes", "--json"]).json();
    assert_eq!(shown, json!({ "table": "main", "dropped": false, "deleted": 4 }));
    assert!(contents(&store)[&b"main"[..]].is_empty());
    // Without a terminal nothing is asked.
    assert!(run(&["drop", &store, "-t", "other", "-y"]).ok().contains("1 record deleted"));
    assert_eq!(contents(&store).len(), 1);
}
