//! Programs of calls to the C interface: every byte of an input decides on the next call and its
//! arguments. Handles are used only while the interface's own rules allow it; flags, operations,
//! numbers of tables, lengths and orders of calls are anything. Afterwards the store must pass the
//! full check.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::null_mut;

use crate::folder;

// The functions are found by their names when the program is linked.
use liblmdb_linked as _;
use support::lmdb::linked::*;
use support::lmdb::{
    Info, MDB_CREATE as CREATE, MDB_MULTIPLE as MULTIPLE, MDB_NOTLS as NOTLS, MDB_RDONLY as RDONLY,
    MDB_RESERVE as RESERVE, Stat, Val,
};

/// One more call than this is not made.
const CALLS_MAX: usize = 600;
const PUT_FLAGS: [c_uint; 12] =
    [0, 0, 0, 0x10, 0x20, 0x40, RESERVE, 0x2_0000, 0x4_0000, MULTIPLE, 0x30, 0x7000_0001];
const LENGTHS: [usize; 16] = [0, 1, 2, 4, 8, 8, 8, 16, 40, 100, 300, 511, 512, 2000, 5000, 70_000];
/// Buffers for arguments: MULTIPLE takes several items of a length at once.
const BUFFER: usize = 300_000;

/// A transaction; children come after their parents.
#[derive(Clone, Copy)]
struct Txn {
    handle: *mut c_void,
    reads: bool,
    reset: bool,
}

struct Cursor {
    handle: *mut c_void,
    txn: *mut c_void,
    /// Of a read transaction: outlives it.
    reads: bool,
}

struct Session<'i> {
    input: &'i [u8],
    env: *mut c_void,
    dbis: Vec<c_uint>,
    writes: Vec<Txn>,
    reader: Option<Txn>,
    cursors: Vec<Cursor>,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Reads all that a call has handed out.
fn touch(code: c_int, values: &[&Val]) {
    for value in values.iter().filter(|_| code == 0) {
        if value.data.is_null() {
            assert_eq!(value.size, 0, "bytes without an address");
            continue;
        }
        // SAFETY: what a successful call returns is readable until the next change.
        let bytes = unsafe { std::slice::from_raw_parts(value.data.cast::<u8>(), value.size) };
        std::hint::black_box(bytes.iter().fold(0u8, |all, byte| all ^ byte));
    }
}

/// A code of which any may be right; the state afterwards is what counts.
fn ignore<T>(_code: T) {}

