//! Figures of an environment.

use std::ffi::{c_int, c_uint};

use zubilo::raw::TableInfo;

use crate::abi::{MDB_envinfo, MDB_stat};
use crate::dbi;
use crate::guard::entry;
use crate::txn::look_in_turn;

use super::{MDB_env, env_of, put_out, settings};

/// What the engine counts from: its first, empty commit is the state before any transaction.
pub(crate) const FIRST_TXN: u64 = 1;

/// Figures of a table as programs know them.
pub(crate) fn stat_of(info: &TableInfo, page_size: usize) -> MDB_stat {
    let stats = &info.stats;
    MDB_stat {
        ms_psize: page_size as c_uint,
        ms_depth: stats.depth,
        ms_branch_pages: stats.branch_pages as usize,
        ms_leaf_pages: stats.leaf_pages as usize,
        ms_overflow_pages: stats.run_pages as usize,
        ms_entries: stats.entries as usize,
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_stat(env: *mut MDB_env, stat: *mut MDB_stat) -> c_int {
    entry(env, || {
        let env = env_of(env)?;
        let opened = env.opened()?;
        let read = look_in_turn(opened, || opened.store.read())?;
        let main = dbi::main_table(&read)?;
        put_out(stat, stat_of(&main.info(), opened.store.page_size()))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_info(env: *mut MDB_env, out: *mut MDB_envinfo) -> c_int {
    entry(env, || {
        let env = env_of(env)?;
        let opened = env.opened()?;
        let info = look_in_turn(opened, || opened.store.info())?;
        let pages = info.used_len / info.page_size as u64;
        let map_size = settings::map_size(env, info.used_len);
        let info = MDB_envinfo {
            me_mapaddr: std::ptr::null_mut(),
            me_mapsize: map_size as usize,
            me_last_pgno: pages.saturating_sub(1) as usize,
            me_last_txnid: info.newest.0.saturating_sub(FIRST_TXN) as usize,
            me_maxreaders: env.settings().max_readers,
            me_numreaders: opened.store.raw_reader_slots(),
        };
        put_out(out, info)
    })
}
