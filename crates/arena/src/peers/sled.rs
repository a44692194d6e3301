//! sled, the alpha of its version 1.
//!
//! SYNC: `flush` after each batch. Without it, changes stay in the process's memory until the
//! flusher comes, every 200 ms by default, and are lost when the process ends: VOLATILE only. There
//! are no snapshots: walks see changes made meanwhile. Level 1 of zstd, the least there is, since
//! compression cannot be turned off.

use std::path::Path;
use std::sync::Mutex;

use sled::{Batch, Config, Db};

use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, cache};
use crate::spec::Class;

/// Records of a leaf, as in the documentation's examples.
const FANOUT: usize = 1024;

pub(crate) struct Sled {
    /// Each thread works with a clone of its own, as the handle's type demands.
    db: Mutex<Db<FANOUT>>,
    flush: bool,
}

pub(crate) struct Thread {
    db: Db<FANOUT>,
    flush: bool,
}

/// The store as it is now.
pub(crate) struct Now<'t>(&'t Db<FANOUT>);

/// A batch; reads see the last commit.
pub(crate) struct Changes<'t> {
    batch: Batch,
    db: &'t Db<FANOUT>,
}

impl Engine for Sled {
    type Session<'e> = Thread;

    fn open(dir: &Path, class: Class, _: Variant) -> Outcome<(Sled, About)> {
        let flush = match class {
            Class::Sync => true,
            Class::Volatile => false,
            Class::Lazy | Class::NoSync => {
                let reason = "changes that were not flushed end with the process";
                return Err(Fault::Absent(reason.into()));
            }
        };
        let db = Config::new()
            .path(dir.join("sled"))
            .cache_capacity_bytes(cache())
            .zstd_compression_level(1)
            .flush_every_ms(if flush { None } else { Some(200) })
            .open()
            .map_err(Fault::of("open"))?;
        let how = if flush { "flush after each batch" } else { "flush every 200 ms" };
        let about = About {
            version: super::locked("sled"),
            settings: format!("{how}, cache {} MiB, zstd level 1", cache() >> 20),
            why: "only flush makes durable; compression cannot be turned off".into(),
        };
        Ok((Sled { db: Mutex::new(db), flush }, about))
    }

    fn session(&self) -> Outcome<Thread> {
        Ok(Thread { db: self.handle()?, flush: self.flush })
    }

    fn begins_snapshots(&self) -> Outcome<()> {
        Err(Fault::Absent("it has no snapshots: to begin a read does nothing".into()))
    }

    fn flush(&self) -> Outcome<()> {
        self.handle()?.flush().map(drop).map_err(Fault::of("flush"))
    }
}

impl Sled {
    fn handle(&self) -> Outcome<Db<FANOUT>> {
        Ok(self.db.lock().map_err(Fault::of("lock"))?.clone())
    }
}

impl Session for Thread {
    type Reader<'t> = Now<'t>;
    type Writer<'t> = Changes<'t>;

    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut Now<'t>) -> Outcome<R>) -> Outcome<R> {
        work(&mut Now(&self.db))
    }

    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Changes<'t>) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let mut changes = Changes { batch: Batch::default(), db: &self.db };
        let result = work(&mut changes)?;
        self.db.apply_batch(changes.batch).map_err(Fault::of("apply_batch"))?;
        if self.flush {
            self.db.flush().map_err(Fault::of("flush"))?;
        }
        Ok(result)
    }
}

impl Reader for Now<'_> {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let found = self.0.get(key).map_err(Fault::of("get"))?;
        Ok(see(found.as_deref()))
    }

    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let records = match from {
            Some(from) => self.0.range(from..),
            None => self.0.iter(),
        };
        let mut count = 0;
        for record in records.take(most as usize) {
            let (key, value) = record.map_err(Fault::of("next"))?;
            see(&key, &value);
            count += 1;
        }
        Ok(count)
    }
}

impl Writer for Changes<'_> {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.batch.insert(key, value);
        Ok(())
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let found = self.db.get(key).map_err(Fault::of("get"))?;
        Ok(see(found.as_deref()))
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.batch.remove(key);
        Ok(())
    }
}
