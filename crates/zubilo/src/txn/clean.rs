//! Keeping runs long in an aged store: a commit that found no long run moves the few live leaves
//! out of nearly free windows, so that later commits find them empty. The idea is that of the
//! cleaner of a log-structured file system; what it moves are ordinary changes of the transaction.
//!
//! A leaf is found by its own bytes (table and first key) and believed only when a search from the
//! root leads to it, so whatever lies in the window, nothing wrong is moved.

use crate::error::{Error, Result};
use crate::page::{Leaf, NormBuf, SearchKey, header};
use crate::tree::insert::touch_path;
use crate::tree::{Pages, Path, Ref, lookup};

use super::write::{MAIN, WriteTxn};

/// Pieces that a commit may have without being called scattered: a run of pages that stay and one
/// of pages that will soon be replaced.
pub(super) const PIECES: usize = 2;
/// Smallest and largest window, in pages.
const WINDOW: std::ops::RangeInclusive<u64> = 16..=256;

impl WriteTxn {
    /// Moves the live leaves out of windows, if the last commit was scattered: room for a commit like
    /// this one, which writes `pages` without it.
    pub(super) fn clean(&mut self, pages: u64) -> Result<()> {
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        if !self.env.is_sync() || !std::mem::take(&mut state.scattered) {
            return Ok(());
        }
        let size = pages.saturating_mul(2).clamp(*WINDOW.start(), *WINDOW.end());
        let windows = state.space.windows(size, pages);
        for page in windows.into_iter().flat_map(|window| window.first..window.end()) {
            let live = self.state.as_ref().is_some_and(|s| !s.space.is_free(page));
            if live && page < self.base.end {
                self.move_leaf(page)?;
            }
        }
        Ok(())
    }

    /// Makes a leaf of an open table dirty, so that the commit writes it elsewhere. Pages that are
    /// no such leaf are left alone.
    fn move_leaf(&mut self, page: u64) -> Result<()> {
        let at = Ref(page);
        let Ok(bytes) = self.ws.view().page(at) else { return Ok(()) };
        let Ok(leaf) = Leaf::new(bytes) else { return Ok(()) };
        let Ok(key) = leaf.key(0).map(<[u8]>::to_vec) else { return Ok(()) };
        let Some(index) = self.table_of(header::table(bytes)) else { return Ok(()) };
        let tree = self.tree(index);
        let mut buf = NormBuf::default();
        let search = SearchKey::new(&tree.order, &key, &mut buf);
        let mut path = Path::default();
        lookup::descend(&self.ws.view(), &tree.desc, &tree.order, &search, &mut path)?;
        if path.last().is_none_or(|step| step.page != at) {
            return Ok(());
        }
        let (ws, tree) = self.parts(index);
        tree.finger.reset();
        touch_path(ws, tree, &mut path)
    }

    /// Index of the open table with this identity; the main tree has 0.
    fn table_of(&self, id: u32) -> Option<usize> {
        if id == self.main.desc.table {
            return Some(MAIN);
        }
        self.tables.iter().position(|t| !t.gone && t.tree.desc.table == id)
    }
}
