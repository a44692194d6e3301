//! The two metas: which commit is the newest, where its trees are, how large pages are.

use crate::error::{Error, Result, damaged};
use crate::layout::{Layout, Tree, u16_at, u32_at};
use crate::source::Source;

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const META_PAGE: u16 = 0x08;
/// From the smallest page LMDB can work with to the largest.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 256..=65536;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub(crate) layout: Layout,
    pub(crate) page_size: u32,
    pub(crate) map_size: u64,
    pub(crate) names: Tree,
    pub(crate) last_page: u64,
    pub(crate) txn: u64,
}

/// What one of the metas is.
enum Found {
    Good(Meta),
    /// The magic number is there, the rest is not.
    Bad(Error),
    Nothing,
}

/// The newest meta, and whether the other one is damaged.
pub(crate) fn newest(source: &impl Source, size: u64) -> Result<(Meta, bool)> {
    let first = read(source, size, 0, 0)?;
    let first_good = match first {
        Found::Good(meta) => Some(meta),
        Found::Bad(error @ Error::Unsupported(_)) => return Err(error),
        _ => None,
    };
    let second_good = match &first_good {
        Some(meta) => match read(source, size, u64::from(meta.page_size), 1)? {
            Found::Good(second) if second.page_size == meta.page_size => Some(second),
            _ => None,
        },
        // Where it is depends on the page size, which the meta itself gives.
        None => anywhere(source, size)?,
    };
    if let Some(meta) = first_good.or(second_good)
        && size < 2 * u64::from(meta.page_size)
    {
        return Err(damaged(1, "the file ends before its second meta"));
    }
    match (first_good, second_good) {
        (Some(first), Some(second)) if second.txn > first.txn => Ok((second, false)),
        (Some(first), Some(_)) => Ok((first, false)),
        (Some(one), None) | (None, Some(one)) => Ok((one, true)),
        (None, None) => match first {
            Found::Bad(error) => Err(error),
            _ => Err(Error::NotLmdb),
        },
    }
}

fn anywhere(source: &impl Source, size: u64) -> Result<Option<Meta>> {
    let mut page_size = *PAGE_SIZES.start();
    while page_size <= *PAGE_SIZES.end() {
        if let Found::Good(meta) = read(source, size, u64::from(page_size), 1)?
            && meta.page_size == page_size
        {
            return Ok(Some(meta));
        }
        page_size *= 2;
    }
    Ok(None)
}

fn read(source: &impl Source, size: u64, offset: u64, page: u64) -> Result<Found> {
    let layouts = [Layout::BITS_64, Layout::BITS_32];
    let mut bytes = [0; 256];
    let left = size.saturating_sub(offset).min(bytes.len() as u64) as usize;
    let Some(bytes) = bytes.get_mut(..left).filter(|bytes| !bytes.is_empty()) else {
        return Ok(Found::Nothing);
    };
    source.read(offset, bytes).map_err(|source| Error::Io { op: "read a meta page", source })?;
    for layout in layouts {
        let magic = u32_at(bytes, layout.page_head());
        if magic == Some(MAGIC.swap_bytes()) {
            let what = "the file was written on a big-endian machine: dump it there with mdb_dump, \
                        and load the dump with `zubilo load`";
            return Ok(Found::Bad(Error::Unsupported(what.into())));
        }
        if magic == Some(MAGIC) {
            return Ok(match decode(layout, bytes, page) {
                Ok(meta) => Found::Good(meta),
                Err(error) => Found::Bad(error),
            });
        }
    }
    Ok(Found::Nothing)
}

fn decode(layout: Layout, bytes: &[u8], page: u64) -> Result<Meta> {
    let short = || damaged(page, "the file ends inside a meta");
    let at = layout.page_head();
    if bytes.len() < at + layout.meta() {
        return Err(short());
    }
    let version = u32_at(bytes, at + 4).ok_or_else(short)?;
    if version != VERSION {
        return Err(Error::Unsupported(format!(
            "the file has format {version} of LMDB, format {VERSION} (LMDB 0.9) is read: dump it \
             with its own mdb_dump, and load the dump with `zubilo load`"
        )));
    }
    if u16_at(bytes, layout.word + 2).is_none_or(|flags| flags & META_PAGE == 0) {
        return Err(damaged(page, "it should be a meta"));
    }
    let word = |at| layout.word_at(bytes, at).ok_or_else(short);
    let (map_size, trees) = (word(at + 8 + layout.word)?, at + 8 + 2 * layout.word);
    let free = Tree::read(layout, bytes, trees).ok_or_else(short)?;
    let names = Tree::read(layout, bytes, trees + layout.tree()).ok_or_else(short)?;
    let behind = trees + 2 * layout.tree();
    // The tree of free pages has no use for its pad: there stands the page size.
    let page_size = free.pad;
    if !page_size.is_power_of_two() || !PAGE_SIZES.contains(&page_size) {
        return Err(damaged(page, "its page size is impossible"));
    }
    let (last_page, txn) = (word(behind)?, word(behind + layout.word)?);
    Ok(Meta { layout, page_size, map_size, names, last_page, txn })
}
