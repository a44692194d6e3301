//! The pages of a file by extents, and cells of a picture that stand for some of them.

use std::collections::BTreeMap;

use zubilo::{PageKind, PageVisit};

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Meta,
    Branch,
    Leaf,
    Large,
    Log,
    Redo,
    Held,
    Free,
    /// After the last page ever used.
    Tail,
    /// Not come to: damage hides it.
    Unknown,
}

impl Kind {
    pub(super) const COUNT: usize = 10;
    pub(super) const ALL: [Kind; Kind::COUNT] = [
        Kind::Meta,
        Kind::Branch,
        Kind::Leaf,
        Kind::Large,
        Kind::Log,
        Kind::Redo,
        Kind::Held,
        Kind::Free,
        Kind::Tail,
        Kind::Unknown,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Meta => "meta",
            Kind::Branch => "branch",
            Kind::Leaf => "leaf",
            Kind::Large => "large value",
            Kind::Log => "free-space log",
            Kind::Redo => "redo log",
            Kind::Held => "held back",
            Kind::Free => "free",
            Kind::Tail => "never used",
            Kind::Unknown => "unknown",
        }
    }

    /// Where there are no colours.
    pub(super) fn letter(self) -> char {
        match self {
            Kind::Meta => 'M',
            Kind::Branch => 'B',
            Kind::Leaf => 'l',
            Kind::Large => 'v',
            Kind::Log => 'F',
            Kind::Redo => 'R',
            Kind::Held => 'h',
            Kind::Free => '.',
            Kind::Tail => '_',
            Kind::Unknown => '?',
        }
    }

    /// Whether somebody's records are in it.
    pub(super) fn is_used(self) -> bool {
        matches!(
            self,
            Kind::Meta | Kind::Branch | Kind::Leaf | Kind::Large | Kind::Log | Kind::Redo
        )
    }

    fn of(kind: PageKind) -> Kind {
        match kind {
            PageKind::Branch => Kind::Branch,
            PageKind::Leaf => Kind::Leaf,
            PageKind::Run => Kind::Large,
            PageKind::FreeSpaceLog => Kind::Log,
            PageKind::RedoLog => Kind::Redo,
            PageKind::Free => Kind::Free,
            PageKind::Retired => Kind::Held,
            _ => Kind::Unknown,
        }
    }
}

/// Neighbouring pages of one kind.
#[derive(Clone, Copy, Debug)]
struct Extent {
    first: u64,
    pages: u64,
    kind: Kind,
    /// Index of the table.
    table: Option<usize>,
    /// Bytes in use.
    used: u64,
    birth: u64,
    /// The newest snapshot that holds them back.
    held_for: Option<u64>,
}

/// All pages of a file.
pub(super) struct Map {
    pub(super) page_size: u64,
    /// The newest commit.
    pub(super) newest: u64,
    pub(super) problems: usize,
    extents: Vec<Extent>,
    names: Vec<Vec<u8>>,
    numbers: BTreeMap<Vec<u8>, usize>,
    pages: u64,
    /// Pages in memory: the first of each run, and the one after its last.
    resident: Vec<(u64, u64)>,
}

/// What some neighbouring pages are.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) first: u64,
    pub(super) pages: u64,
    /// Pages by kind, in the order of [`Kind::ALL`].
    pub(super) kinds: [u64; Kind::COUNT],
    /// Pages by table.
    pub(super) tables: BTreeMap<usize, u64>,
    /// Pages that are held back, by the newest snapshot that sees them.
    pub(super) held: BTreeMap<u64, u64>,
    used: u64,
    /// The newest commit that wrote one of them; 0 if none did.
    pub(super) newest: u64,
    /// Pages in memory.
    pub(super) resident: u64,
}

impl Cell {
    /// The part of its pages that is in memory, 0 to 1.
    pub(super) fn warmth(&self) -> f64 {
        self.resident as f64 / self.pages.max(1) as f64
    }

    /// The part of its used pages that is in use; none if none is.
    pub(super) fn fill(&self, page_size: u64) -> Option<f64> {
        let pages: u64 = self.of(Kind::is_used);
        (pages > 0).then(|| self.used as f64 / (pages * page_size) as f64)
    }

    fn of(&self, wanted: impl Fn(Kind) -> bool) -> u64 {
        Kind::ALL.iter().zip(&self.kinds).filter(|(kind, _)| wanted(**kind)).map(|(_, n)| *n).sum()
    }

