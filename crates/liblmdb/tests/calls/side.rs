//! One of the libraries with what the program has opened in it, and what its calls give.

use std::cell::Cell;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use support::lmdb::{
    Api, Info, MDB_CREATE as CREATE, MDB_NOSYNC as NOSYNC, MDB_RDONLY as RDONLY, Stat, Val,
};

pub(crate) use support::lmdb::{
    MDB_CURRENT as CURRENT, MDB_DUPFIXED as DUPFIXED, MDB_DUPSORT as DUPSORT,
    MDB_MULTIPLE as MULTIPLE, MDB_NOLOCK as NOLOCK, MDB_NOTLS as NOTLS, MDB_RESERVE as RESERVE,
    MDB_WRITEMAP as WRITEMAP,
};

use crate::program::{Out, Step};

/// Names and flags of the tables, and whether keys and values are in an order of the program's.
pub(crate) const TABLES: [(&str, c_uint, bool); 8] = [
    ("plain", 0, false),
    ("many", DUPSORT, false),
    ("fixed", DUPSORT | DUPFIXED, false),
    ("numbers", DUPSORT | DUPFIXED | 0x20 | 0x08, false),
    ("own", 0, true),
    ("ownmany", DUPSORT, true),
    ("ownfixed", DUPSORT | DUPFIXED, true),
    // Stays empty.
    ("empty", DUPSORT, false),
];

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
    /// Comparisons of the program's that did not get first what was handed in, by address.
    pub(crate) strange: usize,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?} {:x}", self.code, self.key, self.value, self.number)?;
        if self.strange > 0 { write!(f, ", {} strange comparisons", self.strange) } else { Ok(()) }
    }
}

fn code(code: c_int) -> Outcome {
    Outcome { code, key: Arg::Same, value: Arg::Same, number: 0, strange: 0 }
}

thread_local! {
    /// The key and the value that the call at work was given.
    static GIVEN: Cell<(*const Val, *const Val)> = const { Cell::new((null(), null())) };
    /// Comparisons that got others.
    static STRANGE: Cell<usize> = const { Cell::new(0) };
}

fn given(key: *const Val, value: *const Val) {
    GIVEN.set((key, value));
}

/// From the greatest byte string to the least, of keys and of values.
unsafe extern "C" fn by_key(a: *const Val, b: *const Val) -> c_int {
    // SAFETY: the library passes two values that live.
    unsafe { backwards(a, b, GIVEN.get().0) }
}

unsafe extern "C" fn by_value(a: *const Val, b: *const Val) -> c_int {
    // SAFETY: as above.
    unsafe { backwards(a, b, GIVEN.get().1) }
}

unsafe fn backwards(a: *const Val, b: *const Val, own: *const Val) -> c_int {
    STRANGE.set(STRANGE.get() + usize::from(a != own));
    // SAFETY: as above.
    unsafe { (*b).bytes().cmp((*a).bytes()) as c_int }
}

/// Put where a call may set a number.
const SENTINEL: usize = 0xABBA;
static NOWHERE: [u8; 5] = *b"input";

/// A value to be handed in, and whether it was changed.
struct Given {
    val: [Val; 3],
    was: (usize, *mut c_void),
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
        // SAFETY: filled by the library just now, or the bytes that were given.
        Arg::Bytes(unsafe { self.val[0].copy() })
    }

    fn ptr(&mut self) -> *mut Val {
        &mut self.val[0]
    }
}

pub(crate) struct Side {
    api: &'static Api,
    env: *mut c_void,
    path: CString,
    /// Of the environment.
    flags: c_uint,
    /// The transaction only reads.
    reads: bool,
    txns: Vec<*mut c_void>,
    dbis: Vec<c_uint>,
    cursors: Vec<(usize, *mut c_void)>,
}

impl Side {
    /// A new environment, with the map size told or as it is without.
    pub(crate) fn new(
        api: &'static Api,
        path: &std::path::Path,
        sized: bool,
        flags: c_uint,
    ) -> Side {
        let path = CString::new(path.to_str().expect("a path")).expect("a path");
        let (txns, dbis, cursors) = (Vec::new(), Vec::new(), Vec::new());
        let flags = flags | NOSYNC;
        let mut side =
            Side { api, env: null_mut(), path, flags, reads: false, txns, dbis, cursors };
        side.open(sized, false);
        side
    }

    fn open(&mut self, sized: bool, read_only: bool) {
        // SAFETY: as the interface demands.
        unsafe {
            assert_eq!((self.api.mdb_env_create)(&mut self.env), 0);
            if sized {
                assert_eq!((self.api.mdb_env_set_mapsize)(self.env, 1 << 20), 0);
            }
            assert_eq!((self.api.mdb_env_set_maxdbs)(self.env, 16), 0);
            let (kind, create) = if read_only { (RDONLY, 0) } else { (0, CREATE) };
            let flags = self.flags | kind;
            assert_eq!((self.api.mdb_env_open)(self.env, self.path.as_ptr(), flags, 0o644), 0);
            let mut txn = null_mut();
            assert_eq!((self.api.mdb_txn_begin)(self.env, null_mut(), kind, &mut txn), 0);
            self.dbis.clear();
            for (name, flags, own) in TABLES {
                let name = CString::new(name).expect("a name");
                let mut dbi = 0;
                let flags = flags | create;
                assert_eq!((self.api.mdb_dbi_open)(txn, name.as_ptr(), flags, &mut dbi), 0);
                self.dbis.push(dbi);
                if own {
                    assert_eq!((self.api.mdb_set_compare)(txn, dbi, Some(by_key)), 0);
                    assert_eq!((self.api.mdb_set_dupsort)(txn, dbi, Some(by_value)), 0);
                }
            }
            assert_eq!((self.api.mdb_txn_commit)(txn), 0);
        }
    }

