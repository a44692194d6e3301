//! The space map alone: what the free-space log says, without reading the pages it speaks of.

use std::sync::Arc;

use crate::env::EnvInner;
use crate::error::Result;
use crate::num::TxnId;
use crate::space::log::Loaded;
use crate::txn::pinned;

/// Where the pages of the file are, by the free-space log of the newest commit.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let space = env.space()?;
/// assert!(space.free_pages + space.retired_pages <= space.pages);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Pages of the free-space log itself.
    pub free_space_log_pages: u64,
    /// Pages of the redo log.
    pub redo_log_pages: u64,
    /// Who holds dead pages back, oldest snapshots first. Pages that several hold back are in none of these, but
    /// in [`retired_pages`](Self::retired_pages).
    pub held_back: Vec<HeldBack>,
}

/// Dead pages that one snapshot holds back, by itself.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// for held in env.space()?.held_back {
///     println!("{} pages for the snapshot {}", held.pages, held.txn);
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldBack {
    /// The snapshot: of [readers](crate::ReaderInfo::txn), or the newest one that is on disk.
    pub txn: TxnId,
    /// Pages that are free once nobody needs it any more.
    pub pages: u64,
}

/// How much of the file is free.
pub(crate) fn space(env: &Arc<EnvInner>) -> Result<SpaceInfo> {
    env.check_alive()?;
    let (txn, meta) = pinned(env)?;
    let snapshot = txn.snapshot();
    let mut pins = Vec::new();
    env.collect_pins(&mut pins);
    let Loaded { space, log, .. } = meta.load_log(&snapshot, &pins, env.plausible_pages())?;
    let mut info = SpaceInfo { txn: txn.id(), pages: meta.end, ..SpaceInfo::default() };
    space.for_each_free(&mut |extent| info.free_pages += extent.count);
    space.for_each_retired(&mut |retired, _| info.retired_pages += retired.count);
    info.free_space_log_pages = log.pages();
    for &pin in &pins {
        let pages = space.held_by(pin);
        if pages > 0 {
            info.held_back.push(HeldBack { txn: TxnId(pin), pages });
        }
    }
    info.redo_log_pages = meta.redo.map_or(0, |log| log.pages(meta.page_shift));
    Ok(info)
}

#[cfg(test)]
mod tests {
    use crate::Options;

    #[test]
    fn agrees_with_the_full_check() {
        let dir = tempfile::tempdir().unwrap();
        let env = Options::new().redo_log(1 << 16).open(dir.path().join("space")).unwrap();
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
            assert_eq!(space.free_space_log_pages, check.free_space_log_pages);
            assert_eq!(space.redo_log_pages, check.redo_log_pages);
        }
        assert!(reader.as_ref().is_some_and(|r| r.lag() > 0));
        assert_eq!(env.space().unwrap().redo_log_pages, 16);
        let space = env.space().unwrap();
        assert!(space.retired_pages > 0, "the reader holds pages back");
        let pin = reader.map(|reader| reader.id());
        let held: Vec<_> = space.held_back.iter().filter(|held| Some(held.txn) == pin).collect();
        assert!(held.len() == 1 && held[0].pages <= space.retired_pages, "{space:?}");
        // Now only what the last flush put on disk can hold pages back.
        let mut txn = env.write().unwrap();
        txn.table("t").unwrap().put("last", "one").unwrap();
        txn.commit().unwrap();
        let space = env.space().unwrap();
        assert!(space.held_back.iter().all(|other| other.txn > held[0].txn), "{space:?}");
        assert!(space.retired_pages < held[0].pages, "{space:?}");
    }
}
