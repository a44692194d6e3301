//! Point look-ups and descents.

use crate::error::Result;
use crate::page::quick::{self, ByteKey, Level, Miss, NumberKey, QuickKey, Way};
use crate::page::{Entry, Leaf, LeafPage, NormBuf, Order, SearchKey, ValueKind};

use super::values::first_value;
use super::{Located, Pages, Path, Ref, RunRef, TreeDesc};

/// The leaf that holds `key` if any does.
#[inline(always)]
pub(crate) fn find_leaf<'p, P: Pages<'p>, L: LeafPage<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &SearchKey<'_>,
) -> Result<Option<Located<L>>> {
    if desc.depth == 0 {
        return Ok(None);
    }
    let mut at = desc.root;
    for level in Level::of_branches(desc.depth) {
        at = Ref(way(pages, at, level, order, key)?.child);
        pages.prefetch(at);
    }
    pages.leaf_of_kind(at).map(Some)
}

/// The way to `key` through the branch at `at`, which must be on `level`.
#[inline(always)]
pub(super) fn way<'p, P: Pages<'p>>(
    pages: &P,
    at: Ref,
    level: Level,
    order: &Order,
    key: &SearchKey<'_>,
) -> Result<Way> {
    // In a caller's order the page has no heads, so it is none to be looked at quickly.
    if let (true, page) = pages.quick_page(at)
        && let Some(way) = quick::way(page, level, &ByteKey::new(key.norm()))
    {
        return Ok(way);
    }
    way_carefully(pages, at, level, order, key)
}

#[inline(never)]
fn way_carefully<'p, P: Pages<'p>>(
    pages: &P,
    at: Ref,
    level: Level,
    order: &Order,
    key: &SearchKey<'_>,
) -> Result<Way> {
    let branch = pages.branch(at, level.number())?;
    let index = branch.search(order, key)?;
    Ok(Way { index, count: branch.count(), child: branch.child(index)?.0 })
}

/// The entry under `key`, with the leaf it was found in.
#[inline]
pub(crate) fn get_entry<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &[u8],
) -> Result<Option<(Ref, Entry<'p>)>> {
    match order.as_it_is(key) {
        Some(key) => find_entry(pages, desc, order, &key),
        None => get_entry_reversed(pages, desc, order, key),
    }
}

/// Apart, so that other orders need no room for a normal form.
#[inline(never)]
fn get_entry_reversed<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &[u8],
) -> Result<Option<(Ref, Entry<'p>)>> {
    let mut buf = NormBuf::default();
    let key = SearchKey::new(order, key, &mut buf);
    find_entry(pages, desc, order, &key)
}

#[inline(always)]
fn find_entry<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &SearchKey<'_>,
) -> Result<Option<(Ref, Entry<'p>)>> {
    match find_leaf::<P, Leaf<'p>>(pages, desc, order, key)? {
        Some(leaf) => Ok(leaf.find(order, key)?.map(|entry| (leaf.at(), entry))),
        None => Ok(None),
    }
}

/// The value bytes of an entry, wherever they are; of duplicates the first. A table's record has no
/// value of its own.
#[inline(always)]
pub(crate) fn value_of<'p, P: Pages<'p>>(
    pages: &P,
    at: Ref,
    entry: &Entry<'p>,
) -> Result<&'p [u8]> {
    match entry.kind {
        ValueKind::Inline => Ok(entry.value),
        ValueKind::Run => {
            let run = RunRef::of(at, entry.value)?;
            pages.run(at, &run)
        }
        ValueKind::Duplicates | ValueKind::Tree => first_value(pages, at, entry),
    }
}

/// The value under `key`.
#[inline]
pub(crate) fn get<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &[u8],
) -> Result<Option<&'p [u8]>> {
    get_or(pages, desc, order, key, value_of)
}

/// As `get`; of an entry that is not just a value in its record, `value_of` decides what is returned.
#[inline]
pub(crate) fn get_or<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &[u8],
    value_of: impl FnOnce(&P, Ref, &Entry<'p>) -> Result<&'p [u8]>,
) -> Result<Option<&'p [u8]>> {
    let mut absent = false;
    let quick = match order {
        Order::Bytes => quick_get_bytes(pages, desc.root, desc.depth, key, &mut absent),
        Order::Reversed => quick_get_number(pages, desc.root, desc.depth, key, &mut absent),
        Order::Custom(_) => None,
    };
    match quick {
        Some(value) => Ok(Some(value)),
        None if absent => Ok(None),
        None => get_carefully(pages, desc, order, key, value_of),
    }
}

/// A function of its own, with few arguments and a result of two words: so all that it works with has
/// a place in a register.
#[inline(never)]
fn quick_get_bytes<'p, P: Pages<'p>>(
    pages: &P,
    root: Ref,
    depth: u8,
    key: &[u8],
    absent: &mut bool,
) -> Option<&'p [u8]> {
    quick_get(pages, root, depth, &ByteKey::new(key), absent)
}

