//! Changes since a commit, and stores made of a copy and changes: whatever was done in between, they hold
//! what the source holds; what does not belong together, or is damaged, is refused and leaves nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use zubilo::{
    CompactOptions, Durability, Env, Error, KeyOrder, Options, PageKind, TableOptions, TxnId,
    restore,
};

use crate::common::{Rng, check, fresh, number, rng};

pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn tables() -> [(&'static str, TableOptions); 5] {
    let new = TableOptions::new;
    [
        ("plain", new()),
        ("counted", new().counted()),
        ("reversed", new().key_order(KeyOrder::Reversed)),
        ("pairs", new().duplicates()),
        ("fixed", new().fixed_duplicates()),
    ]
}

/// Some puts and removals in some tables; sometimes a whole table goes. Always a commit.
pub(crate) fn change(env: &Env, rng: &mut Rng) {
    let mut txn = env.write().unwrap();
    txn.table_or_create("always").unwrap().put("key", rng.bytes(16)).unwrap();
    for (name, options) in tables() {
        if rng.one_in(3) {
            continue;
        }
        if rng.one_in(30) {
            let _ = txn.drop_table(name);
        }
        let mut table = txn.table_or_create_with(name, &options).unwrap();
        for _ in 0..rng.below(80) {
            let key = (rng.below(1500) as u32).to_be_bytes();
            match rng.below(8) {
                0 | 1 => drop(table.delete(key).unwrap()),
                _ if options.has_fixed_values() => {
                    table.put(key, rng.below(1 << 20).to_be_bytes()).unwrap();
                }
                2 if !options.has_duplicates() => {
                    let len = rng.below(30_000) as usize;
                    table.put(key, rng.bytes(len)).unwrap();
                }
                3 => (0..200).for_each(|n: u64| {
                    let key = if options.has_duplicates() { *b"many" } else { key };
                    table.put(key, (rng.below(1 << 30) + n).to_be_bytes()).unwrap();
                }),
                _ => {
                    let len = rng.below(60) as usize;
                    table.put(key, rng.bytes(len)).unwrap();
                }
            }
        }
    }
    txn.commit().unwrap();
}

pub(crate) fn contents(env: &Env) -> BTreeMap<Vec<u8>, Pairs> {
    let txn = env.read().unwrap();
    let mut all = BTreeMap::new();
    for name in txn.tables().unwrap() {
        let table = txn.table(&name).unwrap();
        let pairs = all.entry(name.to_vec()).or_insert_with(Pairs::new);
        for record in table.iter() {
            let (key, value) = record.unwrap();
            pairs.push((key.to_vec(), value.to_vec()));
        }
    }
    all
}

pub(crate) fn changes(env: &Env, since: TxnId) -> Vec<u8> {
    let mut out = Vec::new();
    env.copy_changes_to_writer(since, &mut out, &mut |_, _| true).unwrap();
    out
}

pub(crate) fn apply(copy: &Path, parts: &[&[u8]], to: &Path) -> zubilo::Result<TxnId> {
    let mut parts: Vec<&[u8]> = parts.to_vec();
    let mut readers: Vec<&mut dyn std::io::Read> = Vec::new();
    parts.iter_mut().for_each(|part| readers.push(part));
    restore(copy, &mut readers, to, &mut |_, _| true)
}

pub(crate) fn copy_of(env: &Env, path: PathBuf, compact: bool) -> PathBuf {
    env.copy_to_path(&path, compact, &mut |_, _| true).unwrap();
    path
}

/// Full copy, changes, more changes: what comes out is the source at that time, by content and by commit, and a
/// store like any other.
#[test]
fn a_copy_and_changes_are_the_source() {
    let mut rng = rng();
    for round in 0..number("CHANGES_ROUNDS", 6) {
        let (dir, path) = fresh();
        let page_size = rng.pick(&[4096, 4096, 16384]);
        let durability = rng.pick(&[Durability::Sync, Durability::NoSync, Durability::LAZY]);
        let env = Options::new().page_size(page_size).durability(durability).open(&path).unwrap();
        (0..1 + rng.below(20)).for_each(|_| change(&env, &mut rng));
        let full = copy_of(&env, dir.path().join("full"), false);
        let mut since = env.read().unwrap().id();
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for step in 0..4 {
            let mut reader = None;
            for _ in 0..rng.below(12) {
                change(&env, &mut rng);
                if rng.one_in(4) {
                    reader = Some(env.read().unwrap());
                }
            }
            if rng.one_in(3) {
                env.compact(&CompactOptions::new(), &mut |_, _| true).unwrap();
            }
            drop(reader);
            parts.push(changes(&env, since));
            since = env.read().unwrap().id();
            let to = dir.path().join(format!("restored-{step}"));
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            assert_eq!(apply(&full, &slices, &to).unwrap(), since, "round {round}, step {step}");
            let restored = Options::new().open(&to).unwrap();
            assert_eq!(contents(&restored), contents(&env), "round {round}, step {step}");
            assert_eq!(restored.read().unwrap().id(), since);
            change(&restored, &mut rng);
            check(&restored, "a restored store goes on");
        }
        assert!(!dir.path().join("restored-0-part").exists());
    }
}

/// One record of a large store: few pages.
#[test]
fn changes_of_one_record_are_short() {
    let (_dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let put = |from: u32, to: u32| {
        let put = |txn: &mut zubilo::WriteTxn| {
            let mut table = txn.table_or_create("t")?;
            (from..to).try_for_each(|n| table.put(n.to_be_bytes(), [n as u8; 100]))
        };
        env.update(put).unwrap();
    };
    put(0, 100_000);
    let since = env.read().unwrap().id();
    put(50_000, 50_001);
    let (all, new) = (env.info().unwrap().used_len, changes(&env, since).len());
    assert!(all > 10 << 20 && new < 64 << 10, "{new} of {all}");
    // Nothing new is no page at all.
    let newest = env.read().unwrap().id();
    let nothing = changes(&env, newest);
    assert!(nothing.len() < 5000, "{}", nothing.len());
    let later = env.copy_changes_to_writer(TxnId(newest.0 + 1), &mut Vec::new(), &mut |_, _| true);
    assert!(matches!(later, Err(Error::Invalid(_))), "{later:?}");
}

pub(crate) fn is_foreign(result: &zubilo::Result<TxnId>, why: &str) -> bool {
    matches!(result, Err(Error::ForeignChanges { reason, .. }) if reason.contains(why))
}

/// Other stores, other commits, compacted copies, copies that went on by themselves.
#[test]
fn what_does_not_belong_together_is_refused() {
    let mut rng = rng();
    let (dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    (0..12).for_each(|_| change(&env, &mut rng));
    // What stays as it is lies elsewhere in a compacted copy.
    let still = |txn: &mut zubilo::WriteTxn| {
        let mut table = txn.table_or_create("still")?;
        (0..3000u32).try_for_each(|n| table.put(n.to_be_bytes(), [n as u8; 20]))
    };
    env.update(still).unwrap();
    let first = env.read().unwrap().id();
    let full = copy_of(&env, dir.path().join("full"), false);
    let compacted = copy_of(&env, dir.path().join("compacted"), true);
    let diverged = copy_of(&env, dir.path().join("diverged"), false);
    change(&env, &mut rng);
    let second = env.read().unwrap().id();
    let later = copy_of(&env, dir.path().join("later"), false);
    change(&env, &mut rng);
    let (since_first, since_second) = (changes(&env, first), changes(&env, second));
    let to = dir.path().join("new");

    let other = Options::new().open(dir.path().join("other")).unwrap();
    change(&other, &mut rng);
    let others = changes(&other, TxnId(1));
    assert!(is_foreign(&apply(&full, &[&others], &to), "another store"));
    assert!(is_foreign(&apply(&full, &[&since_second], &to), "earlier commit"));
    assert!(is_foreign(&apply(&later, &[&since_first], &to), "later commit"));
    assert!(is_foreign(&apply(&full, &[&since_first, &since_first], &to), "later commit"));
    assert!(is_foreign(&apply(&compacted, &[&since_first], &to), "other pages"));
    // Written to on its own: the same number of commits, another history.
    let own = Options::new().open(&diverged).unwrap();
    change(&own, &mut rng);
    assert_eq!(own.read().unwrap().id(), second);
    drop(own);
    let result = apply(&diverged, &[&since_second], &to);
    assert!(is_foreign(&result, "pages"), "{result:?}");

    // Nothing is left, and nothing is written over.
    assert!(!to.exists() && !dir.path().join("new-part").exists());
    let held = fs::read(&later).unwrap();
    assert!(matches!(apply(&full, &[&since_first], &later), Err(Error::Io { .. })));
    assert_eq!(fs::read(&later).unwrap(), held);
    assert_eq!(apply(&full, &[&since_first], &to).unwrap(), env.read().unwrap().id());
}

/// A copy that goes on by itself may write other records over a leaf whose branch stays in its place, dead but
/// as it was: only the leaf's birth shows it. Its free pages would have to fall together for that, so the
/// leaf is written over here by hand.
#[test]
fn a_page_below_one_that_is_the_same_is_compared_too() {
    let (dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let put = |table: &str, count: u32| {
        let put = |txn: &mut zubilo::WriteTxn| {
            let mut table = txn.table_or_create(table)?;
            (0..count).try_for_each(|n| table.put(n.to_be_bytes(), b"the record as it was"))
        };
        env.update(put).unwrap();
    };
    put("deep", 3000);
    put("other", 1);
    let copy = copy_of(&env, dir.path().join("copy"), false);
    let since = env.read().unwrap().id();
    let mut leaf = 0;
    env.walk_pages(&mut |page| {
        if page.table == b"deep" && page.kind == PageKind::Leaf {
            leaf = page.page.0 as usize * env.page_size();
        }
        true
    })
    .unwrap();
    put("other", 2);
    let part = changes(&env, since);
    assert!(apply(&copy, &[&part], &dir.path().join("as it should be")).is_ok());

    let mut bytes = fs::read(&copy).unwrap();
    let page = &mut bytes[leaf..leaf + env.page_size()];
    let at = page.windows(10).position(|w| w == b"the record").unwrap();
    page[at..at + 10].copy_from_slice(b"THE RECORD");
    page[16..24].copy_from_slice(&since.0.to_le_bytes());
    let sum = twox_hash::XxHash3_64::oneshot(&page[8..]);
    page[..8].copy_from_slice(&sum.to_le_bytes());
    fs::write(&copy, bytes).unwrap();
    let result = apply(&copy, &[&part], &dir.path().join("new"));
    let found = matches!(result, Err(Error::Corrupted { page, .. }) if page.0 as usize * env.page_size() == leaf);
    assert!(found, "{result:?}");
}

/// Every cut and every flipped byte is found, and nothing stays behind.
#[test]
fn damaged_changes_are_refused() {
    let mut rng = rng();
    let (dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    (0..4).for_each(|_| change(&env, &mut rng));
    let full = copy_of(&env, dir.path().join("full"), false);
    let since = env.read().unwrap().id();
    (0..2).for_each(|_| change(&env, &mut rng));
    let good = changes(&env, since);
    let to = dir.path().join("new");
    let refused = |bytes: &[u8], what: String| {
        let result = apply(&full, &[bytes], &to);
        let is_known = matches!(
            &result,
            Err(Error::Io { .. } | Error::Corrupted { .. } | Error::ForeignChanges { .. })
        );
        assert!(is_known, "{what}: {result:?}");
        assert!(!to.exists() && fs::read_dir(dir.path()).unwrap().count() <= 4, "{what}");
    };
    for _ in 0..number("DAMAGE_ROUNDS", 150) {
        let at =
            if rng.one_in(2) { rng.below(4400) } else { rng.below(good.len() as u64) } as usize;
        let at = at.min(good.len() - 1);
        refused(&good[..at], format!("cut at {at}"));
        let mut bytes = good.clone();
        bytes[at] ^= 1 << rng.below(8);
        // One bit of a sector of the meta is made good by its parity, but the sum over all shows it.
        refused(&bytes, format!("flipped at {at}"));
    }
    assert_eq!(apply(&full, &[&good], &to).unwrap(), env.read().unwrap().id());
}

/// The callback ends both at any of its calls, and a stopped one leaves nothing.
#[test]
fn both_stop_when_asked() {
    let mut rng = rng();
    let (dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    change(&env, &mut rng);
    let full = copy_of(&env, dir.path().join("full"), false);
    let since = env.read().unwrap().id();
    change(&env, &mut rng);
    let stopped = env.copy_changes_to_writer(since, &mut Vec::new(), &mut |_, _| false);
    assert!(matches!(stopped, Err(Error::Stopped)));
    let part = changes(&env, since);
    let to = dir.path().join("new");
    let stopped_after = |calls: u64| {
        let (mut left, mut reader) = (calls, &part[..]);
        restore(&full, &mut [&mut reader], &to, &mut |done, all| {
            assert!(done <= all, "{done} of {all}");
            left = left.saturating_sub(1);
            left > 0
        })
    };
    let mut calls = 1;
    while let Err(stopped) = stopped_after(calls) {
        assert!(matches!(stopped, Error::Stopped), "{stopped}");
        assert!(!to.exists() && !dir.path().join("new-part").exists());
        calls += 1;
    }
    assert!(calls > 4, "called {calls} times while it copied, applied and checked");
}
