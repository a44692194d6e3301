//! Bad input: named by line and cause, and nothing is committed half.

use crate::harness::{Place, contents, run_with, small_model};

const HEAD: &str = "VERSION=3\nformat=print\ndatabase=main\ntype=btree\nHEADER=END\n new\n v\n";

#[test]
fn bad_input_commits_nothing() {
    let place = Place::new();
    let store = place.small_store("s");
    let long = "k".repeat(4000);
    let cases = [
        ("bytevalue", "", "hello\n".to_string(), "line 1: \"VERSION=3\" expected"),
        ("bytevalue", HEAD, " k\n".into(), "line 8: the value of the last key is missing"),
        ("bytevalue", HEAD, String::new(), "line 7: the input ends without DATA=END"),
        ("bytevalue", HEAD, " k\\q\n".into(), "line 8: a \\ must be followed"),
        (
            "bytevalue",
            HEAD,
            format!(" {long}\n v\n"),
            "line 8, into the table \"main\": a key of 4000 bytes is too long",
        ),
        ("csv", "key,value\nnew,v\n", "a\n".into(), "line 3: 1 columns, the first line has 2"),
        ("csv", "key,value:escaped\n\"two\nlines\",v\n", "a,\\q\n".into(), "line 4: column 2"),
        ("csv", "", "a,b\nc,d\n".into(), "line 1: the first line names no column \"key\""),
        ("jsonl", "{\"key\":\"new\",\"value\":\"\"}\n", "{\"key\":".into(), "line 2: bad JSON"),
        ("jsonl", "{\"key\":\"new\",\"value\":\"\"}\n", "\u{0}".into(), "line 2: bad JSON"),
    ];
    for (format, good, bad, cause) in cases {
        let input = format!("{good}{bad}");
        let failed = run_with(&["load", &store, "-f", format], input.as_bytes()).code(4);
        failed.says(cause).says("nothing was committed");
        assert_eq!(contents(&store), small_model(), "{input:?}");
    }
}

#[test]
fn deep_and_endless_json_is_an_error() {
    let place = Place::new();
    let store = place.small_store("s");
    let deep = "[".repeat(200_000);
    run_with(&["load", &store, "-f", "jsonl"], deep.as_bytes()).code(4).says("line 1");
}

#[test]
fn batches_tell_how_far_they_came() {
    let place = Place::new();
    let mut input = String::from("key:escaped,value:escaped\n");
    (0..25).for_each(|i| input += &format!("{i:02},v\n"));
    input += "26,\\q\n";
    let args = |batch: &str| {
        let store = place.arg(batch);
        ["load", &store, "--create", "-f", "csv", "--batch", batch].map(str::to_string)
    };
    for (batch, committed) in [("10", 20), ("25", 25), ("24", 24), ("26", 0)] {
        let message = match committed {
            0 => "nothing was committed".to_string(),
            n => format!("the first {n} records were committed"),
        };
        run_with(&args(batch), input.as_bytes()).code(4).says("line 27").says(&message);
        if committed == 0 {
            assert!(!place.path(batch).exists(), "an empty store was left");
            continue;
        }
        let records = contents(place.path(batch)).remove(&b"main"[..]).unwrap_or_default();
        assert_eq!(records.len(), committed, "batches of {batch}");
        assert!((0..committed).all(|i| records.contains_key(format!("{i:02}").as_bytes())));
    }
}

#[test]
fn errors_as_json() {
    let place = Place::new();
    let store = place.small_store("s");
    let failed = run_with(&["load", &store, "-f", "csv", "--json"], b"key,value\na\n").code(4);
    let error: serde_json::Value = serde_json::from_str(&failed.err).expect("JSON");
    let names: Vec<_> = error["error"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["advice", "cause", "code", "what"]);
    assert_eq!(error["error"]["code"], 4);
    assert!(failed.out.is_empty());
}
