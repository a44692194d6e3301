//! Time of searches and changes inside one page; pages are in the CPU's caches.
//!
//! The page module is pure functions over bytes and private to the library, so it is compiled in.

#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

#[allow(dead_code, unreachable_pub)]
#[path = "../src/num.rs"]
mod num;
#[allow(dead_code, unused_imports)]
#[path = "../src/page/mod.rs"]
mod page;
#[allow(dead_code, unfulfilled_lint_expectations, unreachable_pub, unused_imports)]
#[path = "../src/planted.rs"]
mod planted;

/// What the page module's documentation refers to.
#[allow(dead_code)]
enum Error {
    Corrupted,
}

use support::Rng;

use page::row::{self, Rules};
use page::{
    Branch, Kind, Leaf, NewValue, NormBuf, Order, SearchKey, ValueKind, branch, header, leaf,
};

const PAGE: usize = 4096;
const SEVENS: [u8; 100] = [7; 100];
/// Pages searched in turn, so that branches are not learnt by heart.
const PAGES: usize = 64;

fn key16(n: u64) -> [u8; 16] {
    let mut key = *b"key-0000\0\0\0\0\0\0\0\0";
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

fn put(page: &mut [u8], order: &Order, key: &[u8], len: usize) -> bool {
    let mut buf = NormBuf::default();
    let search = SearchKey::new(order, key, &mut buf);
    match Leaf::new(page).unwrap().search(order, &search).unwrap() {
        Ok(_) => true,
        Err(i) => {
            let value = NewValue::of(ValueKind::Inline, &SEVENS[..len]);
            leaf::insert(page, i, &Rules::of_leaves(order, 1), key, value).unwrap()
        }
    }
}

fn empty_leaf() -> Vec<u8> {
    let mut page = vec![0; PAGE];
    header::init(&mut page, Kind::Leaf, 0, 1, false);
    page
}

/// Leaves filled with random keys, and the keys in them.
fn leaves(random: &mut Rng, order: &Order, len: usize) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    (0..PAGES)
        .map(|_| {
            let mut page = empty_leaf();
            while put(&mut page, order, &key_for(order, random.next()), len) {}
            let read = Leaf::new(&page).unwrap();
            let keys = (0..read.count()).map(|i| read.key(i).unwrap().to_vec()).collect();
            (page, keys)
        })
        .collect()
}

fn key_for(order: &Order, n: u64) -> Vec<u8> {
    match order {
        Order::Reversed => (n >> 40).to_le_bytes().to_vec(),
        _ => key16(n).to_vec(),
    }
}

fn searches(c: &mut Criterion) {
    let mut random = Rng::new(1);
    for (name, order, len) in [
        ("leaf search 16+100", Order::Bytes, 100),
        ("leaf search 16+8", Order::Bytes, 8),
        ("leaf search integer+8", Order::Reversed, 8),
    ] {
        let pages = leaves(&mut random, &order, len);
        let mut probes = Vec::new();
        for _ in 0..4096 {
            let p = random.next() as usize % PAGES;
            let keys = &pages[p].1;
            probes.push((p, keys[random.next() as usize % keys.len()].clone()));
        }
        let mut n = 0;
        c.bench_function(name, |b| {
            b.iter(|| {
                n += 1;
                let (p, key) = &probes[n % probes.len()];
                let mut buf = NormBuf::default();
                let key = SearchKey::new(&order, key, &mut buf);
                let leaf = Leaf::new(&pages[*p].0).unwrap();
                let found = leaf.search(&order, &key).unwrap().unwrap();
                black_box(leaf.entry(found).unwrap().value.len())
            });
        });
    }
}

fn branches(random: &mut Rng) -> Vec<Vec<u8>> {
    (0..PAGES)
        .map(|_| {
            let mut page = vec![0; PAGE];
            branch::init(&mut page, 1, 1, false, false);
            branch::set_first(&mut page, 1).unwrap();
            loop {
                // Six bytes tell apart neighbours of a large tree.
                let separator = &key16(random.next() & 0xFFFF_FFFF_FFFF)[..14];
                let mut buf = NormBuf::default();
                let key = SearchKey::new(&Order::Bytes, separator, &mut buf);
                let i = Branch::new(&page).unwrap().search(&Order::Bytes, &key).unwrap() + 1;
                if !branch::insert(&mut page, i, separator, 9).unwrap() {
                    return page;
                }
            }
        })
        .collect()
}

