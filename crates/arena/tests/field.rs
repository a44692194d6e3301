//! The whole field on a few records: each engine of this build runs each kind of work, verifies
//! what it reads, and comes out in the report.

use std::path::Path;
use std::process::Command;

const ENGINES: [&str; 5] = ["zubilo", "lmdb", "redb", "fjall", "sled"];

fn arena(dir: &Path, arguments: &[&str]) -> (String, serde_json::Value, String) {
    let out = dir.join("report");
    let output = Command::new(env!("CARGO_BIN_EXE_arena"))
        .args(arguments)
        .arg("--dir")
        .arg(dir)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    let json = std::fs::read(out.with_extension("json")).unwrap();
    let html = std::fs::read_to_string(out.with_extension("html")).unwrap();
    (said, serde_json::from_slice(&json).unwrap(), html)
}

#[test]
fn every_engine_does_every_work() {
    let dir = tempfile::tempdir().unwrap();
    let engines = ENGINES.join(",");
    let few = ["--records", "1000", "--rounds", "1", "--seconds", "0.01", "--engines", &engines];
    let (said, report, html) = arena(dir.path(), &[&["quick"], &few[..]].concat());

    let mut seen = std::collections::BTreeSet::new();
    for stage in report["stages"].as_array().unwrap() {
        for end in stage["endings"].as_array().unwrap() {
            assert_eq!(
                end["trouble"],
                serde_json::Value::Null,
                "{} {}: {end}",
                stage["name"],
                stage["class"]
            );
            assert!(end["records"].as_u64().unwrap() > 0 && end["disk_bytes"].as_u64() > Some(0));
            let killed = end["killed_open_s"].as_f64().is_some();
            let may = stage["name"] == "transactions"
                && ["sync", "lazy", "nosync"].iter().any(|c| stage["class"] == *c);
            assert_eq!(killed, may, "{end}");
        }
        for row in stage["rows"].as_array().unwrap() {
            let name = format!("{} {} {}", stage["name"], stage["class"], row["name"]);
            assert!(!row["cells"].as_array().unwrap().is_empty(), "{name}");
            for cell in row["cells"].as_array().unwrap() {
                let cannot = match row["name"].as_str() {
                    Some("compaction") => "makes its store smaller in place",
                    Some("begin and end of a read") => "to begin a read does nothing",
                    Some("copies beside CRUD") => "no call that copies a store in use",
                    _ => "-",
                };
                if cell["trouble"].as_str().is_some_and(|why| why.contains(cannot)) {
                    continue;
                }
                assert_eq!(cell["trouble"], serde_json::Value::Null, "{name}: {cell}");
                let samples = cell["samples"].as_array().unwrap();
                assert_eq!(samples.len(), 1, "{name}");
                assert!(samples.iter().all(|s| s["main"]["ops"].as_u64() > Some(0)), "{name}");
                let timed = !cell["latency"].as_array().unwrap().is_empty();
                assert!(timed || row["name"] == "compaction", "{name}");
                let samples_taken = samples[0]["growth"].as_array().unwrap().len();
                assert_eq!(
                    samples_taken > 3,
                    stage["name"] == "sleeping reader",
                    "{name}: {samples_taken}"
                );
                seen.insert(cell["engine"].as_str().unwrap().to_owned());
            }
            assert!(html.contains(row["name"].as_str().unwrap()), "{name}");
        }
    }
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), sorted(&ENGINES));
    for engine in ENGINES {
        assert!(said.contains(engine) && html.contains(engine));
    }
    for forbidden in ["<script", "http://", "https://", "src="] {
        assert!(!html.contains(forbidden), "the page fetches something: {forbidden}");
    }
    // Nothing of the stores is left.
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left.len(), 4, "{left:?}");
    recorded(dir.path());
}

/// What is kept of the report: its figures can be read, drawn and ranked again.
fn recorded(dir: &Path) {
    let run = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_arena")).args(arguments).current_dir(dir).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["record", "report.json", "kept"]);
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let (whole, kept) = (read("report.json"), read("kept.json"));
    assert!(kept.len() * 3 < whole.len(), "{} of {}", kept.len(), whole.len());
    let summary = read("kept.md");
    for said in ["seed", "commit", "kernel", "comparisons", "Durability::Immediate", "| reads SYNC"]
    {
        assert!(summary.contains(said), "{said}");
    }
    let page = read("kept.html");
    assert!(page == read("report.html"), "the figures are all that is drawn");
    run(&["report", "kept.json"]);
    assert!(page == read("kept.html"), "the same page again");
    assert_eq!(run(&["rank", "kept.json"]), run(&["rank", "report.json"]));
    let rows = read("report.csv").lines().count();
    assert!(rows > 100, "{rows} lines");
    assert!(page.len() < 150_000, "a page of five engines has {} bytes", page.len());
}

