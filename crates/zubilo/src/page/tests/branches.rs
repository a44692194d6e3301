//! Two branches side by side against sorted lists, through every mutator.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::super::row::{self, Rules};
use super::super::{Branch, HEADER, NormBuf, Order, SearchKey, branch, header, max_key};
use super::{SIZES, key_of, orders};

#[derive(Debug, Clone)]
enum Op {
    Put { key: u64, append: bool },
    Remove { at: usize },
    RemoveRange { from: usize, to: usize },
    SetChild { at: usize, child: u64 },
    SetSeparator { at: usize, key: u64 },
    SplitAndMove { at: usize, take: usize, down: bool },
}

fn op() -> impl Strategy<Value = Op> {
    let n = any::<usize>;
    let key = any::<u64>;
    prop_oneof![
        16 => (key(), any::<bool>()).prop_map(|(key, append)| Op::Put { key, append }),
        2 => n().prop_map(|at| Op::Remove { at }),
        1 => (n(), 0usize..40).prop_map(|(from, to)| Op::RemoveRange { from, to }),
        1 => (n(), key()).prop_map(|(at, child)| Op::SetChild { at, child }),
        2 => (n(), key()).prop_map(|(at, key)| Op::SetSeparator { at, key }),
        1 => (n(), n(), any::<bool>())
            .prop_map(|(at, take, down)| Op::SplitAndMove { at, take, down }),
    ]
}

/// The first separator is empty: minus infinity.
type Model = Vec<(Vec<u8>, u64)>;

struct Fixture {
    order: Order,
    page: Vec<u8>,
    model: Model,
    next_child: u64,
}

fn compare(order: &Order, a: &[u8], b: &[u8]) -> Ordering {
    if order.is_custom() { order.compare(a, b) } else { a.cmp(b) }
}

fn check(order: &Order, page: &[u8], model: &Model) {
    let branch = Branch::new(page).unwrap();
    branch.check(order).unwrap();
    assert_eq!(branch.count(), model.len());
    assert!(branch.used() <= page.len() - HEADER);
    let mut out = vec![1, 2, 3];
    for (i, (separator, child)) in model.iter().enumerate() {
        assert_eq!(branch.child(i).unwrap(), *child);
        branch.separator(i, &mut out).unwrap();
        assert_eq!(&out, separator);
        let most = branch::footprint(separator.len(), branch.is_counted());
        assert!(branch.entry_size(i).unwrap() <= most);
        if branch.is_counted() {
            assert_eq!(branch.records(i).unwrap(), records_of(*child));
        } else {
            assert!(branch.records(i).is_err());
        }
    }
}

