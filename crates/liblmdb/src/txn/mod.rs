//! Transactions: who may begin which, what their ends do to handles and cursors.
//!
//! All nesting levels of a write transaction share one of the engine's; the innermost level that
//! lives is the one that works. A handle that has ended is kept for a while, so that its further
//! use is noticed.

mod end;
mod threads;
mod turns;

use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zubilo::raw::{Named, OwnLimit};
use zubilo::{ParkedRead, ReadTxn, WriteTxn};

use crate::abi::{MDB_dbi, env as flag};
use crate::compare::Busy;
use crate::cursor::{self, MDB_cursor};
use crate::dbi::Slot;
use crate::env::{FIRST_TXN, MDB_env, Opened, env_of, put_out};
use crate::errors::{Code, Result};
use crate::guard::{Magic, entry, entry_or};

pub(crate) use self::end::prepare;
pub(crate) use self::turns::{Turn, during as write_in_turn, look as look_in_turn, writes_here};

/// A transaction.
#[allow(non_camel_case_types)]
pub(crate) struct MDB_txn {
    magic: Magic,
    env: *mut MDB_env,
    pub(crate) work: Work,
    /// So many small records more fit the map for certain, if nothing else is changed before.
    pub(crate) spare: u32,
    /// Whoever called back with it ends it.
    lent: bool,
    /// A function of the program's runs in the middle of a call with it.
    pub(crate) busy: Busy,
    /// An error has ended it: it can only be aborted.
    pub(crate) dead: bool,
    parent: *mut MDB_txn,
    child: *mut MDB_txn,
    /// Handles that were there when it began; see `dbi::Handles`.
    pub(crate) seen: u64,
    /// What it knows of tables, by handle.
    pub(crate) slots: Vec<Slot>,
    /// Handles opened in it.
    pub(crate) new_handles: Vec<MDB_dbi>,
    pub(crate) cursors: Vec<*mut MDB_cursor>,
    /// The mark that its thread reads, where each thread may do so once.
    reads: Option<Arc<AtomicBool>>,
}

/// What it works with.
pub(crate) enum Work {
    Read(ReadTxn),
    /// Reset: pins nothing.
    Parked(ReadTxn),
    /// Keeps its snapshot as long as nobody needs the pages.
    Offered(ParkedRead),
    /// Owned by the outermost level.
    Write(*mut WriteTxn),
}

impl MDB_txn {
    fn new(env: *mut MDB_env, work: Work, seen: u64) -> MDB_txn {
        MDB_txn {
            magic: Magic::TXN,
            env,
            work,
            spare: 0,
            lent: false,
            busy: Busy::default(),
            dead: false,
            parent: std::ptr::null_mut(),
            child: std::ptr::null_mut(),
            seen,
            slots: Vec::new(),
            new_handles: Vec::new(),
            cursors: Vec::new(),
            reads: None,
        }
    }

