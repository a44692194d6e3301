//! The tools run as programs: what they print, what they load, what they refuse.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A directory with the library under the name that programs look for.
fn library() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let tool = Path::new(env!("CARGO_BIN_EXE_mdb_stat"));
        let profile = tool.parent().expect("target/PROFILE");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "-p", "liblmdb", "--target-dir"]);
        cargo.arg(profile.parent().expect("target"));
        cargo.args(profile.ends_with("release").then_some("--release"));
        assert!(cargo.status().expect("cargo runs").success(), "the library was not built");
        let dir = profile.join("tools-lib");
        std::fs::create_dir_all(&dir).expect("a directory");
        std::fs::copy(profile.join("liblmdb.so"), dir.join("liblmdb.so.0")).expect("the library");
        dir
    })
}

struct Ran {
    ok: bool,
    out: String,
    err: String,
}

fn run(tool: &str, dir: &Path, arguments: &[&str], input: &str) -> Ran {
    let path = match tool {
        "mdb_stat" => env!("CARGO_BIN_EXE_mdb_stat"),
        "mdb_copy" => env!("CARGO_BIN_EXE_mdb_copy"),
        "mdb_dump" => env!("CARGO_BIN_EXE_mdb_dump"),
        "mdb_load" => env!("CARGO_BIN_EXE_mdb_load"),
        _ => env!("CARGO_BIN_EXE_mdb_drop"),
    };
    let mut command = Command::new(path);
    command.args(arguments).current_dir(dir).env("LD_LIBRARY_PATH", library());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the tool starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A tool that refuses its arguments does not read.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { ok: status.success(), out: text(stdout), err: text(stderr) }
}

fn fine(tool: &str, dir: &Path, arguments: &[&str], input: &str) -> String {
    let ran = run(tool, dir, arguments, input);
    assert!(ran.ok && ran.err.is_empty(), "{tool} {arguments:?}: {}", ran.err);
    ran.out
}

fn pairs(n: usize) -> String {
    (0..n).map(|i| format!("key{:04}\nvalue \\\\ {i} \\ff\n", (i * 37) % n)).collect()
}

/// What stands after the header.
fn records(dump: &str) -> &str {
    dump.split_once("HEADER=END\n").expect("a header").1
}

#[test]
fn a_dump_can_be_loaded_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    for name in ["a", "b"] {
        std::fs::create_dir(at.join(name)).expect("a directory");
    }
    fine("mdb_load", at, &["-T", "-s", "one", "a"], &pairs(500));
    fine("mdb_load", at, &["-T", "-s", "two", "a"], &pairs(20));
    for print in [false, true] {
        let options: &[&str] = if print { &["-pa", "a"] } else { &["-a", "a"] };
        let dump = fine("mdb_dump", at, options, "");
        let records = dump.lines().filter(|line| line.starts_with(' ')).count();
        assert_eq!((records, dump.matches("database=").count()), (2 * 520, 2));
        let to = if print { "b" } else { "c" };
        std::fs::create_dir_all(at.join(to)).expect("a directory");
        fine("mdb_load", at, &[to], &dump);
        assert_eq!(fine("mdb_dump", at, &[options[0], to], ""), dump);
    }
    let shown = fine("mdb_dump", at, &["-p", "-s", "two", "b"], "");
    assert!(shown.contains("\n key0000\n value \\\\ 0 \\ff\n"), "{shown}");
    let names = fine("mdb_dump", at, &["-l", "b"], "");
    assert_eq!(names.lines().collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn duplicates_and_integers_keep_their_flags() {
    let dir = tempfile::tempdir().expect("a directory");
    let head = "VERSION=3\nformat=bytevalue\ntype=btree\nmapsize=10485760\n";
    let flags = "duplicates=1\ndupsort=1\nintegerkey=1\ndupfixed=1\nintegerdup=1\n";
    let mut dump = format!("{head}{flags}HEADER=END\n");
    for key in ["02000000", "00010000", "01000000"] {
        for value in ["ff000000", "00010000", "03000000"] {
            dump += &format!(" {key}\n {value}\n");
        }
    }
    dump += "DATA=END\n";
    fine("mdb_load", dir.path(), &["-n", "file"], &dump);
    let got = fine("mdb_dump", dir.path(), &["-n", "file"], "");
    for flag in ["dupsort", "integerkey", "dupfixed", "integerdup", "duplicates"] {
        assert!(got.contains(&format!("\n{flag}=1\n")), "{got}");
    }
    let values = ["03000000", "ff000000", "00010000"];
    let sorted: String = ["01000000", "02000000", "00010000"]
        .iter()
        .flat_map(|key| values.map(|value| format!(" {key}\n {value}\n")))
        .collect();
    assert_eq!(records(&got), format!("{sorted}DATA=END\n"));
}

#[test]
fn options_of_load_say_what_happens_to_old_records() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    fine("mdb_load", at, &["-n", "-T", "file"], "b\nold\n");
    fine("mdb_load", at, &["-n", "-N", "-T", "file"], "b\nnew\na\nfirst\n");
    assert_eq!(
        records(&fine("mdb_dump", at, &["-np", "file"], "")),
        " a\n first\n b\n old\nDATA=END\n"
    );
    fine("mdb_load", at, &["-n", "-Q", "-T", "file"], "b\nnew\n");
    assert!(fine("mdb_dump", at, &["-np", "file"], "").contains(" b\n new\n"));
    // The order of the input is kept.
    fine("mdb_load", at, &["-n", "-a", "-T", "sorted"], "a\n1\nb\n2\nc\n3\n");
    assert_eq!(
        records(&fine("mdb_dump", at, &["-np", "sorted"], "")),
        " a\n 1\n b\n 2\n c\n 3\nDATA=END\n"
    );
}

