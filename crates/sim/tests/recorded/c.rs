//! The C interface as a program uses it: opening, the changes of a plan, and all that is there.

use std::ffi::{c_int, c_uint};
use std::path::Path;

// Zubilo's library, whose functions `support` finds in the program.
use liblmdb_linked as _;
use support::lmdb::{self, Api, Env, Failed, LINKED, MDB_CREATE, Setup, Txn};

use crate::plan::{Op, State, TABLES};

#[allow(unused_imports, reason = "other tests share this file and need less")]
pub(crate) use support::lmdb::{
    MDB_MAPASYNC as MAPASYNC, MDB_NOMETASYNC as NOMETASYNC, MDB_NOSUBDIR as NOSUBDIR,
    MDB_NOSYNC as NOSYNC, MDB_NOTLS as NOTLS, MDB_RDONLY as READ_ONLY, MDB_WRITEMAP as WRITEMAP,
};

/// No flag of the interface: the program changes its flags.
pub(crate) const CHANGING: c_uint = 0x8000_0000;

const API: &Api = &LINKED;

fn code(failed: Failed) -> c_int {
    failed.code
}

/// An environment; errors are codes.
pub(crate) struct Store {
    env: Env,
    nested: bool,
}

impl Store {
    pub(crate) fn open(path: &Path, flags: c_uint) -> Result<Store, c_int> {
        let setup = Setup { map_size: 64 << 20, max_dbs: 16, ..Setup::test(flags | NOSUBDIR) };
        let env = Env::open(API, path, setup).map_err(code)?;
        Ok(Store { env, nested: flags & WRITEMAP == 0 })
    }

    pub(crate) fn set_flags(&self, flags: c_uint, on: bool) -> Result<(), c_int> {
        self.env.set_flags(flags, on).map_err(code)
    }

    pub(crate) fn sync(&self) -> Result<(), c_int> {
        self.env.sync().map_err(code)
    }

    pub(crate) fn copy(&self, to: &Path, compact: bool) -> Result<(), c_int> {
        let flags = if compact { lmdb::MDB_CP_COMPACT } else { 0 };
        self.env.copy(to, flags).map_err(code)
    }

    /// A transaction that reads, for as long as it lives.
    pub(crate) fn hold(&self) -> Result<Txn<'_>, c_int> {
        self.env.begin(READ_ONLY).map_err(code)
    }

    /// Makes the changes in a transaction, which is kept or not.
    pub(crate) fn write(&self, ops: &[Op], kept: bool) -> Result<(), c_int> {
        let mut txn = self.env.begin(0).map_err(code)?;
        self.apply(&mut txn, ops).map_err(code)?;
        if kept { txn.commit().map_err(code) } else { Ok(()) }
    }

    fn apply(&self, txn: &mut Txn<'_>, ops: &[Op]) -> Result<(), Failed> {
        for op in ops {
            match op {
                Op::Nested(ops, kept) if self.nested => {
                    let mut level = txn.nested()?;
                    self.apply(&mut level, ops)?;
                    if *kept {
                        level.commit()?;
                    }
                }
                Op::Nested(ops, true) => self.apply(txn, ops)?,
                Op::Nested(_, false) => {}
                Op::Put(table, ..)
                | Op::PutAll(table, ..)
                | Op::Delete(table, ..)
                | Op::Clear(table)
                | Op::Drop(table) => {
                    let (name, kind) = TABLES[*table];
                    let dbi = txn.table(Some(name.as_bytes()), kind | MDB_CREATE)?;
                    change(txn, dbi, op, kind)?;
                }
            }
        }
        Ok(())
    }

    /// All that is there.
    pub(crate) fn dump(&self) -> Result<State, c_int> {
        let held = self.hold()?;
        let read = |name: Option<&[u8]>| held.records(held.table(name, 0)?);
        let mut state = State::new();
        // The unnamed table is the table of tables.
        for (name, _) in read(None).map_err(code)? {
            let all = read(Some(&name)).map_err(code)?;
            let records = state.entry(String::from_utf8(name).expect("a name")).or_default();
            for (key, value) in all {
                records.entry(key).or_default().insert(value);
            }
        }
        Ok(state)
    }
}

fn change(txn: &mut Txn<'_>, dbi: c_uint, op: &Op, kind: u32) -> Result<(), Failed> {
    match op {
        // A place that the program fills itself.
        Op::Put(_, key, value) if kind == 0 && value.len() % 2 == 1 => {
            txn.put_in_place(dbi, key, value)
        }
        Op::Put(_, key, value) => txn.put(dbi, key, value, 0),
        Op::PutAll(_, key, values) => {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            txn.cursor(dbi)?.put_many(key, &bytes, 8)
        }
        Op::Delete(_, key, value) => txn.del(dbi, key, value.as_deref()).map(drop),
        Op::Clear(_) => txn.drop_table(dbi, false),
        Op::Drop(_) => txn.drop_table(dbi, true),
        Op::Nested(..) => Ok(()),
    }
}
