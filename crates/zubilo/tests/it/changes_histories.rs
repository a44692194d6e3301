//! Changes where commit numbers were used again: after a power cut took weak commits, after going back to an older
//! commit, in a store that was restored from a copy. A base of the other history is refused, or what comes out is
//! the source all the same. And changes that were made to do harm.

use std::fs;
use std::path::Path;

use zubilo::{Durability, Env, Error, Options, PageKind, TxnId, seal_meta};

use crate::changes::{apply, change, changes, contents, copy_of, is_foreign};
use crate::common::{check, fresh, number, rng};

/// How a store comes back to an older commit.
#[derive(Clone, Copy, Debug)]
enum Back {
    /// Nothing after the last sync was on disk.
    PowerCut,
    /// Somebody has chosen the commit.
    Chosen,
    /// A copy takes the place of the store.
    Restored,
}

const BACK: [Back; 3] = [Back::PowerCut, Back::Chosen, Back::Restored];

fn open(path: &Path, back: Back) -> Env {
    let weak = matches!(back, Back::PowerCut);
    let durability = if weak { Durability::NoSync } else { Durability::Sync };
    Options::new().durability(durability).open(path).unwrap()
}

/// Runs `lost` on the store, whose commits are then taken back. Gives the store as it was before.
fn take_back(path: &Path, env: Env, back: Back, lost: impl FnOnce(&Env)) -> Env {
    env.sync().unwrap();
    let at = env.read().unwrap().id();
    let image = match back {
        Back::PowerCut => fs::read(path).unwrap(),
        Back::Chosen => Vec::new(),
        Back::Restored => {
            let mut copy = Vec::new();
            env.copy_to_writer(&mut copy, false, &mut |_, _| true).unwrap();
            copy
        }
    };
    // A commit can be gone back to as long as its pages are there.
    let pin = env.read().unwrap();
    lost(&env);
    drop(pin);
    assert!(env.read().unwrap().id() > at, "nothing was lost");
    env.close().unwrap();
    if let Back::Chosen = back {
        drop(Options::new().at_commit(at).discard_newer(true).open(path).unwrap());
    } else {
        fs::write(path, image).unwrap();
        let mut lock = path.as_os_str().to_os_string();
        lock.push("-lock");
        fs::remove_file(lock).unwrap();
    }
    let env = open(path, back);
    assert_eq!(env.read().unwrap().id(), at);
    env
}

fn put(env: &Env, table: &str, key: u32, value: &[u8]) -> TxnId {
    env.update(|txn| txn.table_or_create(table)?.put(key.to_be_bytes(), value)).unwrap();
    env.read().unwrap().id()
}

/// Places and births of the branches of a table.
fn branches(env: &Env, table: &[u8]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    env.walk_pages(&mut |page| {
        if page.table == table && page.kind == PageKind::Branch {
            found.push((page.page.0, page.birth.0));
        }
        true
    })
    .unwrap();
    found
}

/// The commit that was lost and the one that got its number put their pages into the same places: but for the opening
/// that they name, their branches are the same. What differs is one value in a leaf below.
#[test]
fn a_lost_commit_is_no_base_for_the_one_that_got_its_number() {
    for back in BACK {
        let (dir, path) = fresh();
        let env = open(&path, back);
        env.update(|txn| {
            let mut table = txn.table_or_create("deep")?;
            (0..3000u32).try_for_each(|n| table.put(n.to_be_bytes(), b"as it was"))
        })
        .unwrap();
        put(&env, "other", 1, b"a");
        let (mut lost, mut base) = (TxnId(0), None);
        let env = take_back(&path, env, back, |env| {
            lost = put(env, "deep", 1500, b"was lost.");
            base = Some(copy_of(env, dir.path().join("base"), false));
        });
        let base = base.unwrap();
        let since = put(&env, "deep", 1500, b"was kept.");
        assert_eq!(since, lost, "{back:?}");
        let copy = copy_of(&env, dir.path().join("copy"), false);
        put(&env, "other", 1, b"b");
        let part = changes(&env, since);

        let same = branches(&Options::new().read_only(true).open(&base).unwrap(), b"deep");
        assert_eq!(
            same,
            branches(&env, b"deep"),
            "{back:?}: the case is not the one that is meant"
        );
        let result = apply(&base, &[&part], &dir.path().join("wrong"));
        assert!(is_foreign(&result, "other pages"), "{back:?}: {result:?}");
        apply(&copy, &[&part], &dir.path().join("right")).unwrap();
        let right = Options::new().open(dir.path().join("right")).unwrap();
        assert_eq!(contents(&right), contents(&env), "{back:?}");
    }
}

