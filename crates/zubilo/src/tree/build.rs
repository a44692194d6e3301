//! Building a tree from sorted records, bottom-up and without gaps: for compacting copies.
//!
//! Pages are numbered as they are finished, children before parents, and handed to a sink; only
//! one page a level is held in memory.

use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::header::Origin;
use crate::page::row::Rules;
use crate::page::{self, Damage, Kind, NewValue, Order, ValueKind, branch, header, leaf, packed};

use crate::platform::Purpose;

use super::run::{self, RUN_REF_SIZE};
use super::{Ref, RunRef, TreeDesc, TreeOptions};

/// Takes finished pages in ascending order.
pub(crate) trait PageSink {
    /// Takes `bytes`, whole pages from page `first` on, which serve a purpose.
    fn pages(&mut self, first: u64, bytes: &[u8], purpose: Purpose) -> Result<()>;
}

/// Numbers and seals pages for a sink.
pub(crate) struct Output<'s> {
    pub(crate) sink: &'s mut dyn PageSink,
    pub(crate) page_size: usize,
    /// Next page number.
    pub(crate) next: u64,
    /// Who writes all pages.
    pub(crate) by: Origin,
}

impl Output<'_> {
    fn page(&mut self, page: &mut [u8]) -> Result<u64> {
        let number = self.next;
        header::seal(page, number, self.by);
        self.sink.pages(number, page, Purpose::Tree)?;
        self.next += 1;
        Ok(number)
    }

    /// Writes a value as a run.
    pub(crate) fn run(&mut self, value: &[u8]) -> Result<RunRef> {
        let first = self.next;
        let whole = value.len() / self.page_size * self.page_size;
        let (body, tail) = value.split_at(whole);
        self.sink.pages(first, body, Purpose::Value)?;
        if !tail.is_empty() {
            let mut last = tail.to_vec();
            last.resize(self.page_size, 0);
            let behind = first + (whole / self.page_size) as u64;
            self.sink.pages(behind, &last, Purpose::Value)?;
        }
        self.next += value.len().div_ceil(self.page_size) as u64;
        Ok(RunRef {
            first,
            len: value.len() as u64,
            checksum: run::checksum(value),
            birth: self.by.birth,
        })
    }
}

/// A branch being filled, and the separator it will have in its parent.
struct Open {
    page: Vec<u8>,
    first_separator: Vec<u8>,
    count: usize,
    /// Records under its children.
    records: u64,
}

/// A finished page.
#[derive(Clone, Copy)]
struct Child {
    number: u64,
    /// Records under it.
    records: u64,
}

impl Open {
    fn new(page_size: usize) -> Open {
        Open { page: vec![0; page_size], first_separator: Vec::new(), count: 0, records: 0 }
    }

    /// Begins a branch with its first child.
    fn begin(
        &mut self,
        (desc, custom): (&TreeDesc, bool),
        level: u8,
        separator: &[u8],
        child: Child,
    ) -> Result<()> {
        self.page.fill(0);
        self.first_separator = separator.to_vec();
        (self.count, self.records) = (0, 0);
        let counted = desc.options.is_counted();
        branch::init(&mut self.page, level, desc.table, custom, counted);
        branch::set_first(&mut self.page, child.number).map_err(damaged)?;
        self.added(desc, child)
    }

    /// Counts a child that is in the page now.
    fn added(&mut self, desc: &TreeDesc, child: Child) -> Result<()> {
        if desc.options.is_counted() {
            branch::set_records(&mut self.page, self.count, child.records).map_err(damaged)?;
        }
        self.count += 1;
        self.records = self.records.saturating_add(child.records);
        Ok(())
    }
}

/// A tree being built.
pub(crate) struct Builder {
    desc: TreeDesc,
    order: Order,
    leaf: Vec<u8>,
    leaf_count: usize,
    /// Values of the leaf's records.
    leaf_records: u64,
    leaf_separator: Vec<u8>,
    last_key: Vec<u8>,
    branches: Vec<Open>,
}

