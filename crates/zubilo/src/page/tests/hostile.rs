//! No bytes of a page make any function panic, hang or read outside; results may be anything.

use proptest::prelude::*;

use super::super::exercise::{change_everything, read_everything};
use super::super::packed;
use super::super::quick::{self, ByteKey, Level, Miss, NumberKey};
use super::super::row::Rules;
use super::super::{Branch, HEADER, Kind, Leaf, NewValue, NormBuf, Order, SearchKey, ValueKind};
use super::super::{branch, header, leaf, max_key};
use super::{key_of, orders};

/// A sane page of a kind, with a handful of entries.
fn sane(kind: Kind, order: &Order, seed: u64, entries: u64) -> Vec<u8> {
    let mut page = vec![0; 4096];
    match kind {
        Kind::Leaf => header::init(&mut page, kind, 0, 1, order.is_custom()),
        Kind::Branch => {
            branch::init(&mut page, 1, 1, order.is_custom(), seed.is_multiple_of(2));
            branch::set_first(&mut page, 1).unwrap();
        }
        Kind::Packed => {
            let size = if seed.is_multiple_of(2) { 8 } else { 0 };
            assert!(packed::init(&mut page, 1, order.is_custom(), size))
        }
    }
    for n in 0..entries {
        let key = key_of(seed.wrapping_add(n * 7 * 0x9E37), 300);
        let mut buf = NormBuf::default();
        let key = SearchKey::new(order, &key, &mut buf);
        match kind {
            Kind::Leaf => {
                if let Err(i) = Leaf::new(&page).unwrap().search(order, &key).unwrap() {
                    let kind = if n.is_multiple_of(2) { ValueKind::Run } else { ValueKind::Inline };
                    let (rules, room) = (Rules::of_leaves(order, 1), NewValue::room(kind, 32));
                    let _ = leaf::insert(&mut page, i, &rules, key.raw(), room);
                }
            }
            Kind::Branch => {
                let i = Branch::new(&page).unwrap().search(order, &key).unwrap();
                let _ = branch::insert(&mut page, i + 1, key.norm(), n);
            }
            Kind::Packed => {
                let _ = packed::insert(&mut page, n as usize, &n.to_be_bytes());
            }
        }
    }
    page
}

/// What the quick parse finds in a page is what the careful one finds.
fn quick_agrees(page: &[u8], order: &Order, key: &SearchKey<'_>) {
    let number = <[u8; 8]>::try_from(key.norm()).map(|norm| NumberKey(u64::from_be_bytes(norm)));
    if let Ok(branch) = Branch::new(page) {
        let level = Level::of_branches(2).next().unwrap();
        let way = quick::way(page, level, &ByteKey::new(key.norm()));
        let way_of_number = number.ok().and_then(|number| quick::way(page, level, &number));
        for way in [way, way_of_number].into_iter().flatten() {
            assert_eq!(branch.search(order, key), Ok(way.index));
            assert_eq!((branch.child(way.index), branch.count()), (Ok(way.child), way.count));
        }
        assert_eq!(quick::child_among_many(page, level, &ByteKey::new(key.norm())), None);
    }
    // A tree has no empty leaf. In that of a test, which has no checksum either, the header looks like a record of the
    // empty key.
    if let Ok(leaf) = Leaf::new(page)
        && leaf.count() > 0
    {
        let found = leaf.find(order, key).unwrap();
        let held = found.filter(|entry| entry.kind == ValueKind::Inline).map(|entry| entry.value);
        let place = quick::place(page, &ByteKey::new(key.norm()));
        assert!(place != Err(Miss::Absent) || found.is_none());
        let value = place.ok().and_then(|at| quick::value_at(page, at, &ByteKey::new(key.raw())));
        assert!(value.is_none() || value == held);
        if let Ok(number) = number {
            let of_number = quick::place(page, &number);
            assert!(of_number == Err(Miss::Unsure) || of_number == place);
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Leaf), Just(Kind::Branch), Just(Kind::Packed)]
}

/// Positions to damage: mostly in header and arrays, where the lies are.
fn damage() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let at = prop_oneof![4 => 24usize..48, 3 => 48usize..400, 1 => 48usize..4096];
    let byte = prop_oneof![Just(0), Just(1), Just(0xFF), any::<u8>()];
    prop::collection::vec((at, byte), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn damaged_pages_are_survived(
        kinds in (kind(), kind()),
        order in 0usize..3,
        seeds in (any::<u64>(), any::<u64>(), 0u64..60),
        damage in damage(),
        args in (0usize..70, 0usize..70),
        key in any::<u64>(),
    ) {
        let order = &orders()[order];
        let (seed, other_seed, entries) = seeds;
        let mut page = sane(kinds.0, order, seed, entries);
        let mut other = sane(kinds.1, order, other_seed, 20);
        for (n, (at, byte)) in damage.into_iter().enumerate() {
            if n % 4 == 3 { other[at] = byte } else { page[at] = byte }
        }
        let key = key_of(key, max_key(4096));
        read_everything(&page, order, &[key.clone(), key_of(seed, 300)]);
        change_everything(&page, &other, order, args, &key);
    }

    #[test]
    fn quick_reads_find_what_careful_ones_do(
        kind in kind(),
        order in 0usize..3,
        (seed, entries) in (any::<u64>(), 0u64..60),
        which in prop::collection::vec((0u64..60, any::<bool>()), 1..8),
    ) {
        let order = &orders()[order];
        let page = sane(kind, order, seed, entries);
        for (n, is_there) in which {
            let mut key = key_of(seed.wrapping_add(n * 7 * 0x9E37), 300);
            if !is_there {
                key.push(1);
            }
            let mut buf = NormBuf::default();
            quick_agrees(&page, order, &SearchKey::new(order, &key, &mut buf));
        }
    }

    #[test]
    fn random_pages_are_survived(
        kinds in (kind(), kind()),
        order in 0usize..3,
        mut pages in prop::collection::vec(prop::collection::vec(any::<u8>(), 512), 2),
        fields in any::<(u8, u16, u8, bool)>(),
        args in (0usize..300, 0usize..300),
        key in any::<u64>(),
    ) {
        let order = &orders()[order];
        for (page, kind) in pages.iter_mut().zip([kinds.0, kinds.1]) {
            *page = page.repeat(8);
            page[24] = kind as u8;
            // Small counts and prefixes pass the first checks.
            page[28..32].copy_from_slice(&[fields.0, 0, fields.2 % 64, 0]);
            page[32..36].copy_from_slice(&u32::from(fields.1).to_le_bytes());
            if fields.3 {
                page[36..40].fill(0);
                page[44..48].copy_from_slice(&8u32.to_le_bytes());
            }
        }
        let key = key_of(key, max_key(4096));
        let other = pages.pop().unwrap();
        let page = pages.pop().unwrap();
        read_everything(&page, order, std::slice::from_ref(&key));
        change_everything(&page, &other, order, args, &key);
    }
}

#[test]
fn a_page_of_one_byte_value_is_survived() {
    for byte in 0..=255 {
        for kind in [Kind::Leaf, Kind::Branch, Kind::Packed] {
            let mut page = vec![byte; 4096];
            page[24] = kind as u8;
            for order in orders() {
                read_everything(&page, &order, &[vec![byte; 9]]);
                change_everything(&page, &page, &order, (0, 5), &[byte; HEADER]);
            }
        }
    }
}
