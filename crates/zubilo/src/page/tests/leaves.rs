//! A row of leaves against a sorted list, through every mutator.

use proptest::prelude::*;

use super::super::row::{self, New, Node, Rules};
use super::super::{
    HEADER, Kind, Leaf, NewValue, NormBuf, Order, SearchKey, ValueKind, header, leaf,
};
use super::super::{max_inline, max_key};
use super::{ALIGNS, SIZES, key_of, orders};

type Record = (Vec<u8>, ValueKind, Vec<u8>);

#[derive(Debug, Clone)]
enum Op {
    Put { key: u64, value_len: usize, append: bool },
    Remove { leaf: usize, at: usize },
    RemoveRange { leaf: usize, from: usize, to: usize },
    Resize { leaf: usize, at: usize, len: usize },
    Split { leaf: usize, at: usize },
    Rebuild { leaf: usize },
    MoveDown { leaf: usize, take: usize },
    MoveUp { leaf: usize, take: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![4 => 0usize..60, 1 => 0usize..40_000];
    let len2 = prop_oneof![4 => 0usize..60, 1 => 0usize..40_000];
    let n = any::<usize>;
    prop_oneof![
        12 => (any::<u64>(), len, any::<bool>())
            .prop_map(|(key, value_len, append)| Op::Put { key, value_len, append }),
        4 => (n(), n()).prop_map(|(leaf, at)| Op::Remove { leaf, at }),
        1 => (n(), n(), n()).prop_map(|(leaf, from, to)| Op::RemoveRange { leaf, from, to }),
        3 => (n(), n(), len2).prop_map(|(leaf, at, len)| Op::Resize { leaf, at, len }),
        1 => (n(), n()).prop_map(|(leaf, at)| Op::Split { leaf, at }),
        1 => n().prop_map(|leaf| Op::Rebuild { leaf }),
        1 => (n(), n()).prop_map(|(leaf, take)| Op::MoveDown { leaf, take }),
        1 => (n(), n()).prop_map(|(leaf, take)| Op::MoveUp { leaf, take }),
    ]
}

/// Leaves side by side: every key of one is less than every key of the next.
struct Row {
    order: Order,
    align: usize,
    page_size: usize,
    pages: Vec<Vec<u8>>,
    models: Vec<Vec<Record>>,
    filler: u8,
}

fn kind_of(seed: u8) -> ValueKind {
    [ValueKind::Inline, ValueKind::Run, ValueKind::Tree, ValueKind::Duplicates]
        [usize::from(seed % 4)]
}

impl Row {
    fn new(order: Order, page_size: usize, align: usize) -> Row {
        let mut row =
            Row { order, align, page_size, pages: Vec::new(), models: vec![Vec::new()], filler: 0 };
        let page = row.fresh();
        row.pages.push(page);
        row
    }

    fn fresh(&self) -> Vec<u8> {
        let mut page = vec![0xEE; self.page_size];
        header::init(&mut page, Kind::Leaf, 0, 77, self.order.is_custom());
        page
    }

    fn leaf_for(&self, key: &[u8]) -> usize {
        let starts =
            |m: &Vec<Record>| m.first().is_some_and(|r| self.order.compare(&r.0, key).is_le());
        self.models.iter().rposition(starts).unwrap_or(0)
    }

    fn find(&self, l: usize, key: &[u8]) -> Result<usize, usize> {
        let mut buf = NormBuf::default();
        let key = SearchKey::new(&self.order, key, &mut buf);
        Leaf::new(&self.pages[l]).unwrap().search(&self.order, &key).unwrap()
    }

    fn put(&mut self, key: Vec<u8>, value_len: usize, append: bool) {
        let value_len = value_len.min(max_inline(self.page_size) - key.len());
        self.filler = self.filler.wrapping_add(1);
        let record = (key, kind_of(self.filler), vec![self.filler; value_len]);
        let l = self.leaf_for(&record.0);
        let model = &self.models[l];
        let expected = model.binary_search_by(|r| self.order.compare(&r.0, &record.0));
        assert_eq!(self.find(l, &record.0), expected);
        match expected {
            Ok(i) => self.replace(l, i, record),
            Err(i) => self.insert(l, i, record, append),
        }
    }

