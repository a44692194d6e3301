//! Reading the free-space books: the log in a meta, the chain of blobs behind it, the base map.

use twox_hash::XxHash3_64;

use crate::error::{Error, Result};
use crate::num::{PageNo, load_u64};
use crate::space::{Delta, Extent, Malformed, Space};
use crate::tree::Snapshot;

use super::meta::{BlobRef, META_COUNT, Meta};

/// A blob starts with the reference to the blob before it and the length of what follows; zeros
/// fill its last page.
pub(crate) const BLOB_HEAD: usize = 40;

/// The books as of one meta.
pub(crate) struct Books {
    /// Blobs since the base, newest first.
    pub(crate) chain: Vec<BlobRef>,
    /// Deltas since the base, oldest first.
    pub(crate) deltas: Vec<Delta>,
}

fn malformed(page: u64) -> impl Fn(Malformed) -> Error {
    move |m| Error::Corrupted { page: PageNo(page), reason: m.0 }
}

fn blob_bytes<'p>(snapshot: &Snapshot<'p>, blob: &BlobRef) -> Result<&'p [u8]> {
    let damaged = |reason| Error::Corrupted { page: PageNo(blob.first), reason };
    let bytes = snapshot
        .bytes(blob.first, blob.len)
        .ok_or_else(|| damaged("a free-space blob leads outside the store"))?;
    if XxHash3_64::oneshot(bytes) != blob.checksum {
        return Err(damaged("a free-space blob's checksum is wrong"));
    }
    Ok(bytes)
}

/// The head of a blob.
pub(crate) fn encode_head(before: &BlobRef, body_len: usize, out: &mut Vec<u8>) {
    for word in [before.first, before.len, before.checksum, before.txn, body_len as u64] {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// The blob before, and what this blob holds.
fn open_blob<'p>(snapshot: &Snapshot<'p>, blob: &BlobRef) -> Result<(BlobRef, &'p [u8])> {
    let bytes = blob_bytes(snapshot, blob)?;
    let word = |i: usize| load_u64(bytes, i * 8).unwrap_or_default();
    let before = BlobRef { first: word(0), len: word(1), checksum: word(2), txn: word(3) };
    let body = usize::try_from(word(4)).ok().and_then(|len| bytes.get(BLOB_HEAD..)?.get(..len));
    match body {
        Some(body) => Ok((before, body)),
        None => Err(Error::Corrupted {
            page: PageNo(blob.first),
            reason: "a free-space blob is cut off",
        }),
    }
}

/// Decodes a run of deltas.
pub(crate) fn decode_log(mut bytes: &[u8], page: u64) -> Result<Vec<Delta>> {
    let mut deltas = Vec::new();
    while !bytes.is_empty() {
        let (delta, used) = Delta::decode(bytes).map_err(malformed(page))?;
        bytes = match bytes.get(used..) {
            Some(rest) if used > 0 => rest,
            _ => return Err(malformed(page)(Malformed("a delta leads outside its log"))),
        };
        deltas.push(delta);
    }
    Ok(deltas)
}

/// Reads the log of `meta` and the blobs behind it. `snapshot` must reach to the meta's end.
pub(crate) fn read(snapshot: &Snapshot<'_>, meta: &Meta) -> Result<Books> {
    let mut chain = Vec::new();
    let mut pieces = vec![decode_log(&meta.log, 0)?];
    let mut next = meta.blob;
    while next.is_some() {
        let damaged = |reason| Error::Corrupted { page: PageNo(next.first), reason };
        if chain.last().is_some_and(|b: &BlobRef| b.txn <= next.txn) || next.txn > meta.txn {
            return Err(damaged("the chain of free-space blobs does not go back in time"));
        }
        let (before, body) = open_blob(snapshot, &next)?;
        pieces.push(decode_log(body, next.first)?);
        chain.push(next);
        next = before;
    }
    let mut deltas: Vec<Delta> = pieces.into_iter().rev().flatten().collect();
    deltas.retain(|d| d.txn > meta.base.txn || !meta.base.is_some());
    if deltas.windows(2).any(|w| w[0].txn >= w[1].txn)
        || deltas.last().is_some_and(|d| d.txn > meta.txn)
    {
        return Err(malformed(0)(Malformed("the free-space log is not in order")));
    }
    Ok(Books { chain, deltas })
}

/// Rebuilds the map of free space as of `meta`. A store has no more pages than the address space
/// that is reserved for it; that bounds the memory this takes.
pub(crate) fn load_space(
    snapshot: &Snapshot<'_>,
    meta: &Meta,
    books: &Books,
    pins: &[u64],
    reserved_pages: u64,
) -> Result<Space> {
    let shift = meta.page_shift;
    let mut used: Vec<Extent> = Vec::new();
    let blobs = books.chain.iter().chain(meta.base.is_some().then_some(&meta.base));
    for blob in blobs {
        used.push(Extent { first: blob.first, count: blob.pages(shift) });
    }
    let base = match meta.base.is_some() {
        true => Some(open_blob(snapshot, &meta.base)?.1),
        false => None,
    };
    let furthest = meta.chain_end.max(meta.end);
    if furthest > reserved_pages {
        return Err(malformed(0)(Malformed("the free-space log leads outside the address space")));
    }
    let space = Space::load(base, META_COUNT, &books.deltas, &used, pins, furthest)
        .map_err(malformed(meta.base.first))?;
    if space.end() != meta.end {
        return Err(malformed(0)(Malformed("the free-space log does not lead to the meta's end")));
    }
    Ok(space)
}