fn damaged(damage: Damage) -> Error {
    Error::Corrupted { page: PageNo(0), reason: damage.0 }
}

impl Builder {
    pub(crate) fn new(table: u32, options: TreeOptions, order: Order, page_size: usize) -> Builder {
        let mut builder = Builder {
            desc: TreeDesc::empty(table, options),
            order,
            leaf: vec![0; page_size],
            leaf_count: 0,
            leaf_records: 0,
            leaf_separator: Vec::new(),
            last_key: Vec::new(),
            branches: Vec::new(),
        };
        builder.fresh_leaf();
        builder
    }

    /// A builder of a tree like the one described.
    pub(crate) fn like(desc: &TreeDesc, order: Order, page_size: usize) -> Builder {
        let mut builder = Builder::new(desc.table, desc.options, order, page_size);
        builder.desc.item_size = desc.item_size;
        builder.desc.sequence = desc.sequence;
        builder.fresh_leaf();
        builder
    }

    fn fresh_leaf(&mut self) {
        self.leaf.fill(0);
        let (table, custom) = (self.desc.table, self.order.is_custom());
        let size = usize::from(self.desc.item_size);
        // A size that cannot be packed is refused when the first item is added.
        if !(self.desc.is_packed() && packed::init(&mut self.leaf, table, custom, size)) {
            header::init(&mut self.leaf, Kind::Leaf, 0, table, custom);
        }
        self.leaf_count = 0;
        self.leaf_records = 0;
    }

    /// Adds an item to a tree of packed leaves, after all others.
    pub(crate) fn add_item(&mut self, out: &mut Output<'_>, item: &[u8]) -> Result<()> {
        if !packed::insert(&mut self.leaf, self.leaf_count, item).map_err(damaged)? {
            self.end_leaf(out)?;
            page::separator(&self.order, &self.last_key, item, &mut self.leaf_separator);
            if !packed::insert(&mut self.leaf, 0, item).map_err(damaged)? {
                return Err(Error::Invalid("a value does not fit a page"));
            }
        }
        self.leaf_count += 1;
        self.added(item, 1);
        Ok(())
    }