    /// What most of its pages are; where a cell has anything used, not what is free.
    pub(super) fn kind(&self) -> Kind {
        let used = self.of(Kind::is_used) > 0;
        let all = Kind::ALL.iter().zip(&self.kinds);
        let shown = all.filter(|(kind, _)| !used || kind.is_used());
        shown.max_by_key(|(_, pages)| **pages).map_or(Kind::Unknown, |(kind, _)| *kind)
    }

    /// The part of its pages that is used, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.of(Kind::is_used) as f64 / self.pages.max(1) as f64
    }

    /// The table that has most of it.
    pub(super) fn table(&self) -> Option<usize> {
        self.tables.iter().max_by_key(|(_, pages)| **pages).map(|(table, _)| *table)
    }
}

impl Map {
    pub(super) fn new(page_size: u64, newest: u64) -> Map {
        let meta = Extent {
            first: 0,
            pages: 4,
            kind: Kind::Meta,
            table: None,
            used: 4 * page_size,
            birth: newest,
            held_for: None,
        };
        Map {
            page_size,
            newest,
            problems: 0,
            extents: vec![meta],
            names: Vec::new(),
            numbers: BTreeMap::new(),
            pages: 4,
            resident: Vec::new(),
        }
    }

    /// Notes whether a page is in memory; pages come in order.
    pub(super) fn set_resident(&mut self, page: u64, is_resident: bool) {
        match self.resident.last_mut() {
            _ if !is_resident => {}
            Some((_, end)) if *end == page => *end += 1,
            _ => self.resident.push((page, page + 1)),
        }
    }

    pub(super) fn add(&mut self, visit: &PageVisit<'_>) {
        let kind = Kind::of(visit.kind);
        let of_table = matches!(kind, Kind::Branch | Kind::Leaf | Kind::Large);
        let table = of_table.then(|| match self.numbers.get(visit.table) {
            Some(number) => *number,
            None => {
                self.names.push(visit.table.to_vec());
                self.numbers.insert(visit.table.to_vec(), self.names.len() - 1);
                self.names.len() - 1
            }
        });
        self.extents.push(Extent {
            first: visit.page.0,
            pages: visit.count,
            kind,
            table,
            used: visit.used,
            birth: visit.birth.0,
            held_for: visit.held_for.map(|txn| txn.0),
        });
    }

