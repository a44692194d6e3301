//! The engines of the field: what is asked of them, and the list of them. One file each; `dl` loads
//! the libraries of those that come as packages.
//!
//! Everything is static, so that each engine's calls are as direct as in a program that uses it
//! alone. Only one engine is opened in a process: two may export the same C symbols.

mod dl;
#[cfg(feature = "fjall")]
pub(crate) mod fjall;
pub(crate) mod kyoto;
pub(crate) mod leveldb;
pub(crate) mod lmdb;
mod lsm;
mod mapped;
#[cfg(feature = "libmdbx")]
pub(crate) mod mdbx;
#[cfg(feature = "redb")]
pub(crate) mod redb;
pub(crate) mod rocksdb;
pub(crate) mod shim;
#[cfg(feature = "sled")]
pub(crate) mod sled;
pub(crate) mod sqlite;
pub(crate) mod tables;
pub(crate) mod zubilo;

use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::spec::{Class, Values};
use tables::{Change, Find};

/// Why an engine does not do what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It has no settings that give the class.
    Absent(String),
    /// Its library is not here.
    Missing(String),
    /// A call failed.
    Failed(String),
}

impl Fault {
    /// For `map_err`: the call and what it said.
    pub(crate) fn of<E: Display>(call: &'static str) -> impl FnOnce(E) -> Fault {
        move |error| Fault::Failed(format!("{call}: {error}"))
    }
}

/// Bytes of cache where memory is not limited.
const CACHE: usize = 1 << 30;
/// The same for records of more than half of that, so that all pages fit.
const LARGE_CACHE: usize = 4 << 30;
/// Changes that a transaction may hold in engines which slow down beyond, or need memory without bound.
const MODEST_TRANSACTION: u64 = 100_000;
static LIMITED: AtomicBool = AtomicBool::new(false);
static CACHE_NOW: AtomicUsize = AtomicUsize::new(CACHE);

/// Bytes of cache for each engine that has one of its own. Engines that map their file use the
/// kernel's.
fn cache() -> usize {
    CACHE_NOW.load(Ordering::Relaxed)
}

/// A quarter of the memory that a stage leaves to an engine; the rest is for buffers, for what engines need
/// besides, and for the kernel's cache. With half of it the kernel ended fjall and WiredTiger. Without a
/// limit what records of so many bytes ask for.
pub(crate) fn share_memory(limit: Option<u64>, records: u64) {
    let all = if records > CACHE as u64 / 2 { LARGE_CACHE } else { CACHE };
    CACHE_NOW.store(limit.map_or(all, |bytes| bytes as usize / 4), Ordering::Relaxed);
    LIMITED.store(limit.is_some(), Ordering::Relaxed);
}

/// Whether the store is larger than memory: engines that map their file can be warned that reading
/// ahead is of no use then.
fn limited() -> bool {
    LIMITED.load(Ordering::Relaxed)
}

/// What RocksDB and fjall gather in memory by default before they write it to a sorted file.
const WRITE_BUFFER: usize = 64 << 20;

/// Bytes of a write buffer: the default, a sixteenth of the memory where that is limited, since several of
/// them may be there beside the cache.
fn write_buffer() -> usize {
    if limited() { WRITE_BUFFER.min(cache() / 4) } else { WRITE_BUFFER }
}

static LARGE_VALUES: AtomicBool = AtomicBool::new(false);

/// Values from here on have settings of their own in engines that can keep them apart from keys.
const LARGE_VALUE: u32 = 4096;

/// Sets what values the stores opened from now on will have.
pub(crate) fn expect_values(values: Values) {
    let large = matches!(values, Values::Fixed(LARGE_VALUE..));
    LARGE_VALUES.store(large, Ordering::Relaxed);
}

fn large_values() -> bool {
    LARGE_VALUES.load(Ordering::Relaxed)
}

/// Waits until `quiet` has said yes three times in a row, at most two minutes.
fn until_quiet(mut quiet: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let (mut calm, mut waited) = (0, 0);
    while calm < 3 && waited < 12_000 {
        calm = if quiet()? { calm + 1 } else { 0 };
        waited += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Waits until this process has hardly used the CPU three times in a row: for engines that report
/// nothing of their threads.
fn until_idle() -> Outcome<()> {
    let mut before = crate::clock::cpu_now();
    until_quiet(|| {
        let now = crate::clock::cpu_now();
        let used = now - std::mem::replace(&mut before, now);
        Ok(used < 0.001)
    })
}

/// Flushes the files of an engine that has no call for that.
fn flush_files(dir: &Path) -> Outcome<()> {
    for entry in std::fs::read_dir(dir).map_err(Fault::of("read the directory"))? {
        let path = entry.map_err(Fault::of("read the directory"))?.path();
        // A file that a compaction has removed meanwhile needs no flush.
        let Ok(file) = std::fs::File::open(&path) else { continue };
        file.sync_all().map_err(Fault::of("fsync"))?;
    }
    Ok(())
}

/// Copies files and makes them durable: for engines that name the files of a snapshot.
fn copy_files(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to).map_err(Fault::of("create the directory"))?;
    for entry in std::fs::read_dir(from).map_err(Fault::of("read the directory"))? {
        let path = entry.map_err(Fault::of("read the directory"))?.path();
        let Some(name) = path.file_name() else { continue };
        std::fs::copy(&path, to.join(name)).map_err(Fault::of("copy"))?;
    }
    flush_files(to)
}

/// The version of a crate in this build.
fn locked(name: &str) -> String {
    let lock = include_str!("../../../../Cargo.lock");
    let package = lock.split("[[package]]").find_map(|package| {
        let mut lines = package.trim_start().lines();
        let found = lines.next()? == format!("name = \"{name}\"");
        let version = lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?;
        found.then(|| version.to_owned())
    });
    package.unwrap_or_else(|| "unknown".into())
}

pub(crate) type Outcome<T> = Result<T, Fault>;

/// How an engine is opened for a class, and why so.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) version: String,
    pub(crate) settings: String,
    pub(crate) why: String,
}

