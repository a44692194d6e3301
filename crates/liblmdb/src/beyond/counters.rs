//! What is done with a store: counters, for `zubilo.h`.

use std::ffi::c_int;

use zubilo::EnvCounters;

use crate::env::{MDB_env, env_of, put_out};
use crate::guard::entry;

use super::given;

/// As in `zubilo.h`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub(super) struct zubilo_counters {
    commits: u64,
    pages_copied: u64,
    pages_split: u64,
    pages_merged: u64,
    pages_spilled: u64,
    pages_written: u64,
    runs_written: u64,
    bytes_written: u64,
    flushes: u64,
    flush_ns: u64,
    commit_prepare_ns: u64,
    commit_layout_ns: u64,
    commit_write_ns: u64,
    commit_log_ns: u64,
    commit_flush_ns: u64,
    commit_publish_ns: u64,
    writer_waits: u64,
    writer_wait_ns: u64,
}

impl From<EnvCounters> for zubilo_counters {
    fn from(now: EnvCounters) -> zubilo_counters {
        zubilo_counters {
            commits: now.commits,
            pages_copied: now.pages_copied,
            pages_split: now.pages_split,
            pages_merged: now.pages_merged,
            pages_spilled: now.pages_spilled,
            pages_written: now.pages_written,
            runs_written: now.runs_written,
            bytes_written: now.bytes_written,
            flushes: now.flushes,
            flush_ns: now.flush_ns,
            commit_prepare_ns: now.commit_prepare_ns,
            commit_layout_ns: now.commit_layout_ns,
            commit_write_ns: now.commit_write_ns,
            commit_log_ns: now.commit_log_ns,
            commit_flush_ns: now.commit_flush_ns,
            commit_publish_ns: now.commit_publish_ns,
            writer_waits: now.writer_waits,
            writer_wait_ns: now.writer_wait_ns,
        }
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_env_counters(
    env: *mut MDB_env,
    out: *mut zubilo_counters,
) -> c_int {
    entry(env, || {
        given(out)?;
        put_out(out, env_of(env)?.opened()?.store.counters().into())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_store_counters(
    env: *mut MDB_env,
    out: *mut zubilo_counters,
) -> c_int {
    entry(env, || {
        given(out)?;
        put_out(out, env_of(env)?.opened()?.store.store_counters().into())
    })
}