    fn try_insert(&mut self, l: usize, i: usize, record: &Record) -> bool {
        let (key, kind, value) = record;
        let rules = Rules::of_leaves(&self.order, self.align);
        let value = NewValue::of(*kind, value);
        let fits = leaf::insert(&mut self.pages[l], i, &rules, key, value).unwrap();
        if fits {
            self.models[l].insert(i, record.clone());
        }
        fits
    }

    fn insert(&mut self, l: usize, i: usize, record: Record, append: bool) {
        if self.try_insert(l, i, &record) {
            return;
        }
        let size = leaf::footprint(record.0.len(), record.2.len(), self.align);
        let right = self.fresh();
        let node = |page| Node::on_level(page, 0).unwrap();
        let new = New { key: &record.0, size, index: i };
        let both = row::Row::new(node(&self.pages[l]), node(&right), self.rules(), Some(new));
        let appends = append && i == self.models[l].len();
        let even = || both.even(self.page_size - HEADER).unwrap().expect("a split makes room");
        let cut = if appends { both.cut_at(i) } else { even() };
        assert!(cut.at > 0 && cut.at <= self.models[l].len());
        self.split(l, cut.keep);
        let (l, i) = if i < cut.at { (l, i) } else { (l + 1, i - cut.at) };
        self.insert_surely(l, i, record);
    }

    fn insert_surely(&mut self, l: usize, i: usize, record: Record) {
        let (key, kind, value) = &record;
        let rules = Rules::of_leaves(&self.order, self.align);
        let value = NewValue::of(*kind, value);
        leaf::insert_surely(&mut self.pages[l], i, &rules, key, value).unwrap();
        self.models[l].insert(i, record);
    }

    fn rules(&self) -> Rules<'_> {
        Rules::of_leaves(&self.order, self.align)
    }

    fn drop_empty(&mut self, l: usize) {
        if self.models.len() > 1 && self.models[l].is_empty() {
            self.models.remove(l);
            self.pages.remove(l);
        }
    }

    fn replace(&mut self, l: usize, i: usize, record: Record) {
        let (_, kind, value) = &record;
        let before = self.pages[l].clone();
        let rules = Rules::of_leaves(&self.order, self.align);
        let value = NewValue::of(*kind, value);
        if !leaf::set_value(&mut self.pages[l], i, &rules, value).unwrap() {
            assert!(self.pages[l] == before);
            leaf::remove(&mut self.pages[l], i).unwrap();
            self.models[l].remove(i);
            return self.insert(l, i, record, false);
        }
        let value = leaf::value_mut(&mut self.pages[l], i).unwrap();
        assert_eq!(value, record.2);
        self.models[l][i] = record;
    }

    fn split(&mut self, l: usize, at: usize) {
        let mut right = vec![0x55; self.page_size];
        let flags = header::flags(&self.pages[l]) | 2;
        header::set_flags(&mut self.pages[l], flags);
        header::init_like(&mut right, &self.pages[l]).unwrap();
        let rules = Rules { order: &self.order, align: self.align, between: &[] };
        assert!(row::shift(&mut self.pages[l], &mut right, at, &rules).unwrap());
        assert_eq!((header::table(&right), header::flags(&right) & 2), (77, 2));
        let moved = self.models[l].split_off(at);
        self.pages.insert(l + 1, right);
        self.models.insert(l + 1, moved);
    }

    fn remove_range(&mut self, l: usize, from: usize, to: usize) {
        leaf::remove_range(&mut self.pages[l], from, to).unwrap();
        self.models[l].drain(from..to);
    }

    /// Moves records between leaf `l` and the next.
    fn shift(&mut self, l: usize, take: usize, down: bool) {
        if l + 1 >= self.pages.len() {
            return;
        }
        let (src, dst) = if down { (l + 1, l) } else { (l, l + 1) };
        let count = self.models[src].len();
        let take = take % (count + 1);
        let (from, to) = if down { (0, take) } else { (count - take, count) };
        let other = self.pages[src].clone();
        let before = self.pages[dst].clone();
        let rules = Rules { order: &self.order, align: self.align, between: &[] };
        let moved = if take.is_multiple_of(2) {
            row::take(&mut self.pages[dst], down, &other, (from, to), &rules).unwrap()
        } else {
            let keep = if down { self.models[l].len() + take } else { from };
            let [left, right] = self.pages.get_disjoint_mut([l, l + 1]).unwrap();
            row::shift(left, right, keep, &rules).unwrap()
        };
        if !moved {
            assert!(self.pages[dst] == before && self.pages[src] == other);
            return;
        }
        if take.is_multiple_of(2) {
            leaf::remove_range(&mut self.pages[src], from, to).unwrap();
        }
        let records: Vec<Record> = self.models[src].drain(from..to).collect();
        let at = if down { self.models[dst].len() } else { 0 };
        self.models[dst].splice(at..at, records);
        self.drop_empty(src);
    }

