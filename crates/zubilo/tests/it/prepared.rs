//! Two-phase commits: what a prepared transaction promises, to whom it is visible, who may decide, and when. Power cuts
//! are in `crates/sim`.

use std::time::SystemTime;

use zubilo::{CommitState, CompactOptions, Durability, Env, Error, Options, PreparedId, TxnId};

use crate::common::memory::MemoryFile;
use crate::common::process::{Program, apart, say, task, wait};
use crate::common::{Model, Rng, check, contents, fresh, number, put_all, rng};

/// A transaction that puts a record, prepared.
fn prepared(env: &Env, key: &str) -> zubilo::Prepared {
    let mut txn = env.write().unwrap();
    txn.table_or_create("t").unwrap().put(key, "value").unwrap();
    txn.prepare("a tag").unwrap()
}

fn has(env: &Env, key: &str) -> bool {
    let read = env.read().unwrap();
    read.table("t").is_ok_and(|table| table.get(key).unwrap().is_some())
}

fn is_refused<T>(result: zubilo::Result<T>, expected: TxnId) -> bool {
    matches!(result, Err(Error::Prepared { txn }) if txn == expected)
}

/// Everything that does not write goes on; what writes is refused, and nobody waits.
#[test]
fn readers_go_on_and_writers_are_refused() {
    for durability in [Durability::Sync, Durability::NoSync, Durability::LAZY] {
        let (dir, path) = fresh();
        let env = Options::new().durability(durability).open(&path).unwrap();
        put_all(&env, "t", [(*b"one", *b"1")]);
        let before = env.read().unwrap().id();
        let old = env.read().unwrap();
        let waiting = prepared(&env, "two");
        let (id, txn) = (waiting.id(), waiting.txn());
        assert_eq!((txn.0, env.info().unwrap().steady), (before.0 + 1, before));

        assert!(old.table("t").unwrap().get("two").unwrap().is_none() && !has(&env, "two"));
        let info = env.prepared().unwrap().unwrap();
        assert_eq!((info.id, info.txn, &info.tag[..]), (id, txn, &b"a tag"[..]));
        assert!(info.since <= SystemTime::now());
        assert_eq!((env.info().unwrap().newest, env.info().unwrap().untrusted), (before, None));
        check(&env, "while one is prepared");
        env.copy_to_path(dir.path().join("copy"), false, &mut |_, _| true).unwrap();
        let copy = Options::new().open(dir.path().join("copy")).unwrap();
        assert!(copy.prepared().unwrap().is_none() && !has(&copy, "two"));
        put_all(&copy, "t", [(*b"six", *b"6")]);
        let listed = Env::stored_commits(&path).unwrap();
        let states = |of| listed.iter().filter(|c| c.txn == Some(txn) && c.state == of).count();
        assert_eq!(states(CommitState::Prepared), 1, "{listed:?}");

        assert!(is_refused(env.write(), txn) && is_refused(env.try_write(), txn));
        assert!(is_refused(env.update(|txn| txn.table("t").map(drop)), txn));
        assert!(is_refused(env.compact(&CompactOptions::new(), &mut |_, _| true), txn));
        assert!(is_refused(env.read().unwrap().write(), txn));
        env.sync().unwrap();
        for wrong in [PreparedId(id.0 ^ 1), PreparedId(txn.0)] {
            assert!(matches!(env.commit_prepared(wrong), Err(Error::NotPrepared)));
            assert!(matches!(env.roll_back_prepared(wrong), Err(Error::NotPrepared)));
        }

        assert_eq!(waiting.commit().unwrap(), txn);
        assert!(has(&env, "two") && env.prepared().unwrap().is_none());
        assert!(old.table("t").unwrap().get("two").unwrap().is_none());
        drop(old);
        let again = env.commit_prepared(id);
        assert!(matches!(again, Err(Error::NotPrepared)), "{again:?}");
        put_all(&env, "t", [(*b"two", *b"2")]);
        check(&env, "after it is committed");
    }
}

/// What the metas of a file say: transaction, whether it is prepared, the opening that is in pages, too.
fn metas(path: &std::path::Path) -> Vec<(u64, bool, u32)> {
    let bytes = std::fs::read(path).unwrap();
    let short = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let meta = |i: usize| (long(i * 4096 + 56), short(i * 4096 + 16) == 258, short(i * 4096 + 268));
    (0..4).map(meta).filter(|meta| meta.0 > 0).collect()
}

