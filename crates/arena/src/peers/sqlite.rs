//! SQLite, the library of the system.
//!
//! One table without row numbers, so that its tree holds the records themselves; a connection and
//! prepared statements for each thread; the file is mapped. `sqlite-wal`: SYNC `synchronous=FULL`,
//! LAZY `NORMAL` (consistent after a power cut, the last commits may be lost), NOSYNC and VOLATILE
//! `OFF`. `sqlite-journal`, a journal file that is kept: SYNC `FULL`, NOSYNC `OFF`; at `NORMAL` a
//! power cut may damage the file, so there is no LAZY; VOLATILE without a journal.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use super::dl::Table;
use super::tables::{Change, Find, Place};
use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, cache, dl};
use crate::spec::Class;

dl::functions!(Api {
    fn sqlite3_libversion() -> *const c_char;
    fn sqlite3_open_v2(*const c_char, *mut *mut c_void, c_int, *const c_char) -> c_int;
    fn sqlite3_close(*mut c_void) -> c_int;
    fn sqlite3_busy_timeout(*mut c_void, c_int) -> c_int;
    fn sqlite3_backup_init(*mut c_void, *const c_char, *mut c_void, *const c_char) -> *mut c_void;
    fn sqlite3_backup_step(*mut c_void, c_int) -> c_int;
    fn sqlite3_backup_finish(*mut c_void) -> c_int;
    fn sqlite3_errmsg(*mut c_void) -> *const c_char;
    fn sqlite3_prepare_v2(*mut c_void, *const c_char, c_int, *mut *mut c_void, *mut *const c_char) -> c_int;
    fn sqlite3_bind_blob(*mut c_void, c_int, *const u8, c_int, *const c_void) -> c_int;
    fn sqlite3_step(*mut c_void) -> c_int;
    fn sqlite3_reset(*mut c_void) -> c_int;
    fn sqlite3_finalize(*mut c_void) -> c_int;
    fn sqlite3_column_blob(*mut c_void, c_int) -> *const u8;
    fn sqlite3_column_bytes(*mut c_void, c_int) -> c_int;
});

const OPEN_READWRITE: c_int = 2;
const OPEN_CREATE: c_int = 4;
/// Each connection stays in its thread.
const OPEN_NOMUTEX: c_int = 0x8000;
const ROW: c_int = 100;
const DONE: c_int = 101;
const BUSY: c_int = 5;

/// What the prepared statements of a thread say. A table of pairs is what an index is within SQLite:
/// a tree of its own over both columns.
const SQL: [&CStr; 16] = [
    c"BEGIN",
    c"BEGIN IMMEDIATE",
    c"COMMIT",
    c"SELECT value FROM records WHERE key = ?",
    c"REPLACE INTO records VALUES (?, ?)",
    c"DELETE FROM records WHERE key = ?",
    c"SELECT key, value FROM records ORDER BY key",
    c"SELECT key, value FROM records WHERE key >= ? ORDER BY key",
    c"INSERT OR IGNORE INTO pairs0 VALUES (?, ?)",
    c"DELETE FROM pairs0 WHERE key = ? AND value = ?",
    c"SELECT value FROM pairs0 WHERE key = ? ORDER BY value",
    c"SELECT p.value, r.value FROM pairs0 p CROSS JOIN records r ON r.key = p.value WHERE p.key = ? ORDER BY p.value",
    c"INSERT OR IGNORE INTO pairs1 VALUES (?, ?)",
    c"DELETE FROM pairs1 WHERE key = ? AND value = ?",
    c"SELECT value FROM pairs1 WHERE key = ? ORDER BY value",
    c"SELECT p.value, r.value FROM pairs1 p CROSS JOIN records r ON r.key = p.value WHERE p.key = ? ORDER BY p.value",
];
const BEGIN: usize = 0;
const BEGIN_WRITE: usize = 1;
const COMMIT: usize = 2;
const GET: usize = 3;
const PUT: usize = 4;
const DELETE: usize = 5;
const ALL: usize = 6;
const FROM: usize = 7;
/// Four statements for each table of pairs, in this order.
const PAIRS_AT: [usize; 2] = [8, 12];
const ADD: usize = 0;
const REMOVE: usize = 1;
const VALUES: usize = 2;
const JOIN: usize = 3;

