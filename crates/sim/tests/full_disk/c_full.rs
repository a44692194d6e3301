//! The same through the C interface: many kinds of tables, in every mode that flags choose.

use std::ffi::c_int;

use sim::watch::{beat, watch};

use crate::c::{self, Store};
use crate::plan::{Op, State, TABLES, change};
use crate::{Disk, Kind, can_mount, make_room, rooms};

const MODES: [(&str, u32); 6] = [
    ("durable", 0),
    ("WRITEMAP", c::WRITEMAP),
    ("NOMETASYNC", c::NOMETASYNC),
    ("NOSYNC", c::NOSYNC),
    ("NOSYNC, WRITEMAP", c::NOSYNC | c::WRITEMAP),
    ("MAPASYNC, WRITEMAP", c::MAPASYNC | c::WRITEMAP),
];

fn table(name: &str) -> usize {
    TABLES.iter().position(|(known, _)| *known == name).expect("a table of the plan")
}

/// What a commit adds: it can only grow.
fn more(n: u64) -> Vec<Op> {
    let text = |len: u64| (0..len).map(|i| (i ^ n) as u8).collect::<Vec<u8>>();
    let key = n.to_be_bytes().to_vec();
    let values = (0..60).map(|i| n * 100 + i).collect();
    vec![
        Op::Put(table("large"), key.clone(), text(5000 + 1000 * (n % 9))),
        Op::Put(table("plain"), key.clone(), text(300)),
        Op::Put(table("many"), b"one key".to_vec(), text(40 + n % 20)),
        Op::PutAll(table("fixed"), key, values),
        Op::Nested(vec![Op::Put(table("reversed"), text(20), text(30))], true),
    ]
}

fn is_full(code: c_int) -> bool {
    code == libc::ENOSPC
}

fn is_there(store: &Store, state: &State, case: &str) {
    let found = store.dump().unwrap_or_else(|code| panic!("{case}: all is read: {code}"));
    assert!(&found == state, "{case}: it is not what it was");
}

/// Commits one more; false if the disk is full.
fn commit(store: &Store, state: &mut State, n: &mut u64, case: &str) -> bool {
    let ops = more(*n);
    match store.write(&ops, true) {
        Ok(()) => {
            change(state, &ops);
            *n += 1;
            true
        }
        Err(code) => {
            assert!(is_full(code), "{case}: {code}");
            false
        }
    }
}

fn fill(kind: Kind, flags: u32, left: u64, case: &str) {
    let disk = Disk::mount(kind).expect("mounted before");
    let (path, weight) = (disk.path().join("store"), disk.fill(left));
    let (mut state, mut n) = (State::new(), 1);
    match Store::open(&path, flags) {
        Ok(store) => {
            while commit(&store, &mut state, &mut n, case) {
                assert!(n < 2000, "{case}: it does not get full");
            }
            for _ in 0..3 {
                is_there(&store, &state, case);
                // A smaller one may fit where a larger one did not.
                commit(&store, &mut state, &mut n, case);
            }
            if let Err(code) = store.sync() {
                assert!(is_full(code), "{case}: {code}");
            }
            make_room(&weight);
            assert!(commit(&store, &mut state, &mut n, case), "{case}: with room again");
            is_there(&store, &state, case);
        }
        Err(code) => {
            assert!(is_full(code), "{case}: {code}");
            make_room(&weight);
        }
    }
    let store = Store::open(&path, flags).unwrap_or_else(|code| panic!("{case}: reopen: {code}"));
    is_there(&store, &state, case);
    assert!(commit(&store, &mut state, &mut n, case), "{case}: after a reopen");
    drop(store);
    let env = zubilo::Options::new().open(&path).unwrap_or_else(|e| panic!("{case}: {e}"));
    let report = env.check(&mut |_, _| true).unwrap_or_else(|e| panic!("{case}: check: {e}"));
    assert!(report.is_ok(), "{case}: {:?}", report.problems);
}

pub(crate) fn in_every_mode(kind: Kind) {
    if !can_mount(kind) {
        return;
    }
    let _watched = watch(format!("full disk, {kind:?}, C interface"));
    for (mode, flags) in MODES {
        for left in rooms() {
            beat();
            fill(kind, flags, left, &format!("{kind:?}, {mode}, {left} bytes left"));
        }
    }
}
