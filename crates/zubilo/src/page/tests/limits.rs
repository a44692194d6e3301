//! The largest records: two always fit a page, and a split always makes room for one more.

use super::super::row::{New, Node, Row, Rules, shift};
use super::super::{
    Branch, HEADER, Kind, Leaf, NewValue, ValueKind, branch, header, leaf, max_inline, max_key,
};
use super::{ALIGNS, SIZES, orders};

#[test]
fn two_maximal_records_fit_a_leaf() {
    for (size, align, order) in combinations() {
        for key_len in [1, 13, max_key(size) - 7, max_key(size)] {
            let mut page = vec![0; size];
            header::init(&mut page, Kind::Leaf, 0, 1, order.is_custom());
            for i in 0..2 {
                // Descending first bytes suit all orders but the custom one, whose order is its own.
                let key = vec![if order.is_custom() { b'b' - i } else { b'a' + i }; key_len];
                let len = max_inline(size) - key_len;
                let rules = Rules::of_leaves(&order, align);
                let value = NewValue::room(ValueKind::Inline, len);
                assert!(leaf::insert(&mut page, i.into(), &rules, &key, value).unwrap());
            }
            Leaf::new(&page).unwrap().check(&order).unwrap();
        }
    }
}

fn combinations() -> impl Iterator<Item = (usize, usize, super::Order)> {
    let pairs = SIZES.into_iter().flat_map(|size| ALIGNS.map(|align| (size, align)));
    pairs.flat_map(|(size, align)| orders().map(|order| (size, align, order)))
}

/// Keys of increasing rank in every order of the tests: of one length, by the two outer bytes.
fn ranked(order: &super::Order, rank: u8, len: usize) -> Vec<u8> {
    let mut key = vec![b'k'; len];
    let byte = if order.is_custom() { 255 - rank } else { rank };
    key[0] = byte;
    key[len - 1] = byte;
    key
}

#[test]
fn a_split_makes_room_for_a_maximal_record_anywhere() {
    for (size, align, order) in combinations() {
        for (key_len, value_len) in [(16, size / 40), (200, size / 9), (900, size / 4), (2, 0)] {
            let mut page = vec![0; size];
            header::init(&mut page, Kind::Leaf, 0, 1, order.is_custom());
            let mut count = 0;
            while count < 120 {
                let key = ranked(&order, 2 * count + 1, key_len);
                let at = usize::from(count);
                let rules = Rules::of_leaves(&order, align);
                let value = NewValue::room(ValueKind::Run, value_len);
                if !leaf::insert(&mut page, at, &rules, &key, value).unwrap() {
                    break;
                }
                count += 1;
            }
            // A page that is not full is never split for want of room.
            for i in (0..=count).filter(|_| count < 120) {
                let most = max_inline(size) - key_len;
                for len in [most, size / 3, size / 4, size / 4 - 40 - key_len.min(900), 0] {
                    split_and_insert(&page, i, &order, align, key_len, len.min(most));
                }
            }
        }
    }
}

fn split_and_insert(
    page: &[u8],
    i: u8,
    order: &super::Order,
    align: usize,
    key_len: usize,
    len: usize,
) {
    let (mut left, mut right) = (page.to_vec(), vec![0; page.len()]);
    let key = ranked(order, 2 * i, key_len);
    let size = leaf::footprint(key_len, len, align);
    header::init_like(&mut right, &left).unwrap();
    let rules = Rules::of_leaves(order, align);
    let i = usize::from(i);
    let node = |page| Node::on_level(page, 0).unwrap();
    let new = New { key: &key, size, index: i };
    let both = Row::new(node(&left), node(&right), rules, Some(new));
    let cut = both.even(page.len() - HEADER).unwrap().expect("a split makes room");
    assert!(shift(&mut left, &mut right, cut.keep, &rules).unwrap());
    let (to, i) = if i < cut.at { (&mut left, i) } else { (&mut right, i - cut.at) };
    // As a rule without giving up the prefix.
    let value = NewValue::room(ValueKind::Inline, len);
    assert!(leaf::insert(to, i, &rules, &key, value).unwrap(), "room after a split");
    for page in [left, right] {
        let leaf = Leaf::new(&page).unwrap();
        leaf.check(order).unwrap();
        assert!(leaf.count() > 0);
    }
}

#[test]
fn a_branch_of_maximal_separators_holds_three_children_and_can_be_split() {
    for size in SIZES {
        for (order, counted) in orders().into_iter().flat_map(|o| [(o.clone(), false), (o, true)]) {
            let mut page = vec![0; size];
            branch::init(&mut page, 1, 1, order.is_custom(), counted);
            branch::set_first(&mut page, 10).unwrap();
            let separator = |rank| ranked(&order, rank, max_key(size));
            let mut count = 1;
            // As many as fit, of odd rank: in the largest pages more than three.
            while branch::insert(&mut page, count, &separator(2 * count as u8 + 1), 1).unwrap() {
                count += 1;
            }
            assert!(count >= 3, "{count} children");
            Branch::new(&page).unwrap().check(&order).unwrap();
            // One more at each place, and appended.
            for (i, append) in (1..=count).map(|i| (i, false)).chain([(count, true)]) {
                let at = branch::split_point(&page, i, max_key(size), append).unwrap();
                let (mut left, mut right) = (page.clone(), page.clone());
                branch::remove_range(&mut left, at, count).unwrap();
                branch::remove_range(&mut right, 0, at).unwrap();
                let new = separator(2 * i as u8);
                let (to, i) = if i <= at { (&mut left, i) } else { (&mut right, i - at) };
                assert!(branch::insert(to, i, &new, 2).unwrap(), "child {i} after a split");
                for page in [left, right] {
                    Branch::new(&page).unwrap().check(&order).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_key_longer_than_its_field_finds_no_room() {
    let mut page = vec![0; 65536];
    header::init(&mut page, Kind::Leaf, 0, 1, false);
    let (order, room) = (&orders()[0], |len| NewValue::room(ValueKind::Inline, len));
    let rules = Rules::of_leaves(order, 1);
    assert!(!leaf::insert(&mut page, 0, &rules, &[7; 16384], room(0)).unwrap());
    assert!(!leaf::insert(&mut page, 0, &rules, &[7; 1], room(65536)).unwrap());
}