/// After a roll-back the number is another transaction's, which bears another identity, and pages that differ from those
/// of the first.
#[test]
fn a_number_that_is_used_again_is_another_transaction() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", [(*b"one", *b"1")]);
    let first = prepared(&env, "two");
    let (id, txn) = (first.id(), first.txn());
    let opening = metas(&path).into_iter().find(|(_, is_prepared, _)| *is_prepared).unwrap().2;
    env.roll_back_prepared(id).unwrap();
    let second = prepared(&env, "six");
    assert!(second.txn() == txn && second.id() != id);
    let again = metas(&path).into_iter().find(|(_, is_prepared, _)| *is_prepared).unwrap();
    assert!(again.0 == txn.0 && again.2 != opening);
    // Who comes late decides nothing.
    assert!(matches!(first.commit(), Err(Error::NotPrepared)));
    assert!(matches!(env.roll_back_prepared(id), Err(Error::NotPrepared)));
    assert_eq!(env.prepared().unwrap().unwrap().id, second.id());
    second.roll_back().unwrap();
    put_all(&env, "t", [(*b"six", *b"6")]);
    let found = metas(&path).into_iter().find(|meta| meta.0 == txn.0).unwrap();
    assert!(!found.1 && found.2 != opening && found.2 != again.2);
    assert!(has(&env, "six") && !has(&env, "two"));
}

/// Copies have the newest commit, whatever they are made by.
#[test]
fn copies_have_nothing_of_what_is_prepared() {
    let (dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", [(*b"one", *b"1")]);
    let base = env.read().unwrap().id();
    let file = |name: &str| dir.path().join(name);
    env.copy_to_path(file("full"), false, &mut |_, _| true).unwrap();
    put_all(&env, "t", [(*b"six", *b"6")]);
    let waiting = prepared(&env, "two");
    env.copy_to_path(file("plain"), false, &mut |_, _| true).unwrap();
    env.copy_to_path(file("compacted"), true, &mut |_, _| true).unwrap();
    let mut changes = Vec::new();
    env.copy_changes_to_writer(base, &mut changes, &mut |_, _| true).unwrap();
    zubilo::restore(file("full"), &mut [&mut &changes[..]], file("restored"), &mut |_, _| true)
        .unwrap();
    for name in ["plain", "compacted", "restored"] {
        let copy = Options::new().open(file(name)).unwrap();
        assert!(copy.prepared().unwrap().is_none(), "{name}");
        assert!(has(&copy, "six") && !has(&copy, "two"), "{name}");
        put_all(&copy, "t", [(*b"ten", *b"X")]);
        check(&copy, name);
    }
    waiting.commit().unwrap();
    check(&env, "after the copies");
}

/// Without a lock file nothing is decided, and what is prepared by others is respected, also where it came after the open.
#[test]
fn users_without_a_lock_file_leave_it_alone() {
    for commits in [true, false] {
        let file = MemoryFile::new(&[]);
        let env = file.open(Options::new().durability(Durability::NoSync)).unwrap();
        put_all(&env, "t", [(*b"one", *b"1")]);
        let open = || {
            let options = Options::new().lock_file(false).durability(Durability::NoSync);
            file.open(options).unwrap()
        };
        let early = open();
        let waiting = prepared(&env, "two");
        let late = open();
        // SAFETY: no transaction of these handles is under way.
        unsafe { early.raw_adopt() }.unwrap();
        for other in [&early, &late] {
            assert!(is_refused(other.write(), waiting.txn()));
            assert_eq!(other.prepared().unwrap().unwrap().id, waiting.id());
            let decided = [
                other.commit_prepared(waiting.id()).map(drop),
                other.roll_back_prepared(waiting.id()),
            ];
            assert!(decided.iter().all(|d| matches!(d, Err(Error::Invalid(_)))), "{decided:?}");
            other.sync().unwrap();
        }
        let id = waiting.id();
        match commits {
            true => drop(waiting.commit().unwrap()),
            false => waiting.roll_back().unwrap(),
        }
        for other in [&early, &late] {
            // SAFETY: as above.
            unsafe { other.raw_adopt() }.unwrap();
            assert!(other.prepared().unwrap().is_none() && has(other, "two") == commits);
            assert!(matches!(other.commit_prepared(id), Err(Error::Invalid(_))));
        }
        drop(env);
        put_all(&early, "t", [(*b"six", *b"6")]);
        check(&early, "a user without a lock file");
    }
}

/// A description that is damaged: nothing says that nobody waits, and it can be given up.
#[test]
fn a_damaged_description_can_be_given_up() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    put_all(&env, "t", [(*b"one", *b"1")]);
    let waiting = prepared(&env, "two");
    let image = file.image();
    let slot = (0..4).find(|i| image[i * 4096 + 17] == 1).unwrap();
    file.flip(slot * 4096 + 60, 1);
    assert_eq!(env.prepared().unwrap().unwrap().id, waiting.id(), "one sector is made anew");
    file.flip(slot * 4096 + 700, 1);
    assert!(matches!(env.prepared(), Err(Error::Corrupted { .. })));
    assert!(is_refused(env.write(), waiting.txn()));
    let committed = env.commit_prepared(waiting.id());
    assert!(matches!(committed, Err(Error::Corrupted { .. })), "{committed:?}");
    assert!(matches!(env.roll_back_prepared(PreparedId(1)), Err(Error::NotPrepared)));
    waiting.roll_back().unwrap();
    assert!(env.prepared().unwrap().is_none());
    put_all(&env, "t", [(*b"six", *b"6")]);
    check(&env, "after it was given up");
}

