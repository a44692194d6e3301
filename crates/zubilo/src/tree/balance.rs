//! Fuller leaves: a full leaf gives records to a neighbour that has room before it is split.
//!
//! A leaf that is cut in two leaves both half empty, and random insertions keep such leaves at 0.69 of
//! their bytes. To give takes no more pages in a commit than to split, and makes the file smaller.
//!
//! It is a choice: whatever stands in the way (large records, no room for a separator in the parent),
//! the caller splits the leaf as ever.

use crate::dirty::Workspace;
use crate::error::Result;
use crate::page::{self, Branch, Damage, HEADER, Leaf, branch, header, leaf};

use super::insert::{Place, Shape, broken_path};
use super::{Pages, Path, Ref, Tree};

/// A neighbour takes records if this share of a page is free in it: with less it would be asked again
/// soon.
const ROOM: usize = 8;

/// What moves where.
struct Gift {
    /// The neighbour and its index in the parent.
    other: Ref,
    at: usize,
    to_left: bool,
    /// How many records the neighbour gets, the new one among them if it lies there.
    count: usize,
}

/// Puts a record into a full leaf at the end of a touched path by moving others to a neighbour, if one
/// has room.
pub(super) fn share(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: &Path,
    key: &[u8],
    shape: Shape<'_>,
) -> Result<Option<Place>> {
    let (Some(step), Some(up)) = (path.last(), path.len().checked_sub(2)) else { return Ok(None) };
    // A sorted load leaves full pages behind.
    if step.index >= step.count && path.is_rightmost() {
        return Ok(None);
    }
    let index = step.index as usize;
    let Some(gift) = choose(ws, tree, path, index, key, shape)? else { return Ok(None) };
    let full = step.page.slot().ok_or_else(broken_path)?;
    let parent = path.steps()[up].page.slot().ok_or_else(broken_path)?;
    let mut separator = std::mem::take(&mut ws.separator);
    boundary(ws, tree, &gift, (step.page, index), key, &mut separator)?;
    let second = gift.at + usize::from(gift.to_left);
    let told = branch::set_separator(ws.page_mut(parent)?, second, &tree.order, &separator);
    ws.separator = separator;
    if !told.map_err(step.page.damaged())? {
        return Ok(None);
    }
    let other = ws.touch(gift.other)?;
    branch::set_child(ws.page_mut(parent)?, gift.at, Ref::dirty(other).0)
        .map_err(step.page.damaged())?;
    tree.finger.reset();
    move_records(ws, tree, (full, other), &gift, index, (key, shape)).map(Some)
}

/// The neighbour with the most room, and how much of the leaf it takes.
fn choose(
    ws: &Workspace,
    tree: &Tree,
    path: &Path,
    index: usize,
    key: &[u8],
    shape: Shape<'_>,
) -> Result<Option<Gift>> {
    let (step, full) = (path.steps()[path.len() - 2], path.steps()[path.len() - 1].page);
    let own = step.index as usize;
    let view = ws.view();
    let parent = Branch::new(view.page(step.page)?).map_err(step.page.damaged())?;
    let align = usize::from(tree.desc.options.align);
    let capacity = ws.page_size() - HEADER;
    let mut best: Option<(usize, usize, Ref)> = None;
    for at in [own.wrapping_sub(1), own + 1] {
        if at >= parent.count() {
            continue;
        }
        let other = Ref(parent.child(at).map_err(step.page.damaged())?);
        let page = view.page(other)?;
        if header::level(page) != 0 {
            return Err(other.damaged()(Damage("a neighbour on another level")));
        }
        let leaf = Leaf::new(page).map_err(other.damaged())?;
        let used = leaf::used(&leaf, align).map_err(other.damaged())?;
        let room = capacity.saturating_sub(used + leaf.prefix().len());
        if best.is_none_or(|(most, _, _)| room > most) {
            best = Some((room, at, other));
        }
    }
    let Some((room, at, other)) = best.filter(|(room, ..)| *room >= capacity / ROOM) else {
        return Ok(None);
    };
    let leaf = Leaf::new(view.page(full)?).map_err(full.damaged())?;
    let size = leaf::footprint(key.len(), shape.len, align);
    let to_left = at < own;
    let count = records_to_give(&leaf, to_left, index, size, room, align);
    let count = count.map_err(full.damaged())?;
    Ok((count > 0).then_some(Gift { other, at, to_left, count }))
}

