//! Random programs run on the original LMDB and on ours; every result must be the same.

mod common;

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;

use common::{Library, name_of, original, ours};
use support::lmdb::{
    Api, MDB_BAD_TXN as BAD_TXN, MDB_CREATE as CREATE, MDB_DUPFIXED as DUPFIXED,
    MDB_DUPSORT as DUPSORT, MDB_INCOMPATIBLE as INCOMPATIBLE, MDB_NOSYNC as NOSYNC,
    MDB_NOTLS as NOTLS, MDB_RDONLY as RDONLY, Stat, Val,
};
use support::{Rng, number, seed};

/// Names and flags of the tables; the first has no name.
const TABLES: [(&str, c_uint); 8] = [
    ("", 0),
    ("plain", 0),
    ("reverse", 0x02),
    ("numbers", 0x08),
    ("many", DUPSORT),
    ("fixed", DUPSORT | DUPFIXED),
    ("manynumbers", DUPSORT | DUPFIXED | 0x20 | 0x08),
    ("manyreverse", DUPSORT | 0x40),
];
const CURSORS: usize = 3;

/// Of the record of a table only the name is alike.
fn without_table_records(key: &[u8], value: Vec<u8>) -> Vec<u8> {
    let table = TABLES.iter().any(|(name, _)| !name.is_empty() && name.as_bytes() == key);
    if table { Vec::new() } else { value }
}

/// One of the libraries with what the program has opened in it.
struct Side {
    api: &'static Api,
    env: *mut c_void,
    path: CString,
    txns: Vec<*mut c_void>,
    dbis: Vec<c_uint>,
    cursors: Vec<(usize, *mut c_void)>,
}

/// What a call gave.
#[derive(PartialEq, Eq, Clone)]
struct Outcome {
    code: c_int,
    key: Vec<u8>,
    value: Vec<u8>,
    number: usize,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?} {}", self.code, Short(&self.key), Short(&self.value), self.number)
    }
}

/// Bytes, as much of them as helps.
struct Short<'b>(&'b [u8]);

impl std::fmt::Debug for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.first_chunk::<8>().filter(|_| self.0.len() == 8) {
            Some(number) => write!(f, "#{}", u64::from_le_bytes(*number)),
            None => {
                let start = self.0.get(..6).unwrap_or(self.0);
                write!(f, "{}({})", start.escape_ascii(), self.0.len())
            }
        }
    }
}

fn code(code: c_int) -> Outcome {
    Outcome { code, key: vec![], value: vec![], number: 0 }
}

/// A step of a program, without anything that depends on the library.
#[derive(Clone)]
enum Step {
    Begin,
    Nested,
    Commit,
    Abort,
    Reopen,
    Get(usize, Vec<u8>),
    Put(usize, Vec<u8>, Vec<u8>, c_uint),
    Del(usize, Vec<u8>, Option<Vec<u8>>),
    Drop(usize),
    Stat(usize),
    OpenCursor(usize),
    CloseCursor(usize),
    CursorGet(usize, Vec<u8>, Vec<u8>, c_uint),
    CursorPut(usize, Vec<u8>, Vec<u8>, c_uint),
    CursorDel(usize, c_uint),
    CursorCount(usize),
    /// The whole table, by a read transaction.
    Walk(usize, bool),
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |table: &usize| TABLES[*table].0;
        match self {
            Step::Begin => write!(f, "begin"),
            Step::Nested => write!(f, "nested"),
            Step::Commit => write!(f, "commit"),
            Step::Abort => write!(f, "abort"),
            Step::Reopen => write!(f, "reopen"),
            Step::Get(t, k) => write!(f, "get {} {:?}", name(t), Short(k)),
            Step::Put(t, k, v, flags) => {
                write!(f, "put {} {:?} {:?} {flags:x}", name(t), Short(k), Short(v))
            }
            Step::Del(t, k, v) => {
                write!(f, "del {} {:?} {:?}", name(t), Short(k), v.as_deref().map(Short))
            }
            Step::Drop(t) => write!(f, "drop {}", name(t)),
            Step::Stat(t) => write!(f, "stat {}", name(t)),
            Step::OpenCursor(t) => write!(f, "open cursor {}", name(t)),
            Step::CloseCursor(i) => write!(f, "close cursor {i}"),
            Step::CursorGet(i, k, v, op) => {
                write!(f, "cursor {i} get {} {:?} {:?}", name_of(*op), Short(k), Short(v))
            }
            Step::CursorPut(i, k, v, flags) => {
                write!(f, "cursor {i} put {:?} {:?} {flags:x}", Short(k), Short(v))
            }
            Step::CursorDel(i, flags) => write!(f, "cursor {i} del {flags:x}"),
            Step::CursorCount(i) => write!(f, "cursor {i} count"),
            Step::Walk(t, back) => write!(f, "walk {} {back}", name(t)),
        }
    }
}