/// Going back to an older commit gives up what is prepared, like all that is newer; who only looks does not.
#[test]
fn a_chosen_commit_is_one_without_it() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", [(*b"one", *b"1")]);
    // Its pages stay as long as somebody reads them.
    let old = env.read().unwrap();
    let back = old.id();
    put_all(&env, "t", [(*b"six", *b"6")]);
    let waiting = prepared(&env, "two");
    let id = waiting.id();
    drop((waiting, old, env));
    let reader = Options::new().read_only(true).open(&path).unwrap();
    assert_eq!(reader.prepared().unwrap().unwrap().id, id);
    assert!(matches!(reader.commit_prepared(id), Err(Error::ReadOnly)));
    drop(reader);
    let at = || Options::new().at_commit(back);
    let looked = at().read_only(true).open(&path).unwrap();
    assert!(looked.prepared().unwrap().is_none() && !has(&looked, "six"));
    drop(looked);
    assert_eq!(Options::new().open(&path).unwrap().prepared().unwrap().unwrap().id, id);
    let env = at().discard_newer(true).open(&path).unwrap();
    assert!(env.prepared().unwrap().is_none() && !has(&env, "six"));
    drop(env);
    let env = Options::new().open(&path).unwrap();
    assert!(env.prepared().unwrap().is_none());
    put_all(&env, "t", [(*b"ten", *b"X")]);
    put_all(&env, "t", [(*b"two", *b"2")]);
    check(&env, "after going back");
}

