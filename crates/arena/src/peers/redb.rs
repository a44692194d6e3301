//! redb.
//!
//! SYNC: `Durability::Immediate`, the default. `Durability::None` keeps commits in the process's
//! memory until a later immediate one: they are lost when the process ends, so it stands for
//! VOLATILE only, and there is nothing in between. The cache is as large as the other engines'.

use std::path::Path;

use redb::{
    Database, Durability, MultimapTableDefinition, ReadOnlyTable, ReadableDatabase, ReadableTable,
    Table, TableDefinition, WriteTransaction,
};

use super::tables::{Change, Find, PAIRS, Place};
use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, cache};
use crate::spec::Class;

type Bytes = &'static [u8];
const TABLE: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("records");
const MULTI: [MultimapTableDefinition<'static, Bytes, Bytes>; PAIRS] = [
    MultimapTableDefinition::new(Place::Pairs(0).name()),
    MultimapTableDefinition::new(Place::Pairs(1).name()),
];

pub(crate) struct Redb {
    db: Database,
    durability: Durability,
}

impl Engine for Redb {
    type Session<'e> = &'e Redb;

    fn open(dir: &Path, class: Class, _: Variant) -> Outcome<(Redb, About)> {
        let durability = match class {
            Class::Sync => Durability::Immediate,
            Class::Volatile => Durability::None,
            Class::Lazy | Class::NoSync => {
                let reason = "commits without a flush stay in the process's memory and end with it";
                return Err(Fault::Absent(reason.into()));
            }
        };
        let db = Database::builder()
            .set_cache_size(cache())
            .create(dir.join("redb"))
            .map_err(Fault::of("create"))?;
        let engine = Redb { db, durability };
        let write = engine.db.begin_write().map_err(Fault::of("begin_write"))?;
        write.open_table(TABLE).map(drop).map_err(Fault::of("open_table"))?;
        write.commit().map_err(Fault::of("commit"))?;
        let about = About {
            version: super::locked("redb"),
            settings: format!("Durability::{durability:?}, cache {} MiB", cache() >> 20),
            why: "the documented levels; two-phase commit and quick repair off, as by default"
                .into(),
        };
        Ok((engine, about))
    }

    fn session(&self) -> Outcome<&Redb> {
        Ok(self)
    }

    fn open_tables(&mut self) -> Outcome<()> {
        let write = self.begin()?;
        for pairs in MULTI {
            write.open_multimap_table(pairs).map(drop).map_err(Fault::of("open_multimap_table"))?;
        }
        write.commit().map_err(Fault::of("commit"))
    }

    fn compact(&mut self) -> Outcome<()> {
        self.db.compact().map(drop).map_err(Fault::of("compact"))
    }

    fn flush(&self) -> Outcome<()> {
        let write = self.db.begin_write().map_err(Fault::of("begin_write"))?;
        write.commit().map_err(Fault::of("commit"))
    }
}

impl Redb {
    fn begin(&self) -> Outcome<WriteTransaction> {
        let mut write = self.db.begin_write().map_err(Fault::of("begin_write"))?;
        write.set_durability(self.durability).map_err(Fault::of("set_durability"))?;
        Ok(write)
    }
}

impl Session for &Redb {
    type Reader<'t> = ReadOnlyTable<Bytes, Bytes>;
    type Writer<'t> = Table<'t, Bytes, Bytes>;

    fn read<R>(
        &mut self,
        work: impl for<'t> FnOnce(&mut ReadOnlyTable<Bytes, Bytes>) -> Outcome<R>,
    ) -> Outcome<R> {
        let read = self.db.begin_read().map_err(Fault::of("begin_read"))?;
        work(&mut read.open_table(TABLE).map_err(Fault::of("open_table"))?)
    }

    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Table<'t, Bytes, Bytes>) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let write = self.begin()?;
        let result = work(&mut write.open_table(TABLE).map_err(Fault::of("open_table"))?)?;
        write.commit().map_err(Fault::of("commit"))?;
        Ok(result)
    }

    fn change(&mut self, changes: &[Change]) -> Outcome<()> {
        let write = self.begin()?;
        for same in changes.chunk_by(|a, b| a.place == b.place) {
            match same[0].place {
                Place::Records => {
                    let mut table = write.open_table(TABLE).map_err(Fault::of("open_table"))?;
                    for Change { key, value, gone, .. } in same {
                        match gone {
                            true => Writer::delete(&mut table, key)?,
                            false => Writer::put(&mut table, key, value)?,
                        }
                    }
                }
                Place::Pairs(i) => {
                    let table = write.open_multimap_table(MULTI[i]);
                    let mut table = table.map_err(Fault::of("open_multimap_table"))?;
                    for Change { key, value, gone, .. } in same {
                        let done = match gone {
                            true => table.remove(&key[..], &value[..]),
                            false => table.insert(&key[..], &value[..]),
                        };
                        done.map_err(Fault::of("change a pair"))?;
                    }
                }
            }
        }
        write.commit().map_err(Fault::of("commit"))
    }

    fn find(&mut self, find: Find<'_>, mut see: impl FnMut(&[u8], Option<&[u8]>)) -> Outcome<u64> {
        let read = self.db.begin_read().map_err(Fault::of("begin_read"))?;
        let pairs = read.open_multimap_table(MULTI[find.pairs]);
        let pairs = pairs.map_err(Fault::of("open_multimap_table"))?;
        let mut records = read.open_table(TABLE).map_err(Fault::of("open_table"))?;
        let values =
            redb::ReadableMultimapTable::get(&pairs, find.key).map_err(Fault::of("get"))?;
        let mut count = 0;
        for value in values.take(usize::try_from(find.most).unwrap_or(usize::MAX)) {
            let value = value.map_err(Fault::of("next"))?;
            match find.records {
                true => Reader::get(&mut records, value.value(), |r| see(value.value(), r))?,
                false => see(value.value(), None),
            }
            count += 1;
        }
        Ok(count)
    }
}

fn walk(
    table: &impl ReadableTable<Bytes, Bytes>,
    from: Option<&[u8]>,
    most: u64,
    mut see: impl FnMut(&[u8], &[u8]),
) -> Outcome<u64> {
    let records = match from {
        Some(from) => table.range(from..),
        None => table.iter(),
    };
    let mut count = 0;
    for record in records.map_err(Fault::of("range"))?.take(most as usize) {
        let (key, value) = record.map_err(Fault::of("next"))?;
        see(key.value(), value.value());
        count += 1;
    }
    Ok(count)
}

impl Reader for ReadOnlyTable<Bytes, Bytes> {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let found = ReadableTable::get(self, key).map_err(Fault::of("get"))?;
        Ok(see(found.as_ref().map(|value| value.value())))
    }

    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        walk(self, from, most, see)
    }
}

impl Writer for Table<'_, Bytes, Bytes> {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.insert(key, value).map(drop).map_err(Fault::of("insert"))
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let found = ReadableTable::get(self, key).map_err(Fault::of("get"))?;
        Ok(see(found.as_ref().map(|value| value.value())))
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.remove(key).map(drop).map_err(Fault::of("remove"))
    }
}
