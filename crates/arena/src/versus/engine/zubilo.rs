//! Zubilo.

use std::path::Path;

use zubilo::{Durability, Env, Options, ReadTable, WriteTable};

use super::{Engine, Mode, Reader, Settings, Writer};

/// An open store with its table.
pub(crate) struct Zubilo {
    env: Env,
}

const TABLE: &str = "records";

/// The options for these settings.
pub(crate) fn options(settings: Settings) -> Options {
    let durability = match settings.mode {
        Mode::Sync => Durability::Sync,
        Mode::Lazy => Durability::LAZY,
        Mode::NoSync => Durability::NoSync,
    };
    Options::new().durability(durability).writable_map(settings.write_map)
}

impl Zubilo {
    /// A store that was opened elsewhere; its table is created.
    pub(crate) fn on(env: Env) -> Zubilo {
        let mut write = env.write().expect("begin");
        write.table_or_create(TABLE).expect("create the table");
        write.commit().expect("commit");
        Zubilo { env }
    }

    /// Bytes of the tree's pages: what is live.
    pub(crate) fn live_bytes(&self) -> u64 {
        let read = self.env.read().expect("begin");
        let stats = read.table(TABLE).expect("the table").stats();
        (stats.leaf_pages + stats.branch_pages + stats.run_pages) * self.env.page_size() as u64
    }
}

impl Engine for Zubilo {
    type Reader<'t> = ReadTable<'t>;
    type Writer<'t> = WriteTable<'t>;

    fn create(dir: &Path, settings: Settings) -> Zubilo {
        Zubilo::on(options(settings).open(dir.join("zubilo")).expect("open"))
    }

    fn read<R>(&self, work: impl for<'t> FnOnce(ReadTable<'t>) -> R) -> R {
        let read = self.env.read().expect("begin");
        work(read.table(TABLE).expect("the table"))
    }

    fn begin_end(&self, times: u64) {
        for _ in 0..times {
            drop(std::hint::black_box(self.env.read().expect("begin")));
        }
    }

    fn renew(&self, times: u64) {
        let mut reader = self.env.reader().expect("a reader");
        for _ in 0..times {
            std::hint::black_box(&*std::hint::black_box(&mut reader).begin().expect("begin"));
        }
    }

    fn write<R>(&self, work: impl for<'t> FnOnce(&mut WriteTable<'t>) -> R) -> R {
        let mut write = self.env.write().expect("begin");
        let result = work(&mut write.table(TABLE).expect("the table"));
        write.commit().expect("commit");
        result
    }

    fn write_shared<R: Send>(
        &self,
        work: impl for<'t> FnOnce(&mut WriteTable<'t>) -> R + Send,
    ) -> R {
        let shared = |txn: &mut zubilo::WriteTxn| zubilo::Result::Ok(work(&mut txn.table(TABLE)?));
        self.env.update(shared).expect("commit")
    }

    fn sync(&self) {
        self.env.sync().expect("flush");
    }

    fn disk_bytes(&self) -> u64 {
        super::allocated(self.env.path())
    }
}

impl Reader for ReadTable<'_> {
    #[inline(always)]
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        ReadTable::get(self, key).expect("get")
    }

    #[inline(always)]
    fn get_many(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>)) {
        self.get_many_with(keys, found).expect("get");
    }

    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        for record in self.iter() {
            let (key, value) = record.expect("scan");
            each(key, value);
        }
    }

    fn range(&self, from: &[u8], count: usize, mut each: impl FnMut(&[u8], &[u8])) {
        for record in ReadTable::range(self, from..).take(count) {
            let (key, value) = record.expect("scan");
            each(key, value);
        }
    }
}

impl Writer for WriteTable<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        WriteTable::put(self, key, value).expect("put");
    }

    fn get(&mut self, key: &[u8]) -> Option<&[u8]> {
        WriteTable::get(self, key).expect("get")
    }

    fn delete(&mut self, key: &[u8]) -> bool {
        WriteTable::delete(self, key).expect("delete")
    }
}
