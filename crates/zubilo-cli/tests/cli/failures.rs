//! Files that are no stores, that are missing, that may not be read or written.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::harness::{Place, Run, finish, run, small_model};

#[test]
fn a_missing_store_is_code_4() {
    let place = Place::new();
    let missing = place.arg("missing");
    let commands: [&[&str]; 10] = [
        &["get", &missing, "k"],
        &["put", &missing, "k", "v"],
        &["del", &missing, "k"],
        &["scan", &missing],
        &["tables", &missing],
        &["stat", &missing],
        &["chk", &missing],
        &["dump", &missing],
        &["load", &missing],
        &["drop", &missing, "-t", "main", "-y"],
    ];
    for args in commands {
        run(args).code(4).says("missing").says("; name an existing store");
    }
    run(&["copy", &missing, &place.arg("copy")]).code(4).says("name an existing store");
    assert_eq!(std::fs::read_dir(place.dir()).unwrap().count(), 0, "something was created");
}

#[test]
fn a_foreign_file_is_code_3_and_left_alone() {
    let place = Place::new();
    for (name, text) in [("short", "hello\n".to_string()), ("long", "hello\n".repeat(20_000))] {
        let file = place.arg(name);
        std::fs::write(&file, &text).unwrap();
        for command in ["scan", "tables", "stat", "chk", "dump"] {
            run(&[command, &file]).code(3).says("is not a Zubilo store");
        }
        run(&["put", &file, "--create", "k", "v"]).code(3);
        run(&["load", &file, "--create"]).code(3);
        run(&["copy", &file, &place.arg("copy")]).code(3);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert!(!place.path(&format!("{name}-lock")).exists(), "a lock file was made");
    }
}

#[test]
fn an_empty_file_and_a_folder() {
    let place = Place::new();
    std::fs::write(place.path("empty"), "").unwrap();
    run(&["scan", &place.arg("empty")]).code(3).says("empty");
    run(&["scan", place.dir().to_str().unwrap()]).code(3).says("a folder");
}

/// Runs a copy of the command as a user who owns nothing; as the same user if this one is not root.
fn run_unprivileged(place: &Place, args: &[&str]) -> Run {
    let zubilo: PathBuf = place.path("zubilo");
    if !zubilo.exists() {
        // By a process of its own: a child of another test that is just being started would hold
        // the copy open for writing, and nobody can start such a file.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_zubilo")).arg(&zubilo).status();
        assert!(copied.expect("cp").success());
        std::fs::set_permissions(&zubilo, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&zubilo);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if is_root() {
        command.uid(65534).gid(65534);
    }
    finish(command.spawn().expect("start zubilo"), &[])
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("the state of this process");
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

#[test]
fn a_store_that_may_only_be_read() {
    let place = Place::new();
    let store = place.small_store("s");
    std::fs::remove_file(place.path("s-lock")).unwrap();
    run_unprivileged(&place, &["--version"]).ok();
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o444)).unwrap();
    std::fs::set_permissions(place.dir(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let run = |args: &[&str]| run_unprivileged(&place, args);
    run(&["put", &store, "k", "v"]).code(4).says("Permission denied").says("owner and mode");
    run(&["drop", &store, "-t", "main", "-y"]).code(4);
    // A reader registers itself in the lock file, which cannot be made here.
    run(&["scan", &store]).code(4).says("Permission denied").says("add --no-lock");
    assert_eq!(run(&["scan", &store, "--no-lock", "-t", "other"]).ok(), "x\t24\n");
    assert_eq!(run(&["chk", &store, "--no-lock", "--quiet"]).ok(), "");
    assert!(run(&["stat", &store, "--no-lock"]).ok().contains("other"));
    run(&["put", &store, "--no-lock", "k", "v"]).code(2);
    run(&["copy", &store, "--no-lock", &place.arg("copy")]).code(4).says("Permission denied");
    std::fs::set_permissions(place.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(crate::harness::contents(&store), small_model());
}

#[test]
fn a_full_device_is_code_4() {
    let place = Place::new();
    let store = place.small_store("s");
    for args in
        [&["scan", &store][..], &["dump", &store], &["copy", &store, "-"], &["stat", &store]]
    {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let child = crate::harness::command(args).stdout(full).spawn().unwrap();
        finish(child, &[]).code(4).says("No space left");
    }
}

/// Standard error can be closed or full; that must not change how a command ends.
#[test]
fn nobody_to_tell_is_no_panic() {
    let place = Place::new();
    let store = place.small_store("s");
    let missing = place.arg("missing");
    let cases: [(&[&str], i32); 5] = [
        (&["get", &missing, "k"], 4),
        (&["get", &missing, "k", "--json"], 4),
        (&["get", &store, "nothing"], 1),
        (&["del", &store, "nothing"], 1),
        (&["salvage", &store], 0),
    ];
    for (args, code) in cases {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let child = crate::harness::command(args).stderr(full).spawn().unwrap();
        finish(child, &[]).code(code);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = crate::harness::command(args).stderr(writer).spawn().unwrap();
        finish(child, &[]).code(code);
    }
}

#[test]
fn a_pipe_is_not_waited_for() {
    let place = Place::new();
    let pipe = place.arg("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let new = place.arg("new");
    for args in [&["salvage", &pipe][..], &["import", &pipe, &new], &["scan", &pipe]] {
        run(args).code(3);
    }
    assert!(!place.path("new").exists());
}

#[test]
fn what_to_do_fits_what_was_found() {
    let place = Place::new();
    let store = place.small_store("s");
    let folder = place.dir().to_str().unwrap();
    let new = place.arg("new");
    run(&["import", &store, &new]).code(3).says("a Zubilo store already");
    run(&["import", folder, &new]).code(4).says("no data.mdb in the folder");
    run(&["put", "--create", &place.arg("none/s"), "k", "v"]).code(4).says("a folder that exists");
    run(&["copy", &store, folder]).code(4);
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[..16384].fill(0xaa);
    let headless = place.arg("headless");
    std::fs::write(&headless, bytes).unwrap();
    run(&["chk", &headless]).code(3).says("zubilo salvage");
    run(&["salvage", &headless, &new]).code(3);
    assert_eq!(crate::harness::contents(&new)[&b"main"[..]], small_model()[&b"main"[..]]);
}

#[test]
fn a_store_without_tables_is_said_to_be_one() {
    let place = Place::new();
    let store = place.store("s", &Default::default());
    for command in ["tables", "dump", "export"] {
        run(&[command, &store]).code(1).says("no tables");
    }
    let listed = run(&["tables", &store, "--json"]).code(1);
    assert_eq!(
        (listed.json()["tables"].as_array().map(Vec::len), listed.err.as_str()),
        (Some(0), "")
    );
}
