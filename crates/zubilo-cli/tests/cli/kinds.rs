//! Tables of every kind: made with options, numbers as keys, columns and objects as values.

use serde_json::json;
use zubilo::{KeyOrder, Options, TableOptions};

use crate::harness::{Place, contents, run, run_with};

#[test]
fn tables_are_made_with_options_and_show_them() {
    let place = Place::new();
    let store = place.arg("s");
    let made = run(&["create", &store, "-t", "plain", "--page-size", "8192"]).ok();
    assert_eq!(made, "table \"plain\" made\n");
    let options =
        ["--key-order", "integer", "--fixed-values", "--value-order", "reversed", "--counted"];
    let made = run(&[&["create", &store, "-t", "all"], &options[..]].concat()).ok();
    assert_eq!(made, "table \"all\" made (integer keys, fixed values, reversed values, counted)\n");
    run(&["create", &store, "-t", "all"]).code(4).says("the table exists").says("zubilo tables");
    run(&["create", &store, "--align", "8", "--duplicates"]).code(2);
    run(&["create", &store, "--align", "8"]).ok();

    let env = Options::new().open(&store).unwrap();
    assert_eq!(env.page_size(), 8192);
    let read = env.read().unwrap();
    let due = TableOptions::new().key_order(KeyOrder::Integer).counted().fixed_duplicates();
    read.table_with("all", &due.value_order(KeyOrder::Reversed)).unwrap();
    let shown = run(&["tables", &store, "--json"]).json();
    assert_eq!(
        shown["tables"][0]["options"],
        json!({"key_order": "integer", "duplicates": true, "value_order": "reversed",
               "fixed_values": true, "counted": true, "align": 1})
    );
    assert_eq!(
        shown["tables"][1]["options"],
        json!({"key_order": "bytes", "duplicates": false, "value_order": null,
               "fixed_values": false, "counted": false, "align": 8})
    );
    for command in ["tables", "stat"] {
        let shown = run(&[command, &store]).ok();
        assert!(
            shown.contains("integer keys, fixed values") && shown.contains("align 8"),
            "{shown}"
        );
    }
    // A store that was to hold a table is not left without it.
    run(&["create", &place.arg("t"), "-t", &"x".repeat(5000)]).code(4);
    assert!(!place.path("t").exists());
    // A table in a program's own order can be listed, not read.
    let mut txn = env.write().unwrap();
    txn.create_table("own", TableOptions::new().compare_keys(|a, b| b.cmp(a))).unwrap();
    txn.commit().unwrap();
    assert!(run(&["tables", &store]).ok().contains("custom keys"));
    run(&["scan", &store, "-t", "own"]).code(4);
}

#[test]
fn put_and_load_make_tables_with_options() {
    let place = Place::new();
    let store = place.arg("s");
    run(&["put", &store, "--create", "-t", "n", "--key-order", "integer", "300", "x"]).ok();
    run(&["put", &store, "-t", "n", "7", "y"]).ok();
    assert_eq!(run(&["scan", &store, "-t", "n"]).ok(), "7\ty\n300\tx\n");
    run(&["put", &store, "-t", "n", "--duplicates", "7", "y"]).code(4).says("another `key_order`");
    let csv = b"key,value\n5,a\n5,b\n1000,c\n";
    let args =
        ["load", &store, "-t", "many", "-f", "csv", "--key-order", "integer", "--duplicates"];
    run_with(&args, csv).ok();
    assert_eq!(run(&["scan", &store, "-t", "many"]).ok(), "5\ta\n5\tb\n1000\tc\n");
}

