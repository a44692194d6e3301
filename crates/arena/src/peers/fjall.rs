//! fjall, a log-structured tree with a journal.
//!
//! SYNC: batches with `PersistMode::SyncData`, one fdatasync of the journal. LAZY and NOSYNC:
//! `PersistMode::Buffer`, the default; the journal reaches the kernel with each commit, and each
//! batch in it has a checksum, so a power cut leaves a prefix. VOLATILE: `manual_journal_persist`,
//! the journal stays in the process's buffer. A journal cannot be left out. Compression off: the
//! values of the arena cannot be compressed. Large values are kept apart from keys, as its
//! documentation advises.

use std::path::Path;

use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions,
    OwnedWriteBatch, PersistMode, Readable, Snapshot,
};

use super::tables::{Change, Find, PAIRS, Place, joined, value_of};
use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, cache};
use crate::spec::Class;

pub(crate) struct Fjall {
    db: Database,
    records: Keyspace,
    /// The tables beside it, once they are open.
    pairs: Vec<Keyspace>,
    persist: Option<PersistMode>,
}

/// A snapshot of the keyspace.
pub(crate) struct Shot<'t> {
    snapshot: Snapshot,
    records: &'t Keyspace,
}

/// A batch; reads see the last commit.
pub(crate) struct Batch<'t> {
    batch: OwnedWriteBatch,
    records: &'t Keyspace,
}

impl Engine for Fjall {
    type Session<'e> = &'e Fjall;

    fn open(dir: &Path, class: Class, _: Variant) -> Outcome<(Fjall, About)> {
        let persist = match class {
            Class::Sync => Some(PersistMode::SyncData),
            Class::Lazy | Class::NoSync => Some(PersistMode::Buffer),
            Class::Volatile => None,
        };
        let db = Database::builder(dir.join("fjall"))
            .cache_size(cache() as u64)
            .manual_journal_persist(persist.is_none())
            .open()
            .map_err(Fault::of("open"))?;
        let records = db.keyspace("records", options).map_err(Fault::of("keyspace"))?;
        let persisted = match persist {
            Some(mode) => format!("batches with PersistMode::{mode:?}"),
            None => "manual_journal_persist, never persisted".into(),
        };
        let about = About {
            version: super::locked("fjall"),
            settings: format!(
                "{persisted}, cache {} MiB, no compression{}",
                cache() >> 20,
                if super::large_values() { ", values apart from keys" } else { "" }
            ),
            why: "PersistMode's documentation; workers by default".into(),
        };
        Ok((Fjall { db, records, pairs: Vec::new(), persist }, about))
    }

    fn session(&self) -> Outcome<&Fjall> {
        Ok(self)
    }

    fn flush(&self) -> Outcome<()> {
        self.db.persist(PersistMode::SyncAll).map_err(Fault::of("persist"))
    }

    fn open_tables(&mut self) -> Outcome<()> {
        for i in 0..PAIRS {
            let pairs = self.db.keyspace(Place::Pairs(i).name(), options);
            self.pairs.push(pairs.map_err(Fault::of("keyspace"))?);
        }
        Ok(())
    }

    fn compact(&mut self) -> Outcome<()> {
        self.records.major_compact().map_err(Fault::of("major_compact"))
    }

    fn settle(&self) -> Outcome<()> {
        super::until_quiet(|| {
            Ok(self.db.active_compactions() == 0 && self.db.outstanding_flushes() == 0)
        })
    }
}

fn options() -> KeyspaceCreateOptions {
    let options = KeyspaceCreateOptions::default()
        .max_memtable_size(super::write_buffer() as u64)
        .data_block_compression_policy(CompressionPolicy::disabled());
    let apart = KvSeparationOptions::default().compression(CompressionType::None);
    options.with_kv_separation(super::large_values().then_some(apart))
}

impl Session for &Fjall {
    type Reader<'t> = Shot<'t>;
    type Writer<'t> = Batch<'t>;

    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut Shot<'t>) -> Outcome<R>) -> Outcome<R> {
        work(&mut Shot { snapshot: self.db.snapshot(), records: &self.records })
    }

    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Batch<'t>) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let batch = self.db.batch().durability(self.persist);
        let mut batch = Batch { batch, records: &self.records };
        let result = work(&mut batch)?;
        batch.batch.commit().map_err(Fault::of("commit"))?;
        Ok(result)
    }

    /// One look-up needs no snapshot.
    #[inline(always)]
    fn get_once<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let found = self.records.get(key).map_err(Fault::of("get"))?;
        Ok(see(found.as_deref()))
    }

    fn change(&mut self, changes: &[Change]) -> Outcome<()> {
        let mut batch = self.db.batch().durability(self.persist);
        for Change { place, key, value, gone } in changes {
            match (place, gone) {
                (Place::Records, false) => batch.insert(&self.records, &key[..], &value[..]),
                (Place::Records, true) => batch.remove(&self.records, &key[..]),
                (Place::Pairs(i), false) => batch.insert(&self.pairs[*i], joined(key, value), []),
                (Place::Pairs(i), true) => batch.remove(&self.pairs[*i], joined(key, value)),
            }
        }
        batch.commit().map_err(Fault::of("commit"))
    }

    fn find(&mut self, find: Find<'_>, mut see: impl FnMut(&[u8], Option<&[u8]>)) -> Outcome<u64> {
        let snapshot = self.db.snapshot();
        let all = snapshot.prefix(&self.pairs[find.pairs], find.key);
        let mut count = 0;
        for pair in all.take(usize::try_from(find.most).unwrap_or(usize::MAX)) {
            let pair = pair.key().map_err(Fault::of("next"))?;
            let Some(value) = value_of(&pair, find.key) else { break };
            let record = match find.records {
                true => snapshot.get(&self.records, value).map_err(Fault::of("get"))?,
                false => None,
            };
            see(value, record.as_deref());
            count += 1;
        }
        Ok(count)
    }
}

impl Reader for Shot<'_> {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let found = self.snapshot.get(self.records, key).map_err(Fault::of("get"))?;
        Ok(see(found.as_deref()))
    }

    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let records = match from {
            Some(from) => self.snapshot.range(self.records, from..),
            None => self.snapshot.iter(self.records),
        };
        let mut count = 0;
        for record in records.take(most as usize) {
            let (key, value) = record.into_inner().map_err(Fault::of("next"))?;
            see(&key, &value);
            count += 1;
        }
        Ok(count)
    }
}

impl Writer for Batch<'_> {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.batch.insert(self.records, key, value);
        Ok(())
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let found = self.records.get(key).map_err(Fault::of("get"))?;
        Ok(see(found.as_deref()))
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.batch.remove(self.records, key);
        Ok(())
    }
}