impl Side {
    fn new(api: &'static Api, path: &std::path::Path) -> Side {
        let path = CString::new(path.to_str().expect("a path")).expect("a path");
        let (txns, dbis, cursors) = (Vec::new(), Vec::new(), Vec::new());
        let mut side = Side { api, env: null_mut(), path, txns, dbis, cursors };
        side.open();
        side
    }

    fn open(&mut self) {
        // SAFETY: as the interface demands.
        unsafe {
            assert_eq!((self.api.mdb_env_create)(&mut self.env), 0);
            assert_eq!((self.api.mdb_env_set_mapsize)(self.env, 64 << 20), 0);
            assert_eq!((self.api.mdb_env_set_maxdbs)(self.env, 16), 0);
            let flags = NOSYNC | NOTLS;
            assert_eq!((self.api.mdb_env_open)(self.env, self.path.as_ptr(), flags, 0o644), 0);
            let mut txn = null_mut();
            assert_eq!((self.api.mdb_txn_begin)(self.env, null_mut(), 0, &mut txn), 0);
            self.dbis.clear();
            for (name, flags) in TABLES {
                let own = CString::new(name).expect("a name");
                let name = if name.is_empty() { std::ptr::null() } else { own.as_ptr() };
                let mut dbi = 0;
                assert_eq!((self.api.mdb_dbi_open)(txn, name, flags | CREATE, &mut dbi), 0);
                self.dbis.push(dbi);
            }
            assert_eq!((self.api.mdb_txn_commit)(txn), 0);
        }
    }

    fn txn(&self) -> *mut c_void {
        *self.txns.last().expect("the program has begun one")
    }

    fn run(&mut self, step: &Step) -> Outcome {
        // SAFETY: programs use no handle after its end, see `Program`.
        unsafe { self.run_step(step) }
    }

    unsafe fn run_step(&mut self, step: &Step) -> Outcome {
        let api = self.api;
        // SAFETY: the handles live, see `run`; all pointers are to values of this frame.
        unsafe {
            match step {
                Step::Begin | Step::Nested => {
                    let parent = self.txns.last().copied().unwrap_or(null_mut());
                    let mut txn = null_mut();
                    let done = (api.mdb_txn_begin)(self.env, parent, 0, &mut txn);
                    self.txns.push(txn);
                    code(done)
                }
                Step::Commit => {
                    let txn = self.txns.pop().expect("begun");
                    code((api.mdb_txn_commit)(txn))
                }
                Step::Abort => {
                    let txn = self.txns.pop().expect("begun");
                    (api.mdb_txn_abort)(txn);
                    code(0)
                }
                Step::Reopen => {
                    (api.mdb_env_close)(self.env);
                    self.open();
                    code(0)
                }
                Step::Walk(table, back) => self.walk(self.dbis[*table], *back),
                Step::Get(..) | Step::Put(..) | Step::Del(..) | Step::Drop(_) | Step::Stat(_) => {
                    self.on_table(step)
                }
                _ => self.on_cursor(step),
            }
        }
    }

