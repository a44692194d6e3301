//! Commands that look at a store: who reads it, how its tables fill their pages, whether all is whole.

use std::path::Path;

use zubilo::{Options, TableOptions};

use crate::harness::{Model, Place, run};

#[test]
fn readers_are_listed_with_their_programs() {
    let place = Place::new();
    let store = place.small_store("s");
    let none = run(&["readers", &store]).code(1);
    assert!(String::from_utf8_lossy(&none.out).contains("0 of 1024 slots"));
    let env = Options::new().open(&store).unwrap();
    let read = env.read().unwrap();
    run(&["put", &store, "k", "v"]).ok();
    run(&["put", &store, "k", "w"]).ok();
    let shown = run(&["readers", &store, "--json"]).json();
    let reader = &shown["readers"][0];
    assert_eq!(reader["pid"], std::process::id());
    assert_eq!((&reader["txn"], &reader["lag"]), (&read.id().0.into(), &2.into()));
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(reader["program"], name.trim_end());
    assert!(shown["held_bytes"].as_u64() > Some(0));
    let text = run(&["readers", &store]).ok();
    assert!(text.contains(name.trim_end()) && text.contains("1 of 1024 slots"), "{text}");
    assert_eq!(run(&["readers", &store, "--clean", "--json"]).json()["cleaned"], 0);
    run(&["readers", &place.arg("missing")]).code(4);
}

#[test]
fn several_stores_are_verified() {
    let place = Place::new();
    let good = place.small_store("good");
    let records = (0..4000u32).map(|i| (i.to_be_bytes().to_vec(), vec![b'v'; 60]));
    let bad = place.store("bad", &Model::from([(b"main".to_vec(), records.collect())]));
    for i in 0..6 {
        run(&["put", &bad, "more", &i.to_string()]).ok();
    }
    assert!(run(&["verify", &good, &bad]).ok().lines().all(|line| line.contains("all is well")));
    assert_eq!(run(&["verify", "-q", &good, &bad]).ok(), "");
    let mut bytes = std::fs::read(&bad).unwrap();
    let at = bytes.windows(60).position(|w| w == [b'v'; 60]).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&bad, bytes).unwrap();
    let report = run(&["verify", &good, &bad, &good]).code(3);
    let text = String::from_utf8_lossy(&report.out).into_owned();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[1].contains("table \"main\": the page's checksum is wrong"), "{text}");
    assert!(lines[2].contains("all is well"), "{text}");
    let missing = place.arg("missing");
    run(&["verify", &missing, &good]).code(4).says("missing");
    run(&["verify", &missing, &bad]).code(3);
    let report = run(&["verify", "--json", &bad, &missing]).code(3);
    let lines = String::from_utf8_lossy(&report.out).into_owned();
    let values: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&values[0]["ok"], &values[1]["ok"]), (&false.into(), &false.into()));
    assert_eq!(values[0]["entries"], 4001);
    assert!(values[1]["error"].as_str().unwrap().contains("No such file"));
    // Copies on a disk that cannot be written.
    assert!(!place.path("copy-lock").exists());
    run(&["copy", &good, &place.arg("copy")]).ok();
    run(&["verify", "--no-lock", &place.arg("copy")]).ok();
    assert!(!place.path("copy-lock").exists());
}

#[test]
fn a_tree_is_described_from_its_pages_and_records() {
    let place = Place::new();
    let store = place.arg("s");
    let env = Options::new().open(&store).unwrap();
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("t").unwrap();
    for i in 0..20_000u32 {
        table
            .put(format!("user:{:08}", i.wrapping_mul(2_654_435_761) % 100_000_000), [7; 40])
            .unwrap();
    }
    table.put("image/1", vec![1; 100_000]).unwrap();
    let len = table.len();
    txn.create_table("own", TableOptions::new().compare_keys(|a, b| b.cmp(a))).unwrap();
    txn.create_table("empty", TableOptions::new()).unwrap();
    txn.commit().unwrap();

    let shown = run(&["tree", &store, "t", "--json"]).json();
    let read = env.read().unwrap();
    let stats = read.table("t").unwrap().stats();
    assert_eq!((&shown["entries"], &shown["depth"]), (&len.into(), &u64::from(stats.depth).into()));
    let levels = shown["levels"].as_array().unwrap();
    assert_eq!(levels[0]["pages"].as_u64(), Some(stats.leaf_pages));
    assert_eq!(levels[0]["entries"].as_u64(), Some(len));
    let branches: u64 = levels[1..].iter().map(|l| l["pages"].as_u64().unwrap()).sum();
    assert_eq!(branches, stats.branch_pages);
    assert_eq!(shown["large_values"]["pages"].as_u64(), Some(stats.run_pages));
    let fill: u64 = levels[0]["fill"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(fill, stats.leaf_pages);
    assert_eq!(shown["largest"][0]["key"], "image/1");
    assert_eq!(shown["largest"][0]["value_bytes"], 100_000);
    assert_eq!(shown["key_bytes"]["most"], 13);
    assert_eq!(shown["value_bytes"]["sum"].as_u64(), Some(40 * (len - 1) + 100_000));
    assert_eq!(shown["prefixes"]["frequent"][0], serde_json::json!(["user:", len - 1]));

    let text = run(&["tree", &store, "t"]).ok();
    for part in ["leaves", "branches 1", "large values", "fill of leaves", "user:", "image/1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!run(&["tree", &store, "t", "--pages-only"]).ok().contains("largest"));
    assert!(run(&["tree", &store, "own"]).ok().contains("custom keys"));
    assert!(run(&["tree", &store, "empty"]).ok().contains("none"));
    run(&["tree", &store, "missing"]).code(1).says("no such table");

    // What random insertions and deletions leave is shown, and what helps against it.
    let mut txn = env.write().unwrap();
    let mut table = txn.table("t").unwrap();
    let keys: Vec<_> = table.iter().map(|r| r.unwrap().0.to_vec()).collect();
    for (i, key) in keys.iter().enumerate() {
        if i % 3 != 0 {
            table.delete(key).unwrap();
        }
    }
    txn.commit().unwrap();
    drop(read);
    let text = run(&["tree", &store, "t"]).ok();
    if text.contains("zubilo compact") {
        run(&["compact", &store]).code(0).says("own");
        assert!(!run(&["tree", &store, "t"]).ok().contains("zubilo compact"));
    }
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let help = run(&["--help"]).ok();
    let commands = help.lines().skip_while(|l| !l.starts_with("Commands:")).skip(1);
    let commands: Vec<_> = commands.map_while(|l| l.split_whitespace().next()).collect();
    assert!(commands.len() > 20, "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).ok();
        assert!(commands.iter().all(|name| script.contains(name)), "{shell}");
    }
    let bash = run(&["completions", "bash"]).ok();
    let place = Place::new();
    std::fs::write(place.path("script"), bash).unwrap();
    let status = std::process::Command::new("bash").arg("-n").arg(place.path("script")).status();
    assert!(status.unwrap().success());
    assert!(run(&["man"]).ok().starts_with(".ie"));
    let folder = place.arg("man");
    run(&["man", &folder]).ok();
    for name in commands.iter().filter(|name| **name != "help") {
        assert!(Path::new(&folder).join(format!("zubilo-{name}.1")).exists(), "{name}");
    }
    run(&["completions", "tcsh"]).code(2);
}
