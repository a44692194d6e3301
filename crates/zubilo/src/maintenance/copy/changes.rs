//! The pages that a commit has and an older one had not, as a stream: what brings a copy of the older commit up
//! to date.
//!
//! No list of changes is kept. A changed page is written anew with all pages above it, so nothing below a page
//! is younger than the page: where the walk comes to one that the older commit had already, it turns back. Of
//! such a page the stream has the checksum. Whoever applies the stream compares it with the copy's page.
//! Together with the rule that nothing is younger than what refers to it, which the check knows, this
//! proves that the whole tree below is the one that was meant: a page there that a later commit has
//! overwritten is younger than its parent. It proves it for one history. Where commit numbers were used again a
//! page of the other history may be no younger: for that pages lack the name of the open that wrote them.
//!
//! Layout, numbers little-endian: [`MAGIC`], the version, zeros, the older commit, the meta of the newer one as
//! the file has it; then blocks of a kind, a page and a number, each 8 bytes: [`PAGES`], followed by so many
//! pages; [`SAME`], the checksum of a page that stays; [`END`], the checksum of all bytes before.

use std::hash::Hasher;
use std::io::Write;

use twox_hash::XxHash3_64;

use crate::env::meta::Meta;
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::row::Node;
use crate::page::{Branch, Kind, Leaf, ValueKind, header};
use crate::tree::desc::MAX_DEPTH;
use crate::tree::values::tree_of;
use crate::tree::{Located, Pages, Ref, RunRef, Snapshot, TreeDesc};
use crate::txn::ReadTxn;

use super::Progress;

/// What a stream of changes begins with.
pub(super) const MAGIC: [u8; 8] = *b"ZUBILO+\n";
pub(super) const VERSION: u32 = 1;
/// Bytes before the meta.
pub(super) const HEAD: usize = 24;
/// Bytes of a block without its pages.
pub(super) const BLOCK: usize = 24;

/// Kinds of blocks.
pub(super) const PAGES: u64 = 1;
pub(super) const SAME: u64 = 2;
pub(super) const END: u64 = 3;

/// Writes what commit `since` had not.
pub(super) fn run(
    txn: &ReadTxn,
    meta: &Meta,
    since: u64,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<()> {
    let mut out = Stream { out, sum: XxHash3_64::new() };
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[16..].copy_from_slice(&since.to_le_bytes());
    out.write(&head)?;
    out.write(meta.encode().as_slice())?;
    let snapshot = txn.snapshot();
    let log = meta.load_log(&snapshot, &[], txn.env().plausible_pages())?.log;
    let mut walk = Walk { snapshot, since, out, progress, seen: 0, end: meta.end };
    for segment in log.segments().iter().filter(|segment| segment.txn > since) {
        walk.extent(segment.first, segment.len)?;
    }
    walk.tree(&meta.main)?;
    let sum = walk.out.sum.finish();
    walk.out.block(END, 0, sum)?;
    (walk.progress)(meta.end, meta.end);
    walk.out.out.flush().map_err(Error::io("write the changes"))
}

struct Stream<'o> {
    out: &'o mut dyn Write,
    /// Of all that was written.
    sum: XxHash3_64,
}

impl Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sum.write(bytes);
        self.out.write_all(bytes).map_err(Error::io("write the changes"))
    }

    fn block(&mut self, kind: u64, page: u64, number: u64) -> Result<()> {
        let mut block = [0; BLOCK];
        for (to, word) in block.chunks_exact_mut(8).zip([kind, page, number]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        self.write(&block)
    }
}

struct Walk<'c, 'p> {
    snapshot: Snapshot<'p>,
    since: u64,
    out: Stream<'c>,
    progress: Progress<'c>,
    /// Pages so far.
    seen: u64,
    /// Of the store: there are no more pages than these.
    end: u64,
}

