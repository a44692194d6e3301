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
    move |m| match m {
        Malformed::NO_MEMORY => Error::no_memory("read the books of free space"),
        m => Error::Corrupted { page: PageNo(page), reason: m.0 },
    }
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
    let missing = || malformed(0)(Malformed("the chain of free-space blobs has no end"));
    read_until(snapshot, meta, &BlobRef::default())?.ok_or_else(missing)
}

/// As `read`, without the blob `end` and those before it; `None` if there is no such blob.
fn read_until(snapshot: &Snapshot<'_>, meta: &Meta, end: &BlobRef) -> Result<Option<Books>> {
    let mut chain = Vec::new();
    let mut pieces = vec![decode_log(&meta.log, 0)?];
    let mut next = meta.blob;
    while next != *end {
        if !next.is_some() {
            return Ok(None);
        }
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
    Ok(Some(Books { chain, deltas }))
}

/// Brings the books of this process, `space` and `chain` as of `known`, up to `meta`, which other
/// processes have written since. False if they must be read anew: a base was written since, the log
/// does not reach back that far, or does not fit. Then and after an error they are of no use.
pub(crate) fn catch_up(
    snapshot: &Snapshot<'_>,
    (known, meta): (&Meta, &Meta),
    space: &mut Space,
    chain: &mut Vec<BlobRef>,
    pins: &[u64],
    believable_pages: u64,
) -> Result<bool> {
    if known.base != meta.base {
        return Ok(false);
    }
    let end = chain.first().copied().unwrap_or_default();
    let Some(mut books) = read_until(snapshot, meta, &end)? else { return Ok(false) };
    books.deltas.retain(|d| d.txn > known.txn);
    if !books.deltas.iter().map(|d| d.txn).eq(known.txn + 1..=meta.txn) {
        return Ok(false);
    }
    let extent = |b: &BlobRef| Extent { first: b.first, count: b.pages(meta.page_shift) };
    let used: Vec<Extent> = books.chain.iter().map(extent).collect();
    space.set_pins(pins);
    chain.splice(0..0, books.chain);
    let furthest = meta.chain_end.max(meta.end).min(believable_pages);
    Ok(space.follow(&books.deltas, &used, furthest).is_ok() && space.end() == meta.end)
}

/// Rebuilds the map of free space as of `meta`. No page that they speak of lies beyond
/// `believable_pages`; that bounds the memory this takes.
pub(crate) fn load_space(
    snapshot: &Snapshot<'_>,
    meta: &Meta,
    books: &Books,
    pins: &[u64],
    believable_pages: u64,
) -> Result<Space> {
    let shift = meta.page_shift;
    let mut used: Vec<Extent> = Vec::new();
    let blobs = books.chain.iter().chain(meta.base.is_some().then_some(&meta.base));
    for blob in blobs {
        used.push(Extent { first: blob.first, count: blob.pages(shift) });
    }
    let base = if meta.base.is_some() { Some(open_blob(snapshot, &meta.base)?.1) } else { None };
    let furthest = meta.chain_end.max(meta.end);
    if furthest > believable_pages {
        return Err(malformed(0)(Malformed("the free-space log leads outside any address space")));
    }
    let space = Space::load(base, META_COUNT, &books.deltas, &used, pins, furthest)
        .map_err(malformed(meta.base.first))?;
    if space.end() != meta.end {
        return Err(malformed(0)(Malformed("the free-space log does not lead to the meta's end")));
    }
    Ok(space)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::metas;
    use crate::{Durability, Env, Options};

    struct Account {
        meta: Meta,
        chain: Vec<BlobRef>,
        space: Space,
    }

    impl Account {
        /// As the file tells it.
        fn read(env: &Env) -> Account {
            let inner = &env.inner;
            let meta = metas::load(inner.data.as_ref(), &inner.shared, inner.shift).expect("meta");
            let read = env.read().expect("begin");
            let books = super::read(&read.snapshot(), &meta).expect("books");
            let reserved = inner.believable_pages();
            let space = load_space(&read.snapshot(), &meta, &books, &[], reserved).expect("space");
            Account { meta, chain: books.chain, space }
        }

        fn pages(&self) -> (Vec<u64>, Vec<u64>) {
            let (mut free, mut retired) = (Vec::new(), Vec::new());
            self.space.for_each_free(&mut |e| free.extend(e.first..e.end()));
            self.space.for_each_retired(&mut |r| retired.extend(r.first..r.first + r.count));
            (free, retired)
        }
    }

    fn change(env: &Env, round: u32) {
        let mut write = env.write().expect("begin");
        let mut table = write.table_or_create("t").expect("table");
        for i in 0..200u32 {
            let key = (round * 7919 + i).wrapping_mul(0x9E37_79B9) % 20_000;
            match (round + i) % 3 {
                0 => drop(table.delete(key.to_be_bytes()).expect("delete")),
                _ => table.put(key.to_be_bytes(), [7; 60]).expect("put"),
            }
        }
        write.commit().expect("commit");
    }

    /// What follows the log and what reads all of it come to the same account.
    #[test]
    fn catching_up_is_reading_anew() {
        let dir = tempfile::tempdir().expect("directory");
        let options = Options::new().durability(Durability::NoSync);
        let env = options.open(dir.path().join("store")).expect("open");
        let (mut caught_up, mut over_blobs) = (0, 0);
        let mut round = 0;
        for steps in (0..120).map(|i| [1, 2, 5, 30][i % 4]) {
            let mut known = Account::read(&env);
            for _ in 0..steps {
                change(&env, round);
                round += 1;
            }
            let now = Account::read(&env);
            let read = env.read().expect("begin");
            let metas = (&known.meta, &now.meta);
            let reserved = env.inner.believable_pages();
            let blobs = known.chain.len();
            let (space, chain) = (&mut known.space, &mut known.chain);
            if catch_up(&read.snapshot(), metas, space, chain, &[], reserved).expect("catch up") {
                caught_up += 1;
                over_blobs += u32::from(known.chain.len() > blobs);
                assert_eq!(known.chain, now.chain);
                assert_eq!(known.pages(), now.pages(), "round {round}");
            }
        }
        assert!(caught_up > 50 && over_blobs > 5, "{caught_up} of 120, {over_blobs} over blobs");
    }
}
