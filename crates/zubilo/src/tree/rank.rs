//! Counting by the tree: the n-th record, the rank of a key, in a tree whose branches hold how many
//! records lie under each child (`TableOptions::counted`).
//!
//! A branch's number is right for each child that has its place in the file. Pages of the running
//! write transaction have none yet: the numbers of their parents are set when they are laid out, so
//! what lies under them is counted here page by page.

use crate::error::{Error, Result};
use crate::page::row::Node;
use crate::page::{Branch, Damage, Leaf, LeafPage, NormBuf, Order, Packed, SearchKey, ValueKind};

use super::lookup::{get_entry, value_of};
use super::values::{Values, values_of};
use super::{Located, Pages, Ref, Tree, TreeDesc};

/// What a table without counts says.
const NOT_COUNTED: Error =
    Error::incompatible("the table does not count its records: create it with that option");

/// Records of a page of a tree that is laid out: its branches' numbers are right.
pub(crate) fn records_of_page(page: &[u8], is_leaf: bool) -> Result<u64, Damage> {
    if is_leaf {
        return match Node::on_level(page, 0)? {
            Node::Leaf(leaf) => records_of_leaf(&leaf, 0, leaf.count()),
            node => Ok(node.count() as u64),
        };
    }
    let branch = Branch::new(page)?;
    sum((0..branch.count()).map(|i| branch.records(i)))
}

fn sum<E>(numbers: impl Iterator<Item = Result<u64, E>>) -> Result<u64, E> {
    let mut all = 0u64;
    for number in numbers {
        all = all.saturating_add(number?);
    }
    Ok(all)
}

/// Values of the records [from, to) of a leaf.
pub(super) fn records_of_leaf(leaf: &Leaf<'_>, from: usize, to: usize) -> Result<u64, Damage> {
    sum((from..to).map(|i| {
        let entry = leaf.entry(i)?;
        match entry.kind {
            ValueKind::Inline | ValueKind::Run => Ok(1),
            ValueKind::Duplicates => Packed::in_record(entry.value).map(|set| set.count() as u64),
            ValueKind::Tree => TreeDesc::from_bytes(entry.value).map(|desc| desc.entries),
        }
    }))
}

/// Records under a child of a branch on `level`.
fn records_of_child<'p, P: Pages<'p>>(
    pages: &P,
    branch: &Located<Branch<'p>>,
    i: usize,
    level: u8,
) -> Result<u64> {
    let child = branch.child(i)?;
    if child.slot().is_none() {
        return branch.records(i);
    }
    if level == 1 {
        return records_of_page(pages.page(child)?, true).map_err(child.damaged());
    }
    let below = pages.branch(child, level - 1)?;
    sum((0..below.count()).map(|i| records_of_child(pages, &below, i, level - 1)))
}

/// The leaf with record `n` of a tree, and which of the leaf's it is.
fn leaf_with<'p, P: Pages<'p>>(pages: &P, desc: &TreeDesc, n: u64) -> Result<(Ref, u64)> {
    let (mut at, mut left) = (desc.root, n);
    for level in (1..desc.depth).rev() {
        let branch = pages.branch(at, level)?;
        let mut i = 0;
        loop {
            if i == branch.count() {
                return Err(at.damaged()(MISCOUNTED));
            }
            let records = records_of_child(pages, &branch, i, level)?;
            if left < records {
                break;
            }
            left -= records;
            i += 1;
        }
        at = branch.child(i)?;
    }
    Ok((at, left))
}

const MISCOUNTED: Damage = Damage("fewer records than are counted");

/// Record `n` of a table, each value of a key counting for one.
pub(crate) fn nth<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    n: u64,
) -> Result<Option<(&'p [u8], &'p [u8])>> {
    check_counted(tree)?;
    if n >= tree.desc.entries || tree.desc.depth == 0 {
        return Ok(None);
    }
    let (at, mut left) = leaf_with(pages, &tree.desc, n)?;
    let leaf = pages.leaf(at)?;
    if !tree.desc.options.has_duplicates() {
        let entry = leaf.entry(left as usize)?;
        return Ok(Some((entry.key, value_of(pages, at, &entry)?)));
    }
    for i in 0..leaf.count() {
        let entry = leaf.entry(i)?;
        let values = values_of(pages, at, &entry)?;
        if left < values.count() {
            return Ok(Some((entry.key, nth_of(pages, &values, left)?)));
        }
        left -= values.count();
    }
    Err(at.damaged()(MISCOUNTED))
}