    pub(crate) fn env(&self) -> Result<&'static MDB_env> {
        env_of(self.env)
    }

    /// The engine's write transaction, for any change.
    #[inline]
    pub(crate) fn writer(&mut self) -> Result<&mut WriteTxn> {
        self.spare = 0;
        self.writer_of_put()
    }

    /// The same, for a put, which counts on `spare` itself, and for questions.
    #[inline]
    pub(crate) fn writer_of_put(&mut self) -> Result<&mut WriteTxn> {
        match self.work {
            // SAFETY: it lives as long as the outermost level, which outlives this one; the
            // borrow of this handle keeps others from using it, levels outside wait for this one.
            Work::Write(writer) => Ok(unsafe { &mut *writer }),
            _ => Err(Code::EACCES),
        }
    }

    /// After a panic: nothing more is done in it. Gives its environment.
    pub(crate) fn spoil(&mut self) -> *mut MDB_env {
        self.dead = true;
        self.env
    }

    pub(crate) fn env_handle(&self) -> *mut MDB_env {
        self.env
    }

    /// The engine's transaction is moved out and in again.
    fn change_work(&mut self, change: impl FnOnce(Work) -> Work) {
        let work = std::mem::replace(&mut self.work, Work::Write(std::ptr::null_mut()));
        self.work = change(work);
    }

    pub(crate) fn is_write(&self) -> bool {
        matches!(self.work, Work::Write(_))
    }

    /// Refuses work in a transaction that has failed, waits for a child, or was reset.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        let blocked = self.dead
            || !self.child.is_null()
            || matches!(self.work, Work::Parked(_) | Work::Offered(_));
        if blocked { Err(Code::BAD_TXN) } else { Ok(()) }
    }

    /// What a name stands for in the tree of names, and what to remember of a table.
    pub(crate) fn find(&mut self, name: &[u8]) -> Result<Named<crate::dbi::Table>> {
        use crate::dbi::Table;
        Ok(match &mut self.work {
            Work::Read(read) => match read.raw_find(name)? {
                Named::Nothing => Named::Nothing,
                Named::Record => Named::Record,
                Named::Table(table) => Named::Table(Table::Read(table)),
            },
            Work::Parked(_) | Work::Offered(_) => return Err(Code::BAD_TXN),
            Work::Write(_) => match self.writer()?.raw_find(name)? {
                Named::Nothing => Named::Nothing,
                Named::Record => Named::Record,
                Named::Table(index) => Named::Table(Table::Write(index)),
            },
        })
    }

    /// After an error of a change: some of them end the transaction.
    #[cold]
    pub(crate) fn failed(&mut self, code: Code) -> Code {
        if matches!(code, Code::MAP_FULL | Code::CORRUPTED | Code::BAD_TXN | Code::PANIC) {
            self.dead = true;
        }
        code
    }

    /// The level whose cursors and tables are worked with: this one, or its innermost child.
    pub(crate) fn innermost(txn: *mut MDB_txn) -> *mut MDB_txn {
        let mut txn = txn;
        // SAFETY: children are linked while they live.
        while let Some(child) = unsafe { txn.as_ref() }.map(|t| t.child).filter(|c| !c.is_null()) {
            txn = child;
        }
        txn
    }
}

/// The transaction behind a handle, for what does not change while it lives.
#[inline]
fn known<'t>(txn: *mut MDB_txn) -> Result<&'t MDB_txn> {
    if txn.is_null() || !txn.is_aligned() {
        return Err(Code::EINVAL);
    }
    // SAFETY: by the contract it comes from mdb_txn_begin, and one thread at a time uses it; one
    // that has ended is kept for a while, and its first word says so.
    let found = unsafe { &*txn };
    match found.magic {
        Magic::TXN => Ok(found),
        Magic::DEAD => Err(Code::BAD_TXN),
        _ => Err(Code::EINVAL),
    }
}

/// The transaction behind a handle, unless a call with it waits for a function of the program's.
#[inline]
pub(crate) fn txn_of<'t>(txn: *mut MDB_txn) -> Result<&'t mut MDB_txn> {
    if known(txn)?.busy.is_set() {
        return Err(Code::BAD_TXN);
    }
    // SAFETY: as above; no call with it is at work.
    Ok(unsafe { &mut *txn })
}

/// The same, if it can work.
#[inline]
pub(crate) fn live<'t>(txn: *mut MDB_txn) -> Result<&'t mut MDB_txn> {
    let txn = txn_of(txn)?;
    txn.check()?;
    Ok(txn)
}

/// The same, for a call that names a table: one that was reset knows of no handle, and an
/// unknown handle is reported before a transaction that cannot work.
#[inline]
pub(crate) fn with_tables<'t>(txn: *mut MDB_txn, dbi: MDB_dbi) -> Result<&'t mut MDB_txn> {
    let txn = txn_of(txn)?;
    match txn.check() {
        Ok(()) => Ok(txn),
        Err(code) => Err(if txn.sees(dbi) { code } else { Code::EINVAL }),
    }
}

/// The level that looks a table up, for a question that LMDB answers in any transaction: what a level
/// finds while a child of it works would be the child's, and gone with it.
pub(crate) fn looks<'t>(txn: *mut MDB_txn, dbi: MDB_dbi) -> Result<&'t mut MDB_txn> {
    match txn_of(txn)?.sees(dbi) {
        true => txn_of(MDB_txn::innermost(txn)),
        false => Err(Code::EINVAL),
    }
}

/// A transaction that can change a table now.
#[inline]
pub(crate) fn writable<'t>(txn: *mut MDB_txn, dbi: MDB_dbi) -> Result<&'t mut MDB_txn> {
    let found = txn_of(txn)?;
    match &found.work {
        Work::Read(_) => Err(if found.sees(dbi) { Code::EACCES } else { Code::EINVAL }),
        _ => with_tables(txn, dbi),
    }
}