    /// A handle; beyond the tables' one that nobody has opened.
    fn dbi(&self, table: usize) -> c_uint {
        self.dbis.get(table).copied().unwrap_or(table as c_uint + 2)
    }

    pub(crate) fn run(&mut self, step: &Step) -> Outcome {
        given(null(), null());
        STRANGE.set(0);
        let outcome = self.step(step);
        Outcome { strange: STRANGE.get(), ..outcome }
    }

    fn step(&mut self, step: &Step) -> Outcome {
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
                Step::BeginRead | Step::Refused => {
                    let mut txn = null_mut();
                    let kind = if matches!(step, Step::BeginRead) { RDONLY } else { 0 };
                    let done = (self.api.mdb_txn_begin)(self.env, null_mut(), kind, &mut txn);
                    if done == 0 {
                        (self.reads, self.txns) = (kind != 0, vec![txn]);
                    }
                    Outcome { number: (self.api.mdb_txn_id)(txn), ..code(done) }
                }
                Step::Reset => {
                    (self.api.mdb_txn_reset)(*self.txns.last().expect("begun"));
                    code(0)
                }
                Step::Renew => code((self.api.mdb_txn_renew)(*self.txns.last().expect("begun"))),
                Step::Reopen(sized, read_only) => {
                    (self.api.mdb_env_close)(self.env);
                    self.open(*sized, *read_only);
                    self.info()
                }
                Step::Info => self.info(),
                Step::InParent(step) => {
                    let child = self.txns.pop().expect("a child");
                    let outcome = self.step(step);
                    self.txns.push(child);
                    outcome
                }
                Step::OpenCursor(..) | Step::CloseCursor(_) | Step::RenewCursor(_) => {
                    self.change_cursors(step)
                }
                Step::CursorGet { .. }
                | Step::CursorPut { .. }
                | Step::CursorDel(..)
                | Step::CursorCount(_) => self.on_cursor(step),
                _ => self.on_table(step),
            }
        }
    }

    unsafe fn end(&mut self, commit: bool) -> Outcome {
        let reads = std::mem::take(&mut self.reads);
        let txn = self.txns.pop().expect("begun");
        let level = self.txns.len() + 1;
        let ended: Vec<_> = self.cursors.extract_if(.., |(l, _)| *l >= level).collect();
        let mut done = 0;
        // SAFETY: see `run`. Cursors of a transaction that only reads are the program's to close.
        unsafe {
            match commit {
                true => done = (self.api.mdb_txn_commit)(txn),
                false => (self.api.mdb_txn_abort)(txn),
            }
            if reads {
                ended.iter().for_each(|(_, cursor)| (self.api.mdb_cursor_close)(*cursor));
            }
        }
        code(done)
    }

    unsafe fn info(&self) -> Outcome {
        // SAFETY: see `run`.
        unsafe {
            let mut info = Info::EMPTY;
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
        let api = self.api;
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
                    given(k.ptr(), v.ptr());
                    let done = (api.mdb_get)(txn, self.dbi(*table), k.ptr(), v.ptr());
                    Outcome { key: k.arg(), value: v.arg(), ..code(done) }
                }
                Step::Put(table, key, value, flags) => {
                    let (mut k, mut v) = (Given::of(key), Given::of(value));
                    given(k.ptr(), v.ptr());
                    let done = (api.mdb_put)(txn, self.dbi(*table), k.ptr(), v.ptr(), *flags);
                    put_outcome(done, &k, &v, value, (*flags, false))
                }
                Step::Del(table, key, value) => {
                    let mut k = Given::of(key);
                    let mut v = value.as_deref().map(Given::of);
                    let data = v.as_mut().map_or(null_mut(), Given::ptr);
                    given(k.ptr(), data);
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
                    given(&a, &a);
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
                Step::RenewCursor(i) => {
                    let txn = *self.txns.last().expect("begun");
                    code((self.api.mdb_cursor_renew)(txn, self.cursors[*i].1))
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
        let api = self.api;
        // SAFETY: see `run`.
        unsafe {
            match step {
                Step::CursorGet { cursor, key, value, op, out } => {
                    let (mut k, mut v) = (Given::of(key), Given::of(value));
                    let data = if *out == Out::NoValue { null_mut() } else { v.ptr() };
                    given(k.ptr(), data);
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
                    given(k.ptr(), v.ptr());
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
/// before, that which must be the old bytes is given.
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
    // SAFETY: there is room for as many bytes, by the contract of the interface.
    let held = unsafe {
        let held = room.copy();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), room.data.cast(), bytes.len());
        held
    };
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