/// Where the file is, and how connections to it are set up.
pub(crate) struct Sqlite {
    api: Api,
    path: PathBuf,
    pragmas: String,
}

/// A connection with its statements.
pub(crate) struct Connection {
    api: Api,
    db: *mut c_void,
    statements: [*mut c_void; SQL.len()],
}

// SAFETY: connections may move from thread to thread; one thread at a time uses them.
unsafe impl Send for Connection {}

impl Engine for Sqlite {
    type Session<'e> = Connection;

    fn open(dir: &Path, class: Class, variant: Variant) -> Outcome<(Sqlite, About)> {
        let api = Api::load("libsqlite3.so.0".as_ref())?;
        let journal = variant == Variant::Journal;
        let (mode, synchronous) = match (journal, class) {
            (false, Class::Sync) => ("WAL", "FULL"),
            (false, Class::Lazy) => ("WAL", "NORMAL"),
            (false, Class::NoSync | Class::Volatile) => ("WAL", "OFF"),
            (true, Class::Sync) => ("PERSIST", "FULL"),
            (true, Class::NoSync) => ("PERSIST", "OFF"),
            (true, Class::Volatile) => ("OFF", "OFF"),
            (true, Class::Lazy) => {
                let reason = "a power cut may damage the file with synchronous=NORMAL";
                return Err(Fault::Absent(reason.into()));
            }
        };
        // The kernel reads ahead around each fault of a map, and SQLite cannot ask it not to.
        let mapped = if super::limited() { 0 } else { 64u64 << 30 };
        let pragmas = format!(
            "PRAGMA journal_mode={mode}; PRAGMA synchronous={synchronous}; \
             PRAGMA mmap_size={mapped}; PRAGMA cache_size=-{};",
            cache() >> 10
        );
        let engine = Sqlite { api, path: dir.join("sqlite"), pragmas };
        engine.connect()?.run(
            "CREATE TABLE IF NOT EXISTS records (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;\
             CREATE TABLE IF NOT EXISTS pairs0 (key BLOB, value BLOB, PRIMARY KEY(key, value)) WITHOUT ROWID;\
             CREATE TABLE IF NOT EXISTS pairs1 (key BLOB, value BLOB, PRIMARY KEY(key, value)) WITHOUT ROWID;",
        )?;
        // SAFETY: the library gives a string that lives for ever.
        let version = unsafe { dl::text((api.sqlite3_libversion)()) };
        let about = About {
            version,
            settings: engine.pragmas.clone(),
            why: "sqlite.org/pragma.html: synchronous and journal_mode; WITHOUT ROWID clusters"
                .into(),
        };
        Ok((engine, about))
    }

    fn session(&self) -> Outcome<Connection> {
        let mut connection = self.connect()?;
        connection.prepare()?;
        Ok(connection)
    }

    fn flush(&self) -> Outcome<()> {
        super::flush_files(self.path.parent().unwrap_or(&self.path))
    }

    fn writes_beside_readers(&self) -> Outcome<()> {
        if self.pragmas.contains("journal_mode=WAL") {
            return Ok(());
        }
        Err(Fault::Absent("without a write-ahead log a commit waits for readers to end".into()))
    }

    /// Its interface for online backups, all pages in one step: copies in parts begin anew whenever
    /// another connection writes.
    fn back_up(&self, dir: &Path) -> Outcome<()> {
        let source = self.connect()?;
        let to = Sqlite { api: self.api, path: dir.join("sqlite"), pragmas: String::new() };
        let copy = to.connect()?;
        let api = self.api;
        // SAFETY: both connections are open and used by nobody else; the object is finished.
        unsafe {
            let main = c"main".as_ptr();
            let object = (api.sqlite3_backup_init)(copy.db, main, source.db, main);
            if object.is_null() {
                return Err(copy.fault("sqlite3_backup_init", -1));
            }
            let mut code = BUSY;
            for _ in 0..1000 {
                code = (api.sqlite3_backup_step)(object, -1);
                if code != BUSY {
                    break;
                }
            }
            (api.sqlite3_backup_finish)(object);
            copy.check("sqlite3_backup_step", code)
        }
    }