/// A transaction that can change something now.
#[inline]
pub(crate) fn writes<'t>(txn: *mut MDB_txn) -> Result<&'t mut MDB_txn> {
    match &txn_of(txn)?.work {
        Work::Read(_) => Err(Code::EACCES),
        _ => live(txn),
    }
}

/// What a map size allows: a little more than LMDB would, so that what fits there fits here; and
/// for commits still more, so that in a full store something can be deleted.
pub(crate) fn limit_of(map_size: u64) -> OwnLimit {
    let soft = map_size.saturating_add((map_size / 16).min(8 << 20));
    OwnLimit { upper: map_size, soft, hard: soft.saturating_add((512 << 10) + map_size / 32) }
}

/// Another process has raised the map size, and used what that gave.
fn check_resized(env: &MDB_env, opened: &Opened, used: u64) -> Result<()> {
    let map_size = env.map_size.load(Ordering::Relaxed);
    if map_size == 0 || used <= limit_of(map_size).soft {
        return Ok(());
    }
    let stored = opened.store.info()?.geometry.upper;
    if stored > map_size && stored != u64::MAX { Err(Code::MAP_RESIZED) } else { Ok(()) }
}

fn begin(env: *mut MDB_env, parent: *mut MDB_txn, flags: c_uint) -> Result<Box<MDB_txn>> {
    let this = env_of(env)?;
    let opened = this.opened()?;
    if this.has(flag::RDONLY) && flags & flag::RDONLY == 0 {
        return Err(Code::EACCES);
    }
    if !parent.is_null() {
        return begin_child(this, parent, flags);
    }
    let seen = opened.handles.now();
    if flags & flag::RDONLY != 0 {
        let reads = if this.has(flag::NOTLS) { None } else { Some(threads::claim(&opened.token)?) };
        let begun = turns::look(opened, || opened.store.read());
        let begun = begun.and_then(|read| {
            check_resized(this, opened, read.raw_used())?;
            Ok(read)
        });
        let begun = begun.inspect_err(|_| threads::release(&reads))?;
        let mut txn = Box::new(MDB_txn::new(env, Work::Read(begun), seen));
        txn.reads = reads;
        return Ok(txn);
    }
    let mut writer = Box::new(turns::write(opened, || opened.store.write())?);
    if let Err(code) = check_resized(this, opened, writer.raw_used()) {
        drop(writer);
        turns::write_ended(opened);
        return Err(code);
    }
    let map_size = this.map_size.load(Ordering::Relaxed);
    if map_size > 0 {
        writer.raw_set_limit(limit_of(map_size));
    }
    Ok(Box::new(MDB_txn::new(env, Work::Write(Box::into_raw(writer)), opened.handles.now())))
}

fn begin_child(env: &MDB_env, parent: *mut MDB_txn, flags: c_uint) -> Result<Box<MDB_txn>> {
    let outer = txn_of(parent)?;
    let Work::Write(writer) = outer.work else { return Err(Code::EINVAL) };
    if flags & flag::RDONLY != 0 || env.has(flag::WRITEMAP) {
        return Err(Code::BAD_TXN);
    }
    outer.check()?;
    outer.writer()?.raw_begin_nested()?;
    let mut child = Box::new(MDB_txn::new(outer.env, Work::Write(writer), outer.seen));
    child.parent = parent;
    child.busy = outer.busy.clone();
    child.slots = outer.slots.clone();
    child.new_handles = outer.new_handles.clone();
    outer.child = &mut *child;
    Ok(child)
}

