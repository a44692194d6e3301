//! One of the libraries with what the program has opened in it, and what its calls give.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::common::{Api, Cursor, Env, Info, Stat, Txn, Val};
use crate::program::{Out, Step};

/// Names and flags of the tables.
pub(crate) const TABLES: [(&str, c_uint); 5] = [
    ("plain", 0),
    ("many", DUPSORT),
    ("fixed", DUPSORT | DUPFIXED),
    ("numbers", DUPSORT | DUPFIXED | 0x20 | 0x08),
    // Stays empty.
    ("empty", DUPSORT),
];
const CREATE: c_uint = 0x4_0000;
pub(crate) const DUPSORT: c_uint = 0x04;
pub(crate) const DUPFIXED: c_uint = 0x10;
const NOSYNC: c_uint = 0x1_0000;
const NOTLS: c_uint = 0x20_0000;
const RDONLY: c_uint = 0x2_0000;
pub(crate) const RESERVE: c_uint = 0x1_0000;
pub(crate) const CURRENT: c_uint = 0x40;
pub(crate) const MULTIPLE: c_uint = 0x8_0000;

/// What was behind a pointer after a call.
#[derive(PartialEq, Eq, Clone)]
pub(crate) enum Arg {
    /// What the program had put there.
    Same,
    Bytes(Vec<u8>),
}

impl std::fmt::Debug for Arg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arg::Same => write!(f, "same"),
            Arg::Bytes(bytes) => write!(f, "{}", bytes.escape_ascii()),
        }
    }
}

/// What a call gave.
#[derive(PartialEq, Eq, Clone)]
pub(crate) struct Outcome {
    pub(crate) code: c_int,
    pub(crate) key: Arg,
    pub(crate) value: Arg,
    pub(crate) number: usize,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?} {:x}", self.code, self.key, self.value, self.number)
    }
}

fn code(code: c_int) -> Outcome {
    Outcome { code, key: Arg::Same, value: Arg::Same, number: 0 }
}

/// Stands in numbers that a call may set.
const SENTINEL: usize = 0xABBA;
static NOWHERE: [u8; 5] = *b"input";

/// A value to be handed in, and whether it was changed.
struct Given {
    val: [Val; 3],
    was: (usize, *const c_void),
}

impl Given {
    fn of(bytes: &[u8]) -> Given {
        let val = Val::of(bytes);
        Given { was: (val.size, val.data), val: [val, Val::of(&NOWHERE), Val::of(&NOWHERE)] }
    }

    /// For calls that only give.
    fn nothing() -> Given {
        Given::of(&NOWHERE)
    }

    fn arg(&self) -> Arg {
        if (self.val[0].size, self.val[0].data) == self.was {
            return Arg::Same;
        }
        Arg::Bytes(self.val[0].copy())
    }

    fn ptr(&mut self) -> *mut Val {
        &mut self.val[0]
    }
}

pub(crate) struct Side {
    api: Api,
    env: *mut Env,
    path: CString,
    txns: Vec<*mut Txn>,
    dbis: Vec<c_uint>,
    cursors: Vec<(usize, *mut Cursor)>,
}

