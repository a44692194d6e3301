//! Several users of one store, each as a process of its own, in modes of their own: random changes,
//! transactions that are given up, commits without pages, bounds, cuts, compactions, opens and closes.
//! After each step what each of them sees is the model, and the used part lies inside the file.

use std::path::Path;
use std::time::Duration;

use zubilo::platform::{self, OpenFile, WritableMap};
use zubilo::{CompactOptions, Durability, Env, Error, Options, ReadTxn, Result, WriteTxn};

use crate::common::{Model, Rng, check, contents, fresh, geometry, number, put_all, rng};

const RESERVE: u64 = 1 << 34;

struct User {
    env: Env,
    held: Option<(ReadTxn, Model)>,
}

fn bounds(rng: &mut Rng, used: u64) -> zubilo::Geometry {
    geometry(|g| {
        g.upper = if rng.one_in(2) { u64::MAX } else { used + (rng.below(200) << 12) };
        g.lower = if rng.one_in(4) { used / 2 } else { 0 };
        g.shrink = rng.pick(&[0, 4096, 1 << 20]);
        g.growth = rng.pick(&[0, 4096, 1 << 20]);
    })
}

fn open(path: &Path, page_size: u32, rng: &mut Rng) -> User {
    let lazy = Durability::Lazy { sync_bytes: 1 << 18, sync_period: Duration::from_millis(5) };
    let durability = rng.pick(&[Durability::NoSync, Durability::NoSync, lazy, Durability::Sync]);
    let writable_map = match durability {
        Durability::NoSync => rng.pick(&[WritableMap::No, WritableMap::Yes]),
        _ => WritableMap::No,
    };
    let how = OpenFile {
        read_only: false,
        create: true,
        mode: 0o644,
        reserve: RESERVE,
        writable_map,
        large_calls: durability == Durability::Sync,
    };
    let (data, _) = platform::open_data(path, &how).unwrap();
    let options = Options::new()
        .page_size(page_size)
        .durability(durability)
        .reserve(RESERVE)
        .dirty_limit(rng.pick(&[0, 64 << 10, 1 << 20]));
    let env = Env::open_parts_shared(data, path, platform::boot_id(), options).unwrap();
    User { env, held: None }
}

/// A full store is no mistake.
fn expected<T>(result: Result<T>, what: &str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::MapFull { .. }) => None,
        Err(error) => panic!("{what}: {error}"),
    }
}

fn change(txn: &mut WriteTxn, model: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = vec![b't', rng.below(3) as u8];
    let mut table = txn.table_or_create(&name)?;
    let records = model.entry(name).or_default();
    let longest = if rng.one_in(5) { 12 << 12 } else { 300 };
    for _ in 0..rng.pick(&[1, 10, 100]) {
        let key = rng.below(400).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
        if rng.one_in(3) {
            assert_eq!(table.delete(&key)?, records.remove(&key).is_some());
        } else {
            let len = rng.below(longest) as usize;
            let value = rng.bytes(len);
            table.put(&key, &value)?;
            records.insert(key, value);
        }
    }
    Ok(())
}

/// A transaction with changes, some of them undone, which is given up or committed.
fn write(env: &Env, model: &mut Model, rng: &mut Rng, what: &str) {
    let mut next = model.clone();
    let mut txn = env.write().unwrap();
    for _ in 0..1 + rng.below(3) {
        let mut inner = next.clone();
        let undo = rng.one_in(5);
        let done = txn.nested(|txn| {
            change(txn, &mut inner, rng)?;
            if undo { Err(Error::Stopped) } else { Ok(()) }
        });
        match done {
            Ok(()) => next = inner,
            Err(Error::Stopped) => {}
            full => drop(expected(full, what)),
        }
    }
    if !rng.one_in(3) && expected(txn.commit(), what).is_some() {
        *model = next;
    }
}

