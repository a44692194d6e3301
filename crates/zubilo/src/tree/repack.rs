//! Packing: children of one branch are written anew into fewer pages.
//!
//! A window of neighbours is rewritten if one page at least falls away, and it is the shortest that
//! yields one: so no page is rewritten for less than its share. The last page that comes out of a window
//! begins the next one, so that in a row of half-full pages all but the last are filled.

use crate::error::Result;
use crate::page::{self, Branch, Damage, Items, LeafPage, Packed, header, leaf, packed, row};

use super::compact::{Part, touch_until, verified};
use super::insert::broken_path;
use super::{Pages, Path, Ref, Tree};

/// Pages that are rewritten at most to save one: leaves that are full to 15 sixteenths of what is
/// wanted stay as they are.
const WINDOW: usize = 16;

/// A page that takes a part of the window, and what separates it from the one before.
struct Fresh {
    separator: Vec<u8>,
    page: Vec<u8>,
}

/// Packs the children of the branch at step `d` of a path, from the step's index on. Gives the child to
/// go on with if the part has done enough before the last.
pub(super) fn pack_children(
    part: &mut Part<'_>,
    tree: &mut Tree,
    path: &mut Path,
    d: usize,
    room: usize,
) -> Result<Option<usize>> {
    let from = path.steps()[d].index as usize;
    // Bytes that the children from `from` on fill, as far as they are known.
    let mut sizes: Vec<usize> = Vec::new();
    let mut i = from;
    loop {
        let children = children_of(part, path, d)?;
        if i + 1 >= children {
            return Ok(None);
        }
        let window = (i + WINDOW).min(children);
        while from + sizes.len() < window {
            let at = child_of(part, path, d, from + sizes.len())?;
            part.see(at)?;
            sizes.push(size_of(part, tree, at)?);
        }
        let known = sizes.get(i - from..window - from).unwrap_or_default();
        match pack_window(part, tree, path, d, (i, known, room))? {
            Some((taken, made)) => {
                part.meter.saved += (taken - made.len()) as u64;
                let last = made.len() - 1;
                sizes.splice(i - from..i - from + taken, made);
                i += last;
            }
            None => i += 1,
        }
        if part.is_spent() {
            return Ok(Some(i).filter(|i| i + 1 < children));
        }
    }
}

fn children_of(part: &Part<'_>, path: &Path, d: usize) -> Result<usize> {
    let at = path.steps()[d].page;
    Ok(Branch::new(part.ws.view().page(at)?).map_err(at.damaged())?.count())
}

fn child_of(part: &Part<'_>, path: &Path, d: usize, i: usize) -> Result<Ref> {
    let at = path.steps()[d].page;
    let branch = Branch::new(part.ws.view().page(at)?).map_err(at.damaged())?;
    branch.child(i).map(Ref).map_err(at.damaged())
}

/// Bytes that a page's entries take, wherever they lie.
fn size_of(part: &Part<'_>, tree: &Tree, at: Ref) -> Result<usize> {
    let page = part.ws.view().page(at)?;
    let size = || {
        if header::level(page) > 0 {
            return Ok(Branch::new(page)?.used());
        }
        match Items::parse(page)? {
            Items::Leaf(leaf) => leaf::used(&leaf, usize::from(tree.desc.options.align)),
            Items::Packed(packed) => Ok(packed.used()),
        }
    };
    size().map_err(at.damaged())
}

/// Rewrites the shortest window from child `i` on that saves a page; gives how many children it had and
/// the sizes of those that took their place.
fn pack_window(
    part: &mut Part<'_>,
    tree: &mut Tree,
    path: &mut Path,
    d: usize,
    (i, sizes, room): (usize, &[usize], usize),
) -> Result<Option<(usize, Vec<usize>)>> {
    let mut sum = 0;
    for (n, size) in sizes.iter().enumerate() {
        sum += size;
        if n == 0 && room.saturating_sub(*size) * WINDOW < room {
            // A full one saves nothing that its neighbour alone would not.
            return Ok(None);
        }
        if n == 0 || sum > n * room {
            continue;
        }
        let taken = n + 1;
        let fresh = if d + 2 == path.len() {
            leaves(part, tree, path, d, (i, taken, room))?
        } else {
            branches(part, tree, path, d, (i, taken, room))?
        };
        if let Some(fresh) = fresh {
            return put_in_place(part, tree, path, d, (i, taken), fresh);
        }
    }
    Ok(None)
}

