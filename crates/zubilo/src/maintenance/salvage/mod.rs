//! What is still readable of a damaged store.
//!
//! A store is opened only if a commit can be trusted, and a damaged page ends whatever leads to it.
//! This reads the file as it is: from the newest commit whose meta is whole it takes all that can be
//! reached over pages whose checksums are right; for what lies below a damaged page it takes the
//! newest leaf that still holds something of these keys, though it be of an older commit. So no
//! value is invented, but in a gap a value may be older than the last commit, and a record that was
//! deleted may come back. The counts say how much is of which kind.
//!
//! Where a damaged meta may have been the newest, the commit that it was of is looked for by its pages:
//! each commit writes the root of the table of tables anew.

mod source;
mod walk;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use crate::env::options::Options;
use crate::error::{Error, Result};
use crate::num::TxnId;
use crate::page::{Leaf, Order, Packed, ValueKind, header};
use crate::tree::desc::{FLAG_DUPLICATES, OF_VALUES, ORDER_CUSTOM};
use crate::tree::{Ref, RunRef, TreeDesc, TreeOptions};
use crate::txn::{KeyOrder, TableOptions};

use source::Source;
use walk::{Fill, Outline, Part, Walk};

/// A damaged store, looked through once. The file is only read.
///
/// ```
/// use zubilo::Salvage;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// env.close()?;
/// let damaged = Salvage::open(path)?;
/// for table in damaged.tables() {
///     damaged.records(table, &mut |key, value| {
///         println!("{} is {}", key.escape_ascii(), value.escape_ascii());
///         Ok(())
///     })?;
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub struct Salvage {
    source: Source,
    /// The newest transaction that anything is taken of.
    birth: u64,
    commit: Option<TxnId>,
    tables: Vec<SalvagedTable>,
    /// Gaps in the table of tables.
    gaps: u64,
}

/// A table that something is left of.
///
/// ```
/// use zubilo::Salvage;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// env.close()?;
/// let damaged = Salvage::open(path)?;
/// let names: Vec<_> = damaged.tables().iter().map(|table| &table.name[..]).collect();
/// assert!(names.contains(&&b"t"[..]));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct SalvagedTable {
    /// Its name; made up where `named` is false.
    pub name: Vec<u8>,
    /// False where only pages show that there was such a table: its name and options are lost.
    pub named: bool,
    /// False where its root is not known for certain: all is taken from single leaves.
    pub rooted: bool,
    desc: TreeDesc,
}

/// What of a table was brought out.
///
/// ```
/// use zubilo::Salvage;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// env.close()?;
/// let damaged = Salvage::open(path)?;
/// let table = damaged.tables().iter().find(|table| table.name == b"t").expect("it is there");
/// let count = damaged.records(table, &mut |_, _| Ok(()))?;
/// assert_eq!((count.records, count.gaps, count.lost_values), (1, 0, 0));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageCount {
    /// Records of the commit; each value of a key counts.
    pub records: u64,
    /// Records for gaps, out of leaves of this or an older commit.
    pub from_leaves: u64,
    /// Large values and sets of values that are damaged; their keys are left out.
    pub lost_values: u64,
    /// Parts of the tree that cannot be reached.
    pub gaps: u64,
}

/// Takes a record, its key and its value; an error ends the work.
type Each<'e> = &'e mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

