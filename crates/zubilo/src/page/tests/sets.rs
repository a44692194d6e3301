//! Small sets of duplicates against sorted lists, inside records that grow and shrink with them,
//! and against arbitrary bytes.

use proptest::prelude::*;

use super::super::packed::{self, Packed};
use super::super::row::Rules;
use super::super::{Kind, Leaf, NewValue, Order, ValueKind, header, leaf};
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
    packed::build_record(size, first.iter().map(|v| &v[..]), &mut bytes);
    for n in 0..9u8 {
        let kind = if n == 4 { ValueKind::Duplicates } else { ValueKind::Inline };
        let value = if n == 4 { bytes.clone() } else { vec![n; 90] };
        let key = [b"key ", &[b'a' + n][..]].concat();
        let (rules, value) = (Rules::of_leaves(order, 1), NewValue::of(kind, &value));
        assert!(leaf::insert(&mut page, usize::from(n), &rules, &key, value).unwrap());
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

/// A set becomes a page and a set again by copies.
fn check_copies(value: &[u8], size: usize, order: &Order) {
    let mut page = vec![0xEE; 4096];
    assert!(packed::init(&mut page, 1, order.is_custom(), size));
    let count = packed::fill_from_record(&mut page, value).unwrap();
    let packed = Packed::new(&page).unwrap();
    packed.check(order).unwrap();
    packed::check_header(&page, order).unwrap();
    assert_eq!(packed.count(), count);
    let mut back = Vec::new();
    packed::to_record(&packed, &mut back);
    assert_eq!(back, value);
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
            let set = Packed::in_record(bytes).unwrap();
            let found = set.search(order, &value).unwrap();
            prop_assert_eq!(found, model.binary_search_by(|v| order.compare(v, &value)));
            match found {
                Ok(i) if op == 0 && model.len() > 2 => {
                    let len = packed::remove_in_record(bytes, i).unwrap();
                    let fits = leaf::resize_value(&mut page, at, &orders()[0], len);
                    prop_assert!(fits.unwrap().is_some());
                    model.remove(i);
                }
                Err(i) => {
                    let len = old_len + packed::footprint(size, value.len());
                    let more = leaf::resize_value(&mut page, at, &orders()[0], len);
                    if let Some(bytes) = more.unwrap() {
                        packed::insert_in_record(bytes, old_len, i, &value).unwrap();
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
            let value = leaf.entry(at).unwrap().value;
            let set = Packed::in_record(value).unwrap();
            set.check(order).unwrap();
            let items: Vec<&[u8]> = (0..set.count()).map(|i| set.item(i).unwrap()).collect();
            prop_assert_eq!(items, model.iter().map(|v| &v[..]).collect::<Vec<_>>());
            prop_assert_eq!(set.len_in_record(), value.len());
            check_copies(value, size, order);
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
        if let Ok(set) = Packed::in_record(&bytes) {
            let _ = (set.check(order), set.search(order, &item), set.item(i), set.of_one_size());
            let mut grown = bytes.clone();
            grown.resize(bytes.len() + packed::footprint(set.item_size(), item.len()), 0);
            let _ = packed::insert_in_record(&mut grown, bytes.len(), i, &item);
            let mut page = vec![0; 4096];
            if packed::init(&mut page, 1, false, set.item_size()) {
                let _ = packed::fill_from_record(&mut page, &bytes);
            }
        }
        let _ = packed::remove_in_record(&mut bytes.clone(), i);
    }
}