/// Entries [from, to) of leaf `leaf` of a window.
#[derive(Clone, Copy)]
struct Piece {
    leaf: usize,
    from: usize,
    to: usize,
}

/// The records of `taken` leaves in fewer; none if they do not fit.
fn leaves(
    part: &Part<'_>,
    tree: &Tree,
    path: &Path,
    d: usize,
    (i, taken, room): (usize, usize, usize),
) -> Result<Option<Vec<Fresh>>> {
    let mut sources = Vec::with_capacity(taken);
    for n in 0..taken {
        let at = child_of(part, path, d, i + n)?;
        sources.push((at, Items::parse(part.ws.view().page(at)?).map_err(at.damaged())?));
    }
    let align = usize::from(tree.desc.options.align);
    let Some(plan) = plan(&sources, room, align)? else { return Ok(None) };
    let mut fresh = Vec::with_capacity(plan.len());
    for (at, _) in &sources {
        verified(part.ws, *at)?;
    }
    let mut before: Option<&[u8]> = None;
    for pieces in &plan {
        let Some(page) = leaf_of(part, tree, &sources, pieces)? else { return Ok(None) };
        let key = |piece: &Piece, i: usize| {
            let (at, items) = &sources[piece.leaf];
            items.key(i).map_err(at.damaged())
        };
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(None) };
        let mut separator = Vec::new();
        if let Some(before) = before {
            page::separator(&tree.order, before, key(first, first.from)?, &mut separator);
        }
        before = Some(key(last, last.to - 1)?);
        fresh.push(Fresh { separator, page });
    }
    Ok(Some(fresh))
}

