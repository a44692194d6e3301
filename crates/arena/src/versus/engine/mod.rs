//! What workloads ask of an engine. Everything is static, so that each engine's calls are as
//! direct as in a program that uses it alone.

pub(crate) mod counting;
pub(crate) mod lmdb;
pub(crate) mod zubilo;

use std::path::Path;

/// What a commit promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing acknowledged is lost in a power cut.
    Sync,
    /// A consistent earlier commit survives a power cut.
    Lazy,
    /// Survives the end of the process.
    NoSync,
}

/// How to open an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    /// Write through a writable map.
    pub(crate) write_map: bool,
}

/// A store with one table of records.
pub(crate) trait Engine: Sized + Sync {
    type Reader<'t>: Reader;
    type Writer<'t>: Writer;

    /// Makes a new store in an empty directory.
    fn create(dir: &Path, settings: Settings) -> Self;

    /// Runs `work` in a read transaction.
    fn read<R>(&self, work: impl for<'t> FnOnce(Self::Reader<'t>) -> R) -> R;

    /// Begins and ends a read transaction `times` times.
    fn begin_end(&self, times: u64);

    /// As `begin_end`, with one reader kept for all.
    fn renew(&self, times: u64);

    /// Runs `work` in a write transaction and commits it.
    fn write<R>(&self, work: impl for<'t> FnOnce(&mut Self::Writer<'t>) -> R) -> R;

    /// As `write`, from many threads at once, in the way the engine recommends for that.
    fn write_shared<R: Send>(
        &self,
        work: impl for<'t> FnOnce(&mut Self::Writer<'t>) -> R + Send,
    ) -> R;

    /// Makes everything durable.
    fn sync(&self);

    /// Bytes that the data file takes on disk.
    fn disk_bytes(&self) -> u64;
}

/// Reading one table in one snapshot.
pub(crate) trait Reader {
    fn get(&self, key: &[u8]) -> Option<&[u8]>;

    /// Values under many keys, in their order.
    fn get_many(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>));

    /// All records in order.
    fn scan(&self, each: impl FnMut(&[u8], &[u8]));

    /// `count` records from the first key not less than `from`.
    fn range(&self, from: &[u8], count: usize, each: impl FnMut(&[u8], &[u8]));
}

/// Changing one table.
pub(crate) trait Writer {
    fn put(&mut self, key: &[u8], value: &[u8]);

    /// As `put`, of a key greater than all others; the engine may use that.
    fn append(&mut self, key: &[u8], value: &[u8]) {
        self.put(key, value);
    }

    fn get(&mut self, key: &[u8]) -> Option<&[u8]>;

    /// Returns whether the key was there.
    fn delete(&mut self, key: &[u8]) -> bool;
}

/// Bytes that a file takes on disk.
fn allocated(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map_or(0, |m| m.blocks() * 512)
}
