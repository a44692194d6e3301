//! Opens at a commit that the caller has chosen: what is listed, what is seen, what is refused, and that going back
//! happens whole or not at all.

use std::collections::BTreeMap;
use std::path::Path;

use zubilo::{CommitState, Durability, Env, Error, Options, Salvage, StoredCommit, TxnId};

use crate::common::memory::MemoryFile;
use crate::common::process::{apart, fork};
use crate::common::{Model, Rng, check, contents, fresh, put_all, rng};

const META: usize = 4096;

fn memory_commits(file: &MemoryFile) -> Vec<StoredCommit> {
    Env::stored_commits_of(file.data().as_ref(), [2; 16]).unwrap()
}

fn named(stored: &[StoredCommit]) -> Vec<u64> {
    stored.iter().filter_map(|commit| commit.txn).map(|txn| txn.0).collect()
}

/// Commits, and what each of them held.
fn history(env: &Env, rounds: u8, rng: &mut Rng) -> BTreeMap<u64, Model> {
    let mut states = BTreeMap::from([(1, Model::new())]);
    for round in 0..rounds {
        let records = (0..30).map(|_| (rng.below(200).to_be_bytes(), vec![round; 60]));
        let txn = put_all(env, "t", records.collect::<Vec<_>>());
        states.insert(txn.0, contents(&env.read().unwrap()));
    }
    states
}

fn look(file: &MemoryFile, txn: u64) -> zubilo::Result<Env> {
    file.open_on_boot(2, Options::new().read_only(true).at_commit(TxnId(txn)))
}

fn go_back(file: &MemoryFile, txn: u64) -> zubilo::Result<Env> {
    file.open_on_boot(2, Options::new().at_commit(TxnId(txn)).discard_newer(true))
}

/// Reads all without a fault; what was read is right, or an error said that it is not there.
fn read_all(env: &Env) -> zubilo::Result<Model> {
    let read = env.read()?;
    let mut model = Model::new();
    for name in read.tables()? {
        let table = read.table(&name)?;
        let mut records = BTreeMap::new();
        for record in table.iter() {
            let (key, value) = record?;
            records.insert(key.to_vec(), value.to_vec());
        }
        model.insert(name, records);
    }
    Ok(model)
}

/// Each commit that a meta names is either seen as it was, or an error says that it is not; a look changes no byte,
/// and going back gives just that commit or fails with no byte changed.
#[test]
fn every_commit_that_is_named_is_whole_or_an_error() {
    let mut rng = rng();
    let (mut whole, mut gone) = (0, 0);
    for durability in [Durability::Sync, Durability::NoSync] {
        let file = MemoryFile::new(&[]);
        let env = file.open(Options::new().durability(durability)).unwrap();
        let states = history(&env, 25, &mut rng);
        env.close_without_sync();
        let image = file.image();
        let stored = memory_commits(&file);
        assert!(stored.len() >= 2, "{stored:?}");
        for txn in named(&stored) {
            let file = MemoryFile::new(&image);
            let env = look(&file, txn).unwrap();
            assert_eq!(env.info().unwrap().newest, TxnId(txn));
            assert!(matches!(env.write(), Err(Error::ReadOnly)));
            let is_whole = env.check(&mut |_, _| true).is_ok_and(|report| report.is_ok());
            match read_all(&env) {
                Ok(found) => assert_eq!(&found, &states[&txn], "commit {txn}"),
                Err(Error::Corrupted { .. }) => assert!(!is_whole),
                Err(error) => panic!("commit {txn}: {error}"),
            }
            drop(env);
            assert!(file.image() == image, "a look at commit {txn} changed the file");
            match go_back(&file, txn) {
                Ok(env) => {
                    assert!(is_whole, "went back to {txn}, which is not whole");
                    assert_eq!(contents(&env.read().unwrap()), states[&txn]);
                    check(&env, "after going back");
                    put_all(&env, "t", [("after", "this")]);
                    env.close().unwrap();
                    let env = file.open_on_boot(3, Options::new()).unwrap();
                    assert_eq!(env.info().unwrap().newest, TxnId(txn + 1));
                    check(&env, "opened again");
                    whole += 1;
                }
                Err(Error::Corrupted { .. }) => {
                    assert!(!is_whole, "commit {txn} is whole and was refused");
                    assert!(file.image() == image, "a refusal changed the file");
                    gone += 1;
                }
                Err(error) => panic!("commit {txn}: {error}"),
            }
        }
    }
    assert!(whole >= 2 && gone >= 1, "{whole} whole, {gone} not");
}

