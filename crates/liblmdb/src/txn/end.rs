//! Ends of transactions, and the rest of those that may be used again.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_int;

use zubilo::{PreparedId, WriteTxn};

use crate::cursor;
use crate::errors::{Code, Result};
use crate::guard::Magic;

use super::{MDB_txn, Work, threads, txn_of};

/// Commits a transaction with its child, if it has one. Whatever the result, it has ended.
pub(super) fn commit(txn: *mut MDB_txn) -> Result<()> {
    let this = txn_of(txn)?;
    if this.lent {
        return Err(Code::BAD_TXN);
    }
    if !this.child.is_null()
        && let Err(code) = commit(this.child)
    {
        abort(txn);
        return Err(code);
    }
    let result = match this.work {
        _ if this.dead => {
            if let Ok(parent) = txn_of(this.parent) {
                parent.dead = true;
            }
            Err(Code::BAD_TXN)
        }
        Work::Read(_) | Work::Parked(_) | Work::Offered(_) => Ok(()),
        Work::Write(_) if !this.parent.is_null() => return commit_child(txn),
        Work::Write(writer) => {
            cursor::free_all(this);
            commit_writer(this, writer)
        }
    };
    if result.is_ok()
        && let Ok(opened) = this.env().and_then(|env| env.opened())
    {
        opened.handles.publish(&std::mem::take(&mut this.new_handles));
    }
    abort(txn);
    result
}

fn commit_writer(txn: &mut MDB_txn, writer: *mut WriteTxn) -> Result<()> {
    // SAFETY: made from a box at begin; the outermost level owns it and gives it up here.
    let writer = unsafe { Box::from_raw(writer) };
    txn.work = Work::Write(std::ptr::null_mut());
    let done = writer.commit();
    stop_writing(txn);
    done?;
    Ok(())
}

/// Prepares a transaction with its child, if it has one. It has ended then, whatever the result; one that is nested, or
/// does not write, is refused and goes on.
pub(crate) fn prepare(txn: *mut MDB_txn, tag: &[u8]) -> Result<PreparedId> {
    let this = txn_of(txn)?;
    if this.lent {
        return Err(Code::BAD_TXN);
    }
    let Work::Write(writer) = this.work else { return Err(Code::EINVAL) };
    if !this.parent.is_null() {
        return Err(Code::EINVAL);
    }
    let prepared = if this.child.is_null() { Ok(()) } else { commit(this.child) };
    let prepared = prepared.and_then(|()| {
        if this.dead {
            return Err(Code::BAD_TXN);
        }
        cursor::free_all(this);
        this.work = Work::Write(std::ptr::null_mut());
        // SAFETY: made from a box at begin; the outermost level owns it and gives it up here.
        let prepared = unsafe { Box::from_raw(writer) }.prepare(tag);
        stop_writing(this);
        Ok(prepared?.id())
    });
    abort(txn);
    prepared
}

fn stop_writing(txn: &MDB_txn) {
    // Also an environment that has failed must know that nobody writes.
    if let Ok(env) = txn.env() {
        env.writing_ended();
    }
}

fn commit_child(txn: *mut MDB_txn) -> Result<()> {
    let this = txn_of(txn)?;
    let parent = txn_of(this.parent)?;
    cursor::free_all(this);
    if let Err(error) = this.writer()?.raw_commit_nested() {
        let code = Code::from(error);
        abort(txn);
        return Err(code);
    }
    parent.child = std::ptr::null_mut();
    parent.slots = std::mem::take(&mut this.slots);
    parent.new_handles = std::mem::take(&mut this.new_handles);
    bury(txn);
    Ok(())
}