impl Walk<'_, '_> {
    fn tree(&mut self, desc: &TreeDesc) -> Result<()> {
        if usize::from(desc.depth) > MAX_DEPTH {
            return Err(damaged(desc.root.0, "the tree is deeper than any can be"));
        }
        match desc.depth {
            0 => Ok(()),
            depth => self.page(desc, desc.root, depth - 1),
        }
    }

    fn page(&mut self, tree: &TreeDesc, at: Ref, level: u8) -> Result<()> {
        let page = self.snapshot.page(at)?;
        // Verified: what is in the stream cannot be taken back.
        header::verify(page, at.0).map_err(at.damaged())?;
        if header::birth(page) <= self.since {
            self.count(at.0, 1)?;
            self.out.block(SAME, at.0, header::checksum(page))?;
            if header::opening(page) != 0 || header::kind(page) == Ok(Kind::Packed) {
                return Ok(());
            }
            // A page from before pages named their opening: it says nothing of those below.
        } else {
            self.extent(at.0, page.len() as u64)?;
        }
        match Node::on_level(page, level).map_err(at.damaged())? {
            Node::Branch(branch) => self.branch(tree, at, &branch, level),
            Node::Leaf(leaf) => self.leaf(tree, at, &leaf),
            Node::Packed(_) => Ok(()),
        }
    }

    fn branch(&mut self, tree: &TreeDesc, at: Ref, branch: &Branch<'_>, level: u8) -> Result<()> {
        for i in 0..branch.count() {
            let child = branch.child(i).map_err(at.damaged())?;
            self.page(tree, Ref(child), level - 1)?;
        }
        Ok(())
    }

    fn leaf(&mut self, tree: &TreeDesc, at: Ref, leaf: &Leaf<'_>) -> Result<()> {
        for i in 0..leaf.count() {
            let entry = leaf.entry(i).map_err(at.damaged())?;
            match entry.kind {
                ValueKind::Inline | ValueKind::Duplicates => {}
                ValueKind::Run => self.run(&RunRef::of(at, entry.value)?)?,
                ValueKind::Tree if tree.options.has_duplicates() => {
                    self.tree(&tree_of(&self.snapshot, at, entry.value)?)?;
                }
                ValueKind::Tree if tree.table == 0 => {
                    let desc = *Located::new(at, TreeDesc::from_bytes(entry.value))?;
                    if desc.table == 0 {
                        return Err(damaged(at.0, "a table that claims to be the table of tables"));
                    }
                    self.tree(&desc)?;
                }
                ValueKind::Tree => {
                    return Err(damaged(at.0, "a kind of value that this table cannot hold"));
                }
            }
        }
        Ok(())
    }

    fn run(&mut self, run: &RunRef) -> Result<()> {
        if run.birth <= self.since || run.len == 0 {
            return Ok(());
        }
        let bytes = self.snapshot.bytes(run.first, run.len, None);
        let bytes = bytes.ok_or(damaged(run.first, "a value run leads outside the store"))?;
        run.verify(bytes).map_err(Ref(run.first).damaged())?;
        self.extent(run.first, run.len)
    }

    /// Writes the pages of the bytes from page `first` on.
    fn extent(&mut self, first: u64, len: u64) -> Result<()> {
        let count = len.div_ceil(self.snapshot.page_size() as u64);
        self.count(first, count)?;
        let bytes = self.snapshot.bytes(first, count * self.snapshot.page_size() as u64, None);
        let bytes = bytes.ok_or(damaged(first, "pages lie outside the store"))?;
        self.out.block(PAGES, first, count)?;
        self.out.write(bytes)
    }

    /// Damaged trees may lead to the same pages again and again: no walk sees more pages than there are.
    fn count(&mut self, page: u64, pages: u64) -> Result<()> {
        self.seen = self.seen.saturating_add(pages);
        if self.seen > self.end {
            return Err(damaged(page, "a page belongs to two places"));
        }
        if !(self.progress)(self.seen, self.end) {
            return Err(Error::Stopped);
        }
        Ok(())
    }
}

fn damaged(page: u64, reason: &'static str) -> Error {
    Error::Corrupted { page: PageNo(page), reason }
}