/// Value `n` of a key, which has more.
fn nth_of<'p, P: Pages<'p>>(pages: &P, values: &Values<'p>, n: u64) -> Result<&'p [u8]> {
    match values {
        Values::One(value) => Ok(value),
        Values::Set(set) => set.item(n as usize),
        Values::Tree(desc) => {
            let (at, n) = leaf_with(pages, desc, n)?;
            pages.leaf_of_kind::<Packed<'p>>(at)?.item(n as usize)
        }
    }
}

/// How many records come before a key's, and how many it has itself.
pub(crate) fn rank<'p, P: Pages<'p>>(pages: &P, tree: &Tree, key: &[u8]) -> Result<(u64, u64)> {
    check_counted(tree)?;
    let Some(place) = Place::find::<P, Leaf<'p>>(pages, &tree.desc, &tree.order, key)? else {
        return Ok((0, 0));
    };
    let leaf = pages.leaf(place.at)?;
    let own = if place.found { place.index + 1 } else { place.index };
    let counts = records_of_leaf(&leaf, 0, place.index)
        .and_then(|before| Ok((before, records_of_leaf(&leaf, place.index, own)?)));
    let (before, own) = counts.map_err(place.at.damaged())?;
    Ok((place.before.saturating_add(before), own))
}

/// How many records come before a key with a value.
pub(crate) fn rank_of_pair<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    key: &[u8],
    value: &[u8],
) -> Result<u64> {
    let (before, own) = rank(pages, tree, key)?;
    if own == 0 || !tree.desc.options.has_duplicates() {
        return Ok(before);
    }
    let found = get_entry(pages, &tree.desc, &tree.order, key)?;
    let Some((at, entry)) = found else { return Ok(before) };
    let among = match values_of(pages, at, &entry)? {
        Values::One(own) => u64::from(tree.values.compare(value, own).is_gt()),
        Values::Set(set) => {
            let (Ok(i) | Err(i)) = set.position(&tree.values, value)?;
            i as u64
        }
        Values::Tree(desc) => {
            let place = Place::find::<P, Packed<'p>>(pages, &desc, &tree.values, value)?;
            place.map_or(0, |place| place.before.saturating_add(place.index as u64))
        }
    };
    Ok(before.saturating_add(among))
}

/// Value `n` of a key.
pub(crate) fn nth_value<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    key: &[u8],
    n: u64,
) -> Result<Option<&'p [u8]>> {
    check_counted(tree)?;
    let found = get_entry(pages, &tree.desc, &tree.order, key)?;
    let Some((at, entry)) = found else { return Ok(None) };
    let values = values_of(pages, at, &entry)?;
    if n < values.count() { nth_of(pages, &values, n).map(Some) } else { Ok(None) }
}

fn check_counted(tree: &Tree) -> Result<()> {
    if tree.desc.options.is_counted() { Ok(()) } else { Err(NOT_COUNTED) }
}

/// Where a search ended.
struct Place {
    at: Ref,
    index: usize,
    found: bool,
    /// Records in the leaves before.
    before: u64,
}

impl Place {
    fn find<'p, P: Pages<'p>, L: LeafPage<'p>>(
        pages: &P,
        desc: &TreeDesc,
        order: &Order,
        key: &[u8],
    ) -> Result<Option<Place>> {
        if desc.depth == 0 {
            return Ok(None);
        }
        let mut buf = NormBuf::default();
        let key = SearchKey::new(order, key, &mut buf);
        let (mut at, mut before) = (desc.root, 0u64);
        for level in (1..desc.depth).rev() {
            let branch = pages.branch(at, level)?;
            let i = branch.search(order, &key)?;
            let left = sum((0..i).map(|i| records_of_child(pages, &branch, i, level)))?;
            before = before.saturating_add(left);
            at = branch.child(i)?;
        }
        let found = pages.leaf_of_kind::<L>(at)?.search(order, &key)?;
        let (Ok(index) | Err(index)) = found;
        Ok(Some(Place { at, index, found: found.is_ok(), before }))
    }
}