impl Session<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.input.split_first() else { return 0 };
        self.input = rest;
        *first
    }

    fn dbi(&mut self) -> c_uint {
        let choice = usize::from(self.byte());
        match self.dbis.get(choice % (self.dbis.len() + 1)) {
            Some(dbi) => *dbi,
            // One that was never opened, or the free pages, or the unnamed table.
            None => [0, 1, 77, c_uint::MAX][choice / 64],
        }
    }

    /// A key of one of the lengths, with few different contents.
    fn key(&mut self) -> Val {
        let (len, content) = (self.byte(), self.byte());
        let len = LENGTHS[usize::from(len) % 14];
        self.key[..len].fill(b'k');
        if let Some(first) = self.key[..len].first_mut() {
            *first = content;
        }
        Val { size: len, data: self.key.as_mut_ptr().cast() }
    }

    /// A value, and after it the number of items that MULTIPLE would take.
    fn value(&mut self) -> [Val; 2] {
        let (len, content) = (self.byte(), self.byte());
        let len = LENGTHS[usize::from(len) % LENGTHS.len()];
        let items = usize::from(content) % 4;
        for (i, byte) in self.value[..len * 4].iter_mut().enumerate() {
            *byte = content.wrapping_add((i / len.max(1)) as u8);
        }
        let value = Val { size: len, data: self.value.as_mut_ptr().cast() };
        [value, Val { size: items, data: null_mut() }]
    }

    fn txn(&mut self) -> Option<*mut c_void> {
        let read = self.byte().is_multiple_of(4);
        let reader = self.reader.filter(|txn| !txn.reset && (read || self.writes.is_empty()));
        reader.or(self.writes.last().copied()).map(|txn| txn.handle)
    }

    /// Forgets the cursors of ended write transactions, which went with them.
    fn forget(&mut self, ended: &[Txn]) {
        self.cursors
            .retain(|cursor| cursor.reads || !ended.iter().any(|txn| txn.handle == cursor.txn));
    }

    unsafe fn step(&mut self) {
        let call = self.byte();
        // SAFETY: as the caller promises.
        unsafe {
            match call % 16 {
                0..=1 => self.begin_or_end(call),
                2 => self.open_table(),
                3..=5 => self.put(),
                6 => self.on_table(call),
                7 => self.on_env(call),
                8 => self.read_txn(call),
                9..=10 => self.open_or_close_cursor(call),
                _ => self.on_cursor(call),
            }
        }
    }

    unsafe fn begin_or_end(&mut self, call: u8) {
        // SAFETY: only the newest write transaction, or a parent with all its children, ends.
        unsafe {
            let deep = self.writes.len();
            if deep == 0 || (call & 0x10 != 0 && deep < 4) {
                let parent = self.writes.last().map_or(null_mut(), |txn| txn.handle);
                let mut handle = null_mut();
                if mdb_txn_begin(self.env, parent, 0, &mut handle) == 0 {
                    self.writes.push(Txn { handle, reads: false, reset: false });
                }
                return;
            }
            let from = if call & 0x20 != 0 { deep - 1 } else { usize::from(call >> 6) % deep };
            let ended = self.writes.split_off(from);
            match call & 1 {
                0 => ignore(mdb_txn_commit(ended[0].handle)),
                _ => mdb_txn_abort(ended[0].handle),
            }
            self.forget(&ended);
        }
    }

    unsafe fn open_table(&mut self) {
        let Some(txn) = self.txn() else { return };
        let (which, flags) = (self.byte(), self.byte());
        let name = CString::new([b't', which % 8 + 1]).expect("no zeros");
        let name = if which.is_multiple_of(9) { std::ptr::null() } else { name.as_ptr() };
        let flags = c_uint::from(flags & 0x7E) | if flags & 0x80 != 0 { CREATE } else { 0 };
        let mut dbi = 0;
        // SAFETY: the transaction lives.
        if unsafe { mdb_dbi_open(txn, name, flags, &mut dbi) } == 0 && !self.dbis.contains(&dbi) {
            self.dbis.push(dbi);
        }
    }

    unsafe fn put(&mut self) {
        let Some(txn) = self.txn() else { return };
        let (dbi, mut key, mut value) = (self.dbi(), self.key(), self.value());
        let flags = PUT_FLAGS[usize::from(self.byte()) % PUT_FLAGS.len()];
        // SAFETY: the transaction lives; MULTIPLE finds its two values.
        let code = unsafe { mdb_put(txn, dbi, &mut key, value.as_mut_ptr(), flags) };
        self.fill(code, flags, &value[0]);
    }

    /// Room that was reserved is filled by the caller.
    fn fill(&self, code: c_int, flags: c_uint, value: &Val) {
        if code == 0 && flags & RESERVE != 0 && !value.data.is_null() {
            // SAFETY: handed out by the call just now, to be written.
            unsafe { std::ptr::write_bytes(value.data.cast::<u8>(), 7, value.size) };
        } else {
            touch(code, &[value]);
        }
    }

    unsafe fn on_table(&mut self, call: u8) {
        let Some(txn) = self.txn() else { return };
        let (dbi, mut key, mut value) = (self.dbi(), self.key(), self.value());
        let mut stat = Stat::default();
        let mut flags = 0;
        // SAFETY: the transaction lives; the structures are places for what is written.
        unsafe {
            match call >> 4 {
                0..=4 => {
                    let code = mdb_get(txn, dbi, &mut key, &mut value[0]);
                    touch(code, &[&value[0]]);
                }
                5..=8 => ignore(mdb_del(txn, dbi, &mut key, null_mut())),
                9..=10 => ignore(mdb_del(txn, dbi, &mut key, &mut value[0])),
                11 => ignore(mdb_stat(txn, dbi, &mut stat)),
                12 => ignore(mdb_dbi_flags(txn, dbi, &mut flags)),
                13 => ignore(mdb_cmp(txn, dbi, &key, &key) + mdb_dcmp(txn, dbi, &key, &key)),
                _ => {
                    // Cursors and handles of a table that goes must not be used again.
                    if self.cursors.is_empty() {
                        mdb_drop(txn, dbi, 0);
                    }
                }
            }
        }
    }

    unsafe fn on_env(&mut self, call: u8) {
        let (mut stat, mut info, mut dead) = (Stat::default(), Info::EMPTY, 0);
        // SAFETY: the environment lives; the structures are places for what is written.
        unsafe {
            match call >> 4 {
                0..=3 => ignore(mdb_env_sync(self.env, c_int::from(call >> 4))),
                4..=6 => ignore(mdb_env_stat(self.env, &mut stat)),
                7..=9 => ignore(mdb_env_info(self.env, &mut info)),
                10..=11 => ignore(mdb_reader_check(self.env, &mut dead)),
                12..=13 => {
                    let (flag, on) = (self.byte() % 32, self.byte());
                    ignore(mdb_env_set_flags(self.env, 1 << flag, c_int::from(on & 1)));
                }
                _ if self.writes.is_empty() && self.reader.is_none() => {
                    let size = usize::from(self.byte()) << 14;
                    ignore(mdb_env_set_mapsize(self.env, size));
                }
                _ => {}
            }
        }
    }

    unsafe fn read_txn(&mut self, call: u8) {
        // SAFETY: the handles live; a reset transaction is renewed or ended only.
        unsafe {
            match (&mut self.reader, call >> 5) {
                (None, _) => {
                    let mut handle = null_mut();
                    if mdb_txn_begin(self.env, null_mut(), RDONLY, &mut handle) == 0 {
                        self.reader = Some(Txn { handle, reads: true, reset: false });
                    }
                }
                (Some(txn), 0..=1) => {
                    mdb_txn_reset(txn.handle);
                    txn.reset = true;
                }
                (Some(txn), 2..=3) if txn.reset => txn.reset = mdb_txn_renew(txn.handle) != 0,
                (Some(txn), 2..=3) => ignore(mdb_txn_id(txn.handle)),
                (Some(txn), end) => {
                    let handle = txn.handle;
                    self.reader = None;
                    self.close_cursors(|cursor| cursor.reads);
                    match end {
                        4 => ignore(mdb_txn_commit(handle)),
                        _ => mdb_txn_abort(handle),
                    }
                }
            }
        }
    }

    unsafe fn close_cursors(&mut self, which: impl Fn(&Cursor) -> bool) {
        self.cursors.retain(|cursor| {
            if which(cursor) {
                // SAFETY: the cursor lives until now.
                unsafe { mdb_cursor_close(cursor.handle) };
            }
            !which(cursor)
        });
    }

    unsafe fn open_or_close_cursor(&mut self, call: u8) {
        if call >= 0xE0 && !self.cursors.is_empty() {
            let at = usize::from(self.byte()) % self.cursors.len();
            let cursor = self.cursors.swap_remove(at);
            // SAFETY: the cursor lives.
            unsafe { mdb_cursor_close(cursor.handle) };
            return;
        }
        let Some(txn) = self.txn() else { return };
        let dbi = self.dbi();
        let reads = self.reader.is_some_and(|reader| reader.handle == txn && reader.reads);
        let mut handle = null_mut();
        // SAFETY: the transaction lives.
        if self.cursors.len() < 8 && unsafe { mdb_cursor_open(txn, dbi, &mut handle) } == 0 {
            self.cursors.push(Cursor { handle, txn, reads });
        }
    }

    unsafe fn on_cursor(&mut self, call: u8) {
        if self.cursors.is_empty() {
            return;
        }
        let at = usize::from(self.byte()) % self.cursors.len();
        let Cursor { handle, txn, reads } = self.cursors[at];
        let reset = reads && self.reader.is_none_or(|reader| reader.reset);
        // A parent's cursor rests while a child is there.
        if reset || !reads && self.writes.last().is_none_or(|last| last.handle != txn) {
            return;
        }
        let (mut key, mut value, choice) = (self.key(), self.value(), self.byte());
        let mut count = 0;
        // SAFETY: cursor and transaction live; MULTIPLE finds its two values.
        unsafe {
            match call >> 4 {
                0..=7 => {
                    let op = c_uint::from(choice % 22);
                    let code = mdb_cursor_get(handle, &mut key, &mut value[0], op);
                    // Some operations give the value only; then the key is what it was.
                    touch(code, &[&key, &value[0]]);
                }
                8..=11 => {
                    let flags = PUT_FLAGS[usize::from(choice) % PUT_FLAGS.len()];
                    let code = mdb_cursor_put(handle, &mut key, value.as_mut_ptr(), flags);
                    self.fill(
                        code,
                        flags,
                        if flags & MULTIPLE != 0 { &Val::NONE } else { &value[0] },
                    );
                }
                12..=13 => {
                    let flags = [0, 0x20, 0x40][usize::from(choice % 3)];
                    ignore(mdb_cursor_del(handle, flags));
                }
                14 => ignore(mdb_cursor_count(handle, &mut count)),
                _ if reads => ignore(mdb_cursor_renew(txn, handle)),
                _ => {}
            }
        }
    }

    /// Ends what is open, in an order that the interface allows.
    unsafe fn end(&mut self) {
        // SAFETY: all handles live until here.
        unsafe {
            self.close_cursors(|cursor| cursor.reads);
            if let Some(reader) = self.reader.take() {
                mdb_txn_abort(reader.handle);
            }
            if let Some(first) = self.writes.first() {
                mdb_txn_abort(first.handle);
            }
            mdb_env_close(self.env);
        }
    }
}

