//! The comparison of all records, read again from both files.

use std::fs::File;

use lmdb_file::{Reader, Record};
use zubilo::raw::{Named, RawCursor, RawTable};
use zubilo::{ReadTable, ReadTxn};

use crate::order::options;
use crate::{Counter, Doing, Error, Import, Move, Own, Result, Step};

impl Import<'_> {
    /// After the copy was committed: compares all records, in both directions. The store should have been
    /// opened so that it verifies the pages it reads.
    pub fn verify(&self, read: &ReadTxn, step: Step<'_>) -> Result<()> {
        let mut reader = self.old.reader();
        let mut counter = Counter { done: 0, step };
        for m in &self.moves {
            let failed = |source| m.failed(Doing::Compare, None, source);
            let ours = Ours::open(read, m).map_err(failed)?;
            reader.begin(&m.from)?;
            let theirs = match &ours {
                Ours::InOrder(_, table) => m.same_order(read, table, &mut reader, &mut counter)?,
                _ => m.all_there(&ours, &mut reader, &mut counter)?,
            };
            if theirs != ours.len().map_err(failed)? {
                return Err(m.differs(b""));
            }
        }
        Ok(())
    }
}

impl Move {
    fn differs(&self, key: &[u8]) -> Error {
        Error::Differs { table: self.to.clone(), key: key.to_vec() }
    }

    /// Compares record by record; the number of the old file's.
    fn same_order(
        &self,
        read: &ReadTxn,
        table: &RawTable,
        reader: &mut Reader<'_, File>,
        counter: &mut Counter<'_>,
    ) -> Result<u64> {
        let failed = |source| self.failed(Doing::Compare, None, source);
        let (mut cursor, mut record, mut theirs) = (RawCursor::default(), Record::default(), 0);
        let mut ours = read.raw_at(&mut cursor, table).map_err(failed)?;
        while reader.next(&mut record)? {
            if ours.step().map_err(failed)? != Some((&record.key, &record.value)) {
                return Err(self.differs(&record.key));
            }
            theirs += 1;
            counter.count()?;
        }
        Ok(theirs)
    }

    /// Looks for each record of the old file; their number.
    fn all_there(
        &self,
        ours: &Ours<'_>,
        reader: &mut Reader<'_, File>,
        counter: &mut Counter<'_>,
    ) -> Result<u64> {
        let (mut record, mut theirs) = (Record::default(), 0);
        while reader.next(&mut record)? {
            let there = ours.has(&record);
            if !there.map_err(|source| self.failed(Doing::Compare, None, source))? {
                return Err(self.differs(&record.key));
            }
            theirs += 1;
            counter.count()?;
        }
        Ok(theirs)
    }
}

/// What became of a table.
enum Ours<'t> {
    /// Its records come in the order of the old file.
    InOrder(u64, RawTable),
    /// They have to be looked up.
    InAnyOrder(ReadTable<'t>),
    /// Records without a table.
    Unnamed(&'t ReadTxn, RawTable),
}

impl<'t> Ours<'t> {
    fn open(read: &'t ReadTxn, m: &Move) -> zubilo::Result<Ours<'t>> {
        let Some(name) = &m.to else { return Ok(Ours::Unnamed(read, read.raw_names())) };
        let table = read.table_with(name, &options(m.flags(), m.own))?;
        match (m.sorted || m.own != Own::default(), read.raw_find(name)?) {
            (true, Named::Table(raw)) => Ok(Ours::InOrder(table.len(), raw)),
            _ => Ok(Ours::InAnyOrder(table)),
        }
    }

    fn has(&self, record: &Record) -> zubilo::Result<bool> {
        let Record { key, value } = record;
        match self {
            Ours::InOrder(..) => Ok(false),
            Ours::InAnyOrder(table) => table.contains(key, value),
            Ours::Unnamed(read, names) => Ok(read.raw_get(names, key)? == Some(value)),
        }
    }

    fn len(&self) -> zubilo::Result<u64> {
        match self {
            Ours::InOrder(records, _) => Ok(*records),
            Ours::InAnyOrder(table) => Ok(table.len()),
            Ours::Unnamed(read, names) => {
                Ok(names.info().stats.entries.saturating_sub(read.tables()?.len() as u64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lmdb_file::LmdbFile;
    use zubilo::raw::TableRef;
    use zubilo::{Options, WriteTxn};

    use super::*;
    use crate::How;

    /// Imports a fixture, changes the new store, compares.
    fn compared_after(change: impl FnOnce(&mut WriteTxn) -> zubilo::Result<()>) -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let old =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../lmdb-file/tests/fixtures/pages2k.mdb");
        let old = LmdbFile::open(old).unwrap();
        let how = How { main_table: None, keep_orders: false, longest: usize::MAX };
        let mut import = Import::plan(&old, how)?;
        let env = Options::new().open(dir.path().join("new")).unwrap();
        let mut txn = env.write().unwrap();
        import.copy(&mut txn, &mut |_| true)?;
        change(&mut txn).unwrap();
        txn.commit().unwrap();
        // The one that looks records up as well.
        import
            .moves
            .iter_mut()
            .filter(|m| m.from.name.as_deref() == Some(b"numbers"))
            .for_each(|m| m.sorted = false);
        import.verify(&env.read().unwrap(), &mut |_| true)
    }

    #[test]
    fn comparing_finds_every_kind_of_difference() {
        compared_after(|_| Ok(())).unwrap();
        let differs = |change: fn(&mut WriteTxn) -> zubilo::Result<()>| {
            let error = compared_after(change).unwrap_err();
            assert!(matches!(error, Error::Differs { .. }), "{error}");
        };
        differs(|txn| txn.table("plain")?.put("00007", "other"));
        differs(|txn| txn.table("plain")?.delete("00007").map(drop));
        differs(|txn| txn.table("plain")?.put("99999", "more"));
        differs(|txn| txn.table("numbers")?.put([0; 4], "other"));
        differs(|txn| txn.table("numbers")?.put([0xff; 4], "more"));
        differs(|txn| txn.table("packed")?.delete_value("b", 7919u32.to_le_bytes()).map(drop));
        differs(|txn| txn.table("texts")?.insert_value("c", "more").map(drop));
        differs(|txn| txn.raw_put(TableRef::CATALOGUE, b"unnamed", b"other", true).map(drop));
        differs(|txn| txn.raw_put(TableRef::CATALOGUE, b"more", b"", true).map(drop));
        differs(|txn| txn.raw_delete(TableRef::CATALOGUE, b"unnamed").map(drop));
    }

    #[test]
    fn what_is_too_long_for_the_caller_is_reported() {
        let old =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../lmdb-file/tests/fixtures/pages2k.mdb");
        let (dir, old) = (tempfile::tempdir().unwrap(), LmdbFile::open(old).unwrap());
        let env = Options::new().open(dir.path().join("new")).unwrap();
        let tried = |longest| {
            let how = How { main_table: None, keep_orders: false, longest };
            Import::plan(&old, how)?.copy(&mut env.write().unwrap(), &mut |_| true)
        };
        tried(511).unwrap();
        let error = tried(4).unwrap_err();
        assert!(matches!(error, Error::TooLong { max: 4, .. }), "{error}");
    }
}