    fn added(&mut self, key: &[u8], values: u64) {
        self.desc.entries = self.desc.entries.saturating_add(values);
        self.leaf_records = self.leaf_records.saturating_add(values);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    /// Adds the tree of one key's values.
    pub(crate) fn add_tree(
        &mut self,
        out: &mut Output<'_>,
        key: &[u8],
        values: &TreeDesc,
    ) -> Result<()> {
        self.desc.value_pages = self.desc.value_pages.saturating_add(values.pages());
        self.add(out, key, ValueKind::Tree, &values.to_bytes(), values.entries)
    }

    /// Adds a record of so many values after all others; the bytes are those of the leaf.
    pub(crate) fn add(
        &mut self,
        out: &mut Output<'_>,
        key: &[u8],
        kind: ValueKind,
        value: &[u8],
        values: u64,
    ) -> Result<()> {
        if !self.try_add(key, kind, value)? {
            self.end_leaf(out)?;
            page::separator(&self.order, &self.last_key, key, &mut self.leaf_separator);
            if !self.try_add(key, kind, value)? {
                return Err(Error::Invalid("a record does not fit a page"));
            }
        }
        self.added(key, values);
        Ok(())
    }

    /// Adds a large value under `key`.
    pub(crate) fn add_large(
        &mut self,
        out: &mut Output<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let reference = out.run(value)?;
        self.desc.run_pages += value.len().div_ceil(out.page_size) as u64;
        let mut bytes = [0; RUN_REF_SIZE];
        reference.store(&mut bytes).map_err(damaged)?;
        self.add(out, key, ValueKind::Run, &bytes, 1)
    }

    fn try_add(&mut self, key: &[u8], kind: ValueKind, value: &[u8]) -> Result<bool> {
        let align = usize::from(self.desc.options.align);
        let rules = Rules::of_leaves(&self.order, align);
        let value = NewValue::of(kind, value);
        let fits = leaf::insert(&mut self.leaf, self.leaf_count, &rules, key, value);
        let fits = fits.map_err(damaged)?;
        self.leaf_count += usize::from(fits);
        Ok(fits)
    }

    fn end_leaf(&mut self, out: &mut Output<'_>) -> Result<()> {
        let align = usize::from(self.desc.options.align);
        if !self.desc.is_packed() {
            leaf::rebuild(&mut self.leaf, &self.order, align).map_err(damaged)?;
        }
        let number = out.page(&mut self.leaf)?;
        self.desc.leaf_pages += 1;
        let separator = std::mem::take(&mut self.leaf_separator);
        self.add_child(out, 0, &separator, Child { number, records: self.leaf_records })?;
        self.leaf_separator = separator;
        self.fresh_leaf();
        Ok(())
    }

    /// Adds a finished page to the branch `up` levels above the leaves (0: right above them).
    fn add_child(
        &mut self,
        out: &mut Output<'_>,
        up: usize,
        separator: &[u8],
        child: Child,
    ) -> Result<()> {
        let (level, desc, custom) = (up as u8 + 1, self.desc, self.order.is_custom());
        let Some(open) = self.branches.get_mut(up) else {
            let mut open = Open::new(out.page_size);
            open.begin((&desc, custom), level, separator, child)?;
            self.branches.push(open);
            return Ok(());
        };
        let i = open.count;
        let room = branch::insert(&mut open.page, i, separator, child.number);
        if room.map_err(damaged)? {
            return open.added(&desc, child);
        }
        let full = Child { number: out.page(&mut open.page)?, records: open.records };
        self.desc.branch_pages += 1;
        let first = std::mem::take(&mut open.first_separator);
        open.begin((&desc, custom), level, separator, child)?;
        self.add_child(out, up + 1, &first, full)
    }

    /// Finishes the open pages; gives the descriptor of the tree.
    pub(crate) fn finish(mut self, out: &mut Output<'_>, modified: u64) -> Result<TreeDesc> {
        self.desc.modified = modified;
        if self.desc.entries == 0 {
            return Ok(self.desc);
        }
        if self.branches.is_empty() {
            let number = out.page(&mut self.leaf)?;
            self.desc.leaf_pages += 1;
            (self.desc.root, self.desc.depth) = (Ref(number), 1);
            return Ok(self.desc);
        }
        self.end_leaf(out)?;
        let mut up = 0;
        loop {
            let is_top = up + 1 == self.branches.len();
            let open = &mut self.branches[up];
            let child = Child { number: out.page(&mut open.page)?, records: open.records };
            self.desc.branch_pages += 1;
            let first = std::mem::take(&mut open.first_separator);
            if is_top {
                (self.desc.root, self.desc.depth) = (Ref(child.number), up as u8 + 2);
                return Ok(self.desc);
            }
            up += 1;
            self.add_child(out, up, &first, child)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nowhere;

    impl PageSink for Nowhere {
        fn pages(&mut self, _: u64, _: &[u8], _: Purpose) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn counts_of_a_damaged_tree_may_be_of_any_size() {
        let options = TreeOptions { align: 1, ..TreeOptions::default() };
        let mut builder = Builder::new(1, options, Order::Bytes, 4096);
        let by = Origin { birth: 1, opening: 1 };
        let mut out = Output { sink: &mut Nowhere, page_size: 4096, next: 4, by };
        for i in 0..1000u32 {
            let added = builder.add(&mut out, &i.to_be_bytes(), ValueKind::Tree, &[0; 80], 1 << 59);
            added.unwrap();
        }
        assert_eq!(builder.finish(&mut out, 1).unwrap().entries, u64::MAX);
    }
}