impl Salvage {
    /// Looks through the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Salvage> {
        Salvage::look(Source::open(path.as_ref(), None)?, None)
    }

    /// The same, of this commit instead of the newest one, and of those before it. A meta page must still name it
    /// ([`Env::stored_commits`](crate::Env::stored_commits)).
    ///
    /// ```
    /// use zubilo::{Env, Salvage};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// env.close()?;
    /// for commit in Env::stored_commits(path)?.iter().filter_map(|stored| stored.txn) {
    ///     let found = Salvage::open_at(path, commit)?;
    ///     println!("{commit}: {} tables, {} pages, {} gaps", found.tables().len(), found.pages(), found.list_gaps());
    /// }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn open_at(path: impl AsRef<Path>, commit: TxnId) -> Result<Salvage> {
        Salvage::look(Source::open(path.as_ref(), None)?, Some(commit))
    }

    /// The same of an encrypted store, with the key or passphrase of `options`; of this commit, or of the newest one. What
    /// cannot be authenticated is lost. So is all of it when both copies of the header are, from which the key is made.
    ///
    /// ```
    /// use zubilo::{Options, Salvage};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let options = Options::new(); // with a key
    /// options.clone().open(path)?.close()?;
    /// let left = Salvage::open_as(path, &options, None)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn open_as(
        path: impl AsRef<Path>,
        options: &Options,
        commit: Option<TxnId>,
    ) -> Result<Salvage> {
        Salvage::look(Source::open(path.as_ref(), options.secret.as_ref())?, commit)
    }

    /// The same for a file in memory.
    #[doc(hidden)]
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Salvage> {
        Salvage::look(Source::of_bytes(bytes)?, None)
    }

    fn look(source: Source, chosen: Option<TxnId>) -> Result<Salvage> {
        let mut salvage =
            Salvage { source, birth: u64::MAX, commit: None, tables: Vec::new(), gaps: 1 };
        let metas = salvage.source.metas.iter();
        let main_of = |txn: TxnId| metas.clone().find(|m| m.txn == txn.0).map(|m| (m.txn, m.main));
        let main = match chosen {
            Some(txn) => Some(main_of(txn).ok_or(Error::Invalid(
                "no meta page names the chosen commit: Env::stored_commits lists those that are named",
            ))?),
            None => {
                let newest = metas.clone().next().map(|meta| (meta.txn, meta.main));
                salvage.lost_commit(newest).or(newest)
            }
        };
        if let Some((txn, _)) = main {
            (salvage.commit, salvage.birth) = (Some(TxnId(txn)), txn);
        }
        let main = main.map(|(_, main)| main);
        (salvage.tables, salvage.gaps) = salvage.tables_of(main.as_ref(), salvage.birth);
        salvage.add_nameless();
        Ok(salvage)
    }

    /// The commit whose meta is damaged, with its table of tables, if it is newer than the newest one of
    /// which there is a meta, and no less of it is left.
    fn lost_commit(&self, newest: Option<(u64, TreeDesc)>) -> Option<(u64, TreeDesc)> {
        let (known, main) = newest.filter(|_| self.source.lost_meta)?;
        let (birth, page, level) = self.source.last_root.filter(|(birth, ..)| *birth > known)?;
        let lost = TreeDesc { root: Ref(page), depth: level.checked_add(1)?, ..main };
        let no_worse = self.gaps_of(&lost, birth) <= self.gaps_of(&main, known);
        no_worse.then_some((birth, lost))
    }

    /// Parts of a commit that cannot be reached.
    fn gaps_of(&self, main: &TreeDesc, birth: u64) -> u64 {
        let (tables, gaps) = self.tables_of(Some(main), birth);
        let rooted = tables.iter().filter(|table| table.rooted);
        let of_table = |table: &SalvagedTable| self.walk(table, birth).outline_of(&table.desc).gaps;
        gaps + rooted.map(of_table).sum::<u64>()
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.source.page_size()
    }

    /// Pages of trees whose checksums are right, older commits' included.
    pub fn pages(&self) -> u64 {
        self.source.pages
    }

    /// The commit that is brought out; none if no meta page is whole.
    pub fn commit(&self) -> Option<TxnId> {
        self.commit
    }

    /// Parts of the list of tables that cannot be reached.
    pub fn list_gaps(&self) -> u64 {
        self.gaps
    }

    /// The tables that something is left of.
    pub fn tables(&self) -> &[SalvagedTable] {
        &self.tables
    }

    /// Brings out the records of a table, in order. Memory is needed for the keys that fill gaps.
    pub fn records(&self, table: &SalvagedTable, each: Each<'_>) -> Result<SalvageCount> {
        let walk = self.walk(table, self.birth);
        let outline =
            if table.rooted { walk.outline_of(&table.desc) } else { Walk::without_root() };
        let mut count = SalvageCount { gaps: outline.gaps, ..SalvageCount::default() };
        let fill = walk.fill(&outline);
        self.put_together(&walk, table, &outline, &fill, each, &mut count)?;
        self.source.had_memory()?;
        Ok(count)
    }

    fn walk(&self, table: &SalvagedTable, birth: u64) -> Walk<'_> {
        let order = table.desc.options.builtin_order().unwrap_or_else(Order::as_stored);
        Walk { source: &self.source, table: table.desc.table, order, birth }
    }

    /// The tables that the table of tables names, and its gaps.
    fn tables_of(&self, main: Option<&TreeDesc>, birth: u64) -> (Vec<SalvagedTable>, u64) {
        let walk = Walk { source: &self.source, table: 0, order: Order::Bytes, birth };
        let outline = main.map_or_else(Walk::without_root, |desc| walk.outline_of(desc));
        let mut tables = Vec::new();
        let mut known = BTreeSet::new();
        let mut add = |page: &[u8], index: usize, rooted: bool| {
            let Ok(entry) = Leaf::on_level_0(page).and_then(|leaf| leaf.entry(index)) else {
                return;
            };
            if entry.kind != ValueKind::Tree {
                return;
            }
            let Ok(desc) = TreeDesc::from_bytes(entry.value) else { return };
            // An older leaf may name a table by a name that it has no longer.
            if known.insert(desc.table) {
                tables.push(SalvagedTable { name: entry.key.to_vec(), named: true, rooted, desc });
            }
        };
        for part in &outline.parts {
            if let Part::Leaf(at) = part
                && let Some(page) = self.source.page(*at, 0, birth)
            {
                (0..usize::from(header::count(&page))).for_each(|i| add(&page, i, true));
            }
        }
        for place in walk.fill(&outline).values() {
            if let Some(page) = self.source.page(place.page, 0, birth) {
                add(&page, place.index, false);
            }
        }
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        (tables, outline.gaps)
    }

    /// Where the list of tables has gaps, pages may be of tables that it does not name.
    fn add_nameless(&mut self) {
        if self.gaps == 0 {
            return;
        }
        let known: BTreeSet<u32> = self.tables.iter().map(|table| table.desc.table).collect();
        for id in self.source.tables() {
            if id == 0 || id & OF_VALUES != 0 || known.contains(&id) {
                continue;
            }
            let Some(options) = self.guess(id) else { continue };
            let mut name = format!("lost-{id}").into_bytes();
            while self.tables.iter().any(|table| table.name == name) {
                name.push(b'+');
            }
            let desc = TreeDesc::empty(id, options);
            self.tables.push(SalvagedTable { name, named: false, rooted: false, desc });
        }
    }

    /// The options of a table as its leaves show them; none if nothing of it is to be had.
    fn guess(&self, table: u32) -> Option<TreeOptions> {
        let mut guess: Option<TreeOptions> = None;
        for found in self.source.leaves(table) {
            let page = self.source.page(found.page, table, self.birth);
            let Some(page) = page.filter(|_| found.birth <= self.birth) else { continue };
            let Ok(leaf) = Leaf::on_level_0(&page) else { continue };
            let order = [(0, Order::Bytes), (1, Order::Reversed), (3, Order::as_stored())];
            let fits = order.iter().find(|(_, order)| leaf.check(order).is_ok());
            let Some((code, _)) = fits else { continue };
            let many = (0..leaf.count()).filter_map(|i| leaf.entry(i).ok());
            let many =
                many.into_iter().any(|e| matches!(e.kind, ValueKind::Duplicates | ValueKind::Tree));
            let options = guess.get_or_insert(TreeOptions { order: 0, align: 1, flags: 0 });
            // A leaf of one record fits every order; one that fits only another decides.
            options.order = options.order.max(*code);
            options.flags |= if many { FLAG_DUPLICATES } else { 0 };
        }
        guess
    }

    fn put_together(
        &self,
        walk: &Walk<'_>,
        table: &SalvagedTable,
        outline: &Outline,
        fill: &Fill,
        each: Each<'_>,
        count: &mut SalvageCount,
    ) -> Result<()> {
        // Where the order is not known a leaf for a gap may repeat what the commit has.
        let mut given = HashSet::new();
        let plain = walk.order.is_custom();
        for part in &outline.parts {
            match part {
                Part::Leaf(at) => {
                    let Some(page) = self.source.page(*at, walk.table, walk.birth) else {
                        continue;
                    };
                    for i in 0..usize::from(header::count(&page)) {
                        if plain
                            && outline.gaps > 0
                            && let Ok(key) = Leaf::on_level_0(&page).and_then(|leaf| leaf.key(i))
                        {
                            given.insert(key.to_vec());
                        }
                        count.records += self.record(table, &page, i, each, count)?;
                    }
                }
                Part::Gap(low, high) if !plain => {
                    let from = low.clone().unwrap_or_default();
                    let inside = fill.range(from..);
                    let before = |key: &Vec<u8>| high.as_ref().is_none_or(|high| key < high);
                    for (_, place) in inside.take_while(|(key, _)| before(key)) {
                        self.put_from_leaf(walk, table, *place, each, count)?;
                    }
                }
                Part::Gap(..) => {}
            }
        }
        if plain {
            for (_, place) in fill.iter().filter(|(key, _)| !given.contains(*key)) {
                self.put_from_leaf(walk, table, *place, each, count)?;
            }
        }
        Ok(())
    }

    fn put_from_leaf(
        &self,
        walk: &Walk<'_>,
        table: &SalvagedTable,
        place: walk::Place,
        each: Each<'_>,
        count: &mut SalvageCount,
    ) -> Result<()> {
        if let Some(page) = self.source.page(place.page, walk.table, walk.birth) {
            count.from_leaves += self.record(table, &page, place.index, each, count)?;
        }
        Ok(())
    }

    /// One record, with all values of its key; gives their number.
    fn record(
        &self,
        table: &SalvagedTable,
        page: &[u8],
        index: usize,
        each: Each<'_>,
        count: &mut SalvageCount,
    ) -> Result<u64> {
        let entry = Leaf::on_level_0(page).and_then(|leaf| leaf.entry(index));
        let Ok(entry) = entry else { return Ok(0) };
        let birth = self.birth.min(header::birth(page));
        match entry.kind {
            ValueKind::Inline => {
                each(entry.key, entry.value)?;
                return Ok(1);
            }
            ValueKind::Run => {
                let run = RunRef::load(entry.value).ok();
                if let Some(value) = run.and_then(|run| self.source.run(&run, birth)) {
                    each(entry.key, &value)?;
                    return Ok(1);
                }
            }
            ValueKind::Duplicates => {
                if let Ok(set) = Packed::in_record(entry.value) {
                    let items = (0..set.count()).filter_map(|i| set.item(i).ok());
                    let mut given = 0;
                    for item in items {
                        each(entry.key, item)?;
                        given += 1;
                    }
                    return Ok(given);
                }
            }
            ValueKind::Tree => {
                if let Ok(desc) = TreeDesc::from_bytes(entry.value) {
                    return self.values(table, &desc, birth, entry.key, each, count);
                }
            }
        }
        count.lost_values += 1;
        Ok(0)
    }

    /// The values of one key that have a tree of their own. Its pages do not name the key, so its
    /// gaps stay gaps.
    fn values(
        &self,
        table: &SalvagedTable,
        desc: &TreeDesc,
        birth: u64,
        key: &[u8],
        each: Each<'_>,
        count: &mut SalvageCount,
    ) -> Result<u64> {
        let order = table.desc.options.builtin_value_order().unwrap_or_else(Order::as_stored);
        let id = table.desc.table | OF_VALUES;
        let walk = Walk { source: &self.source, table: id, order, birth };
        let outline = walk.outline_of(desc);
        count.lost_values += outline.gaps;
        let mut given = 0;
        for part in &outline.parts {
            let Part::Leaf(at) = part else { continue };
            let Some(page) = self.source.page(*at, id, birth) else { continue };
            let Ok(items) = Packed::new(&page) else { continue };
            for i in 0..items.count() {
                if let Ok(value) = items.item(i) {
                    each(key, value)?;
                    given += 1;
                }
            }
        }
        Ok(given)
    }
}

