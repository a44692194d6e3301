//! Batched look-ups: many keys descend together, level by level, so that the cache misses of one
//! overlap with those of the others.

use crate::error::Result;
use crate::page::{NormBuf, Order, SearchKey};

use super::lookup::{branch_at, leaf_at, value_of};
use super::{Pages, Ref, TreeDesc};

/// Keys that descend together: enough to cover a miss to memory, few enough to stay in L1.
pub(crate) const GROUP: usize = 32;

/// Looks up `keys` and hands each result, in order, to `found`.
pub(crate) fn get_many<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    keys: &[&[u8]],
    found: &mut dyn FnMut(usize, Option<&'p [u8]>),
) -> Result<()> {
    for (g, group) in keys.chunks(GROUP).enumerate() {
        get_group(pages, desc, order, group, &mut |i, value| found(g * GROUP + i, value))?;
    }
    Ok(())
}

fn get_group<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    keys: &[&[u8]],
    found: &mut dyn FnMut(usize, Option<&'p [u8]>),
) -> Result<()> {
    if desc.depth == 0 {
        (0..keys.len()).for_each(|i| found(i, None));
        return Ok(());
    }
    let mut at = [desc.root; GROUP];
    let at = at.get_mut(..keys.len()).unwrap_or_default();
    for level in (1..desc.depth).rev() {
        for (r, key) in at.iter_mut().zip(keys) {
            let mut buf = NormBuf::default();
            let key = SearchKey::new(order, key, &mut buf);
            let branch = branch_at(pages, *r, level)?;
            let i = branch.search(order, &key).map_err(r.damaged())?;
            *r = Ref(branch.child(i).map_err(r.damaged())?);
            pages.prefetch(*r);
        }
    }
    find_in_leaves(pages, order, at, keys, found)
}

/// The last level in two passes: positions first (asking for the records), then the values.
fn find_in_leaves<'p, P: Pages<'p>>(
    pages: &P,
    order: &Order,
    at: &[Ref],
    keys: &[&[u8]],
    found: &mut dyn FnMut(usize, Option<&'p [u8]>),
) -> Result<()> {
    let mut hints = [0usize; GROUP];
    for ((r, key), hint) in at.iter().zip(keys).zip(&mut hints) {
        let mut buf = NormBuf::default();
        let key = SearchKey::new(order, key, &mut buf);
        let leaf = leaf_at(pages, *r)?;
        *hint = leaf.hint(order, &key);
        leaf.prefetch_entry(*hint);
    }
    for (i, ((r, key), hint)) in at.iter().zip(keys).zip(hints).enumerate() {
        let mut buf = NormBuf::default();
        let key = SearchKey::new(order, key, &mut buf);
        let leaf = leaf_at(pages, *r)?;
        let entry = match leaf.entry(hint) {
            Ok(entry) if entry.key == key.raw() => Some(entry),
            _ => match leaf.search(order, &key).map_err(r.damaged())? {
                Ok(i) => Some(leaf.entry(i).map_err(r.damaged())?),
                Err(_) => None,
            },
        };
        match entry {
            Some(entry) => found(i, Some(value_of(pages, *r, &entry)?)),
            None => found(i, None),
        }
    }
    Ok(())
}
