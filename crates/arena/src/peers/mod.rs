//! The engines of the field: what is asked of them, and the list of them. One file each; `dl` loads
//! the libraries of those that come as packages.
//!
//! Everything is static, so that each engine's calls are as direct as in a program that uses it
//! alone. Only one engine is opened in a process: two may export the same C symbols.

#[cfg(feature = "fjall")]
pub(crate) mod fjall;
pub(crate) mod lmdb;
#[cfg(feature = "redb")]
pub(crate) mod redb;
#[cfg(feature = "sled")]
pub(crate) mod sled;
pub(crate) mod zubilo;

use std::fmt::Display;
use std::path::Path;

use crate::spec::Class;

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

/// Bytes of cache for each engine that has one of its own: more than the data of the stages that
/// fit in memory. Engines that map their file use the kernel's.
pub(crate) const CACHE: usize = 1 << 30;

/// Waits until `quiet` has said yes five times in a row, at most two minutes.
#[cfg_attr(not(feature = "fjall"), allow(dead_code))]
pub(crate) fn until_quiet(mut quiet: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let (mut calm, mut waited) = (0, 0);
    while calm < 5 && waited < 12_000 {
        calm = if quiet()? { calm + 1 } else { 0 };
        waited += 1;
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(())
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

    /// Makes everything durable.
    fn flush(&self) -> Outcome<()>;

    /// Waits for work in the background to end.
    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

/// One thread's access.
pub(crate) trait Session {
    type Reader<'t>: Reader;
    type Writer<'t>: Writer;

    /// Runs `work` in a read transaction, a snapshot where the engine has them.
    fn read<R>(
        &mut self,
        work: impl for<'t> FnOnce(&mut Self::Reader<'t>) -> Outcome<R>,
    ) -> Outcome<R>;

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

    /// At most `most` records in order, all or from the first key not less than `from`; tells how
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

    /// As `put`, of a key greater than all others; the engine may be told so.
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
    /// Through the C interface of LMDB, from a library loaded at run time.
    Foreign,
    /// SQLite's rollback journal.
    Journal,
}

/// An engine as the command line names it.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
}

const fn entry(name: &'static str, what: &'static str) -> Entry {
    Entry { name, what }
}

/// All entries, in the order of the report. The first is what the others are compared with.
pub(crate) const ENTRIES: &[Entry] = &[
    entry("zubilo", "Zubilo, Rust API"),
    entry("zubilo-map", "Zubilo, Rust API, writable map"),
    entry("zubilo-c", "Zubilo through LMDB's C interface"),
    entry("lmdb", "LMDB"),
    entry("lmdb-map", "LMDB, writable map"),
    entry("redb", "redb"),
    entry("fjall", "fjall"),
    entry("sled", "sled"),
];

/// Runs `$serve::<Engine>(variant, ...)` for the entry of a name; the value is none for a name that
/// is not in the list.
macro_rules! with_engine {
    ($name:expr, $serve:ident($($arg:expr),*)) => {{
        use $crate::peers::{self, Variant};
        match $name {
            "zubilo" => Some($serve::<peers::zubilo::Zubilo>(Variant::Plain, $($arg),*)),
            "zubilo-map" => Some($serve::<peers::zubilo::Zubilo>(Variant::Map, $($arg),*)),
            "zubilo-c" => Some($serve::<peers::lmdb::Lmdb>(Variant::Foreign, $($arg),*)),
            "lmdb" => Some($serve::<peers::lmdb::Lmdb>(Variant::Plain, $($arg),*)),
            "lmdb-map" => Some($serve::<peers::lmdb::Lmdb>(Variant::Map, $($arg),*)),
            #[cfg(feature = "redb")]
            "redb" => Some($serve::<peers::redb::Redb>(Variant::Plain, $($arg),*)),
            #[cfg(feature = "fjall")]
            "fjall" => Some($serve::<peers::fjall::Fjall>(Variant::Plain, $($arg),*)),
            #[cfg(feature = "sled")]
            "sled" => Some($serve::<peers::sled::Sled>(Variant::Plain, $($arg),*)),
            _ => None,
        }
    }};
}
pub(crate) use with_engine;