#[test]
fn threads_and_large_values_of_the_whole_plan() {
    let dir = tempfile::tempdir().unwrap();
    for (stage, rows) in [("transactions", 48), ("values of 8 MiB", 2)] {
        let share = ["full", "--scale", "0.001", "--engines", "zubilo,lmdb,redb,fjall"];
        let (_, report, _) = arena(dir.path(), &[&share[..], &["--stage", stage]].concat());
        let stages = report["stages"].as_array().unwrap();
        let all: Vec<_> = stages.iter().flat_map(|s| s["rows"].as_array().unwrap()).collect();
        assert_eq!(all.len(), rows, "{stage}");
        for row in all {
            let (name, engines) = (&row["name"], row["cells"].as_array().unwrap());
            assert!(engines.len() > 1, "{stage} {name}");
            for cell in engines {
                assert_eq!(cell["trouble"], serde_json::Value::Null, "{stage} {name}: {cell}");
                let sample = &cell["samples"][0];
                assert!(sample["main"]["ops"].as_u64() > Some(0), "{stage} {name}: {cell}");
                let readers =
                    name.as_str().is_some_and(|name| name.contains('R') && name.contains('+'));
                assert_eq!(sample["readers"].is_object(), readers, "{stage} {name}");
            }
        }
    }
}

#[test]
fn a_run_goes_on_where_it_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let run = ["quick", "--records", "1000", "--rounds", "1", "--seconds", "0.01"];
    let run = [&run[..], &["--stage", "load", "--engines", "zubilo,lmdb"]].concat();
    let (_, whole, _) = arena(dir.path(), &run);
    // As it was behind the first stage.
    let mut first = whole.clone();
    let stages = first["stages"].as_array_mut().unwrap();
    assert_eq!(stages.len(), 2);
    stages.truncate(1);
    let json = dir.path().join("report.json");
    std::fs::write(&json, serde_json::to_vec(&first).unwrap()).unwrap();

    let (said, resumed, html) = arena(dir.path(), &[&run[..], &["--resume"]].concat());
    assert!(said.contains("stage 1 of 2: load NOSYNC: kept"), "{said}");
    assert_eq!(resumed["stages"][0], first["stages"][0], "what was measured stays");
    assert_eq!(resumed["stages"][1]["class"], "volatile");
    let sample = &resumed["stages"][1]["rows"][1]["cells"][1]["samples"][0];
    assert!(sample["main"]["ops"].as_u64() > Some(0), "{sample}");
    assert!(html.contains("behind 1 stages"), "the report says so");
    // Nothing to go on with is a new run.
    std::fs::remove_file(&json).unwrap();
    let (said, ..) = arena(dir.path(), &[&run[..], &["--resume"]].concat());
    assert!(!said.contains("kept"), "{said}");

    let mut arguments = [&run[..], &["--resume", "--seed", "5"]].concat();
    let (here, out) = (dir.path().to_str().unwrap(), dir.path().join("report"));
    arguments.extend(["--dir", here, "--out", out.to_str().unwrap()]);
    let other = Command::new(env!("CARGO_BIN_EXE_arena")).args(&arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&other.stderr);
    assert!(!other.status.success() && errors.contains("of another run: seed"), "{errors}");
}

fn sorted<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

#[test]
fn what_cannot_take_part_is_named_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "quick",
        "--records",
        "1000",
        "--rounds",
        "2",
        "--seconds",
        "0.01",
        "--row",
        "CRUD",
        "--engines",
        "zubilo-c,lmdb,redb",
    ];
    // A path that leads nowhere, whatever lies beside the program.
    let out = dir.path().join("report");
    let status = Command::new(env!("CARGO_BIN_EXE_arena"))
        .args(arguments)
        .args([Path::new("--dir"), dir.path(), Path::new("--out"), &out])
        .env("ARENA_ZUBILO_C", dir.path().join("none.so"))
        .output()
        .unwrap();
    assert!(status.status.success());
    let json = std::fs::read(out.with_extension("json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let cells = report["stages"][0]["rows"][0]["cells"].as_array().unwrap();
    assert!(!cells.is_empty());
    assert!(cells.iter().all(|c| c["samples"].as_array().unwrap().len() == 2), "two rounds");
    let entrants = report["entrants"].as_array().unwrap();
    let of = |name: &str| entrants.iter().find(|e| e["name"] == name).unwrap();
    assert!(of("zubilo-c")["missing"].as_str().unwrap().contains("none.so"));
    let lazy = of("redb")["standings"].as_array().unwrap().iter();
    let lazy = lazy.clone().find(|s| s["class"] == "lazy").unwrap();
    assert_eq!(lazy["settings"], serde_json::Value::Null);
    assert!(lazy["why"].as_str().unwrap().contains("end with it"));
    assert!(String::from_utf8_lossy(&status.stdout).contains("MISSING"));
}