fn branch_searches(c: &mut Criterion) {
    let mut random = Rng::new(2);
    let pages = branches(&mut random);
    let entries = Branch::new(&pages[0]).unwrap().count();
    let keys: Vec<_> = (0..4096).map(|_| key16(random.next() & 0xFFFF_FFFF_FFFF)).collect();
    let mut n = 0;
    c.bench_function(&format!("branch search {entries}"), |b| {
        b.iter(|| {
            n += 1;
            let mut buf = NormBuf::default();
            let key = SearchKey::new(&Order::Bytes, &keys[n % keys.len()], &mut buf);
            let branch = Branch::new(&pages[n % PAGES]).unwrap();
            let i = branch.search(&Order::Bytes, &key).unwrap();
            black_box(branch.child(i).unwrap())
        });
    });
}

/// Fills a page; the time is that of all its entries.
fn fills(c: &mut Criterion) {
    let mut random = Rng::new(3);
    let mut keys: Vec<_> = (0..30).map(|_| key16(random.next())).collect();
    let mut group = c.benchmark_group("leaf fill of 30 x 16+100");
    group.throughput(Throughput::Elements(keys.len() as u64));
    let fill = |page: &mut Vec<u8>, keys: &[[u8; 16]]| {
        for key in keys {
            assert!(put(page, &Order::Bytes, key, 100));
        }
    };
    let rules = Rules::of_leaves(&Order::Bytes, 1);
    group.bench_function("random", |b| {
        b.iter_batched_ref(empty_leaf, |page| fill(page, &keys), BatchSize::SmallInput);
    });
    keys.sort_unstable();
    group.bench_function("append", |b| {
        b.iter_batched_ref(
            empty_leaf,
            |page| {
                for (i, key) in keys.iter().enumerate() {
                    let value = NewValue::of(ValueKind::Inline, &SEVENS);
                    assert!(leaf::insert(page, i, &rules, key, value).unwrap());
                }
            },
            BatchSize::SmallInput,
        );
    });
    for (i, key) in keys.iter_mut().enumerate() {
        *key = key16(i as u64);
    }
    group.bench_function("append of dense keys", |b| {
        b.iter_batched_ref(
            empty_leaf,
            |page| {
                for (i, key) in keys.iter().enumerate() {
                    let value = NewValue::of(ValueKind::Inline, &SEVENS);
                    assert!(leaf::insert(page, i, &rules, key, value).unwrap());
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn splits(c: &mut Criterion) {
    let mut random = Rng::new(4);
    let (page, keys) = leaves(&mut random, &Order::Bytes, 100).swap_remove(0);
    let mut right = vec![0; PAGE];
    let order = Order::Bytes;
    let rules = Rules { order: &order, align: 1, between: &[] };
    let split = |page: &mut [u8], right: &mut [u8], at| {
        header::init_like(right, page).and_then(|()| row::shift(page, right, at, &rules))
    };
    c.bench_function("leaf split of 30 x 16+100", |b| {
        b.iter_batched_ref(
            || page.clone(),
            |page| split(page, &mut right, keys.len() / 2),
            BatchSize::SmallInput,
        );
    });
    c.bench_function("leaf remove and insert 16+100", |b| {
        let mut page = page.clone();
        let mut n = 0;
        b.iter(|| {
            n = (n + 7) % keys.len();
            leaf::remove(&mut page, n).unwrap();
            let (rules, value) =
                (Rules::of_leaves(&order, 1), NewValue::of(ValueKind::Inline, &SEVENS));
            assert!(leaf::insert(&mut page, n, &rules, &keys[n], value).unwrap());
        });
    });
    let page = branches(&mut random).swap_remove(0);
    let mut right = vec![0; PAGE];
    c.bench_function("branch split", |b| {
        b.iter_batched_ref(
            || page.clone(),
            |page| split(page, &mut right, 90),
            BatchSize::SmallInput,
        );
    });
    c.bench_function("branch remove and insert", |b| {
        let mut page = page.clone();
        let mut n = 0;
        let mut separator = Vec::new();
        b.iter(|| {
            n = n % 150 + 7;
            Branch::new(&page).unwrap().separator(n, &mut separator).unwrap();
            branch::remove(&mut page, n).unwrap();
            assert!(branch::insert(&mut page, n, &separator, 5).unwrap());
        });
    });
}

criterion_group!(benches, searches, branch_searches, fills, splits);
criterion_main!(benches);
