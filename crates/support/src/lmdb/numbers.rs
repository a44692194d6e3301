//! Flags, moves and codes, with their names of lmdb.h. A test compares each with the original's.

#![allow(missing_docs, reason = "documented in lmdb.h")]

use std::ffi::{c_int, c_uint};

macro_rules! numbers {
    ($($type:ident { $($name:ident = $value:literal;)* })*) => {
        $($(pub const $name: $type = $value;)*)*

        /// All of them, by name.
        pub const NUMBERS: &[(&str, i64)] = &[$($((stringify!($name), $name as i64),)*)*];
    };
}

numbers! {
    // Flags of environments.
    c_uint {
        MDB_FIXEDMAP = 0x1;
        MDB_NOSUBDIR = 0x4000;
        MDB_NOSYNC = 0x1_0000;
        MDB_RDONLY = 0x2_0000;
        MDB_NOMETASYNC = 0x4_0000;
        MDB_WRITEMAP = 0x8_0000;
        MDB_MAPASYNC = 0x10_0000;
        MDB_NOTLS = 0x20_0000;
        MDB_NOLOCK = 0x40_0000;
        MDB_NORDAHEAD = 0x80_0000;
        MDB_NOMEMINIT = 0x100_0000;
        MDB_PREVSNAPSHOT = 0x200_0000;
    }
    // Flags of tables.
    c_uint {
        MDB_REVERSEKEY = 0x2;
        MDB_DUPSORT = 0x4;
        MDB_INTEGERKEY = 0x8;
        MDB_DUPFIXED = 0x10;
        MDB_INTEGERDUP = 0x20;
        MDB_REVERSEDUP = 0x40;
        MDB_CREATE = 0x4_0000;
    }
    // Flags of puts and deletes.
    c_uint {
        MDB_NOOVERWRITE = 0x10;
        MDB_NODUPDATA = 0x20;
        MDB_CURRENT = 0x40;
        MDB_RESERVE = 0x1_0000;
        MDB_APPEND = 0x2_0000;
        MDB_APPENDDUP = 0x4_0000;
        MDB_MULTIPLE = 0x8_0000;
    }
    // Flags of copies.
    c_uint {
        MDB_CP_COMPACT = 0x1;
    }
    // Moves of cursors.
    c_uint {
        MDB_FIRST = 0;
        MDB_FIRST_DUP = 1;
        MDB_GET_BOTH = 2;
        MDB_GET_BOTH_RANGE = 3;
        MDB_GET_CURRENT = 4;
        MDB_GET_MULTIPLE = 5;
        MDB_LAST = 6;
        MDB_LAST_DUP = 7;
        MDB_NEXT = 8;
        MDB_NEXT_DUP = 9;
        MDB_NEXT_MULTIPLE = 10;
        MDB_NEXT_NODUP = 11;
        MDB_PREV = 12;
        MDB_PREV_DUP = 13;
        MDB_PREV_NODUP = 14;
        MDB_SET = 15;
        MDB_SET_KEY = 16;
        MDB_SET_RANGE = 17;
        MDB_PREV_MULTIPLE = 18;
    }
    // Codes that calls return.
    c_int {
        MDB_KEYEXIST = -30_799;
        MDB_NOTFOUND = -30_798;
        MDB_PAGE_NOTFOUND = -30_797;
        MDB_CORRUPTED = -30_796;
        MDB_PANIC = -30_795;
        MDB_VERSION_MISMATCH = -30_794;
        MDB_INVALID = -30_793;
        MDB_MAP_FULL = -30_792;
        MDB_DBS_FULL = -30_791;
        MDB_READERS_FULL = -30_790;
        MDB_TXN_FULL = -30_788;
        MDB_MAP_RESIZED = -30_785;
        MDB_INCOMPATIBLE = -30_784;
        MDB_BAD_RSLOT = -30_783;
        MDB_BAD_TXN = -30_782;
        MDB_BAD_VALSIZE = -30_781;
        MDB_BAD_DBI = -30_780;
    }
}