    unsafe fn on_table(&self, step: &Step) -> Outcome {
        let (api, txn) = (self.api, self.txn());
        let dbi = |table: &usize| self.dbis[*table];
        // SAFETY: the handles live, see `run`; all pointers are to values of this frame.
        unsafe {
            match step {
                Step::Get(table, key) => {
                    let (mut key, mut value) = (Val::of(key), Val::NONE);
                    let done = (api.mdb_get)(txn, dbi(table), &mut key, &mut value);
                    let value = if done == 0 { value.copy() } else { vec![] };
                    Outcome { value, ..code(done) }
                }
                Step::Put(table, key, value, flags) => {
                    let (mut key, mut value) = (Val::of(key), Val::of(value));
                    let done = (api.mdb_put)(txn, dbi(table), &mut key, &mut value, *flags);
                    Outcome { value: value.copy(), ..code(done) }
                }
                Step::Del(table, key, value) => {
                    let mut key = Val::of(key);
                    let mut own = value.as_deref().map(Val::of);
                    let value = own.as_mut().map_or(null_mut(), |v| v as *mut Val);
                    code((api.mdb_del)(txn, dbi(table), &mut key, value))
                }
                Step::Drop(table) => code((api.mdb_drop)(txn, dbi(table), 0)),
                Step::Stat(table) => {
                    let mut stat = Stat::default();
                    let done = (api.mdb_stat)(txn, dbi(table), &mut stat);
                    Outcome { number: stat.entries, ..code(done) }
                }
                other => unreachable!("{other:?}"),
            }
        }
    }

    unsafe fn on_cursor(&mut self, step: &Step) -> Outcome {
        let api = self.api;
        // SAFETY: the handles live, see `run`; all pointers are to values of this frame.
        unsafe {
            match step {
                Step::OpenCursor(table) => {
                    let mut cursor = null_mut();
                    let done = (api.mdb_cursor_open)(self.txn(), self.dbis[*table], &mut cursor);
                    self.cursors.push((self.txns.len(), cursor));
                    code(done)
                }
                Step::CloseCursor(i) => {
                    (api.mdb_cursor_close)(self.cursors.remove(*i).1);
                    code(0)
                }
                Step::CursorGet(i, key, value, op) => {
                    let (mut k, mut v) = (Val::of(key), Val::of(value));
                    let done = (api.mdb_cursor_get)(self.cursors[*i].1, &mut k, &mut v, *op);
                    if done != 0 {
                        return code(done);
                    }
                    let value = without_table_records(&k.copy(), v.copy());
                    // Whether LMDB tells the key with FIRST_DUP and LAST_DUP depends on how it
                    // stores the values.
                    let key = if matches!(op, 1 | 7) { vec![] } else { k.copy() };
                    Outcome { key, value, ..code(done) }
                }
                Step::CursorPut(i, key, value, flags) => {
                    let (mut k, mut v) = (Val::of(key), Val::of(value));
                    let done = (api.mdb_cursor_put)(self.cursors[*i].1, &mut k, &mut v, *flags);
                    Outcome { value: v.copy(), ..code(done) }
                }
                Step::CursorDel(i, flags) => code((api.mdb_cursor_del)(self.cursors[*i].1, *flags)),
                Step::CursorCount(i) => {
                    let mut count = 0;
                    let done = (api.mdb_cursor_count)(self.cursors[*i].1, &mut count);
                    Outcome { number: if done == 0 { count } else { 0 }, ..code(done) }
                }
                other => unreachable!("{other:?}"),
            }
        }
    }

    /// All records of a table as the newest commit has them.
    unsafe fn walk(&self, dbi: c_uint, back: bool) -> Outcome {
        let api = self.api;
        let (start, step) = if back { (6, 12) } else { (0, 8) };
        let (mut keys, mut values, mut number) = (Vec::new(), Vec::new(), 0);
        // SAFETY: as above.
        unsafe {
            let (mut txn, mut cursor) = (null_mut(), null_mut());
            assert_eq!((api.mdb_txn_begin)(self.env, null_mut(), RDONLY, &mut txn), 0);
            assert_eq!((api.mdb_cursor_open)(txn, dbi, &mut cursor), 0);
            let mut op = start;
            let done = loop {
                let (mut k, mut v) = (Val::NONE, Val::NONE);
                let done = (api.mdb_cursor_get)(cursor, &mut k, &mut v, op);
                if done != 0 {
                    break done;
                }
                number += 1;
                keys.extend(k.copy());
                values.extend(without_table_records(&k.copy(), v.copy()));
                op = step;
            };
            (api.mdb_cursor_close)(cursor);
            (api.mdb_txn_abort)(txn);
            Outcome { code: done, key: keys, value: values, number }
        }
    }

