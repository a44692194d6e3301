//! A program's steps on LMDB, or a library that claims to be it, called as a C program would.

use std::ffi::{CString, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use support::lmdb::{self as ffi, Api, LINKED, Stat, Val};

use crate::program::{How, Kind, Move, Order, Step, Values};
use crate::{Answer, Engine};

/// LMDB with one table and a running write transaction.
pub struct Lmdb {
    api: Api,
    env: *mut c_void,
    dbi: c_uint,
    kind: Kind,
    /// The transaction and those nested in it, the innermost last.
    txns: Vec<*mut c_void>,
    /// Cursors with the nesting level in which they were opened.
    cursors: Vec<Option<(*mut c_void, usize)>>,
}

fn failed(code: i32) -> Answer {
    match code {
        ffi::MDB_NOTFOUND => Answer::NotFound,
        ffi::MDB_KEYEXIST => Answer::Exists,
        libc::EINVAL | ffi::MDB_BAD_VALSIZE => Answer::Invalid,
        ffi::MDB_INCOMPATIBLE => Answer::Incompatible,
        code => Answer::Other(format!("LMDB says {code}")),
    }
}

fn done(code: i32) -> Answer {
    if code == 0 { Answer::Done } else { failed(code) }
}

#[track_caller]
fn must(code: i32) {
    assert_eq!(code, 0, "LMDB refused");
}

fn flags(kind: &Kind) -> u32 {
    let mut flags = ffi::MDB_CREATE;
    flags |= match kind.keys {
        Order::Bytes | Order::Backwards => 0,
        Order::Reversed => ffi::MDB_REVERSEKEY,
        Order::Integer(_) => ffi::MDB_INTEGERKEY,
    };
    if let Values::Many { order, fixed } = kind.values {
        flags |= ffi::MDB_DUPSORT;
        flags |= if fixed.is_some() { ffi::MDB_DUPFIXED } else { 0 };
        flags |= match order {
            Order::Bytes | Order::Backwards => 0,
            Order::Reversed => ffi::MDB_REVERSEDUP,
            Order::Integer(_) => ffi::MDB_INTEGERDUP,
        };
    }
    flags
}

fn how(how: How) -> u32 {
    match how {
        How::Upsert => 0,
        How::NoOverwrite => ffi::MDB_NOOVERWRITE,
        How::NoDupData => ffi::MDB_NODUPDATA,
        How::Append => ffi::MDB_APPEND,
        How::AppendDup => ffi::MDB_APPENDDUP,
    }
}

fn operation(way: Move) -> c_uint {
    match way {
        Move::First => ffi::MDB_FIRST,
        Move::Last => ffi::MDB_LAST,
        Move::Next => ffi::MDB_NEXT,
        Move::Prev => ffi::MDB_PREV,
        Move::FirstDup => ffi::MDB_FIRST_DUP,
        Move::LastDup => ffi::MDB_LAST_DUP,
        Move::NextDup => ffi::MDB_NEXT_DUP,
        Move::PrevDup => ffi::MDB_PREV_DUP,
        Move::NextNoDup => ffi::MDB_NEXT_NODUP,
        Move::PrevNoDup => ffi::MDB_PREV_NODUP,
        Move::Current => ffi::MDB_GET_CURRENT,
        Move::Set => ffi::MDB_SET_KEY,
        Move::SetRange => ffi::MDB_SET_RANGE,
        Move::Both => ffi::MDB_GET_BOTH,
        Move::BothRange => ffi::MDB_GET_BOTH_RANGE,
    }
}

/// A comparison as a caller supplies it.
unsafe extern "C" fn backwards(a: *const Val, b: *const Val) -> i32 {
    // SAFETY: the library passes two strings that stay for the call.
    unsafe { (*b).bytes().cmp((*a).bytes()) as i32 }
}

impl Lmdb {
    /// A new environment of the original in a folder.
    pub fn create(dir: &Path, kind: Kind) -> Lmdb {
        Lmdb::create_with(LINKED, &dir.join("lmdb"), kind)
    }

    /// A new environment of a library in a file.
    pub fn create_with(api: Api, path: &Path, kind: Kind) -> Lmdb {
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        let flags_of_env = ffi::MDB_NOSUBDIR | ffi::MDB_NOSYNC | ffi::MDB_NOLOCK;
        let mut lmdb =
            Lmdb { api, env: null_mut(), dbi: 0, kind, txns: Vec::new(), cursors: vec![None; 3] };
        // SAFETY: the calls are made in the documented order with valid pointers.
        unsafe {
            must((api.mdb_env_create)(&mut lmdb.env));
            must((api.mdb_env_set_mapsize)(lmdb.env, 1 << 30));
            must((api.mdb_env_set_maxdbs)(lmdb.env, 2));
            must((api.mdb_env_open)(lmdb.env, name.as_ptr(), flags_of_env, 0o644));
            let mut txn = null_mut();
            must((api.mdb_txn_begin)(lmdb.env, null_mut(), 0, &mut txn));
            must((api.mdb_dbi_open)(txn, c"table".as_ptr(), flags(&kind), &mut lmdb.dbi));
            if kind.keys == Order::Backwards {
                must((api.mdb_set_compare)(txn, lmdb.dbi, Some(backwards)));
            }
            if matches!(kind.values, Values::Many { order: Order::Backwards, .. }) {
                must((api.mdb_set_dupsort)(txn, lmdb.dbi, Some(backwards)));
            }
            must((api.mdb_txn_commit)(txn));
        }
        lmdb.begin();
        lmdb
    }

    fn txn(&self) -> *mut c_void {
        *self.txns.last().expect("a transaction runs")
    }

    fn begin(&mut self) {
        let parent = self.txns.last().copied().unwrap_or(null_mut());
        let mut txn = null_mut();
        // SAFETY: the environment is open and the parent runs.
        must(unsafe { (self.api.mdb_txn_begin)(self.env, parent, 0, &mut txn) });
        self.txns.push(txn);
    }

    fn end(&mut self, commit: bool) -> Answer {
        let txn = self.txns.pop().expect("a transaction runs");
        let depth = self.txns.len();
        // The library frees the cursors of a write transaction that ends.
        for cursor in &mut self.cursors {
            cursor.take_if(|(_, level)| *level > depth);
        }
        // SAFETY: the transaction runs and is not used again.
        let code = unsafe {
            if commit {
                (self.api.mdb_txn_commit)(txn)
            } else {
                (self.api.mdb_txn_abort)(txn);
                0
            }
        };
        if self.txns.is_empty() {
            self.begin();
        }
        done(code)
    }

    fn put(&mut self, key: u32, value: u32, put: How) -> Answer {
        let (key, value) = (self.kind.key(key), self.kind.value(value));
        let (mut key, mut value) = (Val::of(&key), Val::of(&value));
        // SAFETY: the transaction runs; the values are valid for the call.
        done(unsafe { (self.api.mdb_put)(self.txn(), self.dbi, &mut key, &mut value, how(put)) })
    }

    /// Fills the place that the library gives.
    fn reserve(&mut self, key: u32, value: u32, put: How) -> Answer {
        if self.kind.has_duplicates() {
            return Answer::Incompatible;
        }
        let (key, value) = (self.kind.key(key), self.kind.value(value));
        let (mut key, mut place) = (Val::of(&key), Val::of(&value));
        let flags = how(put) | ffi::MDB_RESERVE;
        // SAFETY: the transaction runs; what was reserved has the length that was asked for.
        unsafe {
            let code = (self.api.mdb_put)(self.txn(), self.dbi, &mut key, &mut place, flags);
            if code == 0 && !value.is_empty() {
                let place = std::slice::from_raw_parts_mut(place.data.cast(), value.len());
                place.copy_from_slice(&value);
            }
            done(code)
        }
    }

    fn go(&self, cursor: *mut c_void, way: Move, key: &[u8], value: &[u8]) -> Answer {
        let (mut key, mut value) = (Val::of(key), Val::of(value));
        if !matches!(way, Move::Set | Move::SetRange | Move::Both | Move::BothRange) {
            (key, value) = (Val::NONE, Val::NONE);
        }
        // SAFETY: the cursor is open and its transaction runs.
        let code =
            unsafe { (self.api.mdb_cursor_get)(cursor, &mut key, &mut value, operation(way)) };
        if code != 0 {
            return failed(code);
        }
        if matches!(way, Move::FirstDup | Move::LastDup) {
            // The library does not always give the key.
            let mut same = Val::NONE;
            // SAFETY: as above.
            must(unsafe {
                (self.api.mdb_cursor_get)(cursor, &mut key, &mut same, ffi::MDB_GET_CURRENT)
            });
        }
        // SAFETY: the library has just filled both.
        unsafe { Answer::Pair(key.copy(), value.copy()) }
    }

    fn packed(&self, cursor: *mut c_void, given: &[u8], back: bool) -> Answer {
        let (mut key, mut value) = (Val::of(given), Val::NONE);
        let size = usize::from(self.kind.fixed().unwrap_or(1));
        let last;
        let mut all = Vec::new();
        let further = if back { ffi::MDB_PREV_MULTIPLE } else { ffi::MDB_NEXT_MULTIPLE };
        // SAFETY: the cursor is open and its transaction runs; what is read was just filled.
        unsafe {
            let mut code =
                (self.api.mdb_cursor_get)(cursor, &mut key, &mut value, ffi::MDB_SET_KEY);
            if code == 0 && back {
                must((self.api.mdb_cursor_get)(cursor, &mut key, &mut value, ffi::MDB_LAST_DUP));
                // The library takes this place for one after the values; so find it once more.
                last = value.copy();
                (key, value) = (Val::of(given), Val::of(&last));
                must((self.api.mdb_cursor_get)(cursor, &mut key, &mut value, ffi::MDB_GET_BOTH));
            }
            if code == 0 {
                // With a single value the library leaves what the search found.
                code =
                    (self.api.mdb_cursor_get)(cursor, &mut key, &mut value, ffi::MDB_GET_MULTIPLE);
            }
            if code != 0 {
                return failed(code);
            }
            while code == 0 {
                let page = value.copy();
                let values = page.chunks(size).map(<[u8]>::to_vec);
                if back {
                    all.extend(values.rev())
                } else {
                    all.extend(values)
                }
                code = (self.api.mdb_cursor_get)(cursor, &mut key, &mut value, further);
            }
            if code == ffi::MDB_NOTFOUND { Answer::Many(all) } else { failed(code) }
        }
    }

    fn put_many(&self, cursor: *mut c_void, key: u32, value: u32, count: u8) -> Answer {
        let Some(size) = self.kind.fixed() else { return Answer::Incompatible };
        let key = self.kind.key(key);
        let range = value..value + u32::from(count);
        let values: Vec<u8> = range.flat_map(|n| self.kind.value(n)).collect();
        let mut key = Val::of(&key);
        let first = Val { size: size.into(), ..Val::of(&values) };
        let number = Val { size: count.into(), ..Val::NONE };
        let mut data = [first, number];
        // SAFETY: the cursor is open; `data` has the two elements that the flag asks for.
        let code = unsafe {
            (self.api.mdb_cursor_put)(cursor, &mut key, data.as_mut_ptr(), ffi::MDB_MULTIPLE)
        };
        if code == 0 { Answer::Count(data[1].size as u64) } else { failed(code) }
    }

    fn with_cursor(
        &mut self,
        cursor: u8,
        act: impl FnOnce(&Lmdb, *mut c_void) -> Answer,
    ) -> Answer {
        match self.cursors[usize::from(cursor)] {
            Some((cursor, _)) => act(self, cursor),
            None => Answer::Done,
        }
    }

    /// Replaces the value under a cursor; the key is that under it.
    fn put_current(&self, cursor: *mut c_void, value: u32) -> Answer {
        let value = self.kind.value(value);
        let (mut key, mut old) = (Val::NONE, Val::NONE);
        // SAFETY: the cursor is open and its transaction runs; the key is copied before the change.
        unsafe {
            let code = (self.api.mdb_cursor_get)(cursor, &mut key, &mut old, ffi::MDB_GET_CURRENT);
            if code != 0 {
                return failed(code);
            }
            let own = key.copy();
            let (mut key, mut value) = (Val::of(&own), Val::of(&value));
            done((self.api.mdb_cursor_put)(cursor, &mut key, &mut value, ffi::MDB_CURRENT))
        }
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: all transactions end before the environment.
        unsafe {
            if let Some(txn) = self.txns.first() {
                (self.api.mdb_txn_abort)(*txn);
            }
            (self.api.mdb_env_close)(self.env);
        }
    }
}

impl Lmdb {
    /// The steps through cursors.
    fn cursor_step(&mut self, step: &Step) -> Answer {
        match *step {
            Step::Open(cursor) => {
                if self.cursors[usize::from(cursor)].is_none() {
                    let mut open = null_mut();
                    // SAFETY: the transaction runs.
                    must(unsafe { (self.api.mdb_cursor_open)(self.txn(), self.dbi, &mut open) });
                    self.cursors[usize::from(cursor)] = Some((open, self.txns.len()));
                }
                Answer::Done
            }
            Step::Close(cursor) => {
                if let Some((cursor, _)) = self.cursors[usize::from(cursor)].take() {
                    // SAFETY: the cursor is open and not used again.
                    unsafe { (self.api.mdb_cursor_close)(cursor) };
                }
                Answer::Done
            }
            Step::Go(cursor, way, key, value) => self.with_cursor(cursor, |own, cursor| {
                own.go(cursor, way, &own.kind.key(key), &own.kind.value(value))
            }),
            Step::CursorPut(cursor, key, value, put) => self.with_cursor(cursor, |own, cursor| {
                let (key, value) = (own.kind.key(key), own.kind.value(value));
                let (mut key, mut value) = (Val::of(&key), Val::of(&value));
                // SAFETY: the cursor is open and its transaction runs.
                done(unsafe { (own.api.mdb_cursor_put)(cursor, &mut key, &mut value, how(put)) })
            }),
            Step::PutMany(cursor, key, value, count) => {
                self.with_cursor(cursor, |own, cursor| own.put_many(cursor, key, value, count))
            }
            Step::PutCurrent(cursor, value) => {
                self.with_cursor(cursor, |own, cursor| own.put_current(cursor, value))
            }
            Step::CursorDel(cursor, all) => self.with_cursor(cursor, |own, cursor| {
                let flags = if all { ffi::MDB_NODUPDATA } else { 0 };
                // SAFETY: the cursor is open and its transaction runs.
                done(unsafe { (own.api.mdb_cursor_del)(cursor, flags) })
            }),
            Step::Count(cursor) => self.with_cursor(cursor, |own, cursor| {
                let mut count = 0;
                // SAFETY: the cursor is open and its transaction runs.
                match unsafe { (own.api.mdb_cursor_count)(cursor, &mut count) } {
                    0 => Answer::Count(count as u64),
                    code => failed(code),
                }
            }),
            Step::Packed(cursor, key, back) => self.with_cursor(cursor, |own, cursor| {
                if own.kind.fixed().is_none() {
                    return Answer::Incompatible;
                }
                own.packed(cursor, &own.kind.key(key), back)
            }),
            _ => Answer::Done,
        }
    }
}

impl Engine for Lmdb {
    fn step(&mut self, step: &Step) -> Answer {
        match *step {
            Step::Put(key, value, how) => self.put(key, value, how),
            Step::Reserve(key, value, how) => self.reserve(key, value, how),
            Step::Fill(key, value) => {
                let all = (value..value + 150).map(|value| self.put(key, value, How::Upsert));
                all.fold(Answer::Done, |all, one| if one == Answer::Done { all } else { one })
            }
            Step::Del(key, value) => {
                let (key, value) = (self.kind.key(key), value.map(|v| self.kind.value(v)));
                let (mut key, mut data) =
                    (Val::of(&key), value.as_deref().map_or(Val::NONE, Val::of));
                let data = if value.is_some() { &raw mut data } else { null_mut() };
                // SAFETY: the transaction runs; the values are valid for the call.
                done(unsafe { (self.api.mdb_del)(self.txn(), self.dbi, &mut key, data) })
            }
            Step::Get(key) => {
                let key = self.kind.key(key);
                let (mut key, mut value) = (Val::of(&key), Val::NONE);
                // SAFETY: the transaction runs; the value was just filled.
                unsafe {
                    match (self.api.mdb_get)(self.txn(), self.dbi, &mut key, &mut value) {
                        0 => Answer::Value(value.copy()),
                        code => failed(code),
                    }
                }
            }
            // SAFETY: the transaction runs.
            Step::Clear => done(unsafe { (self.api.mdb_drop)(self.txn(), self.dbi, 0) }),
            Step::Begin => {
                self.begin();
                Answer::Done
            }
            Step::Commit => self.end(true),
            Step::Abort => self.end(false),
            Step::CommitAll => {
                while self.txns.len() > 1 {
                    self.end(true);
                }
                self.end(true)
            }
            _ => self.cursor_step(step),
        }
    }

    fn records(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut all = Vec::new();
        let (mut key, mut value, mut cursor) = (Val::NONE, Val::NONE, null_mut());
        // SAFETY: the transaction runs; what is read was just filled.
        unsafe {
            must((self.api.mdb_cursor_open)(self.txn(), self.dbi, &mut cursor));
            while (self.api.mdb_cursor_get)(cursor, &mut key, &mut value, ffi::MDB_NEXT) == 0 {
                all.push((key.copy(), value.copy()));
            }
            (self.api.mdb_cursor_close)(cursor);
        }
        all
    }

    fn entries(&mut self) -> u64 {
        let mut stat = Stat::default();
        // SAFETY: the transaction runs.
        must(unsafe { (self.api.mdb_stat)(self.txn(), self.dbi, &mut stat) });
        stat.entries as u64
    }
}
