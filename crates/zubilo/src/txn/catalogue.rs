//! The tables of the write transaction: the catalogue, a tree with the descriptor of each table under
//! its name, and the tables opened so far; and the user's numbers, which the meta has beside them.
//!
//! Invariants: a name leads to at most one table that is not gone; the descriptor of an open table is
//! newer than the one under its name until [`Catalogue::store_changed`] has run. Each nesting level saves
//! what it changes first, so that it can be undone without looking at anything else.

use std::collections::HashMap;

use crate::dirty::Workspace;
use crate::env::Root;
use crate::env::meta::Meta;
use crate::error::{Error, Result};
use crate::page::{self, NewValue, ValueKind};
use crate::planted::{Bug, has};
use crate::tree::compact::verified_path;
use crate::tree::desc::OF_VALUES;
use crate::tree::insert::put;
use crate::tree::{Tree, TreeDesc, lookup, remove};

use super::options::{NO_TABLE, TableOptions, builtin_tree, needs_comparator, unordered_tree};
use super::writeback::Writeback;

/// A tree of the write transaction: an open table, or the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableRef(u32);

/// No tree.
impl Default for TableRef {
    fn default() -> TableRef {
        TableRef(u32::MAX - 1)
    }
}

impl TableRef {
    /// The tree with the names of all tables.
    pub const CATALOGUE: TableRef = TableRef(u32::MAX);