/// An open store with one table of records.
pub(crate) trait Engine: Sized + Sync {
    type Session<'e>: Session
    where
        Self: 'e;

    /// Opens the store in `dir`, new if the directory is empty. `variant` chooses between settings
    /// that are entered side by side.
    fn open(dir: &Path, class: Class, variant: Variant) -> Outcome<(Self, About)>;

    /// What one thread needs.
    fn session(&self) -> Outcome<Self::Session<'_>>;

    /// Changes that one transaction can hold in reasonable time; more are split.
    fn largest_transaction(&self) -> u64 {
        u64::MAX
    }

    /// The same for removals.
    fn largest_removal(&self) -> u64 {
        self.largest_transaction()
    }

    /// Makes everything durable.
    fn flush(&self) -> Outcome<()>;

    /// Waits for work in the background to end.
    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    /// Whether others may write while a reader holds its snapshot; why not, otherwise.
    fn writes_beside_readers(&self) -> Outcome<()> {
        Ok(())
    }

    /// Whether a read transaction is a snapshot; why there is nothing to begin, otherwise.
    fn begins_snapshots(&self) -> Outcome<()> {
        Ok(())
    }

    /// Makes the store as small as the engine can make it in its place.
    fn compact(&mut self) -> Outcome<()> {
        Err(Fault::Absent("the arena knows no call that makes its store smaller in place".into()))
    }

    /// Prepares for work on several tables, before the first session: `Session::change` and `find`.
    fn open_tables(&mut self) -> Outcome<()> {
        Ok(())
    }

    /// Copies the open store to `dir`, which is there and empty, such that `open` finds it there; the
    /// copy is on disk then.
    fn back_up(&self, _dir: &Path) -> Outcome<()> {
        Err(Fault::Absent("it has no call that copies a store in use".into()))
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

/// One thread's access.
pub(crate) trait Session: Sized {
    type Reader<'t>: Reader;
    type Writer<'t>: Writer;

    /// Runs `work` in a read transaction, a snapshot where the engine has them.
    fn read<R>(
        &mut self,
        work: impl for<'t> FnOnce(&mut Self::Reader<'t>) -> Outcome<R>,
    ) -> Outcome<R>;

    /// One look-up in a transaction of its own, in the shortest way that the engine has.
    #[inline(always)]
    fn get_once<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.read(|reader| reader.get(key, see))
    }

    /// Runs `work` in a transaction and commits it. It runs again if the engine refuses the
    /// commit because of another thread.
    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Self::Writer<'t>) -> Outcome<R> + Send,
    ) -> Outcome<R>;

    /// As `write`, beside other threads that write, in the way the engine recommends for that.
    fn write_shared<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Self::Writer<'t>) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        self.write(work)
    }

    /// Changes in several tables, in one transaction. Changes of one table come together.
    fn change(&mut self, changes: &[Change]) -> Outcome<()> {
        tables::change_single(self, changes)
    }

    /// Values under the key of a pair, with the records that they name; returns how many.
    fn find(&mut self, find: Find<'_>, see: impl FnMut(&[u8], Option<&[u8]>)) -> Outcome<u64> {
        tables::find_single(self, find, see)
    }
}

/// Reading in one snapshot.
pub(crate) trait Reader {
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R>;

    /// Values under many keys, in any order.
    fn get_many(
        &mut self,
        keys: &[&[u8]],
        mut see: impl FnMut(usize, Option<&[u8]>),
    ) -> Outcome<()> {
        for (i, key) in keys.iter().enumerate() {
            self.get(key, |value| see(i, value))?;
        }
        Ok(())
    }

    /// At most `most` records in order, all or from the first key not less than `from`; returns how
    /// many there were.
    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64>;
}

/// Changing records in one transaction.
pub(crate) trait Writer {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()>;

    /// As `put`, of a key greater than all others; the engine may use that.
    fn append(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.put(key, value)
    }

    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R>;

    fn delete(&mut self, key: &[u8]) -> Outcome<()>;
}