/// How many records at the near end, the new one among them, leave both leaves equally full; none
/// where they would not fit.
fn records_to_give(
    leaf: &Leaf<'_>,
    to_left: bool,
    index: usize,
    size: usize,
    room: usize,
    align: usize,
) -> std::result::Result<usize, Damage> {
    let total = leaf.count() + 1;
    let (mut given, mut count) = (0, 0);
    while count + 1 < total {
        let i = if to_left { count } else { total - 1 - count };
        let next = match i.cmp(&index) {
            std::cmp::Ordering::Less => leaf::entry_footprint(leaf, i, align)?,
            std::cmp::Ordering::Equal => size,
            std::cmp::Ordering::Greater => leaf::entry_footprint(leaf, i - 1, align)?,
        };
        if given + next > room / 2 + size / 2 {
            break;
        }
        given += next;
        count += 1;
    }
    // The full leaf has room for the new record then, whatever prefix it has.
    let enough = given >= size + leaf.prefix().len();
    Ok(if enough && given <= room { count } else { 0 })
}

/// The separator between the two leaves when the records have moved.
fn boundary(
    ws: &Workspace,
    tree: &Tree,
    gift: &Gift,
    (full, index): (Ref, usize),
    key: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let leaf = Leaf::new(ws.view().page(full)?).map_err(full.damaged())?;
    let key_of = |i: usize| match i.cmp(&index) {
        std::cmp::Ordering::Less => leaf.key(i),
        std::cmp::Ordering::Equal => Ok(key),
        std::cmp::Ordering::Greater => leaf.key(i - 1),
    };
    let cut = if gift.to_left { gift.count } else { leaf.count() + 1 - gift.count };
    let last = key_of(cut - 1).map_err(full.damaged())?;
    let first = key_of(cut).map_err(full.damaged())?;
    page::separator(&tree.order, last, first, out);
    Ok(())
}

/// Moves the records and puts the new one where it belongs.
fn move_records(
    ws: &mut Workspace,
    tree: &Tree,
    (full, other): (u32, u32),
    gift: &Gift,
    index: usize,
    (key, shape): (&[u8], Shape<'_>),
) -> Result<Place> {
    let damaged = |d: Damage| Ref::dirty(full).damaged()(d);
    let no_room = || damaged(Damage("a neighbour has less room than it seemed"));
    let align = usize::from(tree.desc.options.align);
    let (from, to) = ws.pair_mut(full, other)?;
    let count = Leaf::new(from).map_err(damaged)?.count();
    let start = if gift.to_left { Leaf::new(to).map_err(damaged)?.count() } else { 0 };
    // Indexes among all records, the new one counted.
    let given = if gift.to_left { 0..gift.count } else { count + 1 - gift.count..count + 1 };
    let mut place = None;
    for (n, i) in given.clone().enumerate() {
        if i == index {
            let put = leaf::insert(to, start + n, &tree.order, key, shape.kind, shape.len, align);
            shape.store(put.map_err(damaged)?.ok_or_else(no_room)?);
            place = Some(Place { slot: other, index: start + n });
            continue;
        }
        let source = Leaf::new(from).map_err(damaged)?;
        let entry = source.entry(i - usize::from(i > index)).map_err(damaged)?;
        let (kind, len) = (entry.kind, entry.value.len());
        let put = leaf::insert(to, start + n, &tree.order, entry.key, kind, len, align);
        put.map_err(damaged)?.ok_or_else(no_room)?.copy_from_slice(entry.value);
    }
    // What the records refer to may be dirty.
    let flags = header::flags(from) | header::flags(to);
    header::set_flags(to, flags);
    let here = |i: usize| i - usize::from(i > index);
    leaf::remove_range(from, here(given.start), here(given.end)).map_err(damaged)?;
    if let Some(place) = place {
        return Ok(place);
    }
    let index = if gift.to_left { index - gift.count } else { index };
    let put = leaf::insert(from, index, &tree.order, key, shape.kind, shape.len, align);
    shape.store(put.map_err(damaged)?.ok_or_else(no_room)?);
    Ok(Place { slot: full, index })
}