#[test]
fn numbers_are_keys_of_integer_tables() {
    let place = Place::new();
    let store = place.arg("s");
    run(&["create", &store, "--key-order", "integer"]).ok();
    for key in ["1000", "2", "256", "18446744073709551615"] {
        run(&["put", &store, key, &format!("v{key}")]).ok();
    }
    assert_eq!(run(&["get", &store, "256", "2"]).ok(), "v256\nv2\n");
    let scan = |args: &[&str]| run(&[&["scan", &store, "-k"], args].concat());
    assert_eq!(scan(&[]).ok(), "2\n256\n1000\n18446744073709551615\n");
    assert_eq!(scan(&["--from", "3", "--to", "1000"]).ok(), "256\n");
    scan(&["--from", "1000", "--to", "256"]).code(1);
    assert_eq!(scan(&["--from", "256", "--to", "1001"]).ok(), "256\n1000\n");
    assert_eq!(scan(&["-e", "hex", "-n", "1"]).ok(), "0200000000000000\n");
    scan(&["--prefix", "2"]).code(2).says("--from and --to");
    run(&["get", &store, "x"]).code(2).says("is no u64").says("the key");
    run(&["get", &store, "3"]).code(1).says("get \"3\"");
    assert_eq!(run(&["get", &store, "2", "--json"]).json()["key"], 2);
    run(&["del", &store, "2"]).ok();
    run(&["del", &store, "--to", "1000"]).ok();
    assert_eq!(scan(&[]).ok(), "1000\n18446744073709551615\n");
    // Four bytes stay four bytes.
    run(&[
        "put",
        &store,
        "--create",
        "-t",
        "small",
        "--key-order",
        "integer",
        "--key",
        "u32",
        "5",
        "",
    ])
    .ok();
    run(&["put", &store, "-t", "small", "6", ""]).ok();
    assert!(contents_of(&store, "small").iter().all(|(key, _)| key.len() == 4));
    assert_eq!(run(&["scan", &store, "-t", "small", "-k"]).ok(), "5\n6\n");
}