    fn forget_cursors_of(&mut self, level: usize) {
        self.cursors.retain(|(l, _)| *l < level);
    }
}

/// Makes steps, knowing what is open.
struct Program {
    random: Rng,
    levels: usize,
    /// The transaction can only be aborted.
    dead: bool,
    cursors: Vec<OpenCursor>,
}

struct OpenCursor {
    level: usize,
    table: usize,
    place: Place,
    /// The key it is on.
    key: Vec<u8>,
    /// It was sent to the last record, and may insist that this is the last for ever.
    at_end: bool,
    /// The same when the nested transactions began.
    before: Vec<(Place, Vec<u8>, bool)>,
}

/// What is known of the place of a cursor. In others than these LMDB's own answers follow from the
/// numbers of its slots rather than from any rule.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Unknown,
    On,
    /// Its record was deleted by it, and the table has not changed since.
    Deleted,
    /// A step forward has found no more, or one back.
    Last,
    First,
}

impl Program {
    fn key(&mut self, table: usize) -> Vec<u8> {
        let r = &mut self.random;
        if TABLES[table].1 & 0x08 != 0 {
            return (r.index(60) as u64 * 77).to_le_bytes().to_vec();
        }
        let n = r.index(80);
        let mut key = format!("{:02}", n * 37 % 80).into_bytes();
        // Some are long, always the same ones.
        key.resize(2 + [0, 1, 5, 9, 40, 200, 509][n % 7], b'k');
        key
    }

    fn value(&mut self, table: usize) -> Vec<u8> {
        let r = &mut self.random;
        let flags = TABLES[table].1;
        if flags & DUPFIXED != 0 {
            return (r.index(700) as u64 * 1009).to_le_bytes().to_vec();
        }
        if flags & DUPSORT != 0 {
            let n = r.index(120);
            let mut value = format!("{:03}", n * 53 % 120).into_bytes();
            value.resize(3 + [0, 1, 7, 20, 100, 400][n % 6], b'v');
            return value;
        }
        let len = match r.index(12) {
            0 => 0,
            1 => r.index(20_000),
            2..=4 => r.index(2_000),
            _ => r.index(60),
        };
        let byte = b'a' + r.index(26) as u8;
        vec![byte; len]
    }

    fn next(&mut self) -> Step {
        if self.levels == 0 {
            let table = self.random.index(TABLES.len());
            return match self.random.index(12) {
                0 => Step::Reopen,
                1 => Step::Walk(table, false),
                2 => Step::Walk(table, true),
                _ => Step::Begin,
            };
        }
        if self.dead {
            return if self.random.one_in(2) { Step::Abort } else { Step::Commit };
        }
        let table = self.random.index(TABLES.len());
        match self.random.index(100) {
            0 => Step::Commit,
            1 => Step::Abort,
            2 if self.levels < 3 => Step::Nested,
            3 if self.random.one_in(8) && table > 0 => Step::Drop(table),
            4..=5 => Step::Stat(table.max(1)),
            6..=12 => Step::Get(table, self.key(table)),
            13..=40 => {
                let flags = self.random.pick(&[0, 0, 0, 0, 0x10, 0x20, 0x2_0000, 0x4_0000]);
                Step::Put(table, self.key(table), self.value(table), flags)
            }
            41..=50 => {
                let value = (self.random.one_in(2)).then(|| self.value(table));
                Step::Del(table, self.key(table), value)
            }
            _ if self.cursors.len() < CURSORS => Step::OpenCursor(table),
            51 => {
                let i = self.random.index(self.cursors.len());
                Step::CloseCursor(i)
            }
            _ => self.at_cursor(),
        }
    }