/// Settings of one engine that are entered side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Plain,
    /// Pages written through a writable map.
    Map,
    /// Pages never written through a writable map.
    Calls,
    /// With a redo log.
    Log,
    /// With a redo log; what is not flushed is written through a writable map.
    LogMap,
    /// Through the C interface of LMDB, from a library loaded at run time.
    Foreign,
    /// SQLite's rollback journal.
    Journal,
    /// Berkeley DB among the engines that need a shim.
    Berkeley,
}

/// An engine as the command line names it.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
}

/// Whether an entry changes its files through a writable map, where no call shows how much. The others
/// hand all that they write to the kernel.
pub(crate) fn writes_through_a_map(entry: &str, class: Class) -> bool {
    match entry {
        "zubilo" => matches!(class, Class::NoSync | Class::Volatile),
        _ => entry.ends_with("-map") || entry == "kyoto",
    }
}

const fn entry(name: &'static str, what: &'static str) -> Entry {
    Entry { name, what }
}

/// All entries, in the order of the report. The first is what the others are compared with.
pub(crate) const ENTRIES: &[Entry] = &[
    entry("zubilo", "Zubilo, Rust API"),
    entry("zubilo-calls", "Zubilo, Rust API, no writable map"),
    entry("zubilo-log", "Zubilo, Rust API, redo log of 8 MiB (experimental)"),
    entry("zubilo-log-map", "Zubilo, Rust API, redo log and writable map (experimental)"),
    entry("zubilo-c", "Zubilo through LMDB's C interface"),
    entry("lmdb", "LMDB"),
    entry("lmdb-map", "LMDB, writable map"),
    entry("libmdbx", "libmdbx"),
    entry("libmdbx-map", "libmdbx, writable map"),
    entry("redb", "redb"),
    entry("fjall", "fjall"),
    entry("sled", "sled"),
    entry("rocksdb", "RocksDB"),
    entry("leveldb", "LevelDB"),
    entry("wiredtiger", "WiredTiger, B-tree"),
    entry("berkeleydb", "Berkeley DB, B-tree"),
    entry("kyoto", "Kyoto Cabinet, TreeDB"),
    entry("sqlite-wal", "SQLite, write-ahead log"),
    entry("sqlite-journal", "SQLite, rollback journal"),
];

/// Runs `$serve::<Engine>(variant, ...)` for the entry of a name; the value is none for a name that
/// is not in the list.
macro_rules! with_engine {
    ($name:expr, $serve:ident($($arg:expr),*)) => {{
        use $crate::peers::{self, Variant};
        match $name {
            "zubilo" => Some($serve::<peers::zubilo::Zubilo>(Variant::Plain, $($arg),*)),
            "zubilo-calls" => Some($serve::<peers::zubilo::Zubilo>(Variant::Calls, $($arg),*)),
            "zubilo-log" => Some($serve::<peers::zubilo::Zubilo>(Variant::Log, $($arg),*)),
            "zubilo-log-map" => Some($serve::<peers::zubilo::Zubilo>(Variant::LogMap, $($arg),*)),
            "zubilo-c" => Some($serve::<peers::lmdb::Lmdb>(Variant::Foreign, $($arg),*)),
            "lmdb" => Some($serve::<peers::lmdb::Lmdb>(Variant::Plain, $($arg),*)),
            "lmdb-map" => Some($serve::<peers::lmdb::Lmdb>(Variant::Map, $($arg),*)),
            #[cfg(feature = "libmdbx")]
            "libmdbx" => Some($serve::<peers::mdbx::Mdbx>(Variant::Plain, $($arg),*)),
            #[cfg(feature = "libmdbx")]
            "libmdbx-map" => Some($serve::<peers::mdbx::Mdbx>(Variant::Map, $($arg),*)),
            #[cfg(feature = "redb")]
            "redb" => Some($serve::<peers::redb::Redb>(Variant::Plain, $($arg),*)),
            #[cfg(feature = "fjall")]
            "fjall" => Some($serve::<peers::fjall::Fjall>(Variant::Plain, $($arg),*)),
            #[cfg(feature = "sled")]
            "sled" => Some($serve::<peers::sled::Sled>(Variant::Plain, $($arg),*)),
            "rocksdb" => Some($serve::<peers::rocksdb::Rocks>(Variant::Plain, $($arg),*)),
            "leveldb" => Some($serve::<peers::leveldb::Level>(Variant::Plain, $($arg),*)),
            "wiredtiger" => Some($serve::<peers::shim::Shim>(Variant::Plain, $($arg),*)),
            "berkeleydb" => Some($serve::<peers::shim::Shim>(Variant::Berkeley, $($arg),*)),
            "kyoto" => Some($serve::<peers::kyoto::Kyoto>(Variant::Plain, $($arg),*)),
            "sqlite-wal" => Some($serve::<peers::sqlite::Sqlite>(Variant::Plain, $($arg),*)),
            "sqlite-journal" => Some($serve::<peers::sqlite::Sqlite>(Variant::Journal, $($arg),*)),
            _ => None,
        }
    }};
}
pub(crate) use with_engine;
