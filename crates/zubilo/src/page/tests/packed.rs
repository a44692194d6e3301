//! Packed leaves against sorted sets.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::header;
use super::super::packed::{self, Packed};
use super::super::row::{self, Rules};
use super::orders;

fn fresh(item_size: usize) -> Vec<u8> {
    let mut page = vec![0xEE; 4096];
    assert!(packed::init(&mut page, 7, false, item_size));
    page
}

fn check(page: &[u8], model: &BTreeSet<Vec<u8>>) {
    let leaf = Packed::new(page).unwrap();
    packed::check_header(page, &orders()[0]).unwrap();
    leaf.check(&orders()[0]).unwrap();
    assert_eq!(leaf.count(), model.len());
    let all: Vec<u8> = model.iter().flatten().copied().collect();
    if let Some((items, size)) = leaf.of_one_size() {
        assert_eq!((items, size), (&all[..], leaf.item_size()));
    }
    let sizes = (0..model.len()).map(|i| leaf.entry_size(i).unwrap());
    assert_eq!(leaf.used(), sizes.sum::<usize>());
    for (i, item) in model.iter().enumerate() {
        assert_eq!(leaf.item(i).unwrap(), &item[..]);
        assert_eq!(packed::position(page, &orders()[0], item).unwrap(), Ok(i));
    }
    assert!(leaf.item(model.len()).is_err());
}

/// An item of this size, or of any up to 40 bytes if that is 0.
fn item_of(seed: u32, item_size: usize) -> Vec<u8> {
    let len = if item_size > 0 { item_size } else { seed as usize % 41 };
    let mut item = vec![0; len];
    for (to, from) in item.iter_mut().zip(seed.to_be_bytes().iter().rev()) {
        *to = *from;
    }
    item
}

proptest! {
    #[test]
    fn packed_leaves_follow_the_model(
        item_size in 0usize..40,
        ops in prop::collection::vec((any::<u32>(), 0u8..8), 1..900),
    ) {
        let order = &orders()[0];
        let mut page = fresh(item_size);
        let mut model = BTreeSet::new();
        for (seed, op) in ops {
            let item = item_of(seed, item_size);
            match packed::position(&page, order, &item).unwrap() {
                Ok(i) if op == 0 => {
                    packed::remove(&mut page, i).unwrap();
                    assert!(model.remove(&item));
                }
                Ok(_) => assert!(model.contains(&item)),
                Err(i) => {
                    let more = packed::footprint(item_size, item.len());
                    if packed::insert(&mut page, i, &item).unwrap() {
                        assert!(model.insert(item));
                    } else {
                        assert!(Packed::new(&page).unwrap().used() + more > 4096 - 48);
                    }
                }
            }
        }
        check(&page, &model);
        let mut right = fresh(1);
        let at = model.len() / 3;
        let rules = Rules { order, align: 1, between: &[] };
        header::init_like(&mut right, &page).unwrap();
        assert!(row::shift(&mut page, &mut right, at, &rules).unwrap());
        let (low, high): (Vec<_>, Vec<_>) = model.iter().cloned().enumerate().partition(|x| x.0 < at);
        let set = |side: Vec<(usize, Vec<u8>)>| side.into_iter().map(|x| x.1).collect();
        check(&page, &set(low));
        check(&right, &set(high.clone()));
        let (low, all) = (page.clone(), (0, model.len() - at));
        assert!(row::take(&mut page, true, &right, all, &rules).unwrap());
        check(&page, &model);
        packed::remove_range(&mut page, 0, at).unwrap();
        check(&page, &set(high));
        assert!(row::take(&mut right, false, &low, (0, at), &rules).unwrap());
        check(&right, &model);
        // Out of the middle, and into it again.
        let (from, to) = (at / 2, model.len() - at / 2);
        let whole = right.clone();
        packed::remove_range(&mut right, from, to).unwrap();
        let mut rest = model.clone();
        model.iter().skip(from).take(to - from).for_each(|item| assert!(rest.remove(item)));
        check(&right, &rest);
        let others = Packed::new(&whole).unwrap();
        assert!(packed::take(&mut right, from, &others, (from, to)).unwrap());
        check(&right, &model);
    }
}
