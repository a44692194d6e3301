//! Zubilo through its own interface.
//!
//! SYNC `Durability::Sync`, LAZY `Durability::LAZY`, NOSYNC and VOLATILE `Durability::NoSync`: the
//! options of these names, everything else by default. `zubilo-calls` writes by system calls where
//! the default is a writable map: without flushes. `zubilo-log` has a redo log of 8 MiB, which is used in SYNC
//! only.

use std::path::Path;

use zubilo::{
    CompactOptions, Durability, Env, Options, ReadTable, ReadTxn, TableHandle, TableOptions,
    WriteTable,
};

use super::tables::{Change, Find, PAIRS, Place};
use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer};
use crate::spec::Class;

const TABLE: &str = "records";

pub(crate) struct Zubilo {
    env: Env,
    /// Of the tables beside the records, once they are open; the records' last.
    handles: Vec<TableHandle>,
}

pub(crate) struct Thread<'e> {
    env: &'e Env,
    reader: zubilo::Reader,
    handles: &'e [TableHandle],
}

impl Thread<'_> {
    fn handle(&self, place: Place) -> Outcome<&TableHandle> {
        let at = if let Place::Pairs(i) = place { i } else { PAIRS };
        self.handles.get(at).ok_or_else(|| Fault::Failed("the tables are not open".into()))
    }
}

impl Engine for Zubilo {
    type Session<'e> = Thread<'e>;

    fn open(dir: &Path, class: Class, variant: Variant) -> Outcome<(Zubilo, About)> {
        let durability = match class {
            Class::Sync => Durability::Sync,
            Class::Lazy => Durability::LAZY,
            Class::NoSync | Class::Volatile => Durability::NoSync,
        };
        let calls = variant == Variant::Calls;
        if calls && matches!(class, Class::Sync | Class::Lazy) {
            let reason = "where flushes follow, pages are written by calls anyway: see zubilo";
            return Err(Fault::Absent(reason.into()));
        }
        let log = matches!(variant, Variant::Log | Variant::LogMap);
        if log && class != Class::Sync {
            return Err(Fault::Absent("only durable commits go to the redo log".into()));
        }
        let mut options = Options::new().durability(durability);
        if log {
            options = options.redo_log(8 << 20).writable_map(variant == Variant::LogMap);
        }
        if calls {
            options = options.writable_map(false);
        }
        let env = options.open(dir.join("zubilo")).map_err(Fault::of("open"))?;
        let mut write = env.write().map_err(Fault::of("begin"))?;
        write.table_or_create(TABLE).map_err(Fault::of("create the table"))?;
        write.commit().map_err(Fault::of("commit"))?;
        let about = About {
            version: option_env!("ARENA_COMMIT").map_or(env!("CARGO_PKG_VERSION").into(), |c| {
                format!("{} at {c}", env!("CARGO_PKG_VERSION"))
            }),
            settings: format!(
                "{durability:?}{}",
                match variant {
                    Variant::Calls => ", no writable map",
                    Variant::Log => ", redo log of 8 MiB",
                    Variant::LogMap => ", redo log of 8 MiB, writable map",
                    _ => "",
                }
            ),
            why: "the option of the class's name; defaults otherwise".into(),
        };
        Ok((Zubilo { env, handles: Vec::new() }, about))
    }

    fn session(&self) -> Outcome<Thread<'_>> {
        let reader = self.env.reader().map_err(Fault::of("reader"))?;
        Ok(Thread { env: &self.env, reader, handles: &self.handles })
    }

    fn flush(&self) -> Outcome<()> {
        self.env.sync().map_err(Fault::of("sync"))
    }

    fn open_tables(&mut self) -> Outcome<()> {
        let mut write = self.env.write().map_err(Fault::of("begin"))?;
        let pairs = TableOptions::new().duplicates();
        for i in 0..PAIRS {
            let table = write.table_or_create_with(Place::Pairs(i).name(), &pairs);
            self.handles.push(table.map_err(Fault::of("create a table"))?.handle());
        }
        self.handles.push(write.table(TABLE).map_err(Fault::of("table"))?.handle());
        write.commit().map(drop).map_err(Fault::of("commit"))
    }

    fn compact(&mut self) -> Outcome<()> {
        // To the brim, as the others do.
        let options = CompactOptions::new().fill(100);
        let compacted = self.env.compact(&options, &mut |_, _| true);
        compacted.map(drop).map_err(Fault::of("compact"))
    }

    fn back_up(&self, dir: &Path) -> Outcome<()> {
        let copied = self.env.copy_to_path(dir.join("zubilo"), false, &mut |_, _| true);
        copied.map(drop).map_err(Fault::of("copy_to_path"))
    }

    fn close(self) -> Outcome<()> {
        self.env.close().map_err(Fault::of("close"))
    }
}