    fn at_cursor(&mut self) -> Step {
        let i = self.random.index(self.cursors.len());
        let table = self.cursors[i].table;
        let dup = TABLES[table].1 & DUPSORT != 0;
        let (key, value) = (self.key(table), self.value(table));
        let moves: &[c_uint] = match self.cursors[i].place {
            Place::On => &[],
            Place::Unknown => &[0, 6, 15, 16, 17],
            // Where LMDB is after one of many values was deleted depends on what it did before.
            Place::Deleted if dup => &[0, 6, 15, 16, 17],
            Place::Deleted => &[4, 8, 12],
            Place::Last | Place::First => &[8, 12],
        };
        if !moves.is_empty() {
            let op = self.random.pick(moves);
            return Step::CursorGet(i, key, value, op);
        }
        match self.random.index(20) {
            0..=9 => {
                let ops: &[c_uint] = if dup {
                    &[0, 1, 2, 3, 4, 6, 7, 8, 8, 9, 11, 12, 12, 13, 14, 15, 16, 17]
                } else {
                    &[0, 4, 6, 8, 8, 8, 11, 12, 12, 14, 15, 16, 17]
                };
                let op = self.random.pick(ops);
                Step::CursorGet(i, key, value, op)
            }
            10..=13 => {
                let flags = self.random.pick(&[0, 0, 0x10, 0x20, 0x2_0000]);
                Step::CursorPut(i, key, value, flags)
            }
            14..=17 => {
                let flags = if dup { self.random.pick(&[0, 0, 0x20]) } else { 0 };
                Step::CursorDel(i, flags)
            }
            _ if dup => Step::CursorCount(i),
            _ => Step::CursorGet(i, key, value, 4),
        }
    }

    /// For the log.
    fn table_of(&self, step: &Step) -> &'static str {
        match step {
            Step::Get(t, ..) | Step::Put(t, ..) | Step::Del(t, ..) | Step::Stat(t) => TABLES[*t].0,
            Step::Drop(t) | Step::OpenCursor(t) | Step::Walk(t, _) => TABLES[*t].0,
            Step::CloseCursor(i) | Step::CursorCount(i) | Step::CursorDel(i, _) => {
                TABLES[self.cursors[*i].table].0
            }
            Step::CursorGet(i, ..) | Step::CursorPut(i, ..) => TABLES[self.cursors[*i].table].0,
            _ => "all",
        }
    }

    fn after_begin(&mut self) {
        self.levels += 1;
        for cursor in &mut self.cursors {
            cursor.before.push((cursor.place, cursor.key.clone(), cursor.at_end));
        }
    }

    fn after_end(&mut self, undone: bool) {
        let level = self.levels;
        self.cursors.retain(|cursor| cursor.level < level);
        self.levels -= 1;
        for cursor in &mut self.cursors {
            let before = cursor.before.pop().expect("the level began");
            if undone {
                (cursor.place, cursor.key, cursor.at_end) = before;
            }
        }
    }

    /// Takes notice of what a step has done.
    fn after(&mut self, step: &Step, outcome: &Outcome) {
        // Who deletes the record of a table ends the transaction.
        let ended = matches!(step, Step::Del(..) | Step::CursorDel(..));
        self.dead = outcome.code == BAD_TXN || ended && outcome.code == INCOMPATIBLE;
        match step {
            Step::Begin | Step::Nested => self.after_begin(),
            Step::Commit | Step::Abort => {
                self.after_end(matches!(step, Step::Abort) || outcome.code != 0);
            }
            Step::OpenCursor(table) => {
                let (level, table) = (self.levels, *table);
                let (place, key) = (Place::Unknown, Vec::new());
                self.cursors.push(OpenCursor {
                    level,
                    table,
                    place,
                    key,
                    at_end: false,
                    before: Vec::new(),
                });
            }
            Step::CloseCursor(i) => drop(self.cursors.remove(*i)),
            Step::CursorGet(i, _, _, op) => {
                let place = match (outcome.code, op) {
                    (0, _) => Place::On,
                    // Having failed to find another key, LMDB finds no more values either.
                    (_, 8) => Place::Last,
                    (_, 12) => Place::First,
                    _ => Place::Unknown,
                };
                self.cursors[*i].place = place;
                if *op != 4 {
                    self.cursors[*i].at_end = matches!(op, 6 | 12);
                }
                if place == Place::On && !matches!(op, 1 | 7) {
                    self.cursors[*i].key = outcome.key.clone();
                }
            }
            Step::CursorPut(i, key, ..) => {
                self.changed(self.cursors[*i].table, key);
                let place = if outcome.code == 0 { Place::On } else { Place::Unknown };
                self.cursors[*i].place = place;
                self.cursors[*i].key = key.clone();
            }
            Step::CursorDel(i, _) => {
                self.removed(self.cursors[*i].table);
                let known = outcome.code == 0 && !self.cursors[*i].at_end;
                let place = if known { Place::Deleted } else { Place::Unknown };
                self.cursors[*i].place = place;
            }
            Step::Put(table, key, ..) => self.changed(*table, key),
            Step::Del(table, ..) => self.removed(*table),
            Step::Drop(table) => {
                let on = self.cursors.iter_mut().filter(|c| c.table == *table);
                on.for_each(|cursor| cursor.place = Place::Unknown);
            }
            _ => {}
        }
    }

    /// Cursors that are on no record are lost when the table changes; where a key has many values
    /// also those on that key.
    fn changed(&mut self, table: usize, key: &[u8]) {
        let many = TABLES[table].1 & DUPSORT != 0;
        for cursor in self.cursors.iter_mut().filter(|c| c.table == table) {
            if cursor.place != Place::On || cursor.at_end || many && cursor.key == key {
                cursor.place = Place::Unknown;
            }
        }
    }
}

