//! Batched look-ups: many keys descend together, level by level, so that the cache misses of one
//! overlap with those of the others.

use crate::error::Result;
use crate::page::quick::{self, ByteKey, Level};
use crate::page::{self, Leaf, Order, SearchKey};

use super::lookup::{self, value_of};
use super::{Located, Pages, Ref, TreeDesc};

/// Keys that descend together: enough to cover a miss to memory, few enough to stay in L1.
pub(crate) const GROUP: usize = 32;
/// No record begins there: it is past the end of every page.
const NOWHERE: usize = u32::MAX as usize;
/// Keys in a reversed order descend together up to this length; integers are not longer.
const SHORT: usize = 8;

/// Looks up `keys` and hands each result, in order, to `found`.
pub(crate) fn get_many<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    keys: &[&[u8]],
    mut found: impl FnMut(usize, Option<&'p [u8]>),
) -> Result<()> {
    for (g, group) in keys.chunks(GROUP).enumerate() {
        let found = |i, value| found(g * GROUP + i, value);
        if desc.depth == 0 {
            one_by_one(pages, desc, order, group, found)?;
        } else if order.as_it_is(&[]).is_some() {
            let key_of = |_, key| order.as_it_is(key).unwrap_or_else(SearchKey::empty);
            get_group(pages, desc, order, group, key_of, found)?;
        } else {
            get_reversed_group(pages, desc, order, group, found)?;
        }
    }
    Ok(())
}

/// Keys whose normal form is another: short ones, as integers are, together.
#[inline(never)]
fn get_reversed_group<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    keys: &[&[u8]],
    found: impl FnMut(usize, Option<&'p [u8]>),
) -> Result<()> {
    if keys.iter().any(|key| key.len() > SHORT) {
        return one_by_one(pages, desc, order, keys, found);
    }
    let mut norms = [[0; SHORT]; GROUP];
    for (norm, key) in norms.iter_mut().zip(keys) {
        norm.iter_mut().zip(key.iter().rev()).for_each(|(to, byte)| *to = *byte);
    }
    get_group(
        pages,
        desc,
        order,
        keys,
        |i, key| {
            let norm = norms.get(i).and_then(|norm| norm.get(..key.len()));
            SearchKey::with_norm(key, norm.unwrap_or_default())
        },
        found,
    )
}

/// Empty trees, and orders whose keys must be turned round.
#[cold]
fn one_by_one<'p, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    keys: &[&[u8]],
    mut found: impl FnMut(usize, Option<&'p [u8]>),
) -> Result<()> {
    for (i, key) in keys.iter().enumerate() {
        found(i, lookup::get(pages, desc, order, key)?);
    }
    Ok(())
}

/// A key on its way: the page reached and, in the leaf, where its record should be.
#[derive(Clone, Copy)]
struct Seeker<'p> {
    at: Ref,
    page: &'p [u8],
    record: usize,
}

#[inline(always)]
fn get_group<'p, 'k, P: Pages<'p>>(
    pages: &P,
    desc: &TreeDesc,
    order: &Order,
    keys: &[&'k [u8]],
    key_of: impl Fn(usize, &'k [u8]) -> SearchKey<'k>,
    mut found: impl FnMut(usize, Option<&'p [u8]>),
) -> Result<()> {
    let mut seekers = [Seeker { at: desc.root, page: &[], record: NOWHERE }; GROUP];
    for level in Level::of_branches(desc.depth) {
        for (i, (s, key)) in seekers.iter_mut().zip(keys).enumerate() {
            s.at = Ref(lookup::way(pages, s.at, level, order, &key_of(i, key))?.child);
        }
        // Together: the CPU waits for the translation of each address, but has several under way
        // where they follow one another closely.
        seekers.iter().take(keys.len()).for_each(|s| pages.prefetch(s.at));
    }
    // The last level in two passes: positions first (asking for the records), then the records.
    for (i, (s, key)) in seekers.iter_mut().zip(keys).enumerate() {
        s.page = pages.page(s.at)?;
        let key = key_of(i, key);
        if let Ok(record) = quick::place(s.page, &ByteKey::new(key.norm())) {
            s.record = record;
            page::touch(s.page, record);
        }
    }
    for (i, (s, key)) in seekers.iter().zip(keys).enumerate() {
        let value = match quick::value_at(s.page, s.record, &ByteKey::new(key)) {
            Some(value) => Some(value),
            None => find_again(pages, order, s, key_of(i, key))?,
        };
        found(i, value);
    }
    Ok(())
}

/// The key is not there, or shares its head with others, or its value is elsewhere.
#[inline(never)]
fn find_again<'p, P: Pages<'p>>(
    pages: &P,
    order: &Order,
    seeker: &Seeker<'p>,
    key: SearchKey<'_>,
) -> Result<Option<&'p [u8]>> {
    let leaf = Located::new(seeker.at, Leaf::on_level_0(seeker.page))?;
    match leaf.find(order, &key)? {
        Some(entry) => value_of(pages, seeker.at, &entry).map(Some),
        None => Ok(None),
    }
}
