//! A record put after all others by one look stands as an ordinary insertion leaves it.

use proptest::prelude::*;

use super::super::row::Rules;
use super::super::{
    HEADER, Kind, Leaf, NewValue, NormBuf, SearchKey, ValueKind, append, header, leaf,
};
use super::{key_of, orders};

proptest! {
    #[test]
    fn an_append_is_an_insertion_at_the_end(
        seeds in prop::collection::vec((any::<u64>(), 0usize..40), 1..120),
        numbers in any::<bool>(),
        align in prop::sample::select(vec![1usize, 2, 8]),
    ) {
        for order in orders() {
            let mut keys: Vec<(Vec<u8>, usize)> = seeds
                .iter()
                .map(|&(seed, len)| {
                    let number = || (seed % 1000).to_le_bytes().to_vec();
                    (if numbers { number() } else { key_of(seed, 200) }, len)
                })
                .collect();
            keys.sort_by(|a, b| order.compare(&a.0, &b.0));
            let mut page = vec![0; 4096];
            header::init(&mut page, Kind::Leaf, 0, 5, order.is_custom());
            for (key, len) in keys {
                let (mut buf, before) = (NormBuf::default(), page.clone());
                let norm = SearchKey::new(&order, &key, &mut buf).norm();
                let count = Leaf::new(&page).unwrap().count();
                let mut inserted = page.clone();
                let rules = Rules::of_leaves(&order, align);
                let sevens = vec![7; len];
                let value = NewValue::of(ValueKind::Inline, &sevens);
                let room = leaf::insert(&mut inserted, count, &rules, &key, value).unwrap();
                let appended = append(&mut page, &key, norm, len, align).map(|to| to.fill(7));
                if appended.is_none() {
                    prop_assert_eq!(&page, &before);
                    if !room || Leaf::new(&inserted).unwrap().check(&order).is_err() {
                        // Full, or the key was there.
                        continue;
                    }
                    page = inserted;
                    continue;
                }
                prop_assert!(room);
                prop_assert!(page == inserted);
                Leaf::new(&page).unwrap().check(&order).unwrap();
            }
        }
    }

    #[test]
    fn appends_to_any_bytes_are_survived(
        mut page in prop::collection::vec(any::<u8>(), 4096),
        count in 0u16..800,
        prefix in 0u16..80,
        heap in 0u32..5000,
        key in prop::collection::vec(any::<u8>(), 0..100),
        len in 0usize..3000,
    ) {
        page[24..28].copy_from_slice(&[2, 0, 0, 0]);
        page[28..30].copy_from_slice(&count.to_le_bytes());
        page[30..32].copy_from_slice(&prefix.to_le_bytes());
        page[32..36].copy_from_slice(&heap.to_le_bytes());
        let norm: Vec<u8> = match page.get(HEADER..HEADER + usize::from(prefix)) {
            Some(start) => [start, &key[..]].concat(),
            None => key,
        };
        if let Some(value) = append(&mut page, &norm, &norm, len, 1) {
            prop_assert_eq!(value.len(), len);
        }
    }
}

#[test]
fn ascending_keys_are_appended() {
    let order = &orders()[0];
    let mut page = vec![0; 4096];
    header::init(&mut page, Kind::Leaf, 0, 5, false);
    for i in 0..25u128 {
        let key = i.to_be_bytes();
        // The second key cuts the prefix, which the first has given the page.
        if i < 2 {
            assert!(append(&mut page, &key, &key, 100, 1).is_none());
            let rules = Rules::of_leaves(order, 1);
            let value = NewValue::room(ValueKind::Inline, 100);
            assert!(leaf::insert(&mut page, i as usize, &rules, &key, value).unwrap());
        } else {
            append(&mut page, &key, &key, 100, 1).unwrap().fill(1);
        }
    }
    let leaf = Leaf::new(&page).unwrap();
    leaf.check(order).unwrap();
    assert_eq!(leaf.count(), 25);
    // Not after the last.
    let key = 24u128.to_be_bytes();
    assert!(append(&mut page, &key, &key, 1, 1).is_none());
}