/// Spreads the entries over pages of so many bytes; none if that takes as many pages as they have.
fn plan(
    sources: &[(Ref, Items<'_>)],
    room: usize,
    align: usize,
) -> Result<Option<Vec<Vec<Piece>>>> {
    let mut plan: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut used = 0;
    for (leaf, (at, items)) in sources.iter().enumerate() {
        let mut from = 0;
        for i in 0..items.count() {
            let size = match items {
                Items::Leaf(leaf) => leaf::entry_footprint(leaf, i, align).map_err(at.damaged())?,
                Items::Packed(packed) => packed.item_size(),
            };
            if used > 0 && used + size > room {
                if let Some(pieces) = plan.last_mut().filter(|_| from < i) {
                    pieces.push(Piece { leaf, from, to: i });
                }
                (from, used) = (i, 0);
                plan.push(Vec::new());
                if plan.len() >= sources.len() {
                    return Ok(None);
                }
            }
            used += size;
        }
        if let Some(pieces) = plan.last_mut().filter(|_| from < items.count()) {
            pieces.push(Piece { leaf, from, to: items.count() });
        }
    }
    Ok(Some(plan).filter(|plan| plan.last().is_some_and(|pieces| !pieces.is_empty())))
}

/// A leaf of these pieces.
fn leaf_of(
    part: &Part<'_>,
    tree: &Tree,
    sources: &[(Ref, Items<'_>)],
    pieces: &[Piece],
) -> Result<Option<Vec<u8>>> {
    let mut page = vec![0; part.ws.page_size()];
    let at = sources.first().map_or(Ref::NONE, |(at, _)| *at);
    let mut flags = 0;
    let mut parts: Vec<leaf::Part<'_>> = Vec::with_capacity(pieces.len());
    let mut items: Vec<(&[u8], Packed<'_>, Piece)> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (at, source) = sources[piece.leaf];
        let bytes = part.ws.view().page(at)?;
        flags |= header::flags(bytes);
        match source {
            Items::Leaf(leaf) => parts.push((leaf, piece.from, piece.to)),
            Items::Packed(packed) => items.push((bytes, packed, *piece)),
        }
    }
    let mixed = Damage("a packed leaf beside another kind");
    let build = |page: &mut Vec<u8>| match (parts.is_empty(), items.first()) {
        (false, None) => {
            let align = usize::from(tree.desc.options.align);
            leaf::join(page, &parts, &tree.order, align)
        }
        (true, Some((_, first, _))) => {
            let plain = tree.order.is_plain();
            let mut fits = packed::init(page, tree.desc.table, plain, first.item_size());
            for (bytes, _, piece) in &items {
                fits = fits && packed::append(page, bytes, piece.from, piece.to)?;
            }
            Ok(fits)
        }
        _ => Err(mixed),
    };
    let fits = build(&mut page).map_err(at.damaged())?;
    header::set_flags(&mut page, flags);
    Ok(fits.then_some(page))
}

/// The children of `taken` branches under fewer; none if they do not fit.
fn branches(
    part: &Part<'_>,
    tree: &Tree,
    path: &Path,
    d: usize,
    (i, taken, room): (usize, usize, usize),
) -> Result<Option<Vec<Fresh>>> {
    let parent = path.steps()[d].page;
    let view = part.ws.view();
    let mut all = row::Row::default();
    let mut separator = Vec::new();
    let first = child_of(part, path, d, i)?;
    for n in i..i + taken {
        let at = child_of(part, path, d, n)?;
        let branch = Branch::new(view.page(parent)?).map_err(parent.damaged())?;
        branch.separator(n, &mut separator).map_err(parent.damaged())?;
        let child = Branch::new(view.page(at)?).map_err(at.damaged())?;
        all.add(&child, &separator).map_err(at.damaged())?;
        verified(part.ws, at)?;
    }
    let like = view.page(first)?;
    let (plain, counted) = (tree.order.is_plain(), header::is_counted(like));
    let mut fresh = Vec::with_capacity(taken);
    let mut from = 0;
    while from < all.len() {
        let mut to = all.fit(from, room, plain, counted);
        // A branch has two children at least.
        to -= usize::from(to + 1 == all.len() && to - from > 2);
        if fresh.len() + 1 >= taken || to - from < 2 {
            return Ok(None);
        }
        let mut page = vec![0; part.ws.page_size()];
        let fits = all.write(&mut page, like, (from, to), plain).map_err(first.damaged())?;
        if !fits {
            return Ok(None);
        }
        fresh.push(Fresh { separator: all.separator(from).to_vec(), page });
        from = to;
    }
    Ok(Some(fresh).filter(|fresh| fresh.len() < taken))
}

/// Puts fresh pages in the place of `taken` children; none, and nothing is changed, if the branch has
/// no room for their separators.
fn put_in_place(
    part: &mut Part<'_>,
    tree: &mut Tree,
    path: &mut Path,
    d: usize,
    (i, taken): (usize, usize),
    fresh: Vec<Fresh>,
) -> Result<Option<(usize, Vec<usize>)>> {
    let old = (i..i + taken).map(|n| child_of(part, path, d, n)).collect::<Result<Vec<Ref>>>()?;
    let mut new = Vec::with_capacity(fresh.len());
    for Fresh { separator, page } in fresh {
        let slot = part.ws.new_page()?;
        part.ws.page_mut(slot)?.copy_from_slice(&page);
        new.push((separator, Ref::dirty(slot).0));
    }
    let parent = path.steps()[d].page;
    let mut tried = part.ws.view().page(parent)?.to_vec();
    let fits = row::replace(&mut tried, (i, i + taken), &tree.order, &new);
    if !fits.map_err(parent.damaged())? {
        for (_, child) in &new {
            part.ws.drop_page(Ref(*child))?;
        }
        return Ok(None);
    }
    touch_until(part.ws, tree, path, d)?;
    let slot = path.steps()[d].page.slot().ok_or_else(broken_path)?;
    part.ws.page_mut(slot)?.copy_from_slice(&tried);
    for at in &old {
        part.ws.drop_page(*at)?;
    }
    let gone = (taken - new.len()) as u64;
    let pages =
        if d + 2 == path.len() { &mut tree.desc.leaf_pages } else { &mut tree.desc.branch_pages };
    *pages = pages.saturating_sub(gone);
    let sizes = new.iter().map(|(_, child)| size_of(part, tree, Ref(*child)));
    Ok(Some((taken, sizes.collect::<Result<Vec<usize>>>()?)))
}
