//! The walk through all trees of a snapshot.

use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::page::row::Node;
use crate::page::{Branch, Damage, Leaf, Order, Packed, ValueKind, header, packed};
use crate::platform::Purpose;
use crate::tree::desc::MAX_DEPTH;
use crate::tree::verify::NOT_AUTHENTIC;
use crate::tree::{Pages, Ref, RunRef, Snapshot, TreeDesc, TreeOptions};

use super::account::{Account, Use};
use super::{CheckReport, PageKind, PageVisit, Visitor};

pub(super) struct Walk<'c, 'p> {
    pub(super) snapshot: Snapshot<'p>,
    pub(super) account: &'c mut Account,
    pub(super) report: &'c mut CheckReport,
    pub(super) progress: &'c mut dyn FnMut(u64, u64) -> bool,
    pub(super) visit: Visitor<'c>,
    /// The visitor wants no more.
    pub(super) stopped: bool,
}

/// What the walk of one tree counts and remembers.
struct TreeWalk<'p, 't> {
    name: &'t [u8],
    order: Order,
    /// The order is the one in which the keys were put: otherwise it is a comparator's, which is not here.
    knows_order: bool,
    table: u32,
    counted: TreeDesc,
    last_key: Option<&'p [u8]>,
    tables: Vec<Named>,
    /// Birth of the page above the one that is walked through: nothing is younger than what refers to it.
    birth: u64,
    /// Options of the tree.
    options: TreeOptions,
}

/// A table's name and descriptor, and the birth of the page that holds them.
type Named = (Vec<u8>, TreeDesc, u64);

/// Bounds that the separators above a page give its keys, in normal form.
#[derive(Clone, Default)]
struct Fences {
    low: Fence,
    high: Fence,
}

type Fence = Option<Vec<u8>>;

/// Whether a bound lies above one that it should not.
fn is_above(a: &Fence, b: &Fence) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a > b)
}