/// Opens an environment, runs the program, and checks the store.
pub(crate) fn run(data: &[u8]) {
    let (_folder, dir) = folder();
    let mut env = null_mut();
    // SAFETY: makes a handle.
    assert_eq!(unsafe { mdb_env_create(&mut env) }, 0);
    let mut session = Session {
        input: data,
        env,
        dbis: Vec::new(),
        writes: Vec::new(),
        reader: None,
        cursors: Vec::new(),
        key: vec![b'k'; BUFFER],
        value: vec![0; BUFFER],
    };
    let (size, flags) = (session.byte(), session.byte());
    let flags = NOTLS | (c_uint::from(flags & 0x1D) << 16);
    let path = CString::new(dir.as_os_str().as_encoded_bytes()).expect("no zeros");
    // SAFETY: the environment is new; what the session calls follows the rules of the interface.
    unsafe {
        mdb_env_set_mapsize(env, usize::from(size) << 16);
        mdb_env_set_maxdbs(env, 6);
        let opened = mdb_env_open(env, path.as_ptr(), flags, 0o644);
        for _ in 0..CALLS_MAX {
            if opened != 0 || session.input.is_empty() {
                break;
            }
            session.step();
        }
        session.end();
    }
    check(&dir);
}

fn check(dir: &Path) {
    let store = dir.join("data.mdb");
    if store.metadata().is_ok_and(|facts| facts.len() > 0) {
        let env = zubilo::Options::new().open(&store).expect("the store opens again");
        crate::common::check(&env, "after the calls");
    }
}

/// Random programs.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut rng = crate::common::Rng::new(11);
    let program = |rng: &mut crate::common::Rng, n: u64| {
        let mut bytes = vec![[40, 255, 3][n as usize % 3], n as u8];
        // A transaction with a table of each kind, so that the rest has something to work on.
        bytes.push(0);
        for kind in 0..6 {
            bytes.extend([2, 1, kind, 0x80 | [0, 4, 0x14, 0x34, 8, 2][usize::from(kind)]]);
        }
        bytes.extend((0..60 + n * 12).map(|_| rng.next() as u8));
        bytes
    };
    (0..30).map(|n| program(&mut rng, n)).collect()
}