/// The records that the tests book for a child.
fn records_of(child: u64) -> u64 {
    child.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Books the records of a child that is new in a counted branch.
fn count_child(page: &mut [u8], i: usize, child: u64) {
    if header::is_counted(page) {
        branch::set_records(page, i, records_of(child)).unwrap();
    } else {
        assert!(branch::set_records(page, i, 1).is_err());
    }
}

fn check_search(order: &Order, page: &[u8], model: &Model, raw: &[u8]) {
    let mut buf = NormBuf::default();
    let key = SearchKey::new(order, raw, &mut buf);
    let expected = model.iter().skip(1).filter(|(s, _)| compare(order, s, key.norm()).is_le());
    let found = Branch::new(page).unwrap().search(order, &key).unwrap();
    assert_eq!(found, expected.count());
}

impl Fixture {
    fn new(order: Order, page_size: usize, counted: bool) -> Fixture {
        let mut page = vec![0xEE; page_size];
        branch::init(&mut page, 3, 77, order.is_custom(), counted);
        branch::set_first(&mut page, 1).unwrap();
        count_child(&mut page, 0, 1);
        Fixture { order, page, model: vec![(Vec::new(), 1)], next_child: 2 }
    }

    fn find(&self, separator: &[u8]) -> Result<usize, usize> {
        let rest = self.model.get(1..).unwrap();
        let found = rest.binary_search_by(|(s, _)| compare(&self.order, s, separator));
        found.map(|i| i + 1).map_err(|i| i + 1)
    }

    fn put(&mut self, separator: Vec<u8>, append: bool) {
        // Minus infinity is no separator.
        if separator.is_empty() {
            return;
        }
        let Err(i) = self.find(&separator) else { return };
        self.next_child += 1;
        let child = self.next_child;
        let before = self.page.clone();
        if branch::insert(&mut self.page, i, &separator, child).unwrap() {
            count_child(&mut self.page, i, child);
            self.model.insert(i, (separator, child));
            return;
        }
        assert!(self.page == before);
        self.put_by_split(i, separator, child, append);
    }

    fn put_by_split(&mut self, i: usize, separator: Vec<u8>, child: u64, append: bool) {
        let at = branch::split_point(&self.page, i, separator.len(), append).unwrap();
        let (mut right, mut right_model) = self.split(at);
        let (page, model, i) = if i <= at {
            (&mut self.page, &mut self.model, i)
        } else {
            (&mut right, &mut right_model, i - at)
        };
        let fits = branch::insert(page, i, &separator, child).unwrap();
        assert!(fits, "no room for {} bytes after a split", separator.len());
        count_child(page, i, child);
        model.insert(i, (separator, child));
        check(&self.order, &right, &right_model);
        // Go on with the half that did not get the newcomer every other time.
        if child.is_multiple_of(2) {
            (self.page, self.model) = (right, right_model);
        }
    }

    fn split(&mut self, at: usize) -> (Vec<u8>, Model) {
        let mut right = vec![0x55; self.page.len()];
        let mut promoted = vec![9];
        Branch::new(&self.page).unwrap().separator(at, &mut promoted).unwrap();
        header::init_like(&mut right, &self.page).unwrap();
        let rules = Rules { order: &self.order, align: 1, between: &[] };
        assert!(row::shift(&mut self.page, &mut right, at, &rules).unwrap());
        assert_eq!((header::level(&right), header::table(&right)), (3, 77));
        let mut moved = self.model.split_off(at);
        assert_eq!(promoted, std::mem::take(&mut moved[0].0));
        (right, moved)
    }

    /// Splits, moves some children back over the cut, and goes on with the left side.
    fn split_and_move(&mut self, at: usize, take: usize, down: bool) {
        let between = self.model[at].0.clone();
        let (mut right, mut right_model) = self.split(at);
        check(&self.order, &right, &right_model);
        let order = &self.order;
        let rules = Rules { order, align: 1, between: &between };
        if down {
            let take = take % (right_model.len() + 1);
            if row::take(&mut self.page, true, &right, (0, take), &rules).unwrap() {
                let mut moved: Model = right_model.drain(..take).collect();
                if let Some(first) = moved.first_mut() {
                    first.0 = between;
                }
                self.model.append(&mut moved);
            }
            return;
        }
        let count = self.model.len();
        let from = count - take % count;
        if from == count {
            return;
        }
        if row::shift(&mut self.page, &mut right, from, &rules).unwrap() {
            right_model[0].0 = between;
            let mut moved = self.model.split_off(from);
            moved[0].0.clear();
            moved.append(&mut right_model);
            check(&self.order, &right, &moved);
        }
    }

    fn remove_range(&mut self, from: usize, to: usize) {
        branch::remove_range(&mut self.page, from, to).unwrap();
        self.model.drain(from..to);
        if let Some(first) = self.model.first_mut() {
            first.0.clear();
        }
    }

    fn set_separator(&mut self, at: usize, separator: Vec<u8>) {
        let above = |i: usize| {
            self.model.get(i).is_none_or(|m| compare(&self.order, &separator, &m.0).is_lt())
        };
        let in_place = !separator.is_empty()
            && above(at + 1)
            && (at == 1 || compare(&self.order, &self.model[at - 1].0, &separator).is_lt());
        if !in_place {
            return;
        }
        let before = self.page.clone();
        if branch::set_separator(&mut self.page, at, &separator).unwrap() {
            let old = std::mem::replace(&mut self.model[at].0, separator);
            // What was there fits again.
            if at % 3 != 1 {
                assert!(branch::set_separator(&mut self.page, at, &old).unwrap());
                self.model[at].0 = old;
            }
        } else {
            assert!(self.page == before);
        }
    }

    fn apply(&mut self, op: Op) {
        let count = self.model.len();
        let max = max_key(self.page.len());
        match op {
            Op::Put { key, append } => self.put(key_of(key, max), append),
            Op::Remove { at } if count > 1 => {
                branch::remove(&mut self.page, at % count).unwrap();
                self.model.remove(at % count);
                self.model[0].0.clear();
            }
            Op::RemoveRange { from, to } if count > 1 => {
                let from = from % count;
                let to = (from + to).min(count - usize::from(from == 0));
                self.remove_range(from, to);
            }
            Op::SetChild { at, child } => {
                branch::set_child(&mut self.page, at % count, child).unwrap();
                count_child(&mut self.page, at % count, child);
                self.model[at % count].1 = child;
            }
            Op::SetSeparator { at, key } if count > 1 => {
                self.set_separator(1 + at % (count - 1), key_of(key, max));
            }
            Op::SplitAndMove { at, take, down } if count > 1 => {
                self.split_and_move(1 + at % (count - 1), take, down);
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn branches_follow_the_model(
        order in 0usize..3,
        size in 0usize..3,
        counted in any::<bool>(),
        ops in prop::collection::vec(op(), 1..250),
        keys in prop::collection::vec(any::<u64>(), 50),
    ) {
        let mut fixture = Fixture::new(orders()[order].clone(), SIZES[size], counted);
        for op in ops {
            fixture.apply(op);
            check(&fixture.order, &fixture.page, &fixture.model);
        }
        for key in keys {
            let key = key_of(key, 900);
            check_search(&fixture.order, &fixture.page, &fixture.model, &key);
        }
        for (separator, _) in fixture.model.iter().skip(1) {
            // The normal form is its own inverse.
            let mut buf = NormBuf::default();
            let raw = SearchKey::new(&fixture.order, separator, &mut buf).norm().to_vec();
            check_search(&fixture.order, &fixture.page, &fixture.model, &raw);
            let longer = [&raw[..], b"\0"].concat();
            check_search(&fixture.order, &fixture.page, &fixture.model, &longer);
        }
    }

    /// Separators that agree in a long prefix but for one that shares nothing, at either end.
    #[test]
    fn a_stranger_at_the_edge_finds_room(
        order in 0usize..3,
        prefix in 1usize..400,
        tail in 1usize..12,
        first in any::<bool>(),
        append in any::<bool>(),
        counted in any::<bool>(),
    ) {
        let mut fixture = Fixture::new(orders()[order].clone(), 4096, counted);
        let mut n = 0u64;
        loop {
            let mut key = vec![b'm'; prefix];
            key.extend_from_slice(&n.to_be_bytes()[8 - tail.min(8)..]);
            key.resize(prefix + tail, b'x');
            n += 1;
            if tail == 1 && n > 255 {
                break;
            }
            let i = fixture.find(&key).unwrap_err();
            if !branch::insert(&mut fixture.page, i, &key, n).unwrap() {
                break;
            }
            count_child(&mut fixture.page, i, n);
            fixture.model.insert(i, (key, n));
        }
        let stranger = vec![if first { b'a' } else { b'z' }; max_key(4096)];
        fixture.put(stranger, append);
        check(&fixture.order, &fixture.page, &fixture.model);
    }
}
