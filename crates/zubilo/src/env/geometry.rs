//! How long the file is and how long it may become.

use std::sync::atomic::Ordering as StdOrdering;

use crate::error::{Error, Result};
use crate::planted::{Bug, has};
use crate::platform::Advice;
use crate::shared::Word;
use crate::sync::Ordering;

use super::EnvInner;
use super::log::Level;
use super::meta::{META_COUNT, StoredGeometry};
use super::metas;
use super::options::Geometry;

const GROWTH_MIN: u64 = 256 << 10;
const GROWTH_MAX: u64 = 64 << 20;
/// A file that is shorter grows by no more at a time, whatever its geometry says; a longer one doubles.
const STEP_MAX: u64 = 1 << 30;

impl From<Geometry> for StoredGeometry {
    fn from(g: Geometry) -> StoredGeometry {
        StoredGeometry { lower: g.lower, upper: g.upper, growth: g.growth, shrink: g.shrink }
    }
}

impl From<StoredGeometry> for Geometry {
    fn from(g: StoredGeometry) -> Geometry {
        Geometry { lower: g.lower, upper: g.upper, growth: g.growth, shrink: g.shrink }
    }
}

/// Bytes the file grows by when it is `len` long.
pub(crate) fn growth_step(geometry: &StoredGeometry, len: u64) -> u64 {
    match geometry.growth {
        0 => (len / 16).clamp(GROWTH_MIN, GROWTH_MAX),
        // A number from the file must not take all of the disk.
        step => step.min(len.max(STEP_MAX)),
    }
}

impl EnvInner {
    /// Pages that the file may have at most.
    pub(crate) fn page_limit(&self, geometry: &StoredGeometry) -> u64 {
        geometry.upper.min(self.data.reserved()) >> self.shift
    }

    /// The error for a transaction that does not fit.
    pub(crate) fn full(&self, geometry: &StoredGeometry) -> Error {
        let limit = self.page_limit(geometry) << self.shift;
        let full = Error::MapFull { limit, path: Box::new(self.data.path().to_path_buf()) };
        self.log(Level::Warn, format_args!("{full}"));
        full
    }

    /// Makes the file reach to page `end`. The new space is really allocated; small growth for a
    /// commit that is flushed is also written once, because a flush after a write into
    /// never-written space costs twice.
    pub(crate) fn ensure_len(&self, geometry: &StoredGeometry, end: u64) -> Result<()> {
        let known = self.shared.word(Word::FileLen);
        let need = end << self.shift;
        let len = known.load(Ordering::SeqCst);
        if need <= len {
            return Ok(());
        }
        let step = growth_step(geometry, len);
        let limit = self.page_limit(geometry) << self.shift;
        let page = 1u64 << self.shift;
        // Any step can be stored: first the bound, then the rounding.
        let wish = need.saturating_add(step).min(limit).next_multiple_of(page.max(64 << 10));
        let wish = wish.min(limit).max(need);
        let small = need - len <= step;
        let grown = self.data.grow(wish, small && self.is_sync());
        let wish = match grown {
            Ok(()) => wish,
            // The step may be more than the disk has left; the need may still fit.
            Err(_) => {
                self.data.grow(need, false).map_err(Error::io_at("grow", self.data.path()))?;
                need
            }
        };
        known.store(wish, Ordering::SeqCst);
        self.look_at_length(wish);
        Ok(())
    }

    /// Notices when the file no longer fits into memory: what is read ahead then drives out what is needed,
    /// and a store to a page through the map would first read what it overwrites.
    pub(super) fn look_at_length(&self, len: u64) {
        if len <= self.memory.load(StdOrdering::Relaxed)
            || self.outgrown.swap(true, StdOrdering::Relaxed)
        {
            return;
        }
        if self.options.read_ahead.is_none() {
            // Advice: a kernel that does not take it reads ahead, which is slow and no error.
            let _ = self.data.advise(0, self.data.reserved(), Advice::Random);
        }
    }

    /// The map through which pages are written, if there is one and it pays: not where they are `flushed`.
    pub(crate) fn map_to_write(&self, flushed: bool) -> Option<*mut u8> {
        let reads_first =
            self.options.writable_map.is_none() && self.outgrown.load(StdOrdering::Relaxed);
        if reads_first || flushed { None } else { self.data.writable() }
    }

    /// Cuts the free tail of the file, if it is long enough, or `all` of it. Only while the newest commit is
    /// steady and no reader has an older snapshot: their ends may lie further out. The caller holds
    /// the writer lock.
    pub(crate) fn cut_tail(&self, geometry: &StoredGeometry, end: u64, all: bool) -> Result<()> {
        if self.data.is_fixed() {
            return Ok(());
        }
        let known = self.shared.word(Word::FileLen);
        let len = known.load(Ordering::SeqCst);
        let step = growth_step(geometry, len);
        let threshold = match geometry.shrink {
            _ if all => 1,
            0 => step.saturating_mul(2),
            bytes => bytes,
        };
        let keep = (end.max(META_COUNT) << self.shift).max(geometry.lower);
        let newest = self.shared.newest();
        if len.saturating_sub(keep) < threshold.max(1) || self.steady() != newest {
            return Ok(());
        }
        let mut pins = Vec::new();
        self.shared.pins(&mut pins);
        if pins.iter().any(|pin| *pin < newest) {
            return Ok(());
        }
        let target = keep.saturating_add(step.min(threshold / 2)).next_multiple_of(64 << 10);
        // The pages of a prepared transaction may lie there, or of one whose writer was killed when its meta was on disk.
        let is_needed = metas::has_unpublished(&self.shared) && !has(Bug::PreparedCut);
        if target >= len || is_needed {
            return Ok(());
        }
        // First the word: whoever is killed in between leaves a file that is longer than known,
        // and never one that ends before the pages which the next writer touches.
        known.store(target, Ordering::SeqCst);
        self.data.truncate(target).map_err(|error| {
            known.store(self.data.len().unwrap_or(target), Ordering::SeqCst);
            Error::io_at("cut the tail of", self.data.path())(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::options::{Durability, Options};
    use super::*;
    use crate::Env;

    /// Whether the kernel was advised that pages of a file are wanted in no order.
    fn wanted_in_no_order(path: &str) -> bool {
        let maps = fs::read_to_string("/proc/self/smaps").expect("maps of this process");
        let of_file = maps.lines().skip_while(|line| !line.ends_with(path));
        let flags = of_file.skip(1).find_map(|line| line.strip_prefix("VmFlags:"));
        flags.expect("the map of the store").split_whitespace().any(|flag| flag == "rr")
    }

    #[test]
    fn a_store_that_outgrows_memory_while_it_is_open_is_not_read_ahead_nor_written_by_its_map() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("store");
        let options = Options::new().durability(Durability::NoSync);
        let env = Env::open(&path, options).expect("open");
        let has_map = env.inner.data.writable().is_some();
        let name = path.to_str().expect("a path of letters");
        env.inner.memory.store(2 << 20, StdOrdering::Relaxed);
        for (value, in_no_order) in [(1 << 10, false), (3 << 20, true), (3 << 20, true)] {
            let mut write = env.write().expect("begin");
            let mut main = write.table_or_create("t").expect("table");
            main.put(b"value", vec![7; value]).expect("put");
            write.commit().expect("commit");
            assert_eq!(wanted_in_no_order(name), in_no_order, "{value} bytes");
            assert_eq!(env.inner.map_to_write(false).is_some(), has_map && !in_no_order);
        }
    }
}