/// A commit that takes few pages, or none.
fn commit_little(env: &Env, model: &mut Model, rng: &mut Rng, what: &str) {
    let mut next = model.clone();
    let used = env.info().unwrap().used_len;
    let mut txn = env.write().unwrap();
    match rng.below(3) {
        0 => txn.set_user_words([rng.next(), 0, 0]).unwrap(),
        1 => txn.set_geometry(bounds(rng, used)).unwrap(),
        _ => {
            let all = rng.one_in(3);
            for name in model.keys().take(if all { usize::MAX } else { 1 }) {
                if expected(txn.drop_table(name), what).is_none() {
                    return;
                }
                next.remove(name);
            }
        }
    }
    if expected(txn.commit(), what).is_some() {
        *model = next;
    }
}

/// One compacts, to the end or not, while the others write and make durable.
fn compact(users: &[User], at: usize, model: &mut Model, rng: &mut Rng, what: &str) {
    let options = CompactOptions::new()
        .pause(Duration::ZERO)
        .fill(rng.pick(&[60, 98, 100]))
        .step(rng.pick(&[1, 30_000, 1 << 20]), Duration::from_secs(9));
    let mut steps = rng.pick(&[3, 20, 3000]);
    let done = users[at].env.compact(&options, &mut |_, _| {
        let other = &users[rng.below(users.len() as u64) as usize].env;
        match rng.below(30) {
            0 => other.sync().unwrap(),
            1..6 => write(other, model, rng, what),
            _ => {}
        }
        steps -= 1;
        steps > 0
    });
    expected(done, what);
}

fn step(users: &mut [User], model: &mut Model, rng: &mut Rng, what: &str) {
    let at = rng.below(users.len() as u64) as usize;
    let env = users[at].env.clone();
    match rng.below(20) {
        0..3 => env.sync().unwrap(),
        3..6 => commit_little(&env, model, rng, what),
        6..8 => compact(users, at, model, rng, what),
        8 => users[at].held = Some((env.read().unwrap(), model.clone())),
        9 => {
            let held = users[at].held.take();
            assert!(held.is_none_or(|(read, old)| contents(&read) == old), "{what}: a snapshot");
        }
        _ => write(&env, model, rng, what),
    }
}

fn look(users: &[User], path: &Path, model: &Model, rng: &mut Rng, what: &str) {
    for user in users {
        let info = user.env.info().unwrap();
        let len = std::fs::metadata(path).unwrap().len();
        // A thread that makes lazy commits durable may cut the tail meanwhile.
        assert!(info.used_len <= info.file_len.min(len), "{what}: {len}, {info:?}");
        if rng.one_in(3) {
            assert!(contents(&user.env.read().unwrap()) == *model, "{what}");
        }
        if rng.one_in(9) {
            check(&user.env, what);
        }
    }
}

#[test]
fn everybody_sees_the_model_and_the_file_is_long_enough() {
    let mut rng = rng();
    for round in 0..number("ZUBILO_CASES", 25) {
        let (_dir, path) = fresh();
        let page_size = rng.pick(&[4096, 4096, 16384, 65536]);
        let mut users = vec![open(&path, page_size, &mut rng)];
        let stays: Vec<_> = (0..rng.pick(&[1, 3000, 8000u32]))
            .map(|n| (n.to_be_bytes().to_vec(), vec![1; 150]))
            .collect();
        put_all(&users[0].env, "stays", stays.iter().cloned());
        let mut model = Model::from([(b"stays".to_vec(), stays.into_iter().collect())]);
        for n in 0..60 {
            let what = format!("round {round}, step {n}, pages of {page_size}");
            if users.len() < 3 && rng.one_in(3) || users.is_empty() {
                users.push(open(&path, page_size, &mut rng));
            }
            step(&mut users, &mut model, &mut rng, &what);
            look(&users, &path, &model, &mut rng, &what);
            if rng.one_in(12) {
                let user = users.swap_remove(rng.below(users.len() as u64) as usize);
                drop(user.held);
                if rng.one_in(2) {
                    user.env.close().unwrap()
                } else {
                    user.env.close_without_sync()
                }
            }
        }
        users.clear();
        look(&[open(&path, page_size, &mut rng)], &path, &model, &mut rng, "at the end");
    }
}