/// Runs a program's function in the engine's transaction, which somebody else commits if it gives 0.
pub(crate) fn run_lent(
    env: *mut MDB_env,
    writer: &mut WriteTxn,
    run: impl FnOnce(*mut MDB_txn) -> c_int,
) -> c_int {
    let this = match env_of(env) {
        Ok(this) => this,
        Err(code) => return code.0,
    };
    let opened = match this.opened() {
        Ok(opened) => opened,
        Err(code) => return code.0,
    };
    let map_size = this.map_size.load(Ordering::Relaxed);
    if map_size > 0 {
        writer.raw_set_limit(limit_of(map_size));
    }
    turns::write_begun(opened);
    let mut txn = Box::new(MDB_txn::new(env, Work::Write(writer), opened.handles.now()));
    txn.lent = true;
    let txn = Box::into_raw(txn);
    let code = run(txn);
    end::end_lent(txn, code)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_txn_begin(
    env: *mut MDB_env,
    parent: *mut MDB_txn,
    flags: c_uint,
    txn: *mut *mut MDB_txn,
) -> c_int {
    entry(env, || {
        if txn.is_null() {
            return Err(Code::EINVAL);
        }
        put_out(txn, Box::into_raw(begin(env, parent, flags)?))
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_txn_commit(txn: *mut MDB_txn) -> c_int {
    entry(txn, || {
        txn_of(txn)?;
        end::commit(txn)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_txn_abort(txn: *mut MDB_txn) {
    entry_or(txn, (), || {
        if txn_of(txn).is_ok() {
            end::abort(txn);
        }
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_txn_reset(txn: *mut MDB_txn) {
    entry_or(txn, (), || {
        if let Ok(txn) = txn_of(txn) {
            end::reset(txn);
        }
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_txn_renew(txn: *mut MDB_txn) -> c_int {
    entry(txn, || {
        let txn = txn_of(txn)?;
        let env = txn.env()?;
        let opened = env.opened()?;
        let Work::Parked(read) = &mut txn.work else { return Err(Code::EINVAL) };
        if txn.reads.is_some() {
            txn.reads = Some(threads::claim(&opened.token)?);
        }
        let renewed = turns::look(opened, || read.raw_renew()).and_then(|()| {
            let checked = check_resized(env, opened, read.raw_used());
            if checked.is_err() {
                // SAFETY: it stays `Work::Parked`, which is not read from.
                unsafe { read.raw_park() };
            }
            checked
        });
        renewed.inspect_err(|_| threads::release(&txn.reads))?;
        txn.seen = opened.handles.now();
        end::unpark(txn);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_txn_env(txn: *mut MDB_txn) -> *mut MDB_env {
    entry_or(txn, std::ptr::null_mut(), || known(txn).map_or(std::ptr::null_mut(), |txn| txn.env))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_txn_id(txn: *mut MDB_txn) -> usize {
    entry_or(txn, 0, || {
        let id = known(txn).map(|txn| match &txn.work {
            Work::Read(read) | Work::Parked(read) => read.id().0,
            Work::Offered(parked) => parked.id().0,
            // SAFETY: as in `MDB_txn::writer`; the number stays while it lives.
            Work::Write(writer) => unsafe { writer.as_ref() }.map_or(0, |writer| writer.id().0),
        });
        id.map_or(0, |id| id.saturating_sub(FIRST_TXN) as usize)
    })
}

/// Leaves a read transaction for a while: others may end it.
pub(crate) fn park(txn: *mut MDB_txn) -> Result<()> {
    let txn = live(txn)?;
    if !matches!(txn.work, Work::Read(_)) {
        return Err(Code::EINVAL);
    }
    cursor::park_all(txn);
    txn.slots.clear();
    txn.change_work(|work| match work {
        Work::Read(read) => Work::Offered(read.park()),
        other => other,
    });
    Ok(())
}

/// Goes on with the snapshot, or, if others have ended it, with the newest one where `refresh` allows
/// that. Else it is as after `mdb_txn_reset`.
pub(crate) fn unpark(txn: *mut MDB_txn, refresh: bool) -> Result<()> {
    let txn = txn_of(txn)?;
    let env = txn.env()?;
    let opened = env.opened()?;
    if txn.dead || !matches!(txn.work, Work::Offered(_)) {
        return Err(Code::EINVAL);
    }
    let mut done = Ok(());
    let mut seen = txn.seen;
    txn.change_work(|work| {
        let Work::Offered(parked) = work else { return work };
        let before = parked.id();
        match turns::look(opened, || parked.resume_or_refresh()) {
            Ok(mut read) => {
                if read.id() != before {
                    seen = opened.handles.now();
                    let fits = check_resized(env, opened, read.raw_used());
                    done = if refresh { fits } else { Err(Code::BAD_TXN) };
                }
                if done.is_err() {
                    // SAFETY: `Work::Parked` is not read from until `mdb_txn_renew`.
                    unsafe { read.raw_park() };
                    return Work::Parked(read);
                }
                Work::Read(read)
            }
            Err(code) => {
                done = Err(code);
                Work::Write(std::ptr::null_mut())
            }
        }
    });
    txn.seen = seen;
    match &txn.work {
        Work::Parked(_) => end::after_reset(txn),
        Work::Read(_) => {}
        _ => txn.dead = true,
    }
    done
}
