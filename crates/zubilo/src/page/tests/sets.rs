//! Small sets of duplicates against sorted lists, inside records that grow and shrink with them,
//! and against arbitrary bytes.

use proptest::prelude::*;

use super::super::set::{self, Set};
use super::super::{Kind, Leaf, ValueKind, header, leaf};
use super::{key_of, orders};

fn value_of(seed: u64, size: usize) -> Vec<u8> {
    let mut value = key_of(seed, 60);
    if size > 0 {
        value.resize(size, 3);
    }
    value
}

/// A leaf with some records, a set of two under one of them, and the index of that.
fn leaf_with_set(first: &[Vec<u8>; 2], size: usize) -> (Vec<u8>, usize) {
    let order = &orders()[0];
    let mut page = vec![0; 4096];
    header::init(&mut page, Kind::Leaf, 0, 1, false);
    let mut bytes = Vec::new();
    set::build(size, first.iter().map(|v| &v[..]), &mut bytes);
    for n in 0..9u8 {
        let kind = if n == 4 { ValueKind::Duplicates } else { ValueKind::Inline };
        let value = if n == 4 { bytes.clone() } else { vec![n; 90] };
        let key = [b"key ", &[b'a' + n][..]].concat();
        let to = leaf::insert(&mut page, usize::from(n), order, &key, kind, value.len(), 1);
        to.unwrap().unwrap().copy_from_slice(&value);
    }
    (page, 4)
}

fn check_neighbours(page: &[u8]) {
    let leaf = Leaf::new(page).unwrap();
    leaf.check(&orders()[0]).unwrap();
    for n in (0..9).filter(|n| *n != 4) {
        assert_eq!(leaf.entry(n).unwrap().value, vec![n as u8; 90]);
    }
}

proptest! {
    #[test]
    fn sets_follow_the_model(
        order in 0usize..3,
        size in prop_oneof![Just(0usize), 1usize..30],
        seeds in prop::collection::vec((any::<u64>(), 0u8..3), 0..200),
    ) {
        let order = &orders()[order];
        let mut model = vec![value_of(0, size), value_of(1 << 20, size)];
        model.sort_by(|a, b| order.compare(a, b));
        model.dedup();
        prop_assume!(model.len() == 2);
        let first = [model[0].clone(), model[1].clone()];
        let (mut page, at) = leaf_with_set(&first, size);
        for (seed, op) in seeds {
            let value = value_of(seed % 900, size);
            let bytes = leaf::value_mut(&mut page, at).unwrap();
            let old_len = bytes.len();
            let set = Set::new(bytes).unwrap();
            let found = set.search(order, &value).unwrap();
            prop_assert_eq!(found, model.binary_search_by(|v| order.compare(v, &value)));
            match found {
                Ok(i) if op == 0 && model.len() > 2 => {
                    let len = set::remove(bytes, i).unwrap();
                    let fits = leaf::resize_value(&mut page, at, &orders()[0], len);
                    prop_assert!(fits.unwrap().is_some());
                    model.remove(i);
                }
                Err(i) => {
                    let len = set.len_with(value.len());
                    let more = leaf::resize_value(&mut page, at, &orders()[0], len);
                    if let Some(bytes) = more.unwrap() {
                        set::insert(bytes, old_len, i, &value).unwrap();
                        model.insert(i, value);
                    } else {
                        let used = Leaf::new(&page).unwrap().used();
                        prop_assert!(used + len - old_len > 4096 - 48);
                    }
                }
                Ok(_) => {}
            }
            check_neighbours(&page);
            let leaf = Leaf::new(&page).unwrap();
            let set = Set::new(leaf.entry(at).unwrap().value).unwrap();
            set.check(order).unwrap();
            let items: Vec<&[u8]> = (0..set.count()).map(|i| set.item(i).unwrap()).collect();
            prop_assert_eq!(items, model.iter().map(|v| &v[..]).collect::<Vec<_>>());
            let bytes = model.iter().map(Vec::len).sum();
            let len = leaf.entry(at).unwrap().value.len();
            prop_assert_eq!(set::len_of(size, model.len(), bytes), len);
        }
    }

    #[test]
    fn arbitrary_bytes_are_survived(
        bytes in prop::collection::vec(prop_oneof![0u8..5, any::<u8>()], 0..80),
        i in 0usize..20,
        item in prop::collection::vec(any::<u8>(), 0..9),
        order in 0usize..3,
    ) {
        let order = &orders()[order];
        if let Ok(set) = Set::new(&bytes) {
            let _ = (set.check(order), set.search(order, &item), set.item(i), set.packed());
            let mut grown = bytes.clone();
            grown.resize(set.len_with(item.len()), 0);
            let _ = set::insert(&mut grown, bytes.len(), i, &item);
        }
        let _ = set::remove(&mut bytes.clone(), i);
    }
}