/// Metas damaged at random: what can be listed can be looked at, and no byte is changed without the promise.
#[test]
fn damaged_metas_are_listed_and_never_trusted_silently() {
    let mut rng = rng();
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    let states = history(&env, 25, &mut rng);
    env.close().unwrap();
    let image = file.image();
    let newest = *states.keys().last().unwrap();
    let mut lost = 0;
    for _ in 0..300 {
        let mut damaged = image.clone();
        for _ in 0..1 + rng.below(40) {
            damaged[rng.index(4 * META)] ^= 1 << rng.below(8);
        }
        let file = MemoryFile::new(&damaged);
        // With all metas unreadable the first one may seem to be of another format.
        let stored = match Env::stored_commits_of(file.data().as_ref(), [2; 16]) {
            Err(Error::Version { .. } | Error::NotAStore { .. }) => continue,
            stored => stored.unwrap(),
        };
        lost += stored.iter().filter(|commit| commit.state == CommitState::Damaged).count();
        for txn in named(&stored) {
            match look(&file, txn).and_then(|env| read_all(&env)) {
                Ok(found) => assert_eq!(&found, &states[&txn]),
                Err(Error::Corrupted { .. } | Error::Invalid(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(file.image() == damaged);
        let chosen = [newest, newest - 1, newest - 2][rng.index(3)];
        if let Ok(env) = go_back(&file, chosen) {
            assert_eq!(contents(&env.read().unwrap()), states[&chosen]);
            // Metas of older commits may be damaged still.
            let problems = env.check(&mut |_, _| true).unwrap().problems;
            assert!(problems.iter().all(|problem| problem.page.0 < 4), "{problems:?}");
        } else {
            assert!(file.image() == damaged, "a refusal changed the file");
        }
    }
    assert!(lost > 0);
}

#[test]
fn going_back_needs_a_promise_and_a_commit_that_is_there() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    history(&env, 3, &mut Rng::new(1));
    env.close().unwrap();
    let image = file.image();
    let at = || Options::new().at_commit(TxnId(2));
    let refused = [
        at(),
        at().read_only(true).discard_newer(true),
        Options::new().discard_newer(true),
        Options::new().at_commit(TxnId(77)).read_only(true),
        Options::new().at_commit(TxnId(77)).discard_newer(true),
    ];
    for options in refused {
        let shown = format!("{options:?}");
        assert!(matches!(file.open_on_boot(2, options), Err(Error::Invalid(_))), "{shown}");
    }
    assert!(file.image() == image);
    // A missing store is not made.
    let (_dir, path) = fresh();
    assert!(at().discard_newer(true).open(&path).is_err());
    assert!(!path.exists());
}

fn made(path: &Path) -> u64 {
    let env = Options::new().open(path).unwrap();
    history(&env, 6, &mut Rng::new(2));
    let newest = env.info().unwrap().newest.0;
    env.close().unwrap();
    newest
}

/// With a real lock file: nobody else gets in while a commit is looked at, and nobody who has the store open is
/// disturbed.
#[test]
fn a_store_in_use_is_not_opened_at_a_commit() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let newest = made(&path);
    let at = |txn| Options::new().at_commit(TxnId(txn));
    let is_busy = |opened: zubilo::Result<Env>| matches!(opened, Err(Error::Busy(_)));
    {
        let env = Options::new().open(&path).unwrap();
        assert!(is_busy(at(newest - 1).read_only(true).open(&path)));
        assert!(is_busy(at(newest - 1).discard_newer(true).open(&path)));
        let other = fork(|| {
            assert!(is_busy(at(newest - 1).read_only(true).open(&path)));
            assert!(is_busy(at(newest - 1).discard_newer(true).open(&path)));
        });
        assert_ended_well(other);
        put_all(&env, "t", [("still", "here")]);
    }
    let env = at(newest).read_only(true).open(&path).unwrap();
    assert!(is_busy(Options::new().open(&path)), "one process, two commits");
    assert_ended_well(fork(|| assert!(is_busy(Options::new().open(&path)))));
    assert_eq!(env.info().unwrap().newest, TxnId(newest));
    drop(env);
    // As before: the look left nothing behind.
    let env = Options::new().open(&path).unwrap();
    assert_eq!(env.info().unwrap().newest, TxnId(newest + 1));
    drop(env);
    let env = at(newest).discard_newer(true).open(&path).unwrap();
    assert_eq!(env.info().unwrap().newest, TxnId(newest));
    // From now on a store like others.
    let other = fork(|| {
        let env = Options::new().open(&path).unwrap();
        put_all(&env, "t", [("another", "process")]);
    });
    assert_ended_well(other);
    assert_eq!(env.info().unwrap().newest, TxnId(newest + 1));
    check(&env, "gone back");
}

fn assert_ended_well(pid: i32) {
    let mut status = 0;
    // SAFETY: waits for a child of this process and writes one integer.
    let ended = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(ended, pid);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:x}");
}

/// Without a lock file, where others' commits are taken over: not by one who looks at a chosen one.
#[test]
fn a_look_stays_at_its_commit() {
    let (_dir, path) = fresh();
    let newest = made(&path);
    let options = Options::new().at_commit(TxnId(newest - 1)).read_only(true).lock_file(false);
    let env = options.open(&path).unwrap();
    for _ in 0..2 {
        let read = env.read().unwrap();
        assert_eq!(read.id(), TxnId(newest - 1));
    }
}

/// Salvage of a chosen commit tells of that one.
#[test]
fn salvage_takes_the_chosen_commit() {
    let (_dir, path) = fresh();
    let newest = made(&path);
    let env = Options::new().at_commit(TxnId(newest - 1)).read_only(true).open(&path).unwrap();
    let expected = contents(&env.read().unwrap());
    drop(env);
    let salvage = Salvage::open_at(&path, TxnId(newest - 1)).unwrap();
    assert_eq!(salvage.commit(), Some(TxnId(newest - 1)));
    let [table] = salvage.tables() else { panic!("{:?}", salvage.tables()) };
    let mut found = BTreeMap::new();
    let mut take = |key: &[u8], value: &[u8]| {
        found.insert(key.to_vec(), value.to_vec());
        Ok(())
    };
    salvage.records(table, &mut take).unwrap();
    assert_eq!(found, expected[&b"t"[..]]);
    assert!(matches!(Salvage::open_at(&path, TxnId(999)), Err(Error::Invalid(_))));
}