    fn compact(&mut self) -> Outcome<()> {
        self.connect()?.run("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
    }
}

impl Sqlite {
    fn connect(&self) -> Outcome<Connection> {
        let api = self.api;
        let path = dl::c_path(&self.path)?;
        let mut connection =
            Connection { api, db: null_mut(), statements: [null_mut(); SQL.len()] };
        let flags = OPEN_READWRITE | OPEN_CREATE | OPEN_NOMUTEX;
        // SAFETY: valid pointers; the handle is closed when the connection is dropped.
        unsafe {
            let code = (api.sqlite3_open_v2)(path.as_ptr(), &mut connection.db, flags, null());
            connection.check("sqlite3_open_v2", code)?;
            (api.sqlite3_busy_timeout)(connection.db, 60_000);
        }
        connection.run(&self.pragmas)?;
        Ok(connection)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: statements and connection are live or null, which both calls accept.
        unsafe {
            for statement in self.statements {
                (self.api.sqlite3_finalize)(statement);
            }
            (self.api.sqlite3_close)(self.db);
        }
    }
}

impl Connection {
    #[inline(always)]
    fn check(&self, call: &'static str, code: c_int) -> Outcome<()> {
        if code == 0 || code == DONE { Ok(()) } else { Err(self.fault(call, code)) }
    }

    #[cold]
    fn fault(&self, call: &'static str, code: c_int) -> Fault {
        // SAFETY: the connection is live or null, which the call accepts.
        let text = unsafe { dl::text((self.api.sqlite3_errmsg)(self.db)) };
        Fault::Failed(format!("{call}: {code}: {text}"))
    }

    /// Runs statements that have no parameters, and drops their rows.
    fn run(&self, sql: &str) -> Outcome<()> {
        for sql in sql.split_inclusive(';').filter(|sql| sql.contains(';')) {
            let mut statement = null_mut();
            // SAFETY: the text lives through the call with its length; the statement is finalized.
            unsafe {
                let (text, len) = (sql.as_ptr().cast(), sql.len() as c_int);
                let prepare = self.api.sqlite3_prepare_v2;
                let code = prepare(self.db, text, len, &mut statement, null_mut());
                self.check("sqlite3_prepare_v2", code)?;
                let mut code = ROW;
                while code == ROW {
                    code = (self.api.sqlite3_step)(statement);
                }
                let result = self.check("sqlite3_step", code);
                (self.api.sqlite3_finalize)(statement);
                result?;
            }
        }
        Ok(())
    }

    fn prepare(&mut self) -> Outcome<()> {
        for (i, sql) in SQL.iter().enumerate() {
            let mut statement = null_mut();
            // SAFETY: the text ends with zero; the statement is finalized when self is dropped.
            let code = unsafe {
                (self.api.sqlite3_prepare_v2)(self.db, sql.as_ptr(), -1, &mut statement, null_mut())
            };
            self.statements[i] = statement;
            self.check("sqlite3_prepare_v2", code)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn bind(&self, which: usize, place: c_int, bytes: &[u8]) -> Outcome<()> {
        let len = c_int::try_from(bytes.len()).map_err(Fault::of("length"))?;
        // SAFETY: a live statement that is reset before the bytes are gone; null is SQLITE_STATIC.
        let code = unsafe {
            let statement = self.statements[which];
            (self.api.sqlite3_bind_blob)(statement, place, bytes.as_ptr(), len, null())
        };
        self.check("sqlite3_bind_blob", code)
    }

    /// A step of a statement that has no rows.
    #[inline(always)]
    fn step(&self, which: usize) -> Outcome<()> {
        // SAFETY: a live statement.
        let code = unsafe {
            (self.api.sqlite3_step)(self.statements[which]);
            (self.api.sqlite3_reset)(self.statements[which])
        };
        self.check("sqlite3_step", code)
    }

    /// # Safety
    /// The statement stands on a row, and is not stepped while the bytes are used.
    #[inline(always)]
    unsafe fn column<'t>(&self, which: usize, column: c_int) -> &'t [u8] {
        let statement = self.statements[which];
        // SAFETY: as the caller promises.
        unsafe {
            let data = (self.api.sqlite3_column_blob)(statement, column);
            dl::bytes(data, (self.api.sqlite3_column_bytes)(statement, column) as usize)
        }
    }

    #[inline(always)]
    fn lookup<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.bind(GET, 1, key)?;
        // SAFETY: a live statement; its row is used before it is reset.
        unsafe {
            let result = match (self.api.sqlite3_step)(self.statements[GET]) {
                ROW => Ok(see(Some(self.column(GET, 0)))),
                DONE => Ok(see(None)),
                code => Err(self.fault("get", code)),
            };
            (self.api.sqlite3_reset)(self.statements[GET]);
            result
        }
    }

    fn commit(&self) -> Outcome<()> {
        // In rollback mode a commit waits for readers, longer than the busy handler at times.
        for _ in 0..1000 {
            // SAFETY: a live statement.
            let code = unsafe {
                (self.api.sqlite3_step)(self.statements[COMMIT]);
                (self.api.sqlite3_reset)(self.statements[COMMIT])
            };
            if code != BUSY {
                return self.check("COMMIT", code);
            }
        }
        Err(self.fault("COMMIT", BUSY))
    }

    /// Ends a transaction whose work has failed.
    fn give_up<R>(&self, fault: Fault) -> Outcome<R> {
        // The first fault is the one to report.
        let _ = self.run("ROLLBACK;");
        Err(fault)
    }
}

impl Session for Connection {
    type Reader<'t> = Connection;
    type Writer<'t> = Connection;

    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut Connection) -> Outcome<R>) -> Outcome<R> {
        self.step(BEGIN)?;
        match work(self) {
            Ok(result) => self.commit().map(|()| result),
            Err(fault) => self.give_up(fault),
        }
    }

