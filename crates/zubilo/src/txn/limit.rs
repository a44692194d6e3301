//! How far a write transaction may let the file grow: the store's geometry, or a bound that this process has
//! set in its place, as the C interface's map size is.

use crate::env::meta::StoredGeometry;

use super::write::WriteTxn;

/// Bounds of the file's size, in bytes; see `WriteTxn::raw_set_limit`.
#[derive(Clone, Copy, Debug)]
pub struct OwnLimit {
    /// What is stored.
    pub upper: u64,
    /// What changes may need.
    pub soft: u64,
    /// What a commit may take.
    pub hard: u64,
}

#[doc(hidden)]
impl WriteTxn {
    /// From now on this bounds the file, whatever its geometry says. If the transaction changes
    /// anything the bound is stored, unless a greater one is.
    pub fn raw_set_limit(&mut self, limit: OwnLimit) {
        self.limit = Some(limit);
    }

    /// The geometry that bounds this transaction.
    pub(super) fn bounds(&self) -> StoredGeometry {
        match self.limit {
            Some(limit) => StoredGeometry { upper: limit.hard, ..self.geometry },
            None => self.geometry,
        }
    }

    /// The geometry to store with the commit.
    pub(super) fn stored_geometry(&self) -> StoredGeometry {
        match self.limit {
            // A greater bound is another process's; the greatest means that there is none.
            Some(own) if self.geometry.upper < own.upper || self.geometry.upper == u64::MAX => {
                StoredGeometry { upper: own.upper, ..self.geometry }
            }
            _ => self.geometry,
        }
    }

    /// Bytes that the changes so far would still leave below the soft limit.
    pub fn raw_room(&self) -> i64 {
        let Some(state) = self.state.as_ref() else { return 0 };
        let upper = self.limit.map_or(self.geometry.upper, |limit| limit.soft);
        let limit = self.env.page_limit(&StoredGeometry { upper, ..self.geometry }) as i64;
        let free = limit - state.space.end() as i64 + state.space.free_pages() as i64;
        let used = self.ws.arena().live() as i64 + self.ws.run_pages() as i64;
        (free - used) << self.env.shift
    }
}