#[test]
fn what_cannot_be_prepared_is_refused() {
    let (dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let refused = |result: zubilo::Result<zubilo::Prepared>, why: &str| {
        let said = result.map(drop).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    };
    refused(env.write().unwrap().prepare(""), "without changes");
    let change = |env: &Env| {
        let mut txn = env.write().unwrap();
        txn.table_or_create("t").unwrap().put("key", "value").unwrap();
        txn
    };
    refused(change(&env).prepare([0; 65]), "64 bytes");
    let logged = Options::new().redo_log(1 << 20).open(dir.path().join("logged")).unwrap();
    change(&logged).commit().unwrap();
    change(&logged).commit().unwrap();
    refused(change(&logged).prepare(""), "redo log");
    let lonely = Options::new().lock_file(false).open(dir.path().join("lonely")).unwrap();
    refused(change(&lonely).prepare(""), "lock file");
    // Nothing is left of the attempts.
    for env in [&env, &logged, &lonely] {
        assert!(env.prepared().unwrap().is_none());
        change(env).commit().unwrap();
        check(env, "after a refusal");
    }
    // The longest tag, and a nested level that is open.
    let mut txn = change(&env);
    txn.begin_nested().unwrap();
    txn.table("t").unwrap().put("nested", "value").unwrap();
    let waiting = txn.prepare([7; 64]).unwrap();
    assert_eq!(env.prepared().unwrap().unwrap().tag, [7; 64]);
    waiting.commit().unwrap();
    assert!(has(&env, "nested"));
}

/// Random lives, with decisions made at once, after the store was opened anew, and by another one who found what waits.
#[test]
fn decisions_give_what_they_name() {
    let mut rng = rng();
    for round in 0..number("PREPARED_ROUNDS", 20) {
        let (_dir, path) = fresh();
        let durability = rng.pick(&[Durability::Sync, Durability::NoSync]);
        let page_size = rng.pick(&[4096, 16384]);
        let open =
            || Options::new().durability(durability).page_size(page_size).open(&path).unwrap();
        let mut env = open();
        let mut model = Model::new();
        for step in 0..12 {
            let what = format!("round {round}, step {step}");
            let mut txn = env.write().unwrap();
            let mut after = model.clone();
            change(&mut txn, &mut after, &mut rng);
            if rng.one_in(3) {
                txn.commit().unwrap();
                model = after;
                continue;
            }
            let waiting = txn.prepare(step.to_string()).unwrap();
            let id = waiting.id();
            assert_eq!(contents(&env.read().unwrap()), model, "{what}");
            let commits = rng.one_in(2);
            let mut waiting = Some(waiting);
            if rng.one_in(2) {
                waiting = None;
                if rng.one_in(2) {
                    drop(env);
                    env = open();
                    assert_eq!(contents(&env.read().unwrap()), model, "{what}");
                }
                assert_eq!(env.prepared().unwrap().unwrap().tag, step.to_string().as_bytes());
            }
            match (waiting, commits) {
                (Some(waiting), true) => drop(waiting.commit().unwrap()),
                (Some(waiting), false) => waiting.roll_back().unwrap(),
                (None, true) => drop(env.commit_prepared(id).unwrap()),
                (None, false) => env.roll_back_prepared(id).unwrap(),
            }
            model = if commits { after } else { model };
            assert_eq!(contents(&env.read().unwrap()), model, "{what}");
            check(&env, &what);
        }
    }
}

fn change(txn: &mut zubilo::WriteTxn, model: &mut Model, rng: &mut Rng) {
    for _ in 0..1 + rng.below(3) {
        let name = format!("table {}", rng.below(4));
        let mut table = txn.table_or_create(&name).unwrap();
        let records = model.entry(name.into_bytes()).or_default();
        for _ in 0..1 + rng.below(60) {
            let key = rng.below(400).to_be_bytes();
            if rng.one_in(5) {
                table.delete(key).unwrap();
                records.remove(&key[..]);
            } else {
                let len = if rng.one_in(20) { 9000 } else { rng.below(100) as usize };
                let value = rng.bytes(len);
                table.put(key, &value).unwrap();
                records.insert(key.to_vec(), value);
            }
        }
    }
    // So that there is always a change.
    let value = rng.bytes(16);
    txn.table_or_create("always").unwrap().put("key", &value).unwrap();
    model.entry(b"always".to_vec()).or_default().insert(b"key".to_vec(), value);
}

/// Each call to the disk fails once, in preparing and in either decision: the store is then as it was, waits, or after a
/// flush that failed waits for being opened again.
#[test]
fn each_call_may_fail() {
    for (phase, weak) in [(0, false), (1, false), (2, false), (0, true), (1, true), (2, true)] {
        let mut failures = 0;
        for nth in 0.. {
            let file = MemoryFile::new(&[]);
            let durability = if weak { Durability::NoSync } else { Durability::Sync };
            let options = || Options::new().durability(durability);
            let env = file.open(options()).unwrap();
            put_all(&env, "t", [(*b"one", *b"1")]);
            let begin = || {
                let mut txn = env.write().unwrap();
                txn.table("t").unwrap().put("two", "2").unwrap();
                txn
            };
            let what = format!("phase {phase}, weak {weak}, call {nth}");
            let waiting = if phase == 0 { None } else { Some(begin().prepare("tag").unwrap()) };
            let fresh = if phase == 0 { Some(begin()) } else { None };
            file.fail(nth, 1);
            let result = match (fresh, waiting) {
                (Some(txn), _) => txn.prepare("tag").map(drop),
                (_, Some(waiting)) if phase == 1 => waiting.commit().map(drop),
                (_, Some(waiting)) => waiting.roll_back(),
                (None, None) => unreachable!(),
            };
            let failed = file.heal();
            if !failed {
                result.expect(&what);
                break;
            }
            failures += 1;
            let poisoned = matches!(env.write().map(drop), Err(Error::Poisoned { .. }));
            let env = match poisoned {
                true => {
                    drop(env);
                    // What was written may have come to the disk or not: here it has.
                    file.open_on_boot(2, options()).unwrap()
                }
                false => env,
            };
            let waits = env.prepared().unwrap().is_some();
            match (phase, result.is_ok(), waits) {
                // A failure after the last step that counts.
                (0, true, _) => assert!(waits, "{what}"),
                (1, true, _) => assert!(!waits && has(&env, "two"), "{what}"),
                (2, true, _) => assert!(!waits && !has(&env, "two"), "{what}"),
                (0, false, false) | (1 | 2, false, true) => assert!(!has(&env, "two"), "{what}"),
                (_, false, _) => assert!(poisoned, "{what}: {result:?}"),
                _ => unreachable!(),
            }
            if let Some(info) = env.prepared().unwrap() {
                env.commit_prepared(info.id).expect(&what);
                assert!(has(&env, "two"), "{what}");
            }
            put_all(&env, "t", [(*b"six", *b"6")]);
            check(&env, &what);
        }
        assert!(failures > 1, "phase {phase}: {failures} calls failed");
    }
}

/// A transaction that filled the store to its bound can be committed: that needs no room.
#[test]
fn a_commit_needs_no_room() {
    let (_dir, path) = fresh();
    let geometry = crate::common::geometry(|geometry| geometry.upper = 1 << 20);
    let env = Options::new().geometry(geometry).open(&path).unwrap();
    let mut most = 0;
    for size in (100..1 << 20).step_by(4096) {
        let mut txn = env.write().unwrap();
        txn.table_or_create("t").unwrap().put("large", vec![1; size]).unwrap();
        match txn.prepare("") {
            Ok(waiting) => {
                waiting.roll_back().unwrap();
                most = size;
            }
            Err(Error::MapFull { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(most > 100_000 && env.prepared().unwrap().is_none());
    let mut txn = env.write().unwrap();
    txn.table_or_create("t").unwrap().put("large", vec![1; most]).unwrap();
    txn.prepare("").unwrap().commit().unwrap();
    assert!(has(&env, "large"));
    check(&env, "a full store");
}

#[test]
#[ignore = "a program that another test runs"]
fn prepares_and_waits() {
    let Some(path) = task() else { return };
    let env = Options::new().open(path).unwrap();
    let waiting = prepared(&env, "two");
    say(waiting.txn());
    wait();
    waiting.commit().unwrap();
}

/// Who prepared it is killed: those who had the store open all the time and those who come later find it, and decide.
#[test]
fn the_killed_leave_it_to_others() {
    let _apart = apart();
    for (commits, stays_open) in [(true, true), (true, false), (false, true), (false, false)] {
        let (_dir, path) = fresh();
        let env = Options::new().open(&path).unwrap();
        put_all(&env, "t", [(*b"one", *b"1")]);
        let here = stays_open.then(|| env.clone());
        drop(env);
        let mut other = Program::start("prepared::prepares_and_waits", &path);
        let txn = TxnId(other.hear().parse().unwrap());
        if let Some(here) = &here {
            assert!(is_refused(here.write(), txn), "it waits in another process");
            assert_eq!(here.prepared().unwrap().unwrap().txn, txn);
        }
        other.kill();
        let env = here.unwrap_or_else(|| Options::new().open(&path).unwrap());
        assert!(is_refused(env.write(), txn) && !has(&env, "two"));
        let id = env.prepared().unwrap().unwrap().id;
        match commits {
            true => drop(env.commit_prepared(id).unwrap()),
            false => env.roll_back_prepared(id).unwrap(),
        }
        assert_eq!(has(&env, "two"), commits);
        put_all(&env, "t", [(*b"six", *b"6")]);
        check(&env, "after the decision of another process");
    }
}

/// Two processes: the one that prepared finds that the other has decided.
#[test]
fn another_process_may_be_first() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let waiting = prepared(&env, "two");
    let other = Program::start("prepared::decides_to_roll_back", &path);
    other.finish();
    let late = waiting.commit();
    assert!(matches!(late, Err(Error::NotPrepared)), "{late:?}");
    assert!(!has(&env, "two"));
    put_all(&env, "t", [(*b"six", *b"6")]);
    check(&env, "after the decision of another process");
}

#[test]
#[ignore = "a program that another test runs"]
fn decides_to_roll_back() {
    let Some(path) = task() else { return };
    let env = Options::new().open(path).unwrap();
    env.roll_back_prepared(env.prepared().unwrap().unwrap().id).unwrap();
}
