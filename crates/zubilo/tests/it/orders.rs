//! Tables in every order of keys against a sorted list, with the full check after each commit and
//! a compacted copy at the end. `ZUBILO_SEED` repeats a run.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::common::{Rng, check, rng};
use zubilo::{Env, Error, KeyOrder, Options, TableOptions};

/// Short keys first, among those of one length the greater bytes first.
fn odd_order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| b.cmp(a))
}

type Compare = fn(&[u8], &[u8]) -> Ordering;

/// A kind of table: its options, its order, its keys.
struct Kind {
    name: &'static str,
    options: TableOptions,
    compare: Compare,
    key: fn(&mut Rng) -> Vec<u8>,
}

fn text_key(rng: &mut Rng) -> Vec<u8> {
    let n = rng.below(4000);
    match rng.below(10) {
        0 => vec![b'z'; rng.below(1905) as usize],
        1..=3 => format!("{n:05}.www.example.org/a/common/ending").into_bytes(),
        4..=6 => format!("a/common/beginning/of/all/these/keys/{n:05}").into_bytes(),
        _ => n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[..rng.below(9) as usize].to_vec(),
    }
}

fn kinds() -> [Kind; 5] {
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    assert_eq!(number(&[0, 1]), 256);
    [
        Kind {
            name: "bytes",
            options: TableOptions::new(),
            compare: |a, b| a.cmp(b),
            key: text_key,
        },
        Kind {
            name: "reversed",
            options: TableOptions::new().key_order(KeyOrder::Reversed),
            compare: |a, b| a.iter().rev().cmp(b.iter().rev()),
            key: text_key,
        },
        Kind {
            name: "integers of 8",
            options: TableOptions::new().key_order(KeyOrder::Integer),
            compare: |a, b| {
                let word = |x: &[u8]| u64::from_le_bytes(x.try_into().unwrap());
                word(a).cmp(&word(b))
            },
            key: |rng| (rng.below(3000) << rng.below(40)).to_le_bytes().to_vec(),
        },
        Kind {
            name: "integers of 4",
            options: TableOptions::new().key_order(KeyOrder::Integer).align_values(4),
            compare: |a, b| {
                let word = |x: &[u8]| u32::from_le_bytes(x.try_into().unwrap());
                word(a).cmp(&word(b))
            },
            key: |rng| ((rng.below(3000) as u32) << rng.below(20)).to_le_bytes().to_vec(),
        },
        Kind {
            name: "custom",
            options: TableOptions::new().compare_keys(odd_order),
            compare: odd_order,
            key: text_key,
        },
    ]
}

type Model = Vec<(Vec<u8>, Vec<u8>)>;

fn find(model: &Model, compare: Compare, key: &[u8]) -> Result<usize, usize> {
    model.binary_search_by(|(k, _)| compare(k, key))
}

fn change(env: &Env, kind: &Kind, model: &mut Model, rng: &mut Rng) {
    let mut write = env.write().unwrap();
    let mut table = write.table_or_create_with(kind.name, &kind.options).unwrap();
    for _ in 0..rng.below(300) {
        let key = (kind.key)(rng);
        let at = find(model, kind.compare, &key);
        match rng.below(20) {
            0..=5 => {
                assert_eq!(table.delete(&key).unwrap(), at.is_ok());
                if let Ok(i) = at {
                    model.remove(i);
                }
            }
            6 if rng.below(10) == 0 => {
                let other = (kind.key)(rng);
                let (Ok(from) | Err(from)) = at;
                let (Ok(to) | Err(to)) = find(model, kind.compare, &other);
                let removed = model.drain(from..to.max(from)).count() as u64;
                assert_eq!(table.delete_range(key..other).unwrap(), removed);
            }
            _ => {
                let value = vec![rng.next() as u8; rng.below(300) as usize];
                table.put(&key, &value).unwrap();
                match at {
                    Ok(i) => model[i].1 = value,
                    Err(i) => model.insert(i, (key, value)),
                }
            }
        }
    }
    write.commit().unwrap();
}