/// Random histories: each base of each history, with each row of changes that fits its number.
#[test]
fn a_base_of_another_history_is_refused_or_does_no_harm() {
    let mut rng = rng();
    let mut refused = 0;
    for round in 0..number("HISTORY_ROUNDS", 9) {
        let back = BACK[round as usize % 3];
        let (dir, path) = fresh();
        let env = open(&path, back);
        (0..1 + rng.below(6)).for_each(|_| change(&env, &mut rng));
        let first = copy_of(&env, dir.path().join("first"), false);
        let begun = env.read().unwrap().id();
        let (mut wrong, mut early) = (Vec::new(), Vec::new());
        let env = take_back(&path, env, back, |env| {
            for n in 0..1 + rng.below(2) {
                change(env, &mut rng);
                let copy = copy_of(env, dir.path().join(format!("wrong-{n}")), false);
                wrong.push((env.read().unwrap().id(), copy));
            }
            early = changes(env, begun);
        });
        let lost = wrong.last().unwrap().0;
        let mut right = Vec::new();
        while env.read().unwrap().id() < lost {
            change(&env, &mut rng);
            let at = env.read().unwrap().id();
            right.push((at, copy_of(&env, dir.path().join(format!("right-{}", at.0)), false)));
        }
        (0..rng.below(4)).for_each(|_| change(&env, &mut rng));

        let to = dir.path().join("new");
        let is_right = |result: zubilo::Result<TxnId>, what: &str| match result {
            Ok(_) => {
                let new = Options::new().read_only(true).open(&to).unwrap();
                assert_eq!(contents(&new), contents(&env), "round {round}, {back:?}: {what}");
                check(&new, "what came out");
                drop(new);
                fs::remove_file(&to).unwrap();
                true
            }
            Err(Error::ForeignChanges { .. }) => false,
            Err(error) => panic!("round {round}, {back:?}: {what}: {error}"),
        };
        for (since, base) in &wrong {
            let part = changes(&env, *since);
            refused += u64::from(!is_right(apply(base, &[&part], &to), "another base"));
        }
        for (since, base) in &right {
            let part = changes(&env, *since);
            assert!(is_right(apply(base, &[&part], &to), "the right base"));
        }
        // Changes of the history that was lost, then those of the other.
        let part = changes(&env, lost);
        refused += u64::from(!is_right(apply(&first, &[&early, &part], &to), "mixed changes"));
        assert!(!dir.path().join("new-part").exists());
    }
    assert!(refused > 0, "no base was refused: the histories did not part");
}

/// Makes the checksum at the end right, be the changes what they may.
fn sign(part: &mut [u8]) {
    seal_meta(&mut part[24..24 + 4096]);
    let end = part.len() - 24;
    let sum = twox_hash::XxHash3_64::oneshot(&part[..end]);
    part[end + 16..].copy_from_slice(&sum.to_le_bytes());
}

/// Everything that can be said in changes with right checksums: an error, or a store that is whole.
#[test]
fn changes_that_were_made_to_do_harm() {
    let mut rng = rng();
    let (dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    (0..4).for_each(|_| change(&env, &mut rng));
    let full = copy_of(&env, dir.path().join("full"), false);
    let since = env.read().unwrap().id();
    (0..2).for_each(|_| change(&env, &mut rng));
    let good = changes(&env, since);
    let to = dir.path().join("new");
    let harm = |part: &[u8], what: &str| match apply(&full, &[part], &to) {
        Ok(_) => {
            check(&Options::new().read_only(true).open(&to).unwrap(), what);
            fs::remove_file(&to).unwrap();
        }
        Err(Error::Io { .. } | Error::Corrupted { .. } | Error::ForeignChanges { .. }) => {
            assert!(!to.exists() && !dir.path().join("new-part").exists(), "{what}");
        }
        Err(other) => panic!("{what}: {other:?}"),
    };
    // A store of petabytes, and a redo log that takes most of them.
    for has_log in [false, true] {
        let mut part = good.clone();
        let meta = &mut part[24..24 + 4096];
        meta[64..72].copy_from_slice(&(1u64 << 40).to_le_bytes());
        if has_log {
            (meta[16], meta[22]) = (3, 1);
            let at = 6 * 512 + 504 - 40;
            let ring = [1u64 << 20, 1 << 50, since.0, 0, 0];
            for (i, word) in ring.iter().enumerate() {
                meta[at + i * 8..][..8].copy_from_slice(&word.to_le_bytes());
            }
        }
        sign(&mut part);
        let result = apply(&full, &[&part], &to);
        assert!(result.is_err() && !to.exists(), "{result:?}");
    }
    for round in 0..number("HARM_ROUNDS", 150) {
        let mut part = good.clone();
        for _ in 0..1 + rng.below(4) {
            // Mostly in the meta, where most is decided.
            let at =
                if rng.one_in(2) { rng.below(4096) } else { rng.below(good.len() as u64 - 48) };
            let at = 24 + at as usize;
            part[at] =
                if rng.one_in(2) { part[at] ^ 1 << rng.below(8) } else { rng.below(256) as u8 };
        }
        sign(&mut part);
        harm(&part, &format!("round {round}"));
    }
    assert_eq!(apply(&full, &[&good], &to).unwrap(), env.read().unwrap().id());
}

/// Puts right checksums on a page of a store's file.
fn reseal(file: &mut [u8], page: usize) {
    let page = &mut file[page * 4096..][..4096];
    let sum = twox_hash::XxHash3_64::oneshot(&page[8..]);
    page[..8].copy_from_slice(&sum.to_le_bytes());
}

/// Tables in tables would never end.
#[test]
fn a_table_that_claims_to_be_the_table_of_tables() {
    let (dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put(&env, "the one that lies", 1, b"value");
    let copy = copy_of(&env, dir.path().join("copy"), false);
    let mut leaf = 0;
    env.walk_pages(&mut |page| {
        if page.table.is_empty() && page.kind == PageKind::Leaf {
            leaf = page.page.0 as usize;
        }
        true
    })
    .unwrap();
    let mut bytes = fs::read(&copy).unwrap();
    let page = &mut bytes[leaf * 4096..][..4096];
    let name = b"the one that lies";
    let at = page.windows(name.len()).position(|w| w == name).unwrap() + name.len();
    // Its root is the leaf that holds it.
    page[at..at + 8].copy_from_slice(&(leaf as u64).to_le_bytes());
    page[at + 40..at + 44].fill(0);
    reseal(&mut bytes, leaf);
    fs::write(&copy, bytes).unwrap();
    let liar = Options::new().read_only(true).open(&copy).unwrap();
    let result = liar.copy_changes_to_writer(TxnId(0), &mut Vec::new(), &mut |_, _| true);
    assert!(
        matches!(result, Err(Error::Corrupted { page, .. }) if page.0 as usize == leaf),
        "{result:?}"
    );
}