impl Session for Thread<'_> {
    type Reader<'t> = Snapshot<'t>;
    type Writer<'t> = WriteTable<'t>;

    #[inline(always)]
    fn read<R>(
        &mut self,
        work: impl for<'t> FnOnce(&mut Snapshot<'t>) -> Outcome<R>,
    ) -> Outcome<R> {
        let read = self.reader.begin().map_err(Fault::of("begin"))?;
        work(&mut Snapshot { read: &read, table: None })
    }

    #[inline(always)]
    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut WriteTable<'t>) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let mut write = self.env.write().map_err(Fault::of("begin"))?;
        let result = work(&mut write.table(TABLE).map_err(Fault::of("table"))?)?;
        write.commit().map_err(Fault::of("commit"))?;
        Ok(result)
    }

    fn write_shared<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut WriteTable<'t>) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let done = self.env.update(move |txn| Ok(work(&mut txn.table(TABLE)?)));
        done.map_err(Fault::of("update"))?
    }

    fn change(&mut self, changes: &[Change]) -> Outcome<()> {
        let mut write = self.env.write().map_err(Fault::of("begin"))?;
        for same in changes.chunk_by(|a, b| a.place == b.place) {
            let place = same[0].place;
            let table = write.open(self.handle(place)?);
            let mut table = table.map_err(Fault::of("open the table"))?;
            for Change { key, value, gone, .. } in same {
                match (place, gone) {
                    (Place::Records, false) => table.put(key, value),
                    (Place::Records, true) => table.delete(key).map(drop),
                    (_, false) => table.insert_value(key, value).map(drop),
                    (_, true) => table.delete_value(key, value).map(drop),
                }
                .map_err(Fault::of("change"))?;
            }
        }
        write.commit().map(drop).map_err(Fault::of("commit"))
    }

    fn find(&mut self, find: Find<'_>, mut see: impl FnMut(&[u8], Option<&[u8]>)) -> Outcome<u64> {
        let handles = [Place::Pairs(find.pairs), Place::Records].map(|p| self.handle(p).cloned());
        let [pairs, records] = handles;
        let read = self.reader.begin().map_err(Fault::of("begin"))?;
        let pairs = read.open(&pairs?).map_err(Fault::of("open the table"))?;
        let records = read.open(&records?).map_err(Fault::of("open the table"))?;
        let mut count = 0;
        let values = pairs.get_all(find.key).map_err(Fault::of("get_all"))?;
        for value in values.take(usize::try_from(find.most).unwrap_or(usize::MAX)) {
            let value = value.map_err(Fault::of("next"))?;
            let record = if find.records { records.get(value) } else { Ok(None) };
            see(value, record.map_err(Fault::of("get"))?);
            count += 1;
        }
        Ok(count)
    }
}

/// A read transaction. Its table is looked up when it is first read, as LMDB does behind its handles.
pub(crate) struct Snapshot<'t> {
    read: &'t ReadTxn,
    table: Option<ReadTable<'t>>,
}

impl<'t> Snapshot<'t> {
    #[inline(always)]
    fn table(&mut self) -> Outcome<&ReadTable<'t>> {
        if self.table.is_none() {
            self.table = Some(self.read.table(TABLE).map_err(Fault::of("table"))?);
        }
        self.table.as_ref().ok_or_else(|| Fault::Failed("the table is not open".into()))
    }
}

impl Reader for Snapshot<'_> {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.table()?.get(key).map(see).map_err(Fault::of("get"))
    }

    #[inline(always)]
    fn get_many(&mut self, keys: &[&[u8]], see: impl FnMut(usize, Option<&[u8]>)) -> Outcome<()> {
        self.table()?.get_many_with(keys, see).map_err(Fault::of("get_many_with"))
    }

    #[inline(always)]
    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let table = self.table()?;
        let records = match from {
            Some(from) => table.range(from..),
            None => table.iter(),
        };
        let mut count = 0;
        for record in records.take(usize::try_from(most).unwrap_or(usize::MAX)) {
            let (key, value) = record.map_err(Fault::of("next"))?;
            see(key, value);
            count += 1;
        }
        Ok(count)
    }
}

impl Writer for WriteTable<'_> {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        WriteTable::put(self, key, value).map_err(Fault::of("put"))
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        WriteTable::get(self, key).map(see).map_err(Fault::of("get"))
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        WriteTable::delete(self, key).map(drop).map_err(Fault::of("delete"))
    }
}
