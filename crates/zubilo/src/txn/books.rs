//! The books of a commit: its delta goes into the meta's log; a full log goes to a blob; too many
//! blobs become a new base.

use twox_hash::XxHash3_64;

use crate::dirty::{no_list, with_room};
use crate::env::ledger::{BLOB_HEAD, encode_head};
use crate::env::meta::{BlobRef, LOG_CAPACITY, Meta};
use crate::error::{Error, Result};
use crate::space::{Delta, Extent, Retired};

use super::layout::write_blob;
use super::write::WriteTxn;

/// Blobs below this size are never worth a new base.
const CHAIN_MIN: u64 = 64 << 10;

/// What the books did for a commit.
pub(super) struct Booked {
    /// The delta is in the meta's log, where an open finds the pages to verify.
    pub(super) in_log: bool,
    /// Pages written for bookkeeping.
    pub(super) pages: u64,
}

impl WriteTxn {
    /// Completes `meta` for a commit that wrote `allocated` and freed `released`; writes a blob or
    /// a base if one is due.
    pub(super) fn book(
        &mut self,
        meta: &mut Meta,
        allocated: Vec<Extent>,
        mut released: Vec<Retired>,
    ) -> Result<Booked> {
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let room = LOG_CAPACITY.saturating_sub(meta.log.len());
        let mut delta = Delta { txn: meta.txn, allocated, released: Vec::new(), end: 0 };
        // The end is not final yet; leave room for its longest form.
        let estimate = |released: &mut Vec<Retired>, delta: &mut Delta| {
            std::mem::swap(&mut delta.released, released);
            delta.end = state.space.end() + (1 << 20);
            delta.encoded_len() + 8
        };
        let len = estimate(&mut released, &mut delta);
        let booked = self.book_delta(meta, delta, len, room)?;
        let state = self.state.as_ref().ok_or(Error::TxnBroken)?;
        if state.space.lacks_memory() {
            // An account with gaps must not be written down.
            return Err(no_list());
        }
        Ok(booked)
    }

    fn book_delta(
        &mut self,
        meta: &mut Meta,
        mut delta: Delta,
        len: usize,
        room: usize,
    ) -> Result<Booked> {
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        if len <= room && !self.compaction.fold {
            state.space.retire(&delta.released);
            meta.end = finish(&mut delta, state.space.end(), &mut meta.log);
            meta.chain_end = meta.chain_end.max(meta.end);
            return Ok(Booked { in_log: true, pages: 0 });
        }
        let chain_next = meta.chain_len + (meta.log.len() + len + BLOB_HEAD) as u64;
        let fold = self.compaction.fold
            || chain_next > CHAIN_MIN && chain_next > state.space.encoded_len_bound() as u64;
        if fold { self.fold(meta, delta) } else { self.spill_log(meta, delta) }
    }

    /// Moves the log, with this commit's delta, to a blob.
    fn spill_log(&mut self, meta: &mut Meta, mut delta: Delta) -> Result<Booked> {
        let bound = BLOB_HEAD + meta.log.len() + delta.encoded_len() + 16;
        let extent = self.blob_extent(bound)?;
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        state.space.retire(&delta.released);
        let mut bytes = with_room(bound).ok_or_else(no_list)?;
        bytes.extend_from_slice(&meta.log);
        // This commit's delta starts the new log, if it fits: an open finds by it the pages to
        // verify.
        let mut own = with_room(delta.encoded_len() + 16).ok_or_else(no_list)?;
        meta.end = finish(&mut delta, state.space.end(), &mut own);
        meta.chain_end = meta.chain_end.max(meta.end);
        let in_log = own.len() <= LOG_CAPACITY / 2;
        if !in_log {
            bytes.extend_from_slice(&own);
        }
        meta.log = if in_log { own } else { Vec::new() };
        meta.blob = self.write_book(extent, &meta.blob, &bytes, meta.txn)?;
        meta.chain_len += meta.blob.len;
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        state.chain.insert(0, meta.blob);
        Ok(Booked { in_log, pages: extent.count })
    }

    /// Writes the whole map of free space as a new base; the old base and blobs are released.
    fn fold(&mut self, meta: &mut Meta, mut delta: Delta) -> Result<Booked> {
        let shift = self.ws.page_shift();
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let old_base = meta.base.is_some().then_some(meta.base);
        for blob in state.chain.drain(..).chain(old_base) {
            delta.released.push(Retired {
                first: blob.first,
                count: blob.pages(shift),
                birth: blob.txn,
                death: meta.txn,
            });
        }
        state.space.retire(&delta.released);
        let bound = BLOB_HEAD + state.space.encoded_len_bound() + 64;
        let extent = self.blob_extent(bound)?;
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let mut bytes = with_room(state.space.encoded_len_bound()).ok_or_else(no_list)?;
        state.space.encode(&mut bytes);
        meta.base = self.write_book(extent, &BlobRef::default(), &bytes, meta.txn)?;
        meta.blob = BlobRef::default();
        meta.chain_len = 0;
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let mut own = with_room(delta.encoded_len() + 16).ok_or_else(no_list)?;
        meta.end = finish(&mut delta, state.space.end(), &mut own);
        meta.chain_end = meta.end;
        let in_log = own.len() <= LOG_CAPACITY / 2;
        meta.log = if in_log { own } else { Vec::new() };
        Ok(Booked { in_log, pages: extent.count })
    }

    fn blob_extent(&mut self, bytes: usize) -> Result<Extent> {
        let pages = (bytes as u64).div_ceil(1 << self.ws.page_shift());
        let geometry = self.bounds();
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let limit = self.env.page_limit(&geometry);
        let extent = match self.compaction.low {
            true => state.space.allocate_low_run(pages, limit),
            false => state.space.allocate_run(pages, limit),
        };
        let extent = extent.ok_or_else(|| self.env.full(&geometry))?;
        self.env.ensure_len(&geometry, state.space.end())?;
        Ok(extent)
    }

    /// Writes a blob over the whole of its extent, so that each of its pages is accounted for.
    fn write_book(
        &mut self,
        extent: Extent,
        before: &BlobRef,
        body: &[u8],
        txn: u64,
    ) -> Result<BlobRef> {
        let len = (extent.count as usize) << self.ws.page_shift();
        let mut bytes = with_room(len.max(body.len() + BLOB_HEAD)).ok_or_else(no_list)?;
        encode_head(before, body.len(), &mut bytes);
        bytes.extend_from_slice(body);
        if bytes.len() > len {
            return Err(Error::Invalid("a free-space blob is longer than its estimate"));
        }
        bytes.resize(len, 0);
        write_blob(&self.env, extent.first, &bytes)?;
        let checksum = XxHash3_64::oneshot(&bytes);
        Ok(BlobRef { first: extent.first, len: len as u64, checksum, txn })
    }
}

/// Appends the delta with its final end to the log; gives the end.
fn finish(delta: &mut Delta, end: u64, log: &mut Vec<u8>) -> u64 {
    delta.end = end;
    delta.encode(log);
    end
}
