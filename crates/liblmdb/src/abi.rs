//! What programs compiled against LMDB's header have in them: layouts, numbers of flags,
//! operations. None of it can ever change.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Bytes with their length.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub(crate) struct MDB_val {
    pub mv_size: usize,
    pub mv_data: *mut c_void,
}

impl MDB_val {
    /// No bytes, nowhere.
    pub(crate) const NOTHING: MDB_val = MDB_val { mv_size: 0, mv_data: std::ptr::null_mut() };
}

/// Figures of a table.
#[repr(C)]
#[derive(Clone, Copy, Default)]
#[allow(non_camel_case_types)]
pub(crate) struct MDB_stat {
    pub ms_psize: c_uint,
    pub ms_depth: c_uint,
    pub ms_branch_pages: usize,
    pub ms_leaf_pages: usize,
    pub ms_overflow_pages: usize,
    pub ms_entries: usize,
}

/// Figures of an environment.
#[repr(C)]
#[allow(non_camel_case_types)]
pub(crate) struct MDB_envinfo {
    pub me_mapaddr: *mut c_void,
    pub me_mapsize: usize,
    pub me_last_pgno: usize,
    pub me_last_txnid: usize,
    pub me_maxreaders: c_uint,
    pub me_numreaders: c_uint,
}

const _: () = assert!(size_of::<MDB_stat>() == 40 && size_of::<MDB_envinfo>() == 40);
const _: () = assert!(size_of::<MDB_val>() == 16);

#[allow(non_camel_case_types)]
pub(crate) type MDB_dbi = c_uint;
#[allow(non_camel_case_types)]
pub(crate) type MDB_cmp_func = unsafe extern "C" fn(*const MDB_val, *const MDB_val) -> c_int;
#[allow(non_camel_case_types)]
pub(crate) type MDB_rel_func =
    unsafe extern "C" fn(*mut MDB_val, *mut c_void, *mut c_void, *mut c_void);
#[allow(non_camel_case_types)]
pub(crate) type MDB_msg_func = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
#[allow(non_camel_case_types)]
pub(crate) type MDB_assert_func = unsafe extern "C" fn(*mut crate::env::MDB_env, *const c_char);

/// The free pages, as a table of their own.
pub(crate) const FREE_DBI: MDB_dbi = 0;
/// The unnamed table.
pub(crate) const MAIN_DBI: MDB_dbi = 1;

/// Longest key, and longest value among duplicates.
pub(crate) const MAX_KEY: usize = 511;
/// Longest value.
pub(crate) const MAX_DATA: usize = 0xffff_ffff;

/// Flags of environments.
pub(crate) mod env {
    pub(crate) const FIXEDMAP: u32 = 0x01;
    pub(crate) const NOSUBDIR: u32 = 0x4000;
    pub(crate) const NOSYNC: u32 = 0x1_0000;
    pub(crate) const RDONLY: u32 = 0x2_0000;
    pub(crate) const NOMETASYNC: u32 = 0x4_0000;
    pub(crate) const WRITEMAP: u32 = 0x8_0000;
    pub(crate) const MAPASYNC: u32 = 0x10_0000;
    pub(crate) const NOTLS: u32 = 0x20_0000;
    pub(crate) const NOLOCK: u32 = 0x40_0000;
    pub(crate) const NORDAHEAD: u32 = 0x80_0000;
    pub(crate) const NOMEMINIT: u32 = 0x100_0000;
    /// May be changed while open.
    pub(crate) const CHANGEABLE: u32 = NOSYNC | NOMETASYNC | MAPASYNC | NOMEMINIT;
    pub(crate) const ALL: u32 =
        CHANGEABLE | FIXEDMAP | NOSUBDIR | RDONLY | WRITEMAP | NOTLS | NOLOCK | NORDAHEAD;
}

/// Flags of tables.
pub(crate) mod db {
    pub(crate) const REVERSEKEY: u32 = 0x02;
    pub(crate) const DUPSORT: u32 = 0x04;
    pub(crate) const INTEGERKEY: u32 = 0x08;
    pub(crate) const DUPFIXED: u32 = 0x10;
    pub(crate) const INTEGERDUP: u32 = 0x20;
    pub(crate) const REVERSEDUP: u32 = 0x40;
    pub(crate) const CREATE: u32 = 0x4_0000;
    pub(crate) const PERSISTENT: u32 =
        REVERSEKEY | DUPSORT | INTEGERKEY | DUPFIXED | INTEGERDUP | REVERSEDUP;
}

/// Flags of writes.
pub(crate) mod put {
    pub(crate) const NOOVERWRITE: u32 = 0x10;
    pub(crate) const NODUPDATA: u32 = 0x20;
    pub(crate) const CURRENT: u32 = 0x40;
    pub(crate) const RESERVE: u32 = 0x1_0000;
    pub(crate) const APPEND: u32 = 0x2_0000;
    pub(crate) const APPENDDUP: u32 = 0x4_0000;
    pub(crate) const MULTIPLE: u32 = 0x8_0000;
}

/// A copy without free pages.
pub(crate) const CP_COMPACT: u32 = 0x01;
