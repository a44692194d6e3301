//! Point look-ups and descents.

use crate::error::Result;
use crate::page::{Branch, Entry, Items, Leaf, LeafPage, NormBuf, Order, SearchKey, ValueKind};

use super::values::first_value;
use super::{Pages, Path, Ref, RunRef, TreeDesc};

/// The branch at `at`, which must be on `level`.
#[inline(always)]
pub(crate) fn branch_at<'p, P: Pages<'p>>(pages: &P, at: Ref, level: u8) -> Result<Branch<'p>> {
    Branch::on_level(pages.page(at)?, level).map_err(at.damaged())
}

/// The leaf at `at`.
#[inline(always)]
pub(crate) fn leaf_at<'p, P: Pages<'p>>(pages: &P, at: Ref) -> Result<Leaf<'p>> {
    leaf_of(at, pages.page(at)?)
}

/// The leaf that the bytes of `at` are.
#[inline(always)]
pub(crate) fn leaf_of(at: Ref, page: &[u8]) -> Result<Leaf<'_>> {
    Leaf::on_level_0(page).map_err(at.damaged())
}

/// The leaf that holds `key` if any does, with its reference.
#[inline(always)]
pub(crate) fn find_leaf<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &SearchKey<'_>,
) -> Result<Option<(Ref, Leaf<'p>)>> {
    if desc.depth == 0 {
        return Ok(None);
    }
    let mut at = desc.root;
    for level in (1..desc.depth).rev() {
        let branch = branch_at(pages, at, level)?;
        let i = branch.search(order, key).map_err(at.damaged())?;
        at = Ref(branch.child(i).map_err(at.damaged())?);
        pages.prefetch(at);
    }
    Ok(Some((at, leaf_at(pages, at)?)))
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
    let Some((at, leaf)) = find_leaf(pages, desc, order, key)? else { return Ok(None) };
    match leaf.find(order, key) {
        Ok(entry) => Ok(entry.map(|entry| (at, entry))),
        Err(damage) => Err(at.damaged()(damage)),
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
            let run = RunRef::load(entry.value).map_err(at.damaged())?;
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
    if let Some(key) = order.as_it_is(key) {
        let Some((at, leaf)) = find_leaf(pages, desc, order, &key)? else { return Ok(None) };
        return match leaf.find(order, &key) {
            Ok(Some(entry)) => value_of(pages, at, &entry).map(Some),
            Ok(None) => Ok(None),
            Err(damage) => Err(at.damaged()(damage)),
        };
    }
    match get_entry_reversed(pages, desc, order, key)? {
        Some((at, entry)) => value_of(pages, at, &entry).map(Some),
        None => Ok(None),
    }
}

/// Fills `path` with the way to `key`; true when the key is there, else the last step is where
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

/// As `descend`, in a tree with leaves of any kind.
pub(crate) fn descend_items<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    key: &[u8],
    path: &mut Path,
) -> Result<bool> {
    let mut buf = NormBuf::default();
    let key = SearchKey::new(order, key, &mut buf);
    let prefetch = |p: &P, child, _| p.prefetch(child);
    descend_by::<P, Items<'p>>(pages, desc.top(), order, &key, path, prefetch).map(is_found)
}

/// Whether the key is there, and the leaf at the end of the way; none in an empty tree.
type End<L> = (bool, Option<(Ref, L)>);

fn is_found<L>((found, _): End<L>) -> bool {
    found
}

/// As `descend`, from a root and its depth; asks for each page on the way by `prefetch`.
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
    for level in (1..depth).rev() {
        let branch = branch_at(pages, at, level)?;
        let i = branch.search(order, key).map_err(at.damaged())?;
        let child = Ref(branch.child(i).map_err(at.damaged())?);
        path.push(at, i, branch.count());
        prefetch(pages, child, level);
        at = child;
    }
    let leaf = L::parse(pages.page(at)?).map_err(at.damaged())?;
    let found = leaf.search(order, key).map_err(at.damaged())?;
    let (Ok(i) | Err(i)) = found;
    path.push(at, i, leaf.count());
    Ok((found.is_ok(), Some((at, leaf))))
}
