//! Parked readers: they keep their snapshot until others need its pages, and find out when they go on.

use std::ffi::c_int;

use crate::env::{FIRST_TXN, MDB_env, env_of};
use crate::errors::Code;
use crate::guard::entry;
use crate::txn::{MDB_txn, park, unpark};

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_txn_park(txn: *mut MDB_txn) -> c_int {
    entry(txn, || park(txn))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_txn_unpark(txn: *mut MDB_txn, refresh: bool) -> c_int {
    entry(txn, || unpark(txn, refresh))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_reader_expire(
    env: *mut MDB_env,
    pid: libc::pid_t,
    thread: u64,
    txn: u64,
) -> c_int {
    entry(env, || {
        let store = &env_of(env)?.opened()?.store;
        let mut readers = store.readers().into_iter().filter(|reader| {
            reader.pid as libc::pid_t == pid
                && reader.thread == thread
                && reader.txn.0.saturating_sub(FIRST_TXN) == txn
        });
        // Of several alike any parked one.
        let first = readers.next().ok_or(Code::NOTFOUND)?;
        for reader in std::iter::once(first).chain(readers) {
            if store.expire_reader(&reader)? {
                return Ok(());
            }
        }
        Err(Code(libc::EBUSY))
    })
}