fn compare_all(env: &Env, kind: &Kind, model: &Model, rng: &mut Rng) {
    let read = env.read().unwrap();
    let table = read.table_with(kind.name, &kind.options).unwrap();
    let all: Model = table.iter().map(Result::unwrap).map(|(k, v)| (k.into(), v.into())).collect();
    assert_eq!(all, *model);
    for _ in 0..50 {
        let key = (kind.key)(rng);
        let at = find(model, kind.compare, &key);
        assert_eq!(table.get(&key).unwrap(), at.ok().map(|i| &model[i].1[..]));
        let (Ok(i) | Err(i)) = at;
        let mut cursor = table.cursor();
        let found = cursor.seek(&key).unwrap();
        assert_eq!(found, model.get(i).map(|(k, v)| (&k[..], &v[..])));
        let behind = (Bound::Excluded(&key[..]), Bound::Unbounded);
        let first = table.range::<&[u8]>(behind).next().transpose().unwrap();
        let i = i + usize::from(at.is_ok());
        assert_eq!(first, model.get(i).map(|(k, v)| (&k[..], &v[..])));
    }
    let keys: Vec<Vec<u8>> = (0..100).map(|_| (kind.key)(rng)).collect();
    let many = table.get_many(&keys).unwrap();
    for (key, value) in keys.iter().zip(many) {
        let at = find(model, kind.compare, key);
        assert_eq!(value, at.ok().map(|i| &model[i].1[..]));
    }
}

#[test]
fn tables_of_every_order_agree_with_a_sorted_list() {
    let mut rng = rng();
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("a")).unwrap();
    let mut models = kinds().map(|kind| (kind, Model::new()));
    for _ in 0..12 {
        for (kind, model) in &mut models {
            change(&env, kind, model, &mut rng);
            compare_all(&env, kind, model, &mut rng);
        }
        check(&env, "after a change");
    }
    let copy = dir.path().join("b");
    env.copy_to_path(&copy, true, &mut |_, _| true).unwrap();
    let copied = Options::new().open(&copy).unwrap();
    check(&copied, "the copy");
    for (kind, model) in &models {
        compare_all(&copied, kind, model, &mut rng);
    }
}

#[test]
fn tables_are_opened_as_they_were_created() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("a")).unwrap();
    let custom = TableOptions::new().compare_keys(odd_order);
    let numbers = TableOptions::new().key_order(KeyOrder::Integer);
    let mut write = env.write().unwrap();
    write.create_table("custom", custom.clone()).unwrap().put("a", "1").unwrap();
    write.create_table("numbers", numbers.clone()).unwrap();
    assert!(matches!(write.table_with("custom", &numbers), Err(Error::Incompatible { .. })));
    // Known from its creation.
    write.table("custom").unwrap().put("b", "2").unwrap();
    write.commit().unwrap();

    let mut write = env.write().unwrap();
    assert!(matches!(write.table("custom"), Err(Error::Incompatible { .. })));
    assert!(matches!(write.table_with("numbers", &custom), Err(Error::Incompatible { .. })));
    assert!(matches!(write.table_or_create("custom"), Err(Error::Incompatible { .. })));
    let mut table = write.table_with("custom", &custom).unwrap();
    assert_eq!(table.get("b").unwrap(), Some(&b"2"[..]));
    table.put("bb", "3").unwrap();
    let mut numbers = write.table("numbers").unwrap();
    for len in [0, 3, 5, 9] {
        assert!(matches!(numbers.put(vec![0; len], "x"), Err(Error::Invalid(_))));
    }
    numbers.put([0; 8], "x").unwrap();
    write.commit().unwrap();

    let read = env.read().unwrap();
    assert!(matches!(read.table("custom"), Err(Error::Incompatible { .. })));
    let table = read.table_with("custom", &custom).unwrap();
    let keys: Vec<&[u8]> = table.iter().map(|r| r.unwrap().0).collect();
    assert_eq!(keys, [&b"b"[..], b"a", b"bb"]);
    assert!(table.prefix("b").next().unwrap().is_err());

    let mut write = env.write().unwrap();
    write.rename_table("custom", "other").unwrap();
    assert!(matches!(write.table("other"), Err(Error::Incompatible { .. })));
    write.drop_table("other").unwrap();
    write.commit().unwrap();
    check(&env, "after a change");
}

#[test]
fn a_prefix_in_reversed_order_is_an_ending() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("a")).unwrap();
    let mut write = env.write().unwrap();
    let options = TableOptions::new().key_order(KeyOrder::Reversed);
    let mut table = write.create_table("domains", options).unwrap();
    for name in ["example.org", "www.example.org", "example.com", "org", "mail.example.org"] {
        table.put(name, "").unwrap();
    }
    let found: Vec<&[u8]> = table.prefix(".example.org").map(|r| r.unwrap().0).collect();
    assert_eq!(found, [&b"mail.example.org"[..], b"www.example.org"]);
}
