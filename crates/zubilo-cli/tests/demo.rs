//! `zubilo demo` as a newcomer and as a script run it: exit code, output, what it leaves behind,
//! and that it does find what is wrong.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use zubilo::Options;

/// Runs the demonstration with its temporary files in `temp`.
fn demo(temp: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zubilo"));
    command.arg("demo").args(args).env("TMPDIR", temp).stdin(Stdio::null());
    command.output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is text")
}

fn is_empty(dir: &Path) -> bool {
    dir.read_dir().expect("the directory is there").next().is_none()
}

#[test]
fn a_quick_run_keeps_all_promises() {
    let temp = tempfile::tempdir().unwrap();
    let out = demo(temp.path(), &["--quick", "--json"]);
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}\n{stderr}");
    let summary: Value = serde_json::from_str(&stdout).expect(&stdout);
    let number = |path: &str| {
        summary.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {stdout}"))
    };
    assert_eq!(summary["ok"], true);
    assert!(summary["source"].as_str().unwrap().contains("CC BY 4.0"));
    for table in 0..4 {
        assert_eq!(number(&format!("/load/tables/{table}/records")), 5000);
    }
    assert!(number("/queries/verified") > 5000);
    assert_eq!(number("/queries/wrong"), 0);
    assert_eq!(number("/readers/violations"), 0);
    assert!(number("/readers/snapshots") > number("/readers/processes"));
    assert!(number("/readers/writer_commits") > 0);
    let (plain, compacted) = (number("/copies/0/bytes"), number("/copies/1/bytes"));
    assert!(compacted < plain, "{compacted} {plain}");
    assert_eq!(number("/kill/rounds"), 4);
    assert_eq!(number("/kill/lost"), 0);
    assert!(number("/kill/acknowledged") >= 4);
    assert!(is_empty(temp.path()), "something was left behind");
}

#[test]
fn it_reads_well_and_keeps_what_it_shall_keep() {
    let temp = tempfile::tempdir().unwrap();
    let kept = temp.path().join("kept");
    let keep = ["--records", "2000", "--kills", "2", "--quick", "--keep", kept.to_str().unwrap()];
    let out = demo(temp.path(), &keep);
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}\n{stderr}");
    for part in ["2,000 places", "GeoNames", "by latitude", "torn snapshots: 0", "lost: 0"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert!(!stdout.contains('\x1b'), "colours where there is no terminal");

    for file in ["places.zubilo", "plain-copy.zubilo", "compacted-copy.zubilo"] {
        let env = Options::new().create(false).open(kept.join(file)).expect(file);
        let report = env.check(&mut |_, _| true).unwrap();
        assert!(report.is_ok(), "{:?}", report.problems);
        assert!(env.read().unwrap().table("places").unwrap().len() >= 2000);
    }

    let again = demo(temp.path(), &[&keep[..], &["--json"]].concat());
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("is not empty"));
    let summary: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(summary["ok"], false);
    assert!(summary["error"].as_str().unwrap().contains("is not empty"));

    a_reader_finds_a_torn_store(temp.path(), &kept.join("places.zubilo"));
}

/// A record without its index entry, in a transaction that says nothing of it.
fn a_reader_finds_a_torn_store(temp: &Path, store: &Path) {
    let reader = ["--role", "reader", "--records", "2000", "--store", store.to_str().unwrap()];
    let sound = demo(temp, &reader);
    assert!(sound.status.success(), "{}", text(&sound.stderr));

    let env = Options::new().create(false).open(store).unwrap();
    let mut write = env.write().unwrap();
    let mut names = write.table("by name").unwrap();
    let name = names.iter().next().unwrap().unwrap().0.to_vec();
    assert!(names.delete(name).unwrap());
    write.commit().unwrap();
    env.close().unwrap();

    let torn = demo(temp, &reader);
    assert!(!torn.status.success());
    assert!(text(&torn.stderr).contains("1 torn snapshots; the first"), "{}", text(&torn.stderr));
    let seen: Value =
        serde_json::from_str(text(&torn.stdout).lines().last().unwrap()).expect("a report");
    assert_eq!((&seen["snapshots"], &seen["violations"]), (&1.into(), &1.into()));
}

#[test]
fn wrong_arguments_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    for (args, reason) in [
        (&["--records", "10"][..], "at least 500"),
        (&["--kills", "0"], "--kills"),
        (&["--role", "reader"], "--store"),
        (&["--role", "writer", "--store", "no/such/store"], "no/such/store"),
    ] {
        let out = demo(temp.path(), args);
        assert!(!out.status.success(), "{args:?}");
        let stderr = text(&out.stderr);
        assert!(stderr.contains(reason), "{args:?}: {stderr}");
    }
    assert!(is_empty(temp.path()), "something was left behind");
}

/// What a killed demonstration has left goes with the next one, and nothing else does: least of all one
/// that runs, whatever number its process has here.
#[test]
fn leftovers_of_killed_demonstrations_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let make = |name: &str, lock: bool| {
        let dir = place.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("places.zubilo"), "").unwrap();
        if lock {
            std::fs::write(dir.join("demonstration.lock"), "").unwrap();
        }
        dir
    };
    let left = make("zubilo-demo-left", true);
    let others = [
        make("zubilo-demo-1234567-x", false),
        make("zubilo-demo-notes", false),
        make("zubilo-left", true),
        make("zubilo-demo-runs", true),
    ];
    let running = std::fs::File::open(others[3].join("demonstration.lock")).unwrap();
    running.lock().unwrap();
    let link = place.path().join("zubilo-demo-link");
    std::os::unix::fs::symlink(&others[2], &link).unwrap();
    let out = demo(place.path(), &["--quick", "--records", "500", "--kills", "1"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(!left.exists());
    assert!(others.iter().all(|dir| dir.join("places.zubilo").exists()));
    assert!(link.is_symlink());
    let names = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(names, 5, "the demonstration leaves nothing itself");
}

#[test]
fn an_interrupted_demonstration_leaves_nothing() {
    for millis in [100, 400, 900, 1500] {
        let temp = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_zubilo"));
        command.args(["demo", "--records", "5000"]).env("TMPDIR", temp.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let begun = std::time::Instant::now();
        while is_empty(temp.path()) && begun.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::thread::sleep(std::time::Duration::from_millis(millis));
        let kill = format!("kill -INT {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
        assert!(text(&out.stderr).contains("the store is deleted"), "{}", text(&out.stderr));
        assert!(is_empty(temp.path()), "something was left behind after {millis} ms");
    }
}