    fn new(index: usize) -> TableRef {
        TableRef(index as u32)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A named table that the transaction has opened.
pub(super) struct OpenTable {
    name: Box<[u8]>,
    tree: Tree,
    /// The tree has its orders: it was opened with its comparators, or needs none.
    ordered: bool,
    /// The descriptor that is stored under the table's name.
    stored: TreeDesc,
    /// Dropped or renamed away in this transaction.
    gone: bool,
    /// Nesting level that has saved its own copy of this entry.
    saved_level: u32,
}

/// A table that is going to be created.
pub(super) struct NewTable {
    tree: Tree,
    /// The number of the table after it.
    next: u32,
}

/// What one nesting level puts back when it is undone.
struct Saved {
    main: Option<TreeDesc>,
    tables: Vec<SavedTable>,
    table_count: usize,
    next_table: u32,
    user_words: [u64; 4],
}

struct SavedTable {
    index: usize,
    desc: TreeDesc,
    gone: bool,
    saved_level: u32,
}

/// All tables of a write transaction.
pub(super) struct Catalogue {
    main: Tree,
    tables: Vec<OpenTable>,
    /// Where in `tables` a name was put last; trusted only if it is found there.
    names: HashMap<Box<[u8]>, usize>,
    next_table: u32,
    user_words: [u64; 4],
    levels: Vec<Saved>,
}

impl Catalogue {
    /// The tables of a commit.
    pub(super) fn of(meta: &Meta) -> Catalogue {
        Catalogue {
            main: Tree::main(meta.main),
            tables: Vec::new(),
            names: HashMap::new(),
            next_table: meta.next_table,
            user_words: meta.user_words,
            levels: Vec::new(),
        }
    }

    /// The catalogue's own tree.
    pub(super) fn main(&self) -> &Tree {
        &self.main
    }

    /// The number that the next new table gets.
    pub(super) fn next_table(&self) -> u32 {
        self.next_table
    }

    /// Describes all tables in the meta of a commit.
    pub(super) fn describe(&self, meta: &mut Meta) {
        meta.main = self.main.desc;
        meta.next_table = self.next_table;
        meta.user_words = self.user_words;
    }

    /// The user's numbers, and the transaction that set them.
    pub(super) fn user_words(&self) -> &[u64; 4] {
        &self.user_words
    }

    pub(super) fn set_user_words(&mut self, words: [u64; 4]) {
        self.user_words = words;
    }

    /// Sets the number that a table's sequence gives next.
    pub(super) fn set_sequence(&mut self, table: TableRef, next: u64) -> Result<()> {
        self.tree_mut(table)?.desc.sequence = next;
        Ok(())
    }

    fn open_table(&self, table: TableRef) -> Result<&OpenTable> {
        self.tables.get(table.index()).filter(|t| !t.gone).ok_or_else(Error::stale_table)
    }

    /// A tree. A table that was dropped, or that another transaction has opened, is none.
    #[inline(always)]
    pub(super) fn tree(&self, table: TableRef) -> Result<&Tree> {
        match self.tables.get(table.index()) {
            Some(open) if !open.gone => Ok(&open.tree),
            None if table == TableRef::CATALOGUE => Ok(&self.main),
            _ => Err(Error::stale_table()),
        }
    }

    /// A tree that is going to change. Before the first change of a table in a nesting level comes
    /// [`Catalogue::save`].
    #[inline(always)]
    pub(super) fn tree_mut(&mut self, table: TableRef) -> Result<&mut Tree> {
        match self.tables.get_mut(table.index()) {
            Some(open) if !open.gone => Ok(&mut open.tree),
            None if table == TableRef::CATALOGUE => Ok(&mut self.main),
            _ => Err(Error::stale_table()),
        }
    }

    /// The name of a table; the catalogue has none.
    pub(super) fn name(&self, table: TableRef) -> &[u8] {
        self.tables.get(table.index()).map_or(&[], |open| &open.name)
    }

    /// The open tables that are not gone.
    pub(super) fn open_tables(&self) -> impl Iterator<Item = TableRef> + '_ {
        let open = self.tables.iter().enumerate().filter(|(_, table)| !table.gone);
        open.map(|(index, _)| TableRef::new(index))
    }

    /// The open table, or the catalogue, with this number.
    pub(super) fn of_number(&self, number: u32) -> Option<TableRef> {
        if number == self.main.desc.table {
            return Some(TableRef::CATALOGUE);
        }
        self.open_tables().find(|table| self.tables[table.index()].tree.desc.table == number)
    }

    /// Whether a table is in an order that is known: its own, or that of the comparators it was opened with.
    pub(super) fn is_ordered(&self, table: TableRef) -> bool {
        self.tables.get(table.index()).is_some_and(|open| open.ordered)
    }

    /// The caller has given a tree its orders.
    pub(super) fn set_ordered(&mut self, table: TableRef) {
        if let Some(open) = self.tables.get_mut(table.index()) {
            open.ordered = true;
        }
    }

    /// Whether a commit has a descriptor, or the user's numbers, to store.
    pub(super) fn has_changes(&self, base: &Root) -> bool {
        self.main.desc != base.main
            || self.user_words != base.user_words
            || self.tables.iter().any(|table| !table.gone && table.tree.desc != table.stored)
    }

    // ---- names ----

    /// The table `name`, opened now or before; its order may still be unknown.
    pub(super) fn open(&mut self, ws: &Workspace, name: &[u8]) -> Result<Option<TableRef>> {
        if let Some(index) = self.opened(name) {
            return Ok(Some(TableRef::new(index)));
        }
        let Some(desc) = self.stored(ws, name)? else { return Ok(None) };
        let ordered = !needs_comparator(&desc.options);
        self.add(name, unordered_tree(desc), ordered).map(Some)
    }

    /// Where in `tables` the table `name` is, if it was opened before.
    fn opened(&self, name: &[u8]) -> Option<usize> {
        let is_it = |t: &OpenTable| !t.gone && *t.name == *name;
        self.names.get(name).copied().filter(|&index| self.tables.get(index).is_some_and(is_it))
    }

    /// The descriptor under a name. That of an open table may be newer.
    fn stored(&self, ws: &Workspace, name: &[u8]) -> Result<Option<TreeDesc>> {
        let found = lookup::get_entry(&ws.view(), &self.main.desc, &self.main.order, name)?;
        let Some((at, entry)) = found else { return Ok(None) };
        if entry.kind != ValueKind::Tree {
            return Err(NO_TABLE.of_table(name));
        }
        TreeDesc::from_bytes(entry.value).map_err(at.damaged()).map(Some)
    }

    /// The table `name` to be read as it is now, opened or not, with the comparators of `options` or those
    /// that it was opened with.
    pub(super) fn tree_to_read(
        &self,
        ws: &Workspace,
        name: &[u8],
        options: Option<&TableOptions>,
    ) -> Result<Tree> {
        let open = self.opened(name).and_then(|index| self.tables.get(index));
        let desc = match open {
            Some(open) => open.tree.desc,
            None => self.stored(ws, name)?.ok_or_else(|| Error::no_such_table(name))?,
        };
        let named = |error: Error| error.of_table(name);
        if let Some(options) = options {
            options.check_same(&desc.options).map_err(named)?;
        }
        match (open.filter(|open| open.ordered), options) {
            (Some(open), _) => Ok(open.tree.to_read()),
            (None, Some(options)) => options.tree(desc).map_err(named),
            (None, None) => builtin_tree(desc).map_err(named),
        }
    }

    /// A table whose orders are known without the caller, or were given before.
    pub(super) fn open_builtin(&mut self, ws: &Workspace, name: &[u8]) -> Result<Option<TableRef>> {
        let Some(table) = self.open(ws, name)? else { return Ok(None) };
        let open = self.open_table(table)?;
        if !open.ordered {
            builtin_tree(open.tree.desc).map_err(|error| error.of_table(name))?;
        }
        Ok(Some(table))
    }

    /// A table that was created with these options, now with their comparators.
    pub(super) fn open_with(
        &mut self,
        ws: &Workspace,
        name: &[u8],
        options: &TableOptions,
    ) -> Result<Option<TableRef>> {
        let Some(table) = self.open(ws, name)? else { return Ok(None) };
        if let Some(open) = self.tables.get_mut(table.index()) {
            let named = |error: Error| error.of_table(name);
            options.check_same(&open.tree.desc.options).map_err(named)?;
            if !open.ordered {
                open.tree.replace(options.tree(open.tree.desc).map_err(named)?);
                open.ordered = true;
            }
        }
        Ok(Some(table))
    }

    fn add(&mut self, name: &[u8], tree: Tree, ordered: bool) -> Result<TableRef> {
        let index = self.tables.len();
        if index >= TableRef::default().index() {
            return Err(Error::Invalid("the transaction has no number left for another table"));
        }
        let saved_level = self.levels.len() as u32;
        let (name, stored): (Box<[u8]>, _) = (name.into(), tree.desc);
        self.names.insert(name.clone(), index);
        self.tables.push(OpenTable { name, tree, ordered, stored, gone: false, saved_level });
        Ok(TableRef::new(index))
    }

    /// What a new table with these options will be.
    pub(super) fn plan(&self, options: &TableOptions) -> Result<NewTable> {
        let tree = options.tree(TreeDesc::empty(self.next_table, options.to_tree()?))?;
        let next = self.next_table.checked_add(1).filter(|next| next & OF_VALUES == 0);
        let next = next.ok_or(Error::Invalid("the store has no number left for a new table"))?;
        Ok(NewTable { tree, next })
    }

    /// Creates a table under a name that is free.
    pub(super) fn create(
        &mut self,
        ws: &mut Workspace,
        name: &[u8],
        new: NewTable,
    ) -> Result<TableRef> {
        self.save(TableRef::CATALOGUE);
        self.next_table = new.next;
        self.store(ws, name, &new.tree.desc)?;
        self.add(name, new.tree, true)
    }

    /// Removes a table with all its records.
    pub(super) fn drop_table(&mut self, ws: &mut Workspace, table: TableRef) -> Result<()> {
        remove::clear(ws, self.tree_mut(table)?)?;
        self.forget_name(ws, table)
    }

    /// Gives a table another name, which is free, and with it another reference.
    pub(super) fn rename(
        &mut self,
        ws: &mut Workspace,
        table: TableRef,
        to: &[u8],
    ) -> Result<TableRef> {
        let open = self.open_table(table)?;
        let (tree, ordered) = (open.tree.clone(), open.ordered);
        self.forget_name(ws, table)?;
        self.store(ws, to, &tree.desc)?;
        self.add(to, tree.to_read(), ordered)
    }

    fn forget_name(&mut self, ws: &mut Workspace, table: TableRef) -> Result<()> {
        self.save(TableRef::CATALOGUE);
        if let Some(open) = self.tables.get_mut(table.index()) {
            open.gone = true;
            remove::remove(ws, &mut self.main, &open.name)?;
        }
        Ok(())
    }

    /// Stores a descriptor under a name.
    fn store(&mut self, ws: &mut Workspace, name: &[u8], desc: &TreeDesc) -> Result<()> {
        let bytes = desc.to_bytes();
        put(ws, &mut self.main, name, NewValue::of(ValueKind::Tree, &bytes), true).map(drop)
    }

    /// Stores the descriptors of changed tables under their names.
    pub(super) fn store_changed(&mut self, ws: &mut Workspace) -> Result<()> {
        for index in 0..self.tables.len() {
            let table = &self.tables[index];
            if table.tree.desc != table.stored && !table.gone {
                let (name, desc) = (table.name.clone(), table.tree.desc);
                self.store(ws, &name, &desc)?;
            }
        }
        Ok(())
    }

    /// If a table has changed: verifies the pages on the way to its name, which the commit rewrites.
    pub(super) fn verify_path(
        &self,
        ws: &Workspace,
        table: TableRef,
        desc: &TreeDesc,
    ) -> Result<()> {
        match self.tables.get(table.index()).filter(|open| open.stored != *desc) {
            Some(open) => verified_path(ws, &self.main, &open.name).map(drop),
            None => Ok(()),
        }
    }

    // ---- writing ----

    /// Gives the dirty pages of all trees their places.
    pub(super) fn place(&mut self, writeback: &mut Writeback<'_>) -> Result<()> {
        for table in self.tables.iter_mut().filter(|table| !table.gone) {
            let desc = &mut table.tree.desc;
            let root = writeback.tree(desc.root, desc.depth)?;
            if desc.root != root {
                desc.root = root;
                writeback.replace_value(&self.main.desc, &table.name, &desc.to_bytes())?;
            }
        }
        self.main.desc.root = writeback.tree(self.main.desc.root, self.main.desc.depth)?;
        Ok(())
    }

    /// The same for an early write: the roots stay in memory.
    pub(super) fn place_below_roots(&self, writeback: &mut Writeback<'_>) -> Result<()> {
        for table in self.tables.iter().filter(|table| !table.gone) {
            writeback.below(table.tree.desc.root, table.tree.desc.depth)?;
        }
        writeback.below(self.main.desc.root, self.main.desc.depth)
    }

    /// Pages are going to move under the trees: ways to their records are right no more.
    pub(super) fn pages_moved(&mut self, ws: &mut Workspace) {
        let version = ws.count_change();
        let tables = self.tables.iter_mut().map(|table| &mut table.tree);
        for tree in tables.chain([&mut self.main]) {
            tree.finger.reset();
            if !has(Bug::EarlyWriteKeepsVersions) {
                tree.version = version;
            }
        }
    }

    // ---- nesting ----

    /// Opens a nesting level.
    pub(super) fn begin_level(&mut self) {
        self.levels.push(Saved {
            main: None,
            tables: Vec::new(),
            table_count: self.tables.len(),
            next_table: self.next_table,
            user_words: self.user_words,
        });
    }

    /// A table is going to change: it gets another version, and is saved for the innermost level.
    #[inline(always)]
    pub(super) fn begin_change(&mut self, ws: &mut Workspace, table: TableRef) {
        self.save(table);
        if let Ok(tree) = self.tree_mut(table)
            && !has(Bug::ChangeKeepsVersion)
        {
            tree.version = ws.count_change();
        }
    }

    /// Saves a table for the innermost level, before its first change there.
    #[inline(always)]
    fn save(&mut self, table: TableRef) {
        if !self.levels.is_empty() {
            self.save_in_level(table);
        }
    }

    fn save_in_level(&mut self, table: TableRef) {
        let level = self.levels.len() as u32;
        let Some(saved) = self.levels.last_mut() else { return };
        if table == TableRef::CATALOGUE {
            saved.main.get_or_insert(self.main.desc);
            return;
        }
        let Some(open) = self.tables.get_mut(table.index()) else { return };
        if open.saved_level < level {
            let OpenTable { gone, saved_level, .. } = *open;
            let (index, desc) = (table.index(), open.tree.desc);
            saved.tables.push(SavedTable { index, desc, gone, saved_level });
            open.saved_level = level;
        }
    }

    /// Hands what the innermost level did to the level outside.
    pub(super) fn fold_level(&mut self) {
        let Some(inner) = self.levels.pop() else { return };
        let level = self.levels.len() as u32;
        if let Some(outer) = self.levels.last_mut() {
            outer.main = outer.main.or(inner.main);
            for saved in inner.tables {
                // Saved by the outer level itself, or new in it: its own copy counts.
                if saved.saved_level < level && saved.index < outer.table_count {
                    outer.tables.push(saved);
                }
            }
        }
        for table in &mut self.tables {
            table.saved_level = table.saved_level.min(level);
        }
    }

    /// Undoes what the innermost level did. Gives the tables opened in it, to be dropped when everything
    /// else is undone: they hold comparators of the program, whose `Drop` may panic.
    pub(super) fn undo_level(&mut self, ws: &mut Workspace) -> Vec<OpenTable> {
        let Some(inner) = self.levels.pop() else { return Vec::new() };
        for opened in self.tables.iter().skip(inner.table_count) {
            self.names.remove(&opened.name);
        }
        for saved in inner.tables {
            if let Some(table) = self.tables.get_mut(saved.index) {
                if !saved.gone {
                    // A table opened after it was dropped may have had its name.
                    self.names.insert(table.name.clone(), saved.index);
                }
                table.tree.desc = saved.desc;
                table.gone = saved.gone;
                table.saved_level = saved.saved_level;
            }
        }
        if let Some(desc) = inner.main {
            self.main.desc = desc;
        }
        (self.next_table, self.user_words) = (inner.next_table, inner.user_words);
        self.pages_moved(ws);
        let opened = inner.table_count.min(self.tables.len());
        self.tables.split_off(opened)
    }
}

/// Refuses a name, or key, that is too long for a page.
pub(super) fn check_key(ws: &Workspace, key: &[u8]) -> Result<()> {
    let max = page::max_key(ws.page_size());
    if key.len() > max { Err(Error::KeyTooLong { len: key.len(), max }) } else { Ok(()) }
}
