//! The programs of the C interface, one for each of its promises: what they do, and what must be found
//! after them, through the C interface and the Rust one.

use std::ffi::c_uint;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use support::Rng;
use zubilo::{Env, Options};

use crate::Marks;
use crate::c::{self, Store};
use crate::disk::Disk;
use crate::plan::{COMMITS, State, change, number, plan, states};
use crate::rust::sound;

/// Names and flags. With some of them a commit is durable when it returns.
pub(crate) const MODES: [(&str, c_uint); 7] = [
    ("c-sync", 0),
    ("c-writemap", c::WRITEMAP),
    ("c-nometasync", c::NOMETASYNC),
    ("c-nosync", c::NOSYNC),
    ("c-mapasync", c::WRITEMAP | c::MAPASYNC),
    ("c-nosync-writemap", c::NOSYNC | c::WRITEMAP),
    // NOSYNC comes and goes while the environment is open.
    ("c-changing", c::CHANGING),
];
/// Commits after which there is a copy, and of what kind.
pub(crate) const COPIES: [(u64, bool); 3] = [(1, false), (31, false), (48, true)];

pub(crate) fn copy_path(dir: &Path, n: u64) -> PathBuf {
    dir.join(format!("copy-{n}"))
}

fn flags(mode: &str) -> c_uint {
    let found = MODES.iter().find(|(name, _)| *name == mode);
    found.map_or(0, |(_, flags)| *flags) & !c::CHANGING | c::NOTLS
}

fn expected() -> &'static [State] {
    static STATES: OnceLock<Vec<State>> = OnceLock::new();
    STATES.get_or_init(states)
}

/// Undone changes, like those of a commit that never comes.
fn undone(n: u64) -> Vec<crate::plan::Op> {
    plan(n + 1000)
}

pub(crate) fn live(dir: &Path, mode: &str, marks: &mut Marks) {
    let path = dir.join("store");
    let flags = flags(mode);
    let weak = flags & (c::NOSYNC | c::MAPASYNC) != 0;
    let mut rng = Rng::new(9);
    let mut store = Store::open(&path, flags).expect("open");
    let mut held = None;
    for n in 1..=COMMITS {
        if n % 6 == 0 {
            store.write(&undone(n), false).expect("an aborted transaction");
        }
        if n % 5 == 2 {
            held = Some(store.hold().expect("a reader"));
        }
        let relaxed = mode == "c-changing" && n % 10 > 4;
        if mode == "c-changing" && n % 5 == 0 {
            store.set_flags(c::NOSYNC, relaxed).expect("flags");
        }
        marks.say('T', n);
        store.write(&plan(n), true).expect("commit");
        marks.say(if weak || relaxed { 'A' } else { 'D' }, n);
        if (weak || relaxed) && rng.one_in(7) {
            store.sync().expect("sync");
            marks.say('D', n);
        }
        if n % 5 == 0 {
            held = None;
        }
        if n % 23 == 0 {
            // Closed and opened again: what was weak is durable.
            held = None;
            drop(store);
            marks.say('D', n);
            store = Store::open(&path, flags).expect("open again");
        }
        if let Some((_, compact)) = COPIES.iter().find(|(at, _)| *at == n && mode == "c-sync") {
            store.copy(&copy_path(dir, n), *compact).expect("a copy");
            marks.say('C', n);
        }
    }
    drop(held);
    drop(store);
    marks.say('D', COMMITS);
}

/// All that a store holds, through the Rust interface.
fn contents(env: &Env) -> State {
    let read = env.read().expect("read");
    let mut state = State::new();
    for name in read.tables().expect("tables") {
        let records = state.entry(String::from_utf8(name.clone()).expect("a name")).or_default();
        for record in read.table(&name).expect("a table").iter() {
            let (key, value) = record.expect("a record");
            records.entry(key.to_vec()).or_default().insert(value.to_vec());
        }
    }
    state
}

/// The commit whose state this is; its number must be between these.
fn newest(state: &State, least: u64, most: u64) -> u64 {
    let found = number(state);
    assert!((least..=most).contains(&found), "commit {found}, not {least}..{most}");
    let expected = &expected()[found as usize];
    assert_eq!(
        state.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>(),
        "the tables after commit {found}"
    );
    for (name, records) in state {
        assert!(records == &expected[name], "{name} is not what it was after commit {found}");
    }
    found
}

fn through_rust(path: &Path, least: u64, most: u64) -> u64 {
    let env = Options::new().open(path).expect("an image of the disk opens");
    let found = newest(&contents(&env), least, most);
    sound(&env);
    env.close().expect("close");
    found
}

/// Judges an image, by the C interface first or by the Rust one, and goes on with it.
pub(crate) fn judge(disk: &Disk, mode: &str, path: &Path, rust_first: bool) {
    let (mut least, mut most) = (disk.floor, disk.tried);
    if rust_first {
        least = through_rust(path, least, most);
        most = least;
    }
    let store = Store::open(path, flags(mode)).expect("an image of the disk opens");
    let found = newest(&store.dump().expect("all is read"), least, most);
    store.write(&plan(found + 1), true).expect("it goes on");
    newest(&store.dump().expect("all is read"), found + 1, found + 1);
    drop(store);
    through_rust(path, found + 1, found + 1);
    let store = Store::open(path, flags(mode)).expect("it opens again");
    newest(&store.dump().expect("all is read"), found + 1, found + 1);
}

/// Judges an image of the copy of commit `n`: refused as long as it is not done, or all that it must be.
pub(crate) fn judge_copy(disk: &Disk, n: u64, path: &Path) {
    // Nothing is written: a copy that was cut off must not become an empty store.
    let opened = Store::open(path, c::READ_ONLY);
    match opened {
        Ok(store) => drop(newest(&store.dump().expect("all is read"), n, n)),
        Err(_) if disk.copied < n => return,
        Err(code) => panic!("a copy that was done does not open: {code}"),
    }
    through_rust(path, n, n);
    let store = Store::open(path, 0).expect("a copy that opened does so again");
    let mut state = expected()[n as usize].clone();
    change(&mut state, &undone(n));
    store.write(&undone(n), true).expect("it goes on");
    assert!(store.dump().expect("all is read") == state, "what was written to the copy");
}