/// Ends a transaction without a trace, its child before.
pub(super) fn abort(txn: *mut MDB_txn) {
    let Ok(this) = txn_of(txn) else { return };
    if this.lent {
        return;
    }
    if !this.child.is_null() {
        abort(this.child);
    }
    if this.is_write() {
        cursor::free_all(this);
    } else {
        cursor::detach_all(this);
    }
    if let Ok(parent) = txn_of(this.parent) {
        if let Ok(writer) = this.writer() {
            writer.raw_abort_nested();
        }
        this.new_handles.retain(|dbi| !parent.new_handles.contains(dbi));
        parent.child = std::ptr::null_mut();
    } else if let Work::Write(writer) = this.work
        && !writer.is_null()
    {
        this.work = Work::Write(std::ptr::null_mut());
        // SAFETY: made from a box at begin; the outermost level owns it.
        drop(unsafe { Box::from_raw(writer) });
        stop_writing(this);
    }
    forget_handles(this);
    // A reset has released it; the thread may read in another transaction since.
    if !matches!(this.work, Work::Parked(_)) {
        threads::release(&this.reads);
    }
    bury(txn);
}

/// Takes a transaction back from the function it was lent to, and gives the function's result, or
/// why it cannot be committed.
pub(super) fn end_lent(txn: *mut MDB_txn, code: c_int) -> c_int {
    let Ok(this) = txn_of(txn) else { return Code::BAD_TXN.0 };
    if !this.child.is_null() {
        abort(this.child);
    }
    cursor::free_all(this);
    forget_handles(this);
    stop_writing(this);
    let dead = this.dead;
    bury(txn);
    if dead && code == 0 { Code::BAD_TXN.0 } else { code }
}

fn forget_handles(txn: &mut MDB_txn) {
    let handles = std::mem::take(&mut txn.new_handles);
    if !handles.is_empty()
        && let Ok(opened) = txn.env().and_then(|env| env.opened())
    {
        handles.into_iter().for_each(|dbi| opened.handles.close(dbi));
    }
}

/// Ends what a read transaction pins; it can be renewed.
pub(super) fn reset(txn: &mut MDB_txn) {
    if !matches!(txn.work, Work::Read(_)) {
        return;
    }
    cursor::park_all(txn);
    after_reset(txn);
    txn.change_work(|work| match work {
        Work::Read(mut read) => {
            // SAFETY: `Work::Parked` is not read from until `mdb_txn_renew`.
            unsafe { read.raw_park() };
            Work::Parked(read)
        }
        other => other,
    });
}

/// What a read transaction gives up when it is reset, beside its snapshot.
pub(super) fn after_reset(txn: &mut MDB_txn) {
    forget_handles(txn);
    txn.slots.clear();
    threads::release(&txn.reads);
}

/// A transaction that was reset pins a snapshot again.
pub(super) fn unpark(txn: &mut MDB_txn) {
    txn.change_work(|work| match work {
        Work::Parked(read) => Work::Read(read),
        other => other,
    });
    txn.slots.clear();
}

/// Handles that ended last are kept, so that their first word can be looked at.
const KEPT: usize = 16;

thread_local! {
    static GRAVES: RefCell<VecDeque<Box<MDB_txn>>> = const { RefCell::new(VecDeque::new()) };
}

fn bury(txn: *mut MDB_txn) {
    // SAFETY: made from a box at begin; it has ended, and nothing refers to it any more.
    let mut txn = unsafe { Box::from_raw(txn) };
    txn.magic = Magic::DEAD;
    // Gives up the reader slot.
    txn.work = Work::Write(std::ptr::null_mut());
    txn.slots = Vec::new();
    txn.reads = None;
    // In a thread that is about to end it goes at once.
    let _ = GRAVES.try_with(|graves| {
        let mut graves = graves.borrow_mut();
        if graves.len() >= KEPT {
            graves.pop_front();
        }
        graves.push_back(txn);
    });
}

impl crate::env::MDB_env {
    /// The write transaction of this process has ended.
    fn writing_ended(&self) {
        if let Some(opened) = self.opened_or_failed() {
            super::turns::write_ended(opened);
        }
    }
}