#[test]
fn stat_has_the_lines_that_scripts_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    fine("mdb_load", at, &["-n", "-T", "-s", "table", "file"], &pairs(1000));
    fine("mdb_load", at, &["-n", "-T", "-s", "table", "file"], &pairs(900));
    let all = fine("mdb_stat", at, &["-n", "-efff", "-a", "file"], "");
    let wanted = [
        "Environment Info\n  Map address: ",
        "\n  Map size: ",
        "\n  Page size: 4096\n",
        "\n  Last transaction ID: ",
        "\n  Number of readers used: ",
        "\nFreelist Status\n  Tree depth: ",
        "\n  Free pages: ",
        "\nStatus of Main DB\n",
        "\nStatus of table\n  Tree depth: 2\n  Branch pages: 1\n",
        "\n  Entries: 1000\n",
    ];
    for part in wanted {
        assert!(all.contains(part), "{part:?} in {all}");
    }
    let readers = fine("mdb_stat", at, &["-n", "-rr", "file"], "");
    assert!(readers.starts_with("Reader Table Status\n"), "{readers}");
    assert!(readers.contains("  0 stale readers cleared.\n"), "{readers}");
}

#[test]
fn copies_hold_the_same_and_overwrite_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    std::fs::create_dir(at.join("a")).expect("a directory");
    fine("mdb_load", at, &["-T", "a"], &pairs(300));
    let dump = fine("mdb_dump", at, &["a"], "");
    for (to, options) in [("b", &["a"][..]), ("c", &["-c", "a"])] {
        std::fs::create_dir(at.join(to)).expect("a directory");
        fine("mdb_copy", at, &[options, &[to]].concat(), "");
        assert_eq!(records(&fine("mdb_dump", at, &[to], "")), records(&dump));
    }
    let again = run("mdb_copy", at, &["a", "b"], "");
    assert!(
        !again.ok && again.err.contains("copying failed, error 17 (File exists)"),
        "{}",
        again.err
    );
}

#[test]
fn drop_empties_or_deletes() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    fine("mdb_load", at, &["-n", "-T", "-s", "table", "file"], &pairs(50));
    fine("mdb_drop", at, &["-n", "-s", "table", "file"], "");
    assert_eq!(records(&fine("mdb_dump", at, &["-n", "-s", "table", "file"], "")), "DATA=END\n");
    fine("mdb_drop", at, &["-n", "-d", "-s", "table", "file"], "");
    let gone = run("mdb_dump", at, &["-n", "-s", "table", "file"], "");
    assert!(!gone.ok && gone.err.contains("MDB_NOTFOUND"), "{}", gone.err);
}

