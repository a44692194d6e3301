//! Orders, separators, headers, and the search among heads.

use proptest::prelude::*;

use super::super::header::Origin;
use super::super::key::head_after;
use super::super::{Damage, Kind, NormBuf, SearchKey, header, key::same, search, separator};
use super::{key_of, orders};

proptest! {
    #[test]
    fn heads_are_found_like_by_partition_point(
        mut heads in prop::collection::vec(0u32..60, 0..700),
        behind in prop::collection::vec(any::<u8>(), 0..2500),
        wide in any::<bool>(),
        key in 0u32..61,
    ) {
        let scale = if wide { u32::MAX / 60 } else { 1 };
        heads.iter_mut().for_each(|h| *h *= scale);
        heads.sort_unstable();
        let key = key.saturating_mul(scale);
        let mut bytes: Vec<u8> = heads.iter().flat_map(|h| h.to_le_bytes()).collect();
        bytes.extend(behind);
        let lower = heads.partition_point(|h| *h < key);
        prop_assert_eq!(search::lower(&bytes, heads.len(), key), lower);
    }

    #[test]
    fn heads_are_the_padded_start_of_what_is_behind_the_prefix(
        key in prop::collection::vec(any::<u8>(), 0..12),
        prefix in 0usize..14,
    ) {
        let mut padded = [0; 4];
        let rest = key.get(prefix..).unwrap_or_default();
        padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        prop_assert_eq!(head_after(&key, prefix), u32::from_be_bytes(padded));
    }

    #[test]
    fn strings_are_the_same_when_they_are_equal(
        a in prop::collection::vec(0u8..2, 0..20),
        b in prop::collection::vec(0u8..2, 0..20),
        at in 0usize..20,
    ) {
        prop_assert_eq!(same(&a, &b), a == b);
        let mut c = a.clone();
        prop_assert!(same(&a, &c));
        if let Some(byte) = c.get_mut(at) {
            *byte += 1;
            prop_assert!(!same(&a, &c));
        }
    }

    #[test]
    fn heads_in_no_order_give_an_answer_within_bounds(
        bytes in prop::collection::vec(any::<u8>(), 0..3200),
        count in 0usize..800,
        key in any::<u32>(),
    ) {
        prop_assert!(search::lower(&bytes, count, key) <= count);
    }

    #[test]
    fn separators_are_short_and_in_between(a in any::<u64>(), b in any::<u64>()) {
        for order in orders() {
            let (mut left, mut right) = (key_of(a, 900), key_of(b, 900));
            if order.compare(&left, &right).is_eq() {
                continue;
            }
            if order.compare(&left, &right).is_gt() {
                std::mem::swap(&mut left, &mut right);
            }
            let mut out = vec![1];
            separator(&order, &left, &right, &mut out);
            let (mut x, mut y) = (NormBuf::default(), NormBuf::default());
            let left = SearchKey::new(&order, &left, &mut x).norm();
            let right = SearchKey::new(&order, &right, &mut y).norm();
            if order.is_custom() {
                prop_assert_eq!(&out[..], right);
                continue;
            }
            prop_assert!(left < &out[..] && &out[..] <= right);
            prop_assert!(left >= &out[..out.len() - 1]);
        }
    }

    #[test]
    fn normal_forms_keep_the_order(a in any::<u64>(), b in any::<u64>()) {
        for order in orders().into_iter().take(2) {
            for (a, b) in [
                (key_of(a, 900), key_of(b, 900)),
                (a.to_le_bytes().to_vec(), b.to_le_bytes().to_vec()),
            ] {
                let (mut x, mut y) = (NormBuf::default(), NormBuf::default());
                let (p, q) =
                    (SearchKey::new(&order, &a, &mut x), SearchKey::new(&order, &b, &mut y));
                prop_assert_eq!(p.norm().cmp(q.norm()), order.compare(&a, &b));
            }
        }
        let (x, y) = (a.to_le_bytes(), b.to_le_bytes());
        prop_assert_eq!(orders()[1].compare(&x, &y), a.cmp(&b));
    }
}

#[test]
fn a_seal_is_verified() {
    let mut page = vec![0; 4096];
    header::init(&mut page, Kind::Leaf, 0, 5, true);
    let sum = header::seal(&mut page, 12, Origin { birth: 34, opening: 56 });
    assert_eq!(header::opening(&page), 56);
    assert_eq!(sum, header::checksum(&page));
    assert_eq!((header::number(&page), header::birth(&page), header::table(&page)), (12, 34, 5));
    assert_eq!(header::verify(&page, 12), Ok(()));
    assert!(matches!(header::verify(&page, 13), Err(Damage(_))));
    for at in [8, 16, 24, 47, 48, 4095] {
        page[at] ^= 4;
        assert!(header::verify(&page, 12).is_err());
        page[at] ^= 4;
    }
}