/// The same of a key in reversed order, if it is a number.
#[inline(never)]
fn quick_get_number<'p, P: Pages<'p>>(
    pages: &P,
    root: Ref,
    depth: u8,
    key: &[u8],
    absent: &mut bool,
) -> Option<&'p [u8]> {
    let number = u64::from_le_bytes(<[u8; 8]>::try_from(key).ok()?);
    quick_get(pages, root, depth, &NumberKey(number), absent)
}

/// The value under `key`, where all that is met is usual. Without one, `absent` says whether the key is
/// known to be absent.
#[inline(always)]
fn quick_get<'p, P: Pages<'p>>(
    pages: &P,
    root: Ref,
    depth: u8,
    key: &impl QuickKey,
    absent: &mut bool,
) -> Option<&'p [u8]> {
    let (true, mut page) = pages.quick_page(root) else { return None };
    for level in Level::of_branches(depth) {
        let child = match quick::way(page, level, key) {
            Some(way) => Ref(way.child),
            None => Ref(quick::child_among_many(page, level, key)?),
        };
        pages.prefetch(child);
        let (true, next) = pages.quick_page(child) else { return None };
        page = next;
    }
    match quick::place(page, key) {
        Ok(place) => quick::value_at(page, place, key),
        Err(miss) => {
            *absent = miss == Miss::Absent;
            None
        }
    }
}

#[inline(never)]
fn get_carefully<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &[u8],
    value_of: impl FnOnce(&P, Ref, &Entry<'p>) -> Result<&'p [u8]>,
) -> Result<Option<&'p [u8]>> {
    match get_entry(pages, desc, order, key)? {
        Some((at, entry)) => value_of(pages, at, &entry).map(Some),
        None => Ok(None),
    }
}

/// Fills `path` with the path to `key`; true when the key is there, else the last step is where
/// it would be inserted. The path is empty when the tree is.
#[inline]
pub(crate) fn descend<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &SearchKey<'_>,
    path: &mut Path,
) -> Result<bool> {
    let prefetch = |p: &P, child, _| p.prefetch(child);
    descend_by::<P, Leaf<'p>>(pages, desc.top(), order, key, path, prefetch).map(is_found)
}

/// As `descend`, to a leaf that is likely to be copied: asks for all of it at once.
#[inline]
pub(crate) fn descend_to_change<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &SearchKey<'_>,
    path: &mut Path,
) -> Result<bool> {
    let prefetch = |pages: &P, child, level| match level {
        1 => pages.prefetch_page(child),
        _ => pages.prefetch(child),
    };
    descend_by::<P, Leaf<'p>>(pages, desc.top(), order, key, path, prefetch).map(is_found)
}

/// As `descend`, in a tree with such leaves.
pub(crate) fn descend_leaf<'p, P: Pages<'p>, L: LeafPage<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &[u8],
    path: &mut Path,
) -> Result<bool> {
    let mut buf = NormBuf::default();
    let key = SearchKey::new(order, key, &mut buf);
    let prefetch = |p: &P, child, _| p.prefetch(child);
    descend_by::<P, L>(pages, desc.top(), order, &key, path, prefetch).map(is_found)
}

/// Whether the key is there, and the leaf at the end of the path; none in an empty tree.
type End<L> = (bool, Option<Located<L>>);

fn is_found<L>((found, _): End<L>) -> bool {
    found
}

/// As `descend`, from a root and its depth; asks for each page by `prefetch`.
#[inline(always)]
pub(crate) fn descend_by<'p, P: Pages<'p>, L: LeafPage<'p>>(
    pages: &P,
    (root, depth): (Ref, u8),
    order: &Order,
    key: &SearchKey<'_>,
    path: &mut Path,
    prefetch: impl Fn(&P, Ref, u8),
) -> Result<End<L>> {
    path.clear();
    if depth == 0 {
        return Ok((false, None));
    }
    let mut at = root;
    for level in Level::of_branches(depth) {
        let way = way(pages, at, level, order, key)?;
        path.push(at, way.index, way.count);
        at = Ref(way.child);
        prefetch(pages, at, level.number());
    }
    let leaf: Located<L> = pages.leaf_of_kind(at)?;
    let found = leaf.search(order, key)?;
    let (Ok(i) | Err(i)) = found;
    path.push(at, i, leaf.count());
    Ok((found.is_ok(), Some(leaf)))
}

/// Continues `path` along first children, from the page at `at` on `level` to a leaf.
pub(crate) fn descend_first<'p, P: Pages<'p>>(
    pages: &P,
    mut at: Ref,
    level: u8,
    path: &mut Path,
) -> Result<()> {
    for level in (1..=level).rev() {
        let branch = pages.branch(at, level)?;
        path.push(at, 0, branch.count());
        at = branch.child(0)?;
    }
    path.push(at, 0, pages.node(at, 0)?.count());
    Ok(())
}