#[test]
fn what_is_wrong_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    for tool in ["mdb_stat", "mdb_copy", "mdb_dump", "mdb_load", "mdb_drop"] {
        let ran = run(tool, at, &["-?"], "");
        assert!(!ran.ok && ran.err.contains("usage: "), "{tool}: {}", ran.err);
        let complains = ran.err.contains(": invalid option -- '?'\n");
        assert_eq!(complains, tool != "mdb_copy", "{tool}: {}", ran.err);
        assert!(fine(tool, at, &["-V"], "").starts_with("LMDB 0.9."));
    }
    let head = "VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n";
    for (input, reason) in [
        ("VERSION=4\n".into(), "line 1: unsupported VERSION 4"),
        ("nonsense\n".into(), "line 1: unexpected format"),
        (format!("{head} 6\n 62\nDATA=END\n"), "line 5: unexpected end of input"),
        (format!("{head} 61\n 62\n"), "line 6: unexpected end of input"),
        (format!("{head} 61\nDATA=END\n"), "line 6: failed to read key value"),
    ] {
        let ran = run("mdb_load", at, &["-n", "file"], &input);
        assert!(!ran.ok && ran.err.contains(reason), "{input}: {}", ran.err);
    }
    let ran = run("mdb_load", at, &["-n", "-f", "nofile", "file"], "");
    assert!(!ran.ok && ran.err.ends_with(": nofile: reopen: No such file or directory\n"));
    let ran = run("mdb_stat", at, &["-n", "."], "");
    assert!(!ran.ok && ran.err.contains("error 21 Is a directory"), "{}", ran.err);
    std::fs::write(at.join("noise"), [7; 9000]).expect("a file");
    let ran = run("mdb_stat", at, &["-n", "noise"], "");
    assert!(
        !ran.ok && ran.err.contains("mdb_env_open failed, error -30793 MDB_INVALID"),
        "{}",
        ran.err
    );
}

#[test]
fn names_are_bytes_and_options_may_follow_the_path() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    let head = b"VERSION=3\nformat=print\ndatabase=";
    let rest = b"\ntype=btree\nHEADER=END\n key\n value\nDATA=END\n";
    let input = [&head[..], b"n\xE4me", rest].concat();
    std::fs::write(at.join("in"), input).expect("a file");
    fine("mdb_load", at, &["file", "-n", "-f", "in"], "");
    fine("mdb_dump", at, &["file", "-f", "out", "-nap"], "");
    let out = std::fs::read(at.join("out")).expect("the dump");
    let line = b"database=n\xE4me\n";
    assert!(out.windows(line.len()).any(|found| found == line), "{}", out.escape_ascii());
    assert!(out.ends_with(b"\n key\n value\nDATA=END\n"), "{}", out.escape_ascii());
}

#[test]
fn records_that_are_no_tables_are_no_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    fine("mdb_load", at, &["-nT", "file"], "key\nvalue\n");
    assert_eq!(fine("mdb_dump", at, &["-na", "file"], ""), "");
    assert_eq!(fine("mdb_dump", at, &["-nl", "file"], ""), "");
    fine("mdb_drop", at, &["-n", "file"], "");
    let ran = run("mdb_dump", at, &["-nl", "file"], "");
    assert!(!ran.ok && ran.err.ends_with(": file does not contain multiple databases\n"));
}

/// Scripts close standard error, and disks fill up: no panic, the same exit code.
#[test]
fn nobody_to_tell_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let tools = [
        env!("CARGO_BIN_EXE_mdb_stat"),
        env!("CARGO_BIN_EXE_mdb_copy"),
        env!("CARGO_BIN_EXE_mdb_dump"),
        env!("CARGO_BIN_EXE_mdb_load"),
        env!("CARGO_BIN_EXE_mdb_drop"),
    ];
    for tool in tools {
        for arguments in [&["none"][..], &["-?"], &["-V"], &[]] {
            let full = || File::options().write(true).open("/dev/full").expect("/dev/full");
            let mut command = Command::new(tool);
            command.args(arguments).current_dir(&dir).env("LD_LIBRARY_PATH", library());
            command.stdin(Stdio::null()).stdout(full()).stderr(full());
            assert_eq!(command.status().unwrap().code(), Some(1), "{tool} {arguments:?}");
        }
    }
}