    /// A statement alone is a transaction.
    #[inline(always)]
    fn get_once<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Connection) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        self.step(BEGIN_WRITE)?;
        match work(self) {
            Ok(result) => self.commit().map(|()| result),
            Err(fault) => self.give_up(fault),
        }
    }

    fn change(&mut self, changes: &[Change]) -> Outcome<()> {
        self.write(|connection| connection.change_all(changes))
    }

    /// A statement alone is a snapshot.
    fn find(&mut self, find: Find<'_>, mut see: impl FnMut(&[u8], Option<&[u8]>)) -> Outcome<u64> {
        let which = PAIRS_AT[find.pairs] + if find.records { JOIN } else { VALUES };
        self.bind(which, 1, find.key)?;
        self.rows(which, find.most, |connection| {
            // SAFETY: the statement stands on a row.
            unsafe {
                let record = find.records.then(|| connection.column(which, 1));
                see(connection.column(which, 0), record);
            }
        })
    }
}

impl Connection {
    /// At most `most` rows of a bound statement, which is reset then.
    #[inline(always)]
    fn rows(&self, which: usize, most: u64, mut see: impl FnMut(&Connection)) -> Outcome<u64> {
        let mut count = 0;
        // SAFETY: a live statement; each row is used before the next step.
        unsafe {
            let mut code = ROW;
            while count < most {
                code = (self.api.sqlite3_step)(self.statements[which]);
                if code != ROW {
                    break;
                }
                see(self);
                count += 1;
            }
            (self.api.sqlite3_reset)(self.statements[which]);
            if code != ROW {
                self.check("walk", code)?;
            }
        }
        Ok(count)
    }

    /// All changes, in the transaction that is open.
    fn change_all(&mut self, changes: &[Change]) -> Outcome<()> {
        for Change { place, key, value, gone } in changes {
            let which = match (place, gone) {
                (Place::Records, false) => PUT,
                (Place::Records, true) => DELETE,
                (Place::Pairs(i), false) => PAIRS_AT[*i] + ADD,
                (Place::Pairs(i), true) => PAIRS_AT[*i] + REMOVE,
            };
            self.bind(which, 1, key)?;
            if which != DELETE {
                self.bind(which, 2, value)?;
            }
            self.step(which)?;
        }
        Ok(())
    }
}

impl Reader for Connection {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let which = if from.is_some() { FROM } else { ALL };
        if let Some(from) = from {
            self.bind(FROM, 1, from)?;
        }
        self.rows(which, most, |connection| {
            // SAFETY: the statement stands on a row.
            unsafe { see(connection.column(which, 0), connection.column(which, 1)) }
        })
    }
}

impl Writer for Connection {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.bind(PUT, 1, key)?;
        self.bind(PUT, 2, value)?;
        self.step(PUT)
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.bind(DELETE, 1, key)?;
        self.step(DELETE)
    }
}
