//! Keeping runs long in an aged store: a commit that found no long run moves the few live leaves
//! out of nearly free windows, so that later commits find them empty. The idea is that of the
//! cleaner of a log-structured file system; what it moves are ordinary changes of the transaction.
//!
//! A leaf is found by its own bytes (table and first key) and trusted only when a search from the
//! root leads to it, so whatever lies in the window, nothing wrong is moved.

use crate::error::Result;
use crate::page::{Leaf, header};
use crate::tree::compact::verified_path;
use crate::tree::insert::touch_path;
use crate::tree::{Pages, Ref};

use super::write::WriteTxn;

/// Extents that a commit may have without being called scattered: a run of pages that stay and one
/// of pages that will soon be replaced.
pub(super) const EXTENTS: usize = 2;
/// Smallest and largest window, in pages.
const WINDOW: std::ops::RangeInclusive<u64> = 16..=256;

impl WriteTxn {
    /// Moves the live leaves out of windows, if the last commit was scattered: room for a commit like
    /// this one, which writes `pages` without it. Whether there were windows.
    pub(super) fn clean(&mut self, pages: u64) -> Result<bool> {
        let size = pages.saturating_mul(2).clamp(*WINDOW.start(), *WINDOW.end());
        let windows = self.space.windows_to_clean(pages, size)?;
        let any = !windows.is_empty();
        for page in windows.into_iter().flat_map(|window| window.first..window.end()) {
            if !self.space.is_free(page) && page < self.base.end {
                self.move_leaf(page)?;
            }
        }
        Ok(any)
    }

    /// Makes a leaf of an open table dirty, so that the commit writes it elsewhere. Pages that are
    /// no such leaf are left alone.
    fn move_leaf(&mut self, page: u64) -> Result<()> {
        let at = Ref(page);
        let Ok(bytes) = self.ws.view().page(at) else { return Ok(()) };
        let Ok(leaf) = Leaf::new(bytes) else { return Ok(()) };
        let Ok(key) = leaf.key(0).map(<[u8]>::to_vec) else { return Ok(()) };
        let number = header::table(bytes);
        let Some(table) = self.catalogue.of_number(number) else { return Ok(()) };
        let tree = self.tree(table)?;
        // Damage on the way is for those to meet who change something there.
        let Ok(mut path) = verified_path(&self.ws, tree, &key) else { return Ok(()) };
        if path.last().is_none_or(|step| step.page != at) {
            return Ok(());
        }
        let (ws, tree) = self.parts(table)?;
        tree.finger.reset();
        touch_path(ws, tree, &mut path)
    }
}
