//! Walks over trees, record by record. A reader remembers which pages it has been on and goes to none
//! of them twice: so no damage makes it run in circles, and its work is bounded by the file.

use crate::error::{Error, Result, damaged};
use crate::file::{LmdbFile, Table};
use crate::layout::{Layout, Tree};
use crate::page::{Data, Kind, Page, overflow_pages};
use crate::source::Source;

/// LMDB's own bound.
const DEPTH_MAX: u16 = 32;

/// A record; used again for every one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The value, or one of the key's values.
    pub value: Vec<u8>,
}

/// Pages a reader has been on.
struct Seen {
    bits: Vec<u64>,
    pages: u64,
}

impl Seen {
    fn new(pages: u64) -> Seen {
        let words = usize::try_from(pages.div_ceil(64)).unwrap_or(usize::MAX);
        Seen { bits: vec![0; words], pages }
    }

    /// Steps on a page of the file, for the first time.
    fn step(&mut self, page: u64) -> Result<()> {
        if page < 2 || page >= self.pages {
            return Err(damaged(page, "it is named, but lies outside of the file"));
        }
        let word = usize::try_from(page / 64).ok().and_then(|at| self.bits.get_mut(at));
        let word = word.ok_or(damaged(page, "it is named, but lies outside of the file"))?;
        let bit = 1 << (page % 64);
        if *word & bit != 0 {
            return Err(damaged(page, "it is in use at two places"));
        }
        *word |= bit;
        Ok(())
    }
}

/// A page on the way down, and which of its records comes next.
struct Level {
    bytes: Vec<u8>,
    no: u64,
    count: usize,
    next: usize,
}

/// A position in a tree.
#[derive(Default)]
struct Walk {
    levels: Vec<Level>,
    depth: usize,
    /// Where to begin.
    root: Option<u64>,
    /// The record of the leaf at which it stands.
    at: usize,
    spare: Vec<Vec<u8>>,
}

impl Walk {
    fn start(&mut self, layout: Layout, tree: &Tree, named_on: u64) -> Result<()> {
        self.spare.extend(self.levels.drain(..).map(|level| level.bytes));
        self.root = None;
        self.depth = usize::from(tree.depth);
        if tree.root == layout.no_page() {
            return match tree.depth {
                0 => Ok(()),
                _ => Err(damaged(named_on, "a tree has levels, but no root")),
            };
        }
        if tree.depth == 0 || tree.depth > DEPTH_MAX {
            return Err(damaged(named_on, "a tree has an impossible number of levels"));
        }
        self.root = Some(tree.root);
        Ok(())
    }

    /// On to the next record of a leaf; false at the end.
    fn advance<S: Source>(&mut self, file: &LmdbFile<S>, seen: &mut Seen) -> Result<bool> {
        if let Some(root) = self.root.take() {
            self.descend(file, seen, root)?;
        }
        loop {
            let deepest = self.levels.len() == self.depth;
            let Some(level) = self.levels.last_mut() else { return Ok(false) };
            if level.next >= level.count {
                let level = self.levels.pop();
                self.spare.extend(level.map(|level| level.bytes));
                continue;
            }
            self.at = level.next;
            level.next += 1;
            if deepest {
                return Ok(true);
            }
            let page = Page::new(file.layout(), &level.bytes, level.no, Kind::Branch)?;
            let child = page.child(self.at)?;
            self.descend(file, seen, child)?;
        }
    }

    fn descend<S: Source>(&mut self, file: &LmdbFile<S>, seen: &mut Seen, no: u64) -> Result<()> {
        seen.step(no)?;
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(file.page_size(), 0);
        file.read_at(no, 0, &mut bytes)?;
        let leaf = self.levels.len() + 1 == self.depth;
        let kind = if leaf { Kind::Leaf } else { Kind::Branch };
        let count = Page::new(file.layout(), &bytes, no, kind)?.count()?;
        if count == 0 && !leaf {
            return Err(damaged(no, "a branch leads nowhere"));
        }
        self.levels.push(Level { bytes, no, count, next: 0 });
        Ok(())
    }

    /// The leaf at which it stands.
    fn leaf(&self, layout: Layout) -> Result<Page<'_>> {
        // Only asked for after an advance, which left it there.
        let level = self.levels.last().ok_or(damaged(0, "a walk stands nowhere"))?;
        Page::new(layout, &level.bytes, level.no, Kind::Leaf)
    }

    fn page_no(&self) -> u64 {
        self.levels.last().map_or(0, |level| level.no)
    }
}

/// What is left of the values of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    /// Nothing: the next key is due.
    None,
    /// A page inside the record, from value `next` on.
    Page { next: usize, count: usize, on: u64 },
    /// A tree of their own.
    Tree,
}

/// Reads tables record by record, in the order of the file: each table once.
pub struct Reader<'f, S> {
    file: &'f LmdbFile<S>,
    seen: Seen,
    table: Table,
    keys: Walk,
    /// The key whose values are being read.
    key: Vec<u8>,
    values: Values,
    value_tree: Walk,
    value_page: Vec<u8>,
    found: u64,
    /// Named tables met on the way.
    named: u64,
    /// An error ended the table.
    ended: bool,
}