impl Side {
    pub(crate) fn new(api: Api, path: &std::path::Path) -> Side {
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
            assert_eq!((self.api.mdb_env_set_mapsize)(self.env, 1 << 20), 0);
            assert_eq!((self.api.mdb_env_set_maxdbs)(self.env, 16), 0);
            let flags = NOSYNC | NOTLS;
            assert_eq!((self.api.mdb_env_open)(self.env, self.path.as_ptr(), flags, 0o644), 0);
            let mut txn = null_mut();
            assert_eq!((self.api.mdb_txn_begin)(self.env, null_mut(), 0, &mut txn), 0);
            self.dbis.clear();
            for (name, flags) in TABLES {
                let name = CString::new(name).expect("a name");
                let mut dbi = 0;
                let flags = flags | CREATE;
                assert_eq!((self.api.mdb_dbi_open)(txn, name.as_ptr(), flags, &mut dbi), 0);
                self.dbis.push(dbi);
            }
            assert_eq!((self.api.mdb_txn_commit)(txn), 0);
        }
    }

    /// A handle; beyond the tables' one that nobody has opened.
    fn dbi(&self, table: usize) -> c_uint {
        self.dbis.get(table).copied().unwrap_or(table as c_uint + 2)
    }

    pub(crate) fn run(&mut self, step: &Step) -> Outcome {
        // SAFETY: programs use no handle after its end, see `Program`; all pointers are to values that
        // live as long as the call, and what calls give is looked at before the next one.
        unsafe {
            match step {
                Step::Begin | Step::Nested => {
                    let parent = self.txns.last().copied().unwrap_or(null_mut());
                    let mut txn = null_mut();
                    let done = (self.api.mdb_txn_begin)(self.env, parent, 0, &mut txn);
                    self.txns.push(txn);
                    Outcome { number: (self.api.mdb_txn_id)(txn), ..code(done) }
                }
                Step::Commit | Step::Abort => self.end(matches!(step, Step::Commit)),
                Step::Reopen => {
                    (self.api.mdb_env_close)(self.env);
                    self.open();
                    self.info()
                }
                Step::Info => self.info(),
                Step::InParent(step) => {
                    let child = self.txns.pop().expect("a child");
                    let outcome = self.run(step);
                    self.txns.push(child);
                    outcome
                }
                Step::OpenCursor(..) | Step::CloseCursor(_) => self.change_cursors(step),
                Step::CursorGet { .. }
                | Step::CursorPut { .. }
                | Step::CursorDel(..)
                | Step::CursorCount(_) => self.on_cursor(step),
                _ => self.on_table(step),
            }
        }
    }

    unsafe fn end(&mut self, commit: bool) -> Outcome {
        let txn = self.txns.pop().expect("begun");
        let level = self.txns.len() + 1;
        self.cursors.retain(|(l, _)| *l < level);
        // SAFETY: see `run`.
        unsafe {
            if commit {
                return code((self.api.mdb_txn_commit)(txn));
            }
            (self.api.mdb_txn_abort)(txn);
        }
        code(0)
    }

    unsafe fn info(&self) -> Outcome {
        // SAFETY: see `run`.
        unsafe {
            let mut info: Info = std::mem::zeroed();
            let done = (self.api.mdb_env_info)(self.env, &mut info);
            let mut txn = null_mut();
            (self.api.mdb_txn_begin)(self.env, null_mut(), RDONLY, &mut txn);
            let id = (self.api.mdb_txn_id)(txn);
            (self.api.mdb_txn_abort)(txn);
            Outcome { number: info.map_size << 16 | info.last_txn << 8 | id, ..code(done) }
        }
    }

    unsafe fn on_table(&mut self, step: &Step) -> Outcome {
        let txn = *self.txns.last().expect("begun");
        let api = &self.api;
        // SAFETY: see `run`.
        unsafe {
            match step {
                Step::OpenTable(name) => {
                    let name = CString::new(name.as_str()).expect("a name");
                    let mut dbi = SENTINEL as c_uint;
                    let done = (api.mdb_dbi_open)(txn, name.as_ptr(), DUPSORT | CREATE, &mut dbi);
                    Outcome { number: dbi as usize, ..code(done) }
                }
                Step::Get(table, key) => {
                    let (mut k, mut v) = (Given::of(key), Given::nothing());
                    let done = (api.mdb_get)(txn, self.dbi(*table), k.ptr(), v.ptr());
                    Outcome { key: k.arg(), value: v.arg(), ..code(done) }
                }
                Step::Put(table, key, value, flags) => {
                    let (mut k, mut v) = (Given::of(key), Given::of(value));
                    let done = (api.mdb_put)(txn, self.dbi(*table), k.ptr(), v.ptr(), *flags);
                    put_outcome(done, &k, &v, value, (*flags, false))
                }
                Step::Del(table, key, value) => {
                    let mut k = Given::of(key);
                    let mut v = value.as_deref().map(Given::of);
                    let data = v.as_mut().map_or(null_mut(), Given::ptr);
                    let done = (api.mdb_del)(txn, self.dbi(*table), k.ptr(), data);
                    let value = v.map_or(Arg::Same, |v| v.arg());
                    Outcome { key: k.arg(), value, ..code(done) }
                }
                Step::Drop(table) => code((api.mdb_drop)(txn, self.dbi(*table), 0)),
                Step::Stat(table) => {
                    let mut stat = Stat { entries: SENTINEL, ..Stat::default() };
                    let done = (api.mdb_stat)(txn, self.dbi(*table), &mut stat);
                    Outcome { number: stat.entries, ..code(done) }
                }
                Step::Flags(table) => {
                    let mut flags = SENTINEL as c_uint;
                    let done = (api.mdb_dbi_flags)(txn, self.dbi(*table), &mut flags);
                    Outcome { number: flags as usize, ..code(done) }
                }
                Step::Compare(table, a, b, values) => {
                    let (a, b) = (Val::of(a), Val::of(b));
                    let compare = if *values { api.mdb_dcmp } else { api.mdb_cmp };
                    code(compare(txn, self.dbi(*table), &a, &b).signum())
                }
                other => unreachable!("{other:?}"),
            }
        }
    }

    unsafe fn change_cursors(&mut self, step: &Step) -> Outcome {
        // SAFETY: see `run`.
        unsafe {
            match step {
                Step::OpenCursor(table) => {
                    let txn = *self.txns.last().expect("begun");
                    let mut cursor = null_mut();
                    let done = (self.api.mdb_cursor_open)(txn, self.dbi(*table), &mut cursor);
                    if done == 0 {
                        self.cursors.push((self.txns.len(), cursor));
                    }
                    Outcome { number: usize::from(cursor.is_null()), ..code(done) }
                }
                Step::CloseCursor(i) => {
                    (self.api.mdb_cursor_close)(self.cursors.remove(*i).1);
                    code(0)
                }
                other => unreachable!("{other:?}"),
            }
        }
    }

    unsafe fn on_cursor(&mut self, step: &Step) -> Outcome {
        let api = &self.api;
        // SAFETY: see `run`.
        unsafe {
            match step {
                Step::CursorGet { cursor, key, value, op, out } => {
                    let (mut k, mut v) = (Given::of(key), Given::of(value));
                    let data = if *out == Out::NoValue { null_mut() } else { v.ptr() };
                    let done = (api.mdb_cursor_get)(self.cursors[*cursor].1, k.ptr(), data, *op);
                    // Of a key with one value, and at the end of several, LMDB gives none.
                    let value = if *op == 5 && done == 0 { Arg::Same } else { v.arg() };
                    let key = if *out == Out::LooseKey { Arg::Same } else { k.arg() };
                    Outcome { key, value, ..code(done) }
                }
                Step::CursorPut { cursor, key, value, flags, count } => {
                    let (mut k, mut v) = (Given::of(key), Given::of(value));
                    if flags & MULTIPLE != 0 {
                        v.val[0].size = value.len() / count;
                        v.val[1].size = *count;
                        v.was.0 = v.val[0].size;
                    }
                    let cursor = self.cursors[*cursor].1;
                    let done = (api.mdb_cursor_put)(cursor, k.ptr(), v.ptr(), *flags);
                    if flags & MULTIPLE != 0 {
                        // Where it points to now is a matter of the items stored.
                        let at = (v.val[0].data as usize).wrapping_sub(v.was.1 as usize);
                        let value = if at < 4096 { Arg::Same } else { v.arg() };
                        let number = if at < 4096 { at << 16 } else { 0 } | v.val[1].size;
                        return Outcome { key: k.arg(), value, number, ..code(done) };
                    }
                    put_outcome(done, &k, &v, value, (*flags, *count == 1))
                }
                Step::CursorDel(cursor, flags) => {
                    code((api.mdb_cursor_del)(self.cursors[*cursor].1, *flags))
                }
                Step::CursorCount(cursor) => {
                    let mut count = SENTINEL;
                    let done = (api.mdb_cursor_count)(self.cursors[*cursor].1, &mut count);
                    Outcome { number: count, ..code(done) }
                }
                other => unreachable!("{other:?}"),
            }
        }
    }
}

/// After a put: what its arguments hold; a value with room for it is filled, and of what was in the room
/// before is told what must be the old bytes.
unsafe fn put_outcome(
    done: c_int,
    key: &Given,
    value: &Given,
    bytes: &[u8],
    (flags, old): (c_uint, bool),
) -> Outcome {
    if done != 0 || flags & RESERVE == 0 {
        return Outcome { key: key.arg(), value: value.arg(), ..code(done) };
    }
    let room = value.val[0];
    let held = room.copy();
    // SAFETY: there is room for as many bytes, by the contract of the interface.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), room.data.cast_mut().cast(), bytes.len());
    }
    // What else is in it says nothing.
    let value = if old { Arg::Bytes(held) } else { Arg::Same };
    Outcome { key: key.arg(), value, number: room.size, ..code(done) }
}

impl Drop for Side {
    fn drop(&mut self) {
        // SAFETY: see `run`; nothing is used after this.
        unsafe {
            while let Some(txn) = self.txns.pop() {
                (self.api.mdb_txn_abort)(txn);
            }
            (self.api.mdb_env_close)(self.env);
        }
    }
}