impl Program {
    /// As `changed`; among many values LMDB's cursors may go back to the first one of their key
    /// when any other is removed.
    fn removed(&mut self, table: usize) {
        let many = TABLES[table].1 & DUPSORT != 0;
        for cursor in self.cursors.iter_mut().filter(|c| c.table == table) {
            if cursor.place != Place::On || many {
                cursor.place = Place::Unknown;
            }
        }
    }
}

fn run(seed: u64, steps: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let open = |library: Library| {
        let path = dir.path().join(library.label);
        std::fs::create_dir(&path).expect("a directory");
        Side::new(library.api, &path)
    };
    let (mut theirs, mut ours) = (open(original()), open(ours()));
    let mut program =
        Program { random: Rng::new(seed), levels: 0, dead: false, cursors: Vec::new() };
    let mut log: Vec<String> = Vec::new();
    for n in 0..steps {
        let step = program.next();
        let want = theirs.run(&step);
        let got = ours.run(&step);
        log.push(format!("{n}: [{}] {step:?} -> {want:?}", program.table_of(&step)));
        if want != got {
            // Only what has to do with the same table.
            let table = program.table_of(&step);
            let same = |l: &&String| {
                table == "all" || [table, "all"].iter().any(|t| l.contains(&format!("[{t}]")))
            };
            let tail: Vec<_> = log.iter().rev().filter(same).take(60).map(String::as_str).collect();
            let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
            panic!("seed {seed}\n{tail}\nstep {n}: {step:?}\nZubilo: {got:?}");
        }
        program.after(&step, &want);
        if matches!(step, Step::Commit | Step::Abort) {
            let level = program.levels + 1;
            theirs.forget_cursors_of(level);
            ours.forget_cursors_of(level);
        }
    }
}

#[test]
fn random_programs_have_the_same_results() {
    let first = seed(1);
    for seed in first..first + number("DIFFERENTIAL_SEEDS", 20) {
        run(seed, number("DIFFERENTIAL_STEPS", 4000) as usize);
    }
}
