//! Running the command and looking at what it did.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::Rng;
use tempfile::TempDir;
use zubilo::Options;

/// Tables by name, records by key.
pub(crate) type Model = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

/// What a run of the command gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Run {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Run {
        assert_eq!(self.code, code, "{}", self.describe());
        self
    }

    /// Asserts exit code 0 and gives standard output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        let run = self.code(0);
        String::from_utf8(run.out).expect("text on standard output")
    }

    /// Asserts a part of standard error.
    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Run {
        assert!(self.err.contains(part), "{part:?} expected: {}", self.describe());
        self
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|e| panic!("{e}: {}", self.describe()))
    }

    fn describe(&self) -> String {
        let out = &self.out[..self.out.len().min(2000)];
        format!(
            "exit code {}, out {:?}, err {:?}",
            self.code,
            out.escape_ascii().to_string(),
            self.err
        )
    }
}

/// The command, with arguments, not yet started.
pub(crate) fn command<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zubilo"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command without input.
pub(crate) fn run<S: AsRef<OsStr>>(args: &[S]) -> Run {
    finish(command(args).spawn().expect("start zubilo"), &[])
}

/// Runs the command with `input` on standard input.
pub(crate) fn run_with<S: AsRef<OsStr>>(args: &[S], input: &[u8]) -> Run {
    finish(command(args).stdin(Stdio::piped()).spawn().expect("start zubilo"), input)
}

/// Feeds a started command and waits for its end.
pub(crate) fn finish(mut child: std::process::Child, input: &[u8]) -> Run {
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(mut stdin) = stdin {
                // A command that has found an error does not read on.
                let _ = stdin.write_all(input);
            }
        });
        child.wait_with_output().expect("wait for zubilo")
    });
    let code = output.status.code();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = code.unwrap_or_else(|| panic!("ended by a signal: {:?}, {err}", output.status));
    assert!(code != 101 && !err.contains("panicked"), "panic: {err}");
    Run { code, out: output.stdout, err }
}

/// A folder for the files of one test.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A path as an argument.
    pub(crate) fn arg(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().expect("a path in UTF-8")
    }

    /// A store with what `model` says; gives its path as an argument.
    pub(crate) fn store(&self, name: &str, model: &Model) -> String {
        let env = Options::new().open(self.path(name)).expect("make a store");
        let mut txn = env.write().unwrap();
        for (table, records) in model {
            let mut table = txn.table_or_create(table).unwrap();
            for (key, value) in records {
                table.put(key, value).unwrap();
            }
        }
        txn.commit().unwrap();
        env.close().unwrap();
        self.arg(name)
    }

    /// A store with a few records in the tables `main` and `other`.
    pub(crate) fn small_store(&self, name: &str) -> String {
        self.store(name, &small_model())
    }
}

/// A few records in two tables.
pub(crate) fn small_model() -> Model {
    let table = |records: &[(&str, &str)]| {
        records.iter().map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec())).collect()
    };
    Model::from([
        (b"main".to_vec(), table(&[("a", "1"), ("ab", "2"), ("b", "3"), ("c", "4")])),
        (b"other".to_vec(), table(&[("x", "24")])),
    ])
}

/// What is in a store.
pub(crate) fn contents(path: impl AsRef<Path>) -> Model {
    let env = Options::new().read_only(true).open(path).expect("open the store");
    let read = env.read().unwrap();
    let mut model = Model::new();
    for name in read.tables().unwrap() {
        let records = read.table(&name).unwrap().iter().map(|record| {
            let (key, value) = record.unwrap();
            (key.to_vec(), value.to_vec())
        });
        model.insert(name, records.collect());
    }
    env.check(&mut |_, _| true).unwrap().into_result().expect("the store is whole");
    model
}

/// Bytes of every kind: nothing, text, controls, backslashes, quotes, everything.
pub(crate) fn random_bytes(rng: &mut Rng, max: usize) -> Vec<u8> {
    let len = rng.index(max + 1);
    let kind = rng.index(4);
    let awkward = b"\\\"',;\n\r\t\0 \x7f{}x41=\xc3\xff";
    let byte = |rng: &mut Rng| match kind {
        0 => b'a' + rng.below(26) as u8,
        1 => rng.pick(awkward),
        _ => rng.byte(),
    };
    (0..len).map(|_| byte(rng)).collect()
}

/// Several tables with random names and records, one of them empty.
pub(crate) fn random_model(rng: &mut Rng) -> Model {
    let mut model = Model::new();
    for _ in 0..rng.range(1..5) {
        let mut records = BTreeMap::new();
        for _ in 0..rng.range(1..200) {
            let max = if rng.one_in(20) { 70_000 } else { 300 };
            records.insert(random_bytes(rng, 200), random_bytes(rng, max));
        }
        model.insert(random_bytes(rng, 30), records);
    }
    model
}