impl<'p> Walk<'_, 'p> {
    /// The table of tables, then each table.
    pub(super) fn all_tables(&mut self, main: &TreeDesc) -> Result<()> {
        let tables = self.tree(&[], main, self.report.txn.0)?;
        for (name, desc, birth) in tables {
            self.report.tables += 1;
            self.report.entries = self.report.entries.saturating_add(desc.entries);
            self.tree(&name, &desc, birth)?;
        }
        Ok(())
    }

    /// One tree, whose descriptor is in a page of that birth; gives the tables whose descriptors it holds.
    fn tree(&mut self, name: &[u8], desc: &TreeDesc, birth: u64) -> Result<Vec<Named>> {
        // Without its comparator a table's order cannot be checked; its pages can.
        let order = desc.options.builtin_order();
        let mut tree = TreeWalk {
            name,
            knows_order: order.is_some(),
            order: order.unwrap_or_else(Order::as_stored),
            table: desc.table,
            counted: TreeDesc {
                item_size: desc.item_size,
                ..TreeDesc::empty(desc.table, desc.options)
            },
            last_key: None,
            tables: Vec::new(),
            birth,
            options: desc.options,
        };
        if desc.depth > 0 {
            if usize::from(desc.depth) > MAX_DEPTH {
                self.report.problem(0, Some(name), "the tree is deeper than any can be");
                return Ok(Vec::new());
            }
            self.page(&mut tree, desc.root, desc.depth - 1, &Fences::default())?;
        }
        let c = &tree.counted;
        for (what, counted, stored) in [
            ("records", c.entries, desc.entries),
            ("leaf pages", c.leaf_pages, desc.leaf_pages),
            ("branch pages", c.branch_pages, desc.branch_pages),
            ("pages of large values", c.run_pages, desc.run_pages),
            ("pages of trees of values", c.value_pages, desc.value_pages),
        ] {
            if counted != stored {
                let text = format!("{stored} {what} are stored in the descriptor, {counted} found");
                self.report.problem(desc.root.page_no().0, Some(name), text);
            }
        }
        self.report.leaf_pages += c.leaf_pages;
        self.report.branch_pages += c.branch_pages;
        self.report.run_pages = self.report.run_pages.saturating_add(c.run_pages);
        Ok(tree.tables)
    }

    fn page(
        &mut self,
        tree: &mut TreeWalk<'p, '_>,
        at: Ref,
        level: u8,
        fences: &Fences,
    ) -> Result<()> {
        let what = if level > 0 { Use::Branch } else { Use::Leaf };
        if !self.account.add(at.0, 1, what, self.report, Some(tree.name)) {
            return Ok(());
        }
        let done = self.report.leaf_pages + tree.counted.leaf_pages;
        if done.is_multiple_of(256) && !(self.progress)(done, self.report.pages) {
            return Err(Error::Stopped);
        }
        let page = match self.verified(tree, at, level) {
            Ok(page) => page,
            Err(reason) => {
                self.report.problem(at.0, Some(tree.name), reason);
                return Ok(());
            }
        };
        self.show_page(tree, at, page, level)?;
        let above = std::mem::replace(&mut tree.birth, header::birth(page));
        let walked = self.below(tree, at, page, level, fences);
        tree.birth = above;
        walked
    }

    /// What a page leads to.
    fn below(
        &mut self,
        tree: &mut TreeWalk<'p, '_>,
        at: Ref,
        page: &'p [u8],
        level: u8,
        fences: &Fences,
    ) -> Result<()> {
        if level > 0 {
            tree.counted.branch_pages += 1;
            self.branch(tree, at, page, level, fences)
        } else {
            tree.counted.leaf_pages += 1;
            if let Err(damage) = self.leaf(tree, page, fences) {
                self.report.problem(at.0, Some(tree.name), damage.0);
            }
            if self.stopped { Err(Error::Stopped) } else { Ok(()) }
        }
    }

    fn show_page(
        &mut self,
        tree: &TreeWalk<'_, '_>,
        at: Ref,
        page: &[u8],
        level: u8,
    ) -> Result<()> {
        let used = Node::on_level(page, level).map_or(0, |node| node.used());
        let visited = PageVisit {
            page: at.page_no(),
            count: 1,
            kind: if level > 0 { PageKind::Branch } else { PageKind::Leaf },
            table: tree.name,
            level,
            entries: usize::from(header::count(page)),
            used: used as u64,
            birth: TxnId(header::birth(page)),
            held_for: None,
        };
        if (self.visit)(&visited) { Ok(()) } else { Err(Error::Stopped) }
    }

    /// The bytes of a page whose number, birth, checksum, level and owner are right.
    fn verified(
        &self,
        tree: &TreeWalk<'_, '_>,
        at: Ref,
        level: u8,
    ) -> std::result::Result<&'p [u8], String> {
        let page = self.snapshot.page(at).map_err(|e| super::reason_of(&e))?;
        header::verify(page, at.0).map_err(|d| d.0.to_string())?;
        if header::level(page) != level {
            return Err(format!("level {} where {level} is due", header::level(page)));
        }
        if header::table(page) != tree.table {
            return Err("the page belongs to another table".into());
        }
        if header::birth(page) > tree.birth {
            return Err("the page is younger than the one that refers to it".into());
        }
        Ok(page)
    }

    fn branch(
        &mut self,
        tree: &mut TreeWalk<'p, '_>,
        at: Ref,
        page: &'p [u8],
        level: u8,
        fences: &Fences,
    ) -> Result<()> {
        let parsed = Branch::new(page).and_then(|b| {
            b.check(&tree.order)?;
            if b.count() == 0 {
                return Err(Damage("a branch without children"));
            }
            if b.is_counted() != tree.options.is_counted() {
                return Err(Damage("a branch that counts otherwise than its tree"));
            }
            Ok(b)
        });
        let branch = match parsed {
            Ok(branch) => branch,
            Err(damage) => {
                self.report.problem(at.0, Some(tree.name), damage.0);
                return Ok(());
            }
        };
        let mut child_fences = Fences { low: fences.low.clone(), high: None };
        for i in 0..branch.count() {
            let mut separator = Vec::new();
            child_fences.high = if i + 1 < branch.count() {
                if let Err(damage) = branch.separator(i + 1, &mut separator) {
                    self.report.problem(at.0, Some(tree.name), damage.0);
                    return Ok(());
                }
                Some(separator)
            } else {
                fences.high.clone()
            };
            let Fences { low, high } = &child_fences;
            let outside =
                is_above(low, high) || is_above(&fences.low, high) || is_above(high, &fences.high);
            if tree.knows_order && outside {
                self.report.problem(at.0, Some(tree.name), "a separator outside its fences");
            }
            match branch.child(i) {
                Ok(child) => {
                    let before = (tree.counted.entries, self.report.problems.len());
                    self.page(tree, Ref(child), level - 1, &child_fences)?;
                    self.check_records(tree, at, &branch, i, before);
                }
                Err(damage) => self.report.problem(at.0, Some(tree.name), damage.0),
            }
            child_fences.low = child_fences.high.take();
        }
        Ok(())
    }

    /// Compares what a counted branch stores of a child with what the walk found there; `before` is what
    /// it had found before, records and problems.
    fn check_records(
        &mut self,
        tree: &TreeWalk<'p, '_>,
        at: Ref,
        branch: &Branch<'p>,
        i: usize,
        before: (u64, usize),
    ) {
        if !branch.is_counted() || self.report.problems.len() > before.1 {
            return;
        }
        let found = tree.counted.entries - before.0;
        if branch.records(i) != Ok(found) {
            let text = format!("{found} records under child {i}, the branch counts otherwise");
            self.report.problem(at.0, Some(tree.name), text);
        }
    }

    fn leaf(
        &mut self,
        tree: &mut TreeWalk<'p, '_>,
        page: &'p [u8],
        fences: &Fences,
    ) -> std::result::Result<(), Damage> {
        let leaf = Node::on_level(page, 0)?;
        match &leaf {
            Node::Leaf(leaf) if !tree.counted.is_packed() => leaf.check(&tree.order)?,
            Node::Packed(packed) if tree.counted.is_packed() => {
                packed::check_header(page, &tree.order)?;
                packed.check(&tree.order)?;
                if packed.item_size() != usize::from(tree.counted.item_size) {
                    return Err(Damage("values of another size than the table's"));
                }
            }
            _ => return Err(Damage("a leaf of another kind than its tree's")),
        }
        if leaf.count() == 0 {
            return Err(Damage("an empty leaf"));
        }
        let (first, last) = (leaf.key(0)?, leaf.key(leaf.count() - 1)?);
        if tree.knows_order {
            let norm = |key: &[u8]| normal(&tree.order, key);
            if tree.last_key.is_some_and(|k| !tree.order.compare(k, first).is_lt()) {
                return Err(Damage("the leaf does not follow the one before it"));
            }
            if fences.low.as_ref().is_some_and(|f| norm(first) < *f)
                || fences.high.as_ref().is_some_and(|f| norm(last) >= *f)
            {
                return Err(Damage("keys outside the separators above"));
            }
        }
        tree.last_key = Some(last);
        match leaf {
            Node::Leaf(leaf) => (0..leaf.count()).try_for_each(|i| self.entry(tree, &leaf, i)),
            node => {
                tree.counted.entries += node.count() as u64;
                Ok(())
            }
        }
    }

    /// What an entry holds, and how many values that are.
    fn entry(
        &mut self,
        tree: &mut TreeWalk<'p, '_>,
        leaf: &Leaf<'p>,
        i: usize,
    ) -> std::result::Result<(), Damage> {
        let entry = leaf.entry(i)?;
        let (is_main, duplicates) = (tree.table == 0, tree.options.has_duplicates());
        let size = usize::from(tree.counted.item_size);
        tree.counted.entries += 1;
        match entry.kind {
            ValueKind::Run if !duplicates => self.run(tree, entry.value)?,
            ValueKind::Tree if is_main => {
                let desc = TreeDesc::from_bytes(entry.value)?;
                tree.tables.push((entry.key.to_vec(), desc, tree.birth));
            }
            ValueKind::Inline if !duplicates => {}
            ValueKind::Inline => {
                if tree.options.is_fixed() && entry.value.len() != size {
                    return Err(Damage("a value of another size than the table's"));
                }
            }
            ValueKind::Duplicates if duplicates => {
                let set = Packed::in_record(entry.value)?;
                set.check(&value_order(&tree.options))?;
                if set.len_in_record() != entry.value.len() {
                    return Err(Damage("a set of values does not fill its record"));
                }
                if set.item_size() != size {
                    return Err(Damage("values of another size than the table's"));
                }
                tree.counted.entries += set.count() as u64 - 1;
            }
            ValueKind::Tree if duplicates => self.values(tree, entry.value)?,
            _ => return Err(Damage("a kind of value that this table cannot hold")),
        }
        Ok(())
    }

    /// The tree of one key's values.
    fn values(
        &mut self,
        tree: &mut TreeWalk<'p, '_>,
        value: &[u8],
    ) -> std::result::Result<(), Damage> {
        let desc = TreeDesc::from_bytes(value)?;
        let due = tree.counted.of_values();
        if desc.options != due.options || desc.table != due.table {
            return Err(Damage("a tree of values of another table"));
        }
        if desc.entries == 0 || desc.item_size != due.item_size {
            return Err(Damage("a tree of values that cannot be"));
        }
        tree.counted.entries = tree.counted.entries.saturating_add(desc.entries - 1);
        tree.counted.value_pages = tree.counted.value_pages.saturating_add(desc.pages());
        if let Err(error) = self.tree(tree.name, &desc, tree.birth) {
            self.stopped |= matches!(error, Error::Stopped);
        }
        Ok(())
    }

    fn run(
        &mut self,
        tree: &mut TreeWalk<'p, '_>,
        value: &[u8],
    ) -> std::result::Result<(), Damage> {
        let run = RunRef::load(value)?;
        let pages = run.pages(self.snapshot.page_size().trailing_zeros());
        tree.counted.run_pages = tree.counted.run_pages.saturating_add(pages);
        if !self.account.add(run.first, pages, Use::Run, self.report, Some(tree.name)) {
            return Ok(());
        }
        let visited = PageVisit {
            page: PageNo(run.first),
            count: pages,
            kind: PageKind::Run,
            table: tree.name,
            level: 0,
            entries: 1,
            used: run.len,
            birth: TxnId(run.birth),
            held_for: None,
        };
        self.stopped |= !(self.visit)(&visited);
        if run.birth > tree.birth || !self.snapshot.has(run.first, run.len) {
            return Err(Damage("a value run leads outside the store"));
        }
        let bytes = self.snapshot.bytes(run.first, run.len, Some(Purpose::Value));
        let verified = bytes.ok_or(NOT_AUTHENTIC).and_then(|bytes| run.verify(bytes));
        if let Err(damage) = verified {
            // The run is damaged, not the leaf that names it.
            self.report.problem(run.first, Some(tree.name), damage.0);
        }
        Ok(())
    }
}

/// The order in which a table's values can be checked.
fn value_order(options: &TreeOptions) -> Order {
    options.builtin_value_order().unwrap_or_else(Order::as_stored)
}

/// A key in normal form.
fn normal(order: &Order, key: &[u8]) -> Vec<u8> {
    match order {
        Order::Reversed => key.iter().rev().copied().collect(),
        _ => key.to_vec(),
    }
}