impl<'f, S: Source> Reader<'f, S> {
    pub(crate) fn new(file: &'f LmdbFile<S>) -> Reader<'f, S> {
        Reader {
            file,
            seen: Seen::new(file.pages()),
            table: file.unnamed(),
            keys: Walk::default(),
            key: Vec::new(),
            values: Values::None,
            value_tree: Walk::default(),
            value_page: Vec::new(),
            found: 0,
            named: 0,
            ended: true,
        }
    }

    /// Turns to a table. A page that another table has used already is damage, so a second reading of
    /// a table needs a reader of its own.
    pub fn begin(&mut self, table: &Table) -> Result<()> {
        self.table = table.clone();
        self.values = Values::None;
        (self.found, self.named, self.ended) = (0, 0, false);
        self.keys.start(self.file.layout(), &table.tree, table.named_on)
    }

    /// The next record of the table; false at its end. After an error the table has ended.
    pub fn next(&mut self, into: &mut Record) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let next = self.advance(into, &mut None);
        self.ended = !matches!(next, Ok(true));
        next
    }

    /// Names and trees of the named tables.
    pub(crate) fn named_tables(&mut self) -> Result<Vec<Table>> {
        let unnamed = self.file.unnamed();
        self.begin(&unnamed)?;
        let mut tables = Some(Vec::new());
        let mut record = Record::default();
        while self.advance(&mut record, &mut tables)? {}
        Ok(tables.unwrap_or_default())
    }

    fn advance(&mut self, into: &mut Record, names: &mut Option<Vec<Table>>) -> Result<bool> {
        loop {
            if self.next_value(into)? {
                self.found += 1;
                return Ok(true);
            }
            if !self.keys.advance(self.file, &mut self.seen)? {
                return self.at_end();
            }
            if self.next_key(into, names)? {
                self.found += 1;
                return Ok(true);
            }
        }
    }

    fn at_end(&self) -> Result<bool> {
        // Named tables count as records of the unnamed one.
        let (stated, found) = (self.table.tree.entries, self.found + self.named);
        if stated != found {
            return Err(Error::Count { table: self.table.name.clone(), stated, found });
        }
        Ok(false)
    }

    /// Takes the record at which the walk over the keys stands; false if its values, or nothing, are
    /// to come.
    fn next_key(&mut self, into: &mut Record, names: &mut Option<Vec<Table>>) -> Result<bool> {
        let layout = self.file.layout();
        let (leaf, no) = (self.keys.leaf(layout)?, self.keys.page_no());
        if leaf.is_packed()? {
            return Err(damaged(no, "keys without values in a tree of keys"));
        }
        self.key.clear();
        self.key.extend_from_slice(leaf.key(self.keys.at)?);
        into.key.clone_from(&self.key);
        let has_many = self.table.flags.duplicates();
        match leaf.data(self.keys.at)? {
            Data::Plain(data) => {
                into.value.clear();
                into.value.extend_from_slice(data);
                Ok(true)
            }
            Data::Overflow(page, len) => {
                into.value.clear();
                overflow(self.file, &mut self.seen, page, len, &mut into.value)?;
                Ok(true)
            }
            Data::Table(tree) if self.table.name.is_none() && !has_many => {
                self.named += 1;
                if let Some(names) = names {
                    names.push(Table::new(Some(self.key.clone()), tree, no));
                }
                Ok(false)
            }
            Data::Values(page) if has_many => {
                self.value_page.clear();
                self.value_page.extend_from_slice(page);
                let count = Page::new(layout, &self.value_page, no, Kind::SubPage)?.count()?;
                self.values = Values::Page { next: 0, count, on: no };
                Ok(false)
            }
            Data::ValueTree(tree) if has_many => {
                self.value_tree.start(layout, &tree, no)?;
                self.values = Values::Tree;
                Ok(false)
            }
            Data::Table(_) => Err(damaged(no, "a table stands where there can be none")),
            Data::Values(_) | Data::ValueTree(_) => {
                Err(damaged(no, "a key has many values in a table of single ones"))
            }
        }
    }

    /// The next of the values of a key; false if there is none left.
    fn next_value(&mut self, into: &mut Record) -> Result<bool> {
        let layout = self.file.layout();
        let value = match &mut self.values {
            Values::None => return Ok(false),
            Values::Page { next, count, .. } if *next >= *count => {
                self.values = Values::None;
                return Ok(false);
            }
            Values::Page { next, on, .. } => {
                let page = Page::new(layout, &self.value_page, *on, Kind::SubPage)?;
                *next += 1;
                value_at(page, *next - 1)?
            }
            Values::Tree => {
                if !self.value_tree.advance(self.file, &mut self.seen)? {
                    self.values = Values::None;
                    return Ok(false);
                }
                value_at(self.value_tree.leaf(layout)?, self.value_tree.at)?
            }
        };
        into.key.clone_from(&self.key);
        into.value.clear();
        into.value.extend_from_slice(value);
        Ok(true)
    }
}

/// Value `i` on a page of values: they are its keys.
fn value_at(page: Page<'_>, i: usize) -> Result<&[u8]> {
    if page.is_packed()? { page.packed(i) } else { page.key(i) }
}

/// Reads a large value.
fn overflow<S: Source>(
    file: &LmdbFile<S>,
    seen: &mut Seen,
    page: u64,
    len: u64,
    into: &mut Vec<u8>,
) -> Result<()> {
    let mut head = [0; 16];
    let head_len = file.layout().page_head() as u64;
    seen.step(page)?;
    file.read_at(page, 0, &mut head)?;
    let pages = overflow_pages(file.layout(), &head, page)?;
    let needed = (head_len + len).div_ceil(file.page_size() as u64);
    // A value that was replaced by a shorter one may keep its pages.
    if pages < needed {
        return Err(damaged(page, "a large value has too few pages"));
    }
    for more in 1..pages {
        seen.step(page.saturating_add(more))?;
    }
    // Within the file, as its pages are: so the room taken is bounded by the file.
    into.resize(usize::try_from(len).map_err(|_| damaged(page, "a value is too large"))?, 0);
    file.read_at(page, head_len, into)
}
