//! The text format against dumps that LMDB's own tools wrote, and against the tools themselves
//! where the machine has them.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use support::rng;

use crate::harness::{Model, Place, contents, random_bytes, run, run_with};

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What `tables.dump` and `tables-print.dump` were made of.
fn fixture_model() -> Model {
    let all: Vec<u8> = (0..=255).filter(|b| *b != b'\\').collect();
    let text = |s: &str| s.as_bytes().to_vec();
    let fruit = [
        (text("apple"), text("red")),
        (text("banana"), Vec::new()),
        ((1..b'\\').collect(), all),
        (vec![0xff, 0xfe], text("two bytes that are no text")),
        (text("зубило"), text("долото")),
    ];
    let numbers = (0..40)
        .step_by(3)
        .map(|i| (text(&format!("{i:05}")), text(&format!("value {i} ").repeat(i % 5 * 80 + 1))));
    Model::from([
        (text("empty"), Default::default()),
        (text("fruit"), fruit.into_iter().collect()),
        (text("numbers with spaces"), numbers.collect()),
    ])
}

/// The lines that say what is in the tables; `duplicates` repeats what `dupsort` says.
pub(crate) fn records(dump: &[u8]) -> Vec<&[u8]> {
    let about_the_store: [&[u8]; 4] =
        [b"mapsize=", b"maxreaders=", b"db_pagesize=", b"duplicates="];
    let lines = dump.split(|b| *b == b'\n');
    lines.filter(|line| !about_the_store.iter().any(|start| line.starts_with(start))).collect()
}

#[test]
fn dumps_of_the_originals_are_read_and_written_alike() {
    let place = Place::new();
    for (name, format) in [("tables.dump", "bytevalue"), ("tables-print.dump", "print")] {
        let dump = fixture(name);
        run_with(&["load", &place.arg(name), "--create"], &dump).ok();
        assert_eq!(contents(place.path(name)), fixture_model(), "{name}");
        let again = run(&["dump", &place.arg(name), "-f", format]).code(0).out;
        assert!(records(&again) == records(&dump), "{name}");
    }
}

#[test]
fn the_unnamed_database_goes_into_the_given_table() {
    let place = Place::new();
    let store = place.arg("s");
    run_with(&["load", &store, "--create", "-t", "here"], &fixture("unnamed.dump")).ok();
    assert_eq!(
        run(&["scan", &store, "-t", "here"]).ok(),
        "k0\tv0\nk1\tv1\nk2\tv2\nk3\tv3\nk4\tv4\n"
    );
}

#[test]
fn several_values_under_a_key_are_loaded_and_dumped_alike() {
    let place = Place::new();
    let store = place.arg("s");
    let dump = fixture("dupsort.dump");
    run_with(&["load", &store, "--create"], &dump).ok();
    let again = run(&["dump", &store]).code(0).out;
    assert!(records(&again) == records(&dump), "{}", again.escape_ascii());
    // What is there already is the record, not the key.
    run_with(&["load", &store, "--existing", "fail"], &dump).code(4).says("exists");
    run_with(&["load", &store, "--existing", "keep"], &dump).ok();
    assert!(records(&run(&["dump", &store]).code(0).out) == records(&dump));
}

#[test]
fn orders_are_loaded_and_dumped() {
    let place = Place::new();
    let head = "VERSION=3\nformat=bytevalue\ndatabase=n\ntype=btree\n";
    let data = "HEADER=END\n 00010000\n 61\n 01000000\n 62\nDATA=END\n";
    let store = place.arg("s");
    run_with(&["load", &store, "--create"], format!("{head}integerkey=1\n{data}").as_bytes()).ok();
    let again = String::from_utf8(run(&["dump", &store]).code(0).out).unwrap();
    assert!(again.contains("\nintegerkey=1\n"), "{again}");
    assert!(again.ends_with(" 01000000\n 62\n 00010000\n 61\nDATA=END\n"), "{again}");
    // An existing table keeps its order.
    let failed = run_with(&["load", &store], format!("{head}{data}").as_bytes()).code(4);
    failed
        .says("the table \"n\": it was created with another `key_order`")
        .says("nothing was committed");
    run(&["dump", &store, "-f", "csv"]).code(0).says("cannot express");
}

/// Runs one of LMDB's tools; none if the machine has it not.
pub(crate) fn original(tool: &str, args: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(tool);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        Err(e) => panic!("{tool}: {e}"),
    };
    let mut stdin = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().expect("wait")
    });
    let lines = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {args:?}: {lines}");
    // What only this project's tables have.
    let passed_over = |line: &&str| {
        ["align", "counted"].iter().any(|w| line.ends_with(&format!("keyword ignored: {w}")))
    };
    let lines: Vec<_> = lines.lines().filter(|line| !passed_over(line)).collect();
    assert!(lines.is_empty(), "{tool} {args:?}: {lines:?}");
    Some(output.stdout)
}

#[test]
fn the_originals_read_our_dumps_and_we_read_theirs() {
    let mut rng = rng();
    for round in 0..5 {
        let place = Place::new();
        let mut model = Model::new();
        // LMDB has no empty keys, and none of more than 511 bytes.
        for table in 0..rng.range(1..4) {
            let records = (0..rng.index(300)).map(|_| {
                let mut key = random_bytes(&mut rng, 200);
                key.push(rng.byte());
                (key, random_bytes(&mut rng, 3000))
            });
            model.insert(format!("table {table}").into_bytes(), records.collect());
        }
        let store = place.store("s", &model);
        for format in ["bytevalue", "print"] {
            let ours = run(&["dump", &store, "-f", format]).code(0).out;
            let lmdb = place.arg(&format!("{format}.mdb"));
            if original("mdb_load", &["-n", &lmdb], &ours).is_none() {
                // Past the test harness, which would swallow it.
                let note = "mdb_load is not on this machine: only the fixtures were compared\n";
                std::io::stderr().write_all(note.as_bytes()).unwrap();
                return;
            }
            let theirs = original("mdb_dump", &["-n", "-a", &lmdb], &[]).expect("mdb_dump");
            let as_bytevalue = run(&["dump", &store]).code(0).out;
            assert!(records(&theirs) == records(&as_bytevalue), "round {round}, {format}");
            let back = place.arg(&format!("{format}.back"));
            run_with(&["load", &back, "--create"], &theirs).ok();
            assert!(contents(&back) == model, "round {round}, {format}");
        }
    }
}

#[test]
fn a_name_that_fits_no_line_survives() {
    let place = Place::new();
    let names: [&[u8]; 5] = [b"two\nlines", b"nul\0", b"back\\slash", b"", b"\xff = \r"];
    let model: Model = names.iter().map(|n| (n.to_vec(), Default::default())).collect();
    let store = place.store("s", &model);
    let dump = run(&["dump", &store]).code(0).out;
    run_with(&["load", &place.arg("t"), "--create"], &dump).ok();
    assert_eq!(contents(place.path("t")), model);
}