fn contents_of(store: &str, table: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let env = Options::new().open(store).unwrap();
    let read = env.read().unwrap();
    let table = read.table(table).unwrap();
    table.iter().map(|r| r.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

#[test]
fn numbers_in_byte_order_are_asked_for_or_noted() {
    let place = Place::new();
    let store = place.arg("s");
    for (key, value) in [("-5", "1.5"), ("3", "-2"), ("-300", "0")] {
        run(&["put", &store, "--create", "--key", "i32", "--value", "f64", "--", key, value]).ok();
    }
    let typed = ["--key", "i32", "--value", "f64"];
    let scan = |args: &[&str]| run(&[&["scan", &store], args].concat());
    assert_eq!(scan(&typed).ok(), "-300\t0.0\n-5\t1.5\n3\t-2.0\n");
    scan(&["--key", "u64"]).code(4).says("is no u64: it has 4 bytes");
    // The types that a typed table notes are enough.
    let env = Options::new().open(&store).unwrap();
    let mut txn = env.write().unwrap();
    txn.table_or_create("zubilo.types").unwrap().put("main", "table<i32, f64>").unwrap();
    txn.commit().unwrap();
    drop(env);
    assert_eq!(scan(&[]).ok(), "-300\t0.0\n-5\t1.5\n3\t-2.0\n");
    assert_eq!(
        scan(&["--from=-10", "--json", "-n", "1"]).json(),
        json!({"table": "main", "key": -5, "value": 1.5})
    );
    assert!(run(&["tables", &store]).ok().contains("table<i32, f64>"));
    let dumped = run(&["dump", &store, "-t", "main", "-f", "csv"]).ok();
    assert_eq!(dumped, "table,key,value\nmain,-300,0.0\nmain,-5,1.5\nmain,3,-2.0\n");
    let before = contents(&store);
    run(&["drop", &store, "-t", "main", "--empty", "-y"]).ok();
    run_with(&["load", &store, "-f", "csv"], dumped.as_bytes()).ok();
    assert_eq!(contents(&store), before);
    run(&["drop", &store, "-t", "main", "--empty", "-y"]).ok();
    let lines =
        b"{\"key\":-300,\"value\":0}\n{\"key\":-5,\"value\":1.5}\n{\"key\":3,\"value\":-2.0}\n";
    run_with(&["load", &store, "-f", "jsonl"], lines).ok();
    assert_eq!(contents(&store), before);
}

#[test]
fn csv_of_several_columns_becomes_objects_and_comes_back() {
    let place = Place::new();
    let store = place.arg("s");
    let csv = "id,name,note\n7,Ada,\"a, \"\"b\"\"\"\n12,Žofie,\n";
    let load = |table: &str, more: &[&str]| {
        let args = ["load", &store, "--create", "-f", "csv", "-t", table, "--key-column", "id"];
        run_with(&[&args, more].concat(), csv.as_bytes())
    };
    load("all", &["--key", "u32"]).ok();
    assert_eq!(
        run(&["scan", &store, "-t", "all", "--key", "u32", "--value", "text"]).ok(),
        "7\t{\"name\":\"Ada\",\"note\":\"a, \\\"b\\\"\"}\n12\t{\"name\":\"Žofie\",\"note\":\"\"}\n"
    );
    let columns =
        ["dump", &store, "-t", "all", "-f", "csv", "--key", "u32", "--columns", "name,note"];
    let dumped = run(&columns).ok();
    assert_eq!(dumped, csv.replace("id,", "key:u32,"));
    let before = contents(&store);
    run(&["drop", &store, "-t", "all", "--empty", "-y"]).ok();
    run_with(&["load", &store, "-t", "all", "-f", "csv"], dumped.as_bytes()).ok();
    assert_eq!(contents(&store), before);
    load("one", &["--value-column", "name"]).ok();
    assert_eq!(run(&["get", &store, "-t", "one", "12"]).ok(), "Žofie\n");
    load("two", &["--value-column", "note", "--value-column", "id"]).ok();
    assert_eq!(
        run(&["get", &store, "-t", "two", "7", "-e", "text"]).ok(),
        "{\"note\":\"a, \\\"b\\\"\",\"id\":\"7\"}\n"
    );
    load("none", &["--value-column", "nome"])
        .code(4)
        .says("no column \"nome\", but id, name, note");
    run(&["dump", &store, "-t", "one", "-f", "csv", "--columns", "a"]).code(4).says("is no JSON");
    run(&["dump", &store, "-t", "one", "--columns", "a"]).code(2).says("--columns is for csv");
}

#[test]
fn json_lines_carry_objects() {
    let place = Place::new();
    let store = place.arg("s");
    let lines = "{\"key\":\"a\",\"value\":{\"z\": 1, \"a\": [true,null]}}\n\
                 {\"key\":\"b\",\"value\":[1.50]}\n{\"key\":\"c\",\"value\":7}\n\
                 {\"key\":\"d\",\"value\":\"text\"}\n{\"key\":\"e\",\"value\":{\"base64\":\"/w==\"}}\n";
    run_with(&["load", &store, "--create", "-f", "jsonl"], lines.as_bytes()).ok();
    assert_eq!(
        run(&["scan", &store]).ok(),
        "a\t{\"z\": 1, \"a\": [true,null]}\nb\t[1.50]\nc\t7\nd\ttext\ne\t\\xff\n"
    );
    let dumped = run(&["dump", &store, "-f", "jsonl", "--json-values"]).ok();
    let values: Vec<_> =
        dumped.lines().skip(1).map(|l| l.split("\"value\":").nth(1).unwrap()).collect();
    assert_eq!(
        values,
        [
            "{\"z\": 1, \"a\": [true,null]}}",
            "[1.50]}",
            "\"7\"}",
            "\"text\"}",
            "{\"base64\":\"/w==\"}}"
        ]
    );
    // What an object cannot be told from is a string; what is dumped is what is loaded.
    let awkward = ["{\"base64\":\"AA==\"}", "{\n}", "{", "[1,", " {}", "{}x{}"];
    for (i, value) in awkward.into_iter().enumerate() {
        run(&["put", &store, "-e", "text", &format!("k{i}"), value]).ok();
    }
    for more in [&[][..], &["--json-values"]] {
        let dumped = run(&[&["dump", &store, "-f", "jsonl"], more].concat()).ok();
        let copy = place.arg(&format!("copy{}", more.len()));
        run_with(&["load", &copy, "--create", "-f", "jsonl"], dumped.as_bytes()).ok();
        assert_eq!(contents(&copy), contents(&store));
    }
    run_with(&["load", &store, "-f", "jsonl"], b"{\"key\":5,\"value\":1}\n")
        .code(4)
        .says("key: neither");
    let args = ["load", &store, "-f", "jsonl", "-t", "n", "--key", "u16"];
    run_with(&args, b"{\"key\":5,\"value\":1}\n").ok();
    assert_eq!(contents_of(&store, "n"), [(vec![0, 5], b"1".to_vec())]);
    run_with(&args, b"{\"key\":70000,\"value\":1}\n")
        .code(4)
        .says("line 1")
        .says("the greatest is 65535");
}
