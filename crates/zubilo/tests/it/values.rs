//! Keys and values of every length that can be met: nothing, the borders of pages, the limits.

use zubilo::{Durability, Env, Error, Options, TableOptions};

use crate::common::{Rng, check, contents, fresh, number, seed};

const PAGE_SIZES: [u32; 5] = [4096, 8192, 16384, 32768, 65536];

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ len as u64);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.next().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// Lengths around everything that a layout could count in.
fn lengths(page: usize) -> Vec<usize> {
    let mut borders = vec![0, 64, 256, page / 8, page / 4, page / 2];
    // The longest record that a leaf keeps, with short keys and none.
    borders.extend([(page - 48) / 2 - 40, (page - 48) / 2 - 48]);
    borders.extend([1, 2, 3, 16].map(|pages| pages * page));
    let around = |border: usize| (border.saturating_sub(9)..border + 10).step_by(3);
    let mut all: Vec<usize> = borders.iter().flat_map(|b| around(*b)).collect();
    all.extend(borders.iter().flat_map(|b| [b.saturating_sub(1), *b, b + 1]));
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn values_of_every_length() {
    for page in PAGE_SIZES {
        for spill in [false, true] {
            let limit = if spill { 256 << 10 } else { 1 << 30 };
            lengths_in(page, limit);
        }
    }
}

fn lengths_in(page: u32, limit: u64) {
    let (_dir, path) = fresh();
    let options = Options::new().page_size(page).durability(Durability::NoSync).dirty_limit(limit);
    let env = options.open(&path).unwrap();
    let lengths = lengths(page as usize);
    let mut txn = env.write().unwrap();
    let aligned = TableOptions::new().align_values(16);
    for (name, options) in [("put", TableOptions::new()), ("reserve", aligned)] {
        let mut table = txn.create_table(name, options).unwrap();
        for len in &lengths {
            let (key, value) = (len.to_be_bytes(), pattern(*len, 1));
            if name == "put" {
                table.put(key, &value).unwrap();
            } else {
                let place = table.reserve(key, *len).unwrap();
                assert!(place.len() == *len && place.iter().all(|b| *b == 0));
                place.copy_from_slice(&value);
            }
            assert!(table.get(key).unwrap() == Some(&value), "{len} in {page}");
        }
    }
    txn.commit().unwrap();
    check(&env, &format!("page size {page}"));
    // All again after a reopen; each length replaced by the next one, then deleted.
    env.close().unwrap();
    let env = Options::new().dirty_limit(limit).open(&path).unwrap();
    assert_eq!(env.page_size(), page as usize);
    assert_lengths(&env, &lengths, 1);
    let mut txn = env.write().unwrap();
    let mut table = txn.table("put").unwrap();
    for (i, len) in lengths.iter().enumerate() {
        let next = lengths[(i + 1) % lengths.len()];
        table.put(len.to_be_bytes(), pattern(next, 2)).unwrap();
    }
    for (i, len) in lengths.iter().enumerate() {
        let next = lengths[(i + 1) % lengths.len()];
        assert!(table.get(len.to_be_bytes()).unwrap() == Some(&pattern(next, 2)));
        table.put(len.to_be_bytes(), pattern(*len, 3)).unwrap();
    }
    txn.commit().unwrap();
    check(&env, &format!("page size {page}, replaced"));
    let mut txn = env.write().unwrap();
    let mut table = txn.table("reserve").unwrap();
    lengths.iter().for_each(|len| assert!(table.delete(len.to_be_bytes()).unwrap()));
    assert_eq!(table.stats().leaf_pages + table.stats().run_pages, 0);
    txn.commit().unwrap();
    check(&env, &format!("page size {page}, deleted"));
}

fn assert_lengths(env: &Env, lengths: &[usize], seed: u64) {
    let read = env.read().unwrap();
    for name in ["put", "reserve"] {
        let table = read.table(name).unwrap();
        for len in lengths {
            let value = table.get(len.to_be_bytes()).unwrap().unwrap();
            assert!(value == pattern(*len, seed), "{len}");
            // Large ones lie on pages of their own; the others as the table was told.
            let align = match (*len > env.page_size() / 2, name) {
                (true, _) => 4096,
                (false, "reserve") => 16,
                _ => 1,
            };
            assert_eq!(value.as_ptr() as usize % align, 0, "{len} in {name}");
        }
    }
}

#[test]
fn keys_up_to_the_limit() {
    for page in PAGE_SIZES {
        let (_dir, path) = fresh();
        let env = Options::new().page_size(page).open(&path).unwrap();
        let max = env.max_key_len();
        assert!(max >= page as usize / 5, "{max} for {page}");
        let mut txn = env.write().unwrap();
        let mut table = txn.table_or_create("t").unwrap();
        let lengths = [0, 1, 2, 3, 4, 5, 7, 8, 9, 255, 256, max / 2, max - 1, max];
        for byte in [0, b'a', 0xFF] {
            for len in lengths {
                table.put(vec![byte; len], [byte, len as u8]).unwrap();
                match table.put(vec![byte; max + 1 + len], "x") {
                    Err(Error::KeyTooLong { len: given, max: limit }) => {
                        assert_eq!((given, limit), (max + 1 + len, max));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        // The longest keys with the longest values that a leaf takes, and longer ones.
        for len in [0, max, page as usize / 4, page as usize / 2, page as usize] {
            let key = [&vec![b'k'; max - 4][..], &(len as u32).to_be_bytes()].concat();
            table.put(&key, pattern(len, 5)).unwrap();
        }
        txn.commit().unwrap();
        check(&env, &format!("page size {page}"));
        let read = env.read().unwrap();
        let table = read.table("t").unwrap();
        // One empty key among the three families.
        assert_eq!(table.len(), 3 * (lengths.len() as u64 - 1) + 1 + 5);
        assert_eq!(table.get([]).unwrap(), Some(&[0xFF, 0][..]));
        assert_eq!(table.get(vec![0xFF; max]).unwrap(), Some(&[0xFF, max as u8][..]));
        assert_eq!(table.get(vec![0; max + 1]).unwrap(), None);
        let keys: Vec<_> = table.iter().map(|r| r.unwrap().0.to_vec()).collect();
        assert!(keys.is_sorted());
    }
}

#[test]
fn the_empty_key_is_a_key_like_any_other() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("").unwrap();
    assert_eq!(table.get("").unwrap(), None);
    assert!(!table.delete("").unwrap());
    assert!(table.insert("", "").unwrap());
    assert!(!table.insert("", "x").unwrap());
    assert_eq!(table.get("").unwrap(), Some(&b""[..]));
    table.put([0], "zero").unwrap();
    assert_eq!(table.range(..&[][..]).count(), 0);
    assert_eq!(table.range(..=&[][..]).count(), 1);
    assert_eq!(table.prefix("").count(), 2);
    assert_eq!(table.cursor().unwrap().seek("").unwrap(), Some((&b""[..], &b""[..])));
    txn.commit().unwrap();
    check(&env, "a table without a name, a key without bytes");
    let read = env.read().unwrap();
    assert_eq!(read.tables().unwrap(), [b""]);
    assert_eq!(read.table("").unwrap().get_many(&["", "x"]).unwrap(), [Some(&b""[..]), None]);
    let mut txn = env.write().unwrap();
    assert!(txn.table("").unwrap().delete("").unwrap());
    txn.commit().unwrap();
    assert_eq!(env.read().unwrap().table("").unwrap().get("").unwrap(), None);
}

#[test]
fn page_sizes_that_cannot_be_are_refused() {
    for size in [0, 1, 512, 2048, 4095, 4097, 12288, 131_072, u32::MAX] {
        let (_dir, path) = fresh();
        let result = Options::new().page_size(size).open(&path);
        assert!(matches!(result, Err(Error::Invalid(_))), "{size}");
        assert!(!path.exists(), "{size}: a file was made");
    }
}

/// Random lengths, many at a time: neighbours of all kinds in each leaf.
#[test]
fn random_lengths_side_by_side() {
    let seed = seed(800);
    for page in [4096, 65536] {
        let mut rng = Rng::new(seed + u64::from(page));
        let (_dir, path) = fresh();
        let options = Options::new().page_size(page).durability(Durability::NoSync);
        let env = options.open(&path).unwrap();
        let mut model = crate::common::Records::new();
        for round in 0..number("ZUBILO_CASES", 15) {
            let mut txn = env.write().unwrap();
            let mut table = txn.table_or_create("t").unwrap();
            for _ in 0..100 {
                let max = [8, 40, env.max_key_len() as u64][rng.below(3) as usize];
                let key = pattern(rng.below(max + 1) as usize, rng.below(20));
                let most = [50, 500, u64::from(page), 5 * u64::from(page)][rng.below(4) as usize];
                let value = pattern(rng.below(most) as usize, rng.next());
                if rng.one_in(4) {
                    assert_eq!(table.delete(&key).unwrap(), model.remove(&key).is_some());
                } else {
                    table.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            txn.commit().unwrap();
            let what = format!("seed {seed}, page size {page}, round {round}");
            check(&env, &what);
            assert!(contents(&env.read().unwrap())[&b"t"[..]] == model, "{what}");
        }
    }
}

#[test]
#[ignore = "long: 14 GB of disk and of page cache"]
fn long_values_beyond_four_gib() {
    const LEN: usize = (4 << 30) + 4097;
    let (_dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let byte = |i: usize| (i >> 12) as u8 ^ (i as u8);
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("t").unwrap();
    table.put("small", "x").unwrap();
    {
        let value: Vec<u8> = (0..LEN).map(byte).collect();
        table.put("put", &value).unwrap();
    }
    txn.commit().unwrap();
    let mut txn = env.write().unwrap();
    let mut table = txn.table("t").unwrap();
    let place = table.reserve("reserved", LEN).unwrap();
    place.iter_mut().enumerate().for_each(|(i, to)| *to = byte(i));
    txn.commit().unwrap();
    env.close().unwrap();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    for key in ["put", "reserved"] {
        let value = table.get(key).unwrap().unwrap();
        assert_eq!(value.len(), LEN);
        assert!(value.iter().enumerate().all(|(i, b)| *b == byte(i)), "{key}");
    }
    assert_eq!(table.stats().run_pages, 2 * (LEN as u64).div_ceil(4096));
    check(&env, "with values beyond 4 GiB");
    drop(read);
    // Replaced by something small: the space is used again and given back.
    for key in ["put", "reserved"] {
        let mut txn = env.write().unwrap();
        txn.table("t").unwrap().put(key, "small").unwrap();
        txn.commit().unwrap();
    }
    for n in 0..5u8 {
        crate::common::put_all(&env, "t", [("small", [n])]);
        env.sync().unwrap();
    }
    check(&env, "without them");
    let len = std::fs::metadata(&path).unwrap().len();
    println!("FIGURES {len} bytes after two values of {LEN} bytes were replaced");
    assert!(len < 1 << 30, "{len} bytes are left");
}