impl SalvagedTable {
    /// The options of a table that can take the records. A caller's comparator is not in the file:
    /// where there was one the new table sorts by bytes, and `is_reordered` says so.
    pub fn options(&self) -> TableOptions {
        let stored = &self.desc.options;
        let order = |code: u8| match code {
            1 => KeyOrder::Reversed,
            2 => KeyOrder::Integer,
            _ => KeyOrder::Bytes,
        };
        let options = TableOptions::new().key_order(order(stored.order));
        let options = if stored.is_counted() { options.counted() } else { options };
        if !stored.has_duplicates() {
            return options.align_values(stored.align);
        }
        let options = options.value_order(order(stored.value_order_code()));
        if stored.is_fixed() { options.fixed_duplicates() } else { options }
    }

    /// The table was sorted by a function that the file does not hold.
    ///
    /// ```
    /// use zubilo::{Options, Salvage};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// env.close()?;
    /// let damaged = Salvage::open(path)?;
    /// let rescued = Options::new().open(path.with_extension("rescued"))?;
    /// let mut txn = rescued.write()?;
    /// for old in damaged.tables() {
    ///     let mut new = txn.table_or_create_with(&old.name, &old.options())?;
    ///     damaged.records(old, &mut |key, value| new.put(key, value))?;
    ///     if old.is_reordered() {
    ///         println!("{} had an order of its own", old.name.escape_ascii());
    ///     }
    /// }
    /// txn.commit()?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn is_reordered(&self) -> bool {
        let options = &self.desc.options;
        options.order == ORDER_CUSTOM || options.value_order_code() == ORDER_CUSTOM
    }
}