    fn apply(&mut self, op: Op) {
        let pages = self.pages.len();
        let count = |row: &Row, l: usize| row.models[l].len();
        match op {
            Op::Put { key, value_len, append } => {
                self.put(key_of(key, max_key(self.page_size)), value_len, append);
            }
            Op::Remove { leaf: l, at } if count(self, l % pages) > 0 => {
                let (l, at) = (l % pages, at % count(self, l % pages));
                leaf::remove(&mut self.pages[l], at).unwrap();
                self.models[l].remove(at);
                self.drop_empty(l);
            }
            Op::RemoveRange { leaf: l, from, to } => {
                let l = l % pages;
                let (a, b) = (from % (count(self, l) + 1), to % (count(self, l) + 1));
                self.remove_range(l, a.min(b), a.max(b));
                self.drop_empty(l);
            }
            Op::Resize { leaf: l, at, len } if count(self, l % pages) > 0 => {
                let (l, at) = (l % pages, at % count(self, l % pages));
                let key = self.models[l][at].0.clone();
                self.put(key, len, false);
            }
            Op::Split { leaf: l, at } => {
                let l = l % pages;
                self.split(l, at % (count(self, l) + 1));
                self.drop_empty(l + 1);
                self.drop_empty(l);
            }
            Op::Rebuild { leaf: l } => {
                let page = &mut self.pages[l % pages];
                leaf::rebuild(page, &self.order, self.align).unwrap();
            }
            Op::MoveDown { leaf: l, take } => self.shift(l % pages, take, true),
            Op::MoveUp { leaf: l, take } => self.shift(l % pages, take, false),
            _ => {}
        }
    }

    fn check(&self) {
        for (page, model) in self.pages.iter().zip(&self.models) {
            let leaf = Leaf::new(page).unwrap();
            leaf.check(&self.order).unwrap();
            assert_eq!(leaf.count(), model.len());
            assert!(leaf.used() <= self.page_size - HEADER);
            for (i, (key, kind, value)) in model.iter().enumerate() {
                let entry = leaf.entry(i).unwrap();
                assert_eq!((entry.key, entry.kind, entry.value), (&key[..], *kind, &value[..]));
                let at = entry.value.as_ptr() as usize - page.as_ptr() as usize;
                assert_eq!(at % self.align, 0);
                assert_eq!(leaf.key(i).unwrap(), &key[..]);
                let size = leaf::entry_footprint(&leaf, i, self.align).unwrap();
                assert_eq!(size, leaf::footprint(key.len(), value.len(), self.align));
            }
        }
    }

    fn check_searches(&self) {
        for l in 0..self.pages.len() {
            for (i, record) in self.models[l].iter().enumerate() {
                assert_eq!(self.find(l, &record.0), Ok(i));
                let longer = [&record.0[..], &[0]].concat();
                let expected =
                    self.models[l].binary_search_by(|r| self.order.compare(&r.0, &longer));
                assert_eq!(self.find(l, &longer), expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn leaves_follow_the_model(
        order in 0usize..3,
        size in 0usize..3,
        align in 0usize..5,
        ops in prop::collection::vec(op(), 1..250),
    ) {
        let mut row = Row::new(orders()[order].clone(), SIZES[size], ALIGNS[align]);
        for op in ops {
            row.apply(op);
            row.check();
        }
        row.check_searches();
    }

    /// Many small records of one shape, so that pages fill and split often.
    #[test]
    fn small_records_fill_leaves(
        order in 0usize..3,
        align in 0usize..5,
        keys in prop::collection::vec((0u64..7_000, 0usize..24), 200..900),
    ) {
        let mut row = Row::new(orders()[order].clone(), 4096, ALIGNS[align]);
        for (n, (key, value_len)) in keys.into_iter().enumerate() {
            row.put(key_of(key * 7 + 1 + key % 5, 1000), value_len, n % 2 == 0);
            if n % 16 == 0 {
                row.check();
            }
        }
        row.check();
        row.check_searches();
    }
}
