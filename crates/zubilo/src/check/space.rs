//! The account of space alone: what the books say, without reading the pages they speak of.

use crate::env::{Env, ledger};
use crate::error::Result;
use crate::num::TxnId;

/// Where the pages of the file are, by the books of the newest commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceInfo {
    /// The commit.
    pub txn: TxnId,
    /// Pages up to the last one ever used, the metas included.
    pub pages: u64,
    /// Pages that can be used at once.
    pub free_pages: u64,
    /// Dead pages that a snapshot or the steady commit may still see.
    pub retired_pages: u64,
    /// Pages of the books themselves.
    pub book_pages: u64,
}

impl Env {
    /// How much of the file is free. Reads the free-space books, not the pages; needs no lock.
    pub fn space(&self) -> Result<SpaceInfo> {
        let env = &self.inner;
        env.check_alive()?;
        let (txn, meta) = crate::copy::pinned(env)?;
        let snapshot = txn.snapshot();
        let books = ledger::read(&snapshot, &meta)?;
        let mut pins = Vec::new();
        env.collect_pins(&mut pins);
        let space = ledger::load_space(&snapshot, &meta, &books, &pins, env.believable_pages())?;
        let mut info = SpaceInfo { txn: txn.id(), pages: meta.end, ..SpaceInfo::default() };
        space.for_each_free(&mut |extent| info.free_pages += extent.count);
        space.for_each_retired(&mut |retired| info.retired_pages += retired.count);
        let blobs = books.chain.iter().chain(meta.base.is_some().then_some(&meta.base));
        info.book_pages = blobs.map(|blob| blob.pages(meta.page_shift)).sum();
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use crate::Options;

    #[test]
    fn agrees_with_the_full_check() {
        let dir = tempfile::tempdir().unwrap();
        let env = Options::new().open(dir.path().join("space")).unwrap();
        let mut reader = None;
        for round in 0..40u32 {
            let mut txn = env.write().unwrap();
            let mut table = txn.table_or_create("t").unwrap();
            for i in 0..200u32 {
                let key = (round * 37 + i * 7919).to_be_bytes();
                table.put(key, vec![round as u8; 50 + (i as usize % 400)]).unwrap();
            }
            txn.commit().unwrap();
            if round == 20 {
                reader = Some(env.read().unwrap());
            }
            let (space, check) = (env.space().unwrap(), env.check(&mut |_, _| true).unwrap());
            assert_eq!(space.txn, check.txn);
            assert_eq!(space.pages, check.pages);
            assert_eq!(space.free_pages, check.free_pages);
            assert_eq!(space.retired_pages, check.retired_pages);
            assert_eq!(space.book_pages, check.book_pages);
        }
        assert!(reader.as_ref().is_some_and(|r| r.lag() > 0));
        assert!(env.space().unwrap().retired_pages > 0, "the reader holds pages back");
    }
}