    /// All pages have come: those after the used part, and those that did not come.
    pub(super) fn end(&mut self, used_pages: u64, file_len: u64, problems: usize) {
        self.problems = problems;
        self.extents.sort_by_key(|e| e.first);
        let mut unknown = Vec::new();
        let mut next = 0;
        for extent in &self.extents {
            if extent.first > next {
                unknown.push((next, extent.first, Kind::Unknown));
            }
            next = next.max(extent.first + extent.pages);
        }
        unknown.push((next, used_pages, Kind::Unknown));
        let file = file_len / self.page_size;
        unknown.push((next.max(used_pages), file, Kind::Tail));
        for (first, behind, kind) in unknown {
            if behind > first {
                let pages = behind - first;
                let (table, held_for) = (None, None);
                self.extents.push(Extent {
                    first,
                    pages,
                    kind,
                    table,
                    used: 0,
                    birth: 0,
                    held_for,
                });
            }
        }
        self.extents.sort_by_key(|e| e.first);
        self.pages = self.extents.last().map_or(0, |e| e.first + e.pages);
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    pub(super) fn tables(&self) -> &[Vec<u8>] {
        &self.names
    }

    pub(super) fn table(&self, at: usize) -> &[u8] {
        self.names.get(at).map_or(b"", Vec::as_slice)
    }

    pub(super) fn totals(&self) -> [u64; Kind::COUNT] {
        self.cell(0, self.pages).kinds
    }

    /// As many cells as fit, each of the same number of pages (the last one perhaps less).
    pub(super) fn cells(&self, width: usize, height: usize) -> Vec<Cell> {
        let room = (width.max(1) * height.max(1)) as u64;
        let each = self.pages.div_ceil(room).max(1);
        let number = self.pages.div_ceil(each);
        let mut cells: Vec<_> = (0..number).map(|i| self.empty_cell(i * each, each)).collect();
        for extent in &self.extents {
            let (from, to) = (extent.first / each, (extent.first + extent.pages - 1) / each);
            for at in from..=to {
                if let Some(cell) = cells.get_mut(at as usize) {
                    add(cell, extent);
                }
            }
        }
        for &(first, end) in &self.resident {
            for at in first / each..=(end - 1) / each {
                if let Some(cell) = cells.get_mut(at as usize) {
                    let to = end.min(cell.first + cell.pages);
                    cell.resident += to.saturating_sub(first.max(cell.first));
                }
            }
        }
        cells
    }

    fn empty_cell(&self, first: u64, pages: u64) -> Cell {
        Cell {
            first,
            pages: pages.min(self.pages - first),
            kinds: [0; Kind::COUNT],
            tables: BTreeMap::new(),
            held: BTreeMap::new(),
            used: 0,
            newest: 0,
            resident: 0,
        }
    }

    fn cell(&self, first: u64, pages: u64) -> Cell {
        let mut cell = self.empty_cell(first, pages);
        self.extents.iter().for_each(|extent| add(&mut cell, extent));
        cell
    }
}

/// Adds to a cell what of an extent lies in it.
fn add(cell: &mut Cell, extent: &Extent) {
    let from = extent.first.max(cell.first);
    let to = (extent.first + extent.pages).min(cell.first + cell.pages);
    let Some(pages) = to.checked_sub(from).filter(|pages| *pages > 0) else { return };
    let at = Kind::ALL.iter().position(|kind| *kind == extent.kind);
    if let Some(number) = at.and_then(|at| cell.kinds.get_mut(at)) {
        *number += pages;
    }
    if let Some(table) = extent.table {
        *cell.tables.entry(table).or_default() += pages;
    }
    if let Some(txn) = extent.held_for {
        *cell.held.entry(txn).or_default() += pages;
    }
    if extent.kind.is_used() {
        let part = u128::from(extent.used) * u128::from(pages) / u128::from(extent.pages.max(1));
        cell.used += part as u64;
        cell.newest = cell.newest.max(extent.birth);
    }
}

/// A small file, for tests of pictures too.
#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn extent(first: u64, pages: u64, kind: Kind) -> Extent {
        Extent {
            first,
            pages,
            kind,
            table: Some(0),
            used: 100 * pages,
            birth: first,
            held_for: None,
        }
    }

    pub(in crate::map) fn map() -> Map {
        let mut map = Map::new(1000, 50);
        map.names = vec![b"places".to_vec()];
        map.extents.extend([
            extent(4, 6, Kind::Leaf),
            extent(10, 1, Kind::Branch),
            extent(12, 8, Kind::Large),
        ]);
        for page in (0..30).filter(|page| page % 9 != 8) {
            map.set_resident(page, page < 16);
        }
        map.end(22, 30_000, 0);
        map
    }

    #[test]
    fn every_page_is_in_one_cell() {
        let map = map();
        assert_eq!(map.pages(), 30);
        for (width, height) in [(1, 1), (3, 2), (7, 1), (30, 1), (100, 100)] {
            let cells = map.cells(width, height);
            assert!(cells.len() <= width * height);
            assert_eq!(cells.iter().map(|c| c.pages).sum::<u64>(), 30);
            for cell in &cells {
                assert_eq!(cell.kinds.iter().sum::<u64>(), cell.pages, "{cell:?}");
            }
            let sum = |at: usize| cells.iter().map(|c| c.kinds[at]).sum::<u64>();
            let sums: Vec<_> = (0..Kind::COUNT).map(sum).collect();
            assert_eq!(sums, [4, 1, 6, 8, 0, 0, 0, 0, 8, 3]);
            assert_eq!(sums, map.totals());
            assert_eq!(cells.iter().map(|c| c.resident).sum::<u64>(), 15);
        }
    }

    #[test]
    fn a_cell_is_what_most_of_its_used_pages_are() {
        let cells = map().cells(3, 1);
        let kinds: Vec<_> = cells.iter().map(Cell::kind).collect();
        assert_eq!(kinds, [Kind::Leaf, Kind::Large, Kind::Tail]);
        assert_eq!(cells[0].fill(1000), Some(0.46));
        assert_eq!((cells[1].share(), cells[2].fill(1000)), (0.9, None));
        assert_eq!((cells[1].newest, cells[0].table()), (12, Some(0)));
    }
}
