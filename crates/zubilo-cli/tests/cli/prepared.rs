//! `zubilo prepared`: a program that prepared a transaction and ended without a decision.

use serde_json::Value;
use zubilo::{Options, PreparedId};

use crate::harness::{Place, run};

/// Leaves a transaction behind that puts one record.
fn leave(store: &str, key: &str, tag: &[u8]) -> PreparedId {
    let env = Options::new().open(store).unwrap();
    let mut txn = env.write().unwrap();
    txn.table_or_create("main").unwrap().put(key, "value").unwrap();
    txn.set_user_words([7, 8, 9]).unwrap();
    let waiting = txn.prepare(tag).unwrap();
    waiting.id()
}

#[test]
fn what_waits_is_shown_and_decided() {
    let place = Place::new();
    let store = place.small_store("s");
    assert_eq!(run(&["stat", &store, "--json"]).code(0).json()["prepared"], Value::Null);
    assert_eq!(run(&["prepared", &store, "--json"]).code(1).json()["prepared"], Value::Null);
    let shown = String::from_utf8(run(&["prepared", &store]).code(1).out).unwrap();
    assert!(shown.contains("no transaction is prepared"), "{shown}");

    let id = leave(&store, "x", b"order \xff 7");
    let shown = run(&["prepared", &store, "--json"]).code(0).json()["prepared"].clone();
    let newest = run(&["stat", &store, "--json"]).json()["newest"].as_u64().unwrap();
    assert_eq!(shown["id"], id.to_string());
    assert_eq!(shown["txn"], newest + 1);
    assert_eq!(shown["tag"], "order \\xff 7");
    assert_eq!(shown["user_words"], serde_json::json!([7, 8, 9]));
    assert!(shown["since"].as_u64().unwrap() > 1_600_000_000);
    for command in ["stat", "map"] {
        assert_eq!(run(&[command, &store, "--json"]).code(0).json()["prepared"], shown);
    }
    let text = run(&["prepared", &store]).ok();
    assert!(text.contains(&format!("--commit {id}")) && text.contains("order \\xff 7"), "{text}");
    assert!(run(&["stat", &store]).ok().contains(&format!("--roll-back {id}")));
    run(&["put", &store, "k", "v"]).code(4).says("prepared");
    run(&["get", &store, "x"]).code(1);

    // Another identity, the number, or both decisions at once decide nothing.
    let other = PreparedId(id.0 ^ 1).to_string();
    run(&["prepared", &store, "--commit", &other]).code(1).says("no such prepared");
    run(&["prepared", &store, "--roll-back", &(newest + 1).to_string()]).code(2).says("16 hex");
    let id = id.to_string();
    run(&["prepared", &store, "--roll-back", &id, "--commit", &id]).code(2);
    let done = run(&["prepared", &store, "--commit", &id, "--json"]).code(0).json();
    assert_eq!(done, serde_json::json!({ "id": id, "committed": true }));
    assert_eq!(run(&["get", &store, "x"]).ok(), "value\n");
    run(&["prepared", &store, "--commit", &id]).code(1);

    let id = leave(&store, "y", b"").to_string();
    assert!(run(&["prepared", &store, "--roll-back", &id]).ok().contains("rolled back"));
    run(&["get", &store, "y"]).code(1);
    run(&["put", &store, "k", "v"]).ok();
}
