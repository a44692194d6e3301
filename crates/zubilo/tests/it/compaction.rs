//! Compaction in place: nothing changes but the room that it takes. Whatever a store holds, its content
//! stays, the full check finds nothing after any step, the file ends near what is in use, and a second
//! compaction has nothing to write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zubilo::{
    CompactOptions, CompactReport, Durability, Env, Error, Options, PageKind, TableOptions,
};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check, fresh, geometry, number, put_all, rng};

type Pair = (Vec<u8>, Vec<u8>);

/// Steps so small that there are many of them.
fn small_steps() -> CompactOptions {
    CompactOptions::new().step(64 << 10, Duration::from_secs(5)).pause(Duration::ZERO)
}

/// All records of all tables, with every value of a key.
fn everything(env: &Env) -> Vec<(Vec<u8>, Vec<Pair>)> {
    let read = env.read().unwrap();
    let mut all = Vec::new();
    for name in read.tables().unwrap() {
        let table = read.table(&name).unwrap();
        let own = |r: zubilo::Result<(&[u8], &[u8])>| r.map(|(k, v)| (k.to_vec(), v.to_vec()));
        let mut pairs: Vec<Pair> = Vec::new();
        for record in table.iter() {
            let (key, value) = own(record).unwrap();
            if pairs.last().is_none_or(|(last, _)| *last != key)
                || !table.options().has_duplicates()
            {
                pairs.push((key, value));
            }
        }
        if table.options().has_duplicates() {
            let keys: Vec<Vec<u8>> = pairs.drain(..).map(|(key, _)| key).collect();
            for key in keys {
                for value in table.get_all(&key).unwrap() {
                    pairs.push((key.clone(), value.unwrap().to_vec()));
                }
            }
        }
        assert_eq!(table.len(), pairs.len() as u64);
        all.push((name, pairs));
    }
    all
}

/// Compacts in small steps, with a full check after each; the content must stay.
#[track_caller]
fn compact(env: &Env, options: &CompactOptions, what: &str) -> CompactReport {
    let before = everything(env);
    let mut steps = 0;
    let report = env.compact(options, &mut |done, total| {
        assert!(done <= total, "{what}: {done} of {total}");
        steps += 1;
        if steps < 200 || steps % 50 == 0 {
            check(env, what);
        }
        true
    });
    let report = report.unwrap_or_else(|e| panic!("{what}: {e}"));
    check(env, what);
    assert!(everything(env) == before, "{what}: the content has changed");
    assert!(report.finished, "{what}: {report:?}");
    report
}

/// Bytes of the pages that tables and the free-space log need.
fn live(env: &Env) -> u64 {
    let space = env.space().unwrap();
    (space.pages - space.free_pages - space.retired_pages) * env.page_size() as u64
}

/// The store is as small as it can be, and compacting it once more writes nothing.
#[track_caller]
fn assert_compact(env: &Env, what: &str) {
    assert_compact_within(env, 16, what);
}

/// The same, where a part (one in `slack`) of the live data may be lost to holes.
#[track_caller]
fn assert_compact_within(env: &Env, slack: u64, what: &str) {
    let info = env.info().unwrap();
    let page = info.page_size as u64;
    let live = live(env);
    let most = live + live / slack + 40 * page;
    let space = env.space().unwrap();
    assert!(info.used_len <= most, "{what}: {live} bytes live, {space:?}, {info:?}");
    assert!(info.file_len <= most.next_multiple_of(64 << 10).max(info.geometry.lower), "{what}");
    let again = compact(env, &CompactOptions::new(), what);
    assert_eq!(again.commits, 0, "{what}: the second compaction: {again:?}");
    assert_eq!(env.info().unwrap().newest, info.newest, "{what}");
}

/// Random keys and values in several commits, so that the file has holes.
fn random_load(env: &Env, table: &str, options: &TableOptions, count: u64, rng: &mut Rng) {
    for _ in 0..8 {
        let mut txn = env.write().unwrap();
        let mut table = txn.table_or_create_with(table, options).unwrap();
        for _ in 0..count / 8 {
            let len = rng.pick(&[4, 40, 100, 300]);
            table
                .put([rng.next(), rng.next()].map(u64::to_be_bytes).concat(), rng.bytes(len))
                .unwrap();
        }
        txn.commit().unwrap();
    }
}

fn fill_of(env: &Env, table: &str) -> f64 {
    let read = env.read().unwrap();
    let stats = read.table(table).unwrap().stats();
    let bytes: usize = read
        .table(table)
        .unwrap()
        .iter()
        .map(|r| r.unwrap())
        .map(|(k, v)| k.len() + v.len() + 10)
        .sum();
    bytes as f64 / (stats.leaf_pages as f64 * (env.page_size() - 48) as f64)
}

#[test]
fn random_records_are_packed_in_every_page_size() {
    let mut rng = rng();
    for page in [4096, 8192, 16384, 32768, 65536] {
        let (_dir, path) = fresh();
        let env = Options::new().page_size(page).open(&path).unwrap();
        let count = 40_000;
        random_load(&env, "t", &TableOptions::new(), count, &mut rng);
        let before = fill_of(&env, "t");
        let what = format!("pages of {page}");
        let report = compact(&env, &small_steps(), &what);
        let after = fill_of(&env, "t");
        assert!(before < 0.9 && after > 0.93, "{what}: from {before:.3} to {after:.3}");
        assert!(report.pages_saved > 0 && report.file_after < report.file_before, "{report:?}");
        assert_compact(&env, &what);
    }
}

#[test]
fn a_wish_for_room_is_heard() {
    let mut rng = rng();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    random_load(&env, "t", &TableOptions::new(), 20_000, &mut rng);
    for (percent, from, to) in [(90, 0.86, 0.9), (100, 0.95, 1.0)] {
        compact(&env, &small_steps().fill(percent), "room");
        let fill = fill_of(&env, "t");
        assert!((from..=to).contains(&fill), "{percent}: {fill:.3}");
    }
    for percent in [0, 49, 101] {
        let refused = env.compact(&CompactOptions::new().fill(percent), &mut |_, _| true);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}

/// Removes all but one record of ten, in many commits.
fn thin_out(env: &Env, table: &str, rng: &mut Rng) {
    let keys: Vec<Vec<u8>> =
        env.read().unwrap().table(table).unwrap().iter().map(|r| r.unwrap().0.to_vec()).collect();
    for some in keys.chunks(keys.len() / 10 + 1) {
        let mut txn = env.write().unwrap();
        let mut table = txn.table(table).unwrap();
        for key in some.iter().filter(|_| !rng.one_in(10)) {
            table.delete(key).unwrap();
        }
        txn.commit().unwrap();
    }
}

#[test]
fn what_deleting_leaves_behind_is_brought_together() {
    let mut rng = rng();
    for page in [4096, 16384] {
        let (_dir, path) = fresh();
        let env = Options::new().page_size(page).open(&path).unwrap();
        random_load(&env, "t", &TableOptions::new(), 30_000, &mut rng);
        thin_out(&env, "t", &mut rng);
        let report = compact(&env, &small_steps(), "after deleting");
        assert!(report.file_after * 5 < report.file_before, "{report:?}");
        assert_compact(&env, "after deleting");
    }
}

#[test]
fn counted_tables_keep_their_counts() {
    let mut rng = rng();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    random_load(&env, "t", &TableOptions::new().counted(), 30_000, &mut rng);
    thin_out(&env, "t", &mut rng);
    random_load(&env, "t", &TableOptions::new().counted(), 10_000, &mut rng);
    compact(&env, &small_steps(), "counted");
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    for (n, record) in table.iter().enumerate().step_by(97) {
        assert_eq!(table.nth(n as u64).unwrap(), Some(record.unwrap()));
    }
    drop(read);
    assert_compact(&env, "counted");
}

/// Keys with one value, few and very many.
fn duplicates(env: &Env, name: &str, options: &TableOptions, rng: &mut Rng) {
    for _ in 0..6 {
        let mut txn = env.write().unwrap();
        let mut table = txn.table_or_create_with(name, options).unwrap();
        for _ in 0..8000 {
            let fixed = options.has_fixed_values();
            let key = match rng.below(4) {
                // Small values fill few pages: those of three trees would now and then be as few as can be.
                0 if fixed => 0,
                0 => rng.below(3),
                1 => 100 + rng.below(300),
                _ => 1000 + rng.below(3000),
            };
            let len = if fixed { 8 } else { 1 + rng.below(60) as usize };
            let mut value = rng.next().to_be_bytes().to_vec();
            value.resize(8.max(len), 7);
            table.put(key.to_be_bytes(), &value[..if fixed { 8 } else { value.len() }]).unwrap();
        }
        txn.commit().unwrap();
    }
}

#[test]
fn sets_and_trees_of_values_are_packed() {
    let mut rng = rng();
    for (name, options) in [
        ("sizes", TableOptions::new().duplicates()),
        ("fixed", TableOptions::new().fixed_duplicates()),
        ("counted", TableOptions::new().duplicates().counted()),
    ] {
        let (_dir, path) = fresh();
        let env = Options::new().open(&path).unwrap();
        duplicates(&env, name, &options, &mut rng);
        let pages = |env: &Env| {
            let read = env.read().unwrap();
            read.table(name).unwrap().stats().value_pages
        };
        let before = pages(&env);
        compact(&env, &small_steps(), name);
        assert!(pages(&env) < before, "{name}: {before} pages of values");
        assert_compact(&env, name);
        // With steps of a page or so every walk is interrupted inside of a tree of values.
        duplicates(&env, name, &options, &mut rng);
        compact(&env, &small_steps().step(1, Duration::ZERO), name);
        assert_compact(&env, name);
    }
}

#[test]
fn large_values_move_down() {
    let mut rng = rng();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let sizes = [3000, 9000, 30_000, 120_000];
    for n in 0..400u64 {
        let len = rng.pick(&sizes);
        put_all(&env, if n % 2 == 0 { "a" } else { "b" }, [(n.to_be_bytes(), rng.bytes(len))]);
    }
    for n in 0..400u64 {
        if !rng.one_in(8) {
            let mut txn = env.write().unwrap();
            let table = if n % 2 == 0 { "a" } else { "b" };
            txn.table(table).unwrap().delete(n.to_be_bytes()).unwrap();
            txn.commit().unwrap();
        }
    }
    let report = compact(&env, &small_steps(), "large values");
    assert!(report.pages_moved > 0 && report.file_after * 3 < report.file_before, "{report:?}");
    // A large value moves only into a hole that holds all of it: with values of 1 to 30 pages some
    // holes stay (a fifth of the data with seed 1795317555143536445).
    assert_compact_within(&env, 3, "large values");
}

#[test]
fn many_tables_of_every_kind() {
    let mut rng = rng();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    for n in 0..60 {
        put_all(
            &env,
            &format!("small-{n}"),
            (0..n * n / 2).map(|i: u32| (i.to_be_bytes(), "value")),
        );
    }
    random_load(&env, "random", &TableOptions::new(), 8000, &mut rng);
    random_load(&env, "aligned", &TableOptions::new().align_values(16), 8000, &mut rng);
    duplicates(&env, "pairs", &TableOptions::new().duplicates(), &mut rng);
    for n in (0..60).filter(|n| n % 3 != 0) {
        let mut txn = env.write().unwrap();
        txn.drop_table(format!("small-{n}")).unwrap();
        txn.commit().unwrap();
    }
    thin_out(&env, "random", &mut rng);
    let report = compact(&env, &small_steps(), "many tables");
    assert!(report.file_after < report.file_before, "{report:?}");
    assert_compact(&env, "many tables");
}

fn backwards(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    b.cmp(a)
}

#[test]
fn a_callers_order_must_be_known() {
    let mut rng = rng();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let options = TableOptions::new().compare_keys(backwards);
    random_load(&env, "odd", &options, 20_000, &mut rng);
    put_all(&env, "even", [("k", "v")]);
    let leaves = |env: &Env| env.read().unwrap().table_stats("odd").unwrap().leaf_pages;
    let all = |env: &Env| -> Vec<Pair> {
        let read = env.read().unwrap();
        let table = read.table_with("odd", &options).unwrap();
        table.iter().map(|r| r.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
    };
    let (before, records) = (leaves(&env), all(&env));
    let report = env.compact(&small_steps(), &mut |_, _| true).unwrap();
    assert_eq!(report.left_alone, [b"odd".to_vec()]);
    assert_eq!(leaves(&env), before);
    let options_known = small_steps().table("odd", options.clone());
    let report = env.compact(&options_known, &mut |_, _| true).unwrap();
    assert!(report.left_alone.is_empty() && leaves(&env) < before * 9 / 10, "{report:?}");
    assert!(all(&env) == records);
    check(&env, "a caller's order");
}

#[test]
fn without_flushes_pages_fall_free_too() {
    let mut rng = rng();
    for durability in [Durability::NoSync, Durability::LAZY] {
        let (_dir, path) = fresh();
        let env = Options::new().durability(durability).open(&path).unwrap();
        random_load(&env, "t", &TableOptions::new(), 30_000, &mut rng);
        thin_out(&env, "t", &mut rng);
        let report = compact(&env, &small_steps(), "weak commits");
        assert!(report.file_after * 5 < report.file_before, "{report:?}");
        assert_compact(&env, "weak commits");
    }
}

#[test]
fn beside_a_sleeping_reader_the_file_does_not_grow_much() {
    let mut rng = rng();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    random_load(&env, "t", &TableOptions::new(), 60_000, &mut rng);
    let sleeper = env.read().unwrap();
    let asleep = everything(&env);
    put_all(&env, "t", [("one", "more")]);
    let before = everything(&env);
    let report = env.compact(&small_steps(), &mut |_, _| true).unwrap();
    check(&env, "beside a reader");
    assert!(everything(&env) == before);
    assert!(report.used_after < report.used_before * 5 / 4, "{report:?}");
    assert!(report.held > 0 && report.held_by.as_ref().is_some_and(|r| r.txn == sleeper.id()));
    let table = sleeper.table("t").unwrap();
    assert!(table.iter().map(|r| r.unwrap()).eq(asleep[0].1.iter().map(|(k, v)| (&k[..], &v[..]))));
    drop(sleeper);
    compact(&env, &small_steps(), "after the reader");
    assert_compact(&env, "after the reader");
}

#[test]
fn others_write_meanwhile() {
    let mut rng = rng();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    random_load(&env, "t", &TableOptions::new(), 30_000, &mut rng);
    thin_out(&env, "t", &mut rng);
    random_load(&env, "u", &TableOptions::new(), 10_000, &mut rng);
    let stop = AtomicBool::new(false);
    let (written, report) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let mut txn = env.write().unwrap();
                let mut table = txn.table("t").unwrap();
                for i in 0..5 {
                    table.put((written * 5 + i).to_be_bytes(), [1; 50]).unwrap();
                }
                txn.commit().unwrap();
                written += 1;
                // The writer lock is not fair: whoever takes it again at once may keep another waiting for
                // as long as the machine is busy.
                std::thread::sleep(Duration::from_micros(100));
            }
            written
        });
        let options = small_steps().pause(Duration::from_millis(1));
        let report = env.compact(&options, &mut |_, _| true).unwrap();
        stop.store(true, Ordering::Relaxed);
        (writer.join().unwrap(), report)
    });
    check(&env, "beside a writer");
    assert!(report.commits > 1 && written > report.commits / 4, "{written} beside {report:?}");
    let read = env.read().unwrap();
    for n in 0..written * 5 {
        assert_eq!(read.table("t").unwrap().get(n.to_be_bytes()).unwrap(), Some(&[1; 50][..]));
    }
    drop(read);
    compact(&env, &small_steps(), "after the writer");
    assert_compact(&env, "after the writer");
}

#[test]
fn it_can_be_stopped_and_taken_up_again() {
    let mut rng = rng();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    random_load(&env, "t", &TableOptions::new(), 30_000, &mut rng);
    thin_out(&env, "t", &mut rng);
    let before = everything(&env);
    let tiny_steps = small_steps().step(16 << 10, Duration::from_secs(5));
    for stop_at in 1..6 {
        let mut steps = 0;
        let stopped = env.compact(&tiny_steps, &mut |_, _| {
            steps += 1;
            steps < stop_at
        });
        assert!(!stopped.unwrap().finished);
        check(&env, "stopped");
        assert!(everything(&env) == before);
    }
    compact(&env, &small_steps(), "taken up");
    assert_compact(&env, "taken up");
}

#[test]
fn an_empty_store_and_a_tiny_one() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    assert_compact(&env, "empty");
    put_all(&env, "t", [("k", "v")]);
    compact(&env, &small_steps(), "tiny");
    assert_compact(&env, "tiny");
    drop(env);
    let read_only = Options::new().read_only(true).open(&path).unwrap();
    assert!(matches!(read_only.compact(&small_steps(), &mut |_, _| true), Err(Error::ReadOnly)));
}

/// Calls of the file fail at any moment: the error is returned, the content is what it was, and after a
/// failed flush too when the store is opened again.
#[test]
fn failing_calls_leave_the_content() {
    failing_calls(rng());
}

/// One of the large values beyond the target found no run of free pages until the others had been moved.
#[test]
fn a_value_without_room_moves_after_the_others() {
    failing_calls(Rng::new(1795398601912173615));
}

fn failing_calls(mut rng: Rng) {
    let (mut failed, mut fine) = (0, 0);
    for round in 0..number("ZUBILO_CASES", 60) {
        let durability = rng.pick(&[Durability::Sync, Durability::NoSync]);
        let options = Options::new().durability(durability);
        let file = MemoryFile::new(&[]);
        let mut env = file.open(options.clone()).unwrap();
        random_load(&env, "t", &TableOptions::new(), 4000, &mut rng);
        put_all(&env, "u", (0..20u64).map(|n| (n.to_be_bytes(), rng.bytes(9000))));
        thin_out(&env, "t", &mut rng);
        env.sync().unwrap();
        let before = everything(&env);
        let after = if round % 4 == 0 { 10_000 } else { rng.below(60) };
        file.fail(after as i64, rng.pick(&[1, 1, 2, 1000]));
        let result =
            env.compact(&small_steps().step(20 << 10, Duration::from_secs(9)), &mut |_, _| true);
        file.heal();
        match &result {
            Ok(_) => fine += 1,
            Err(Error::Io { .. } | Error::Poisoned { .. }) => failed += 1,
            Err(other) => panic!("round {round}: {other:?}"),
        }
        assert!(everything(&env) == before, "round {round}: {result:?}");
        if matches!(env.write(), Err(Error::Poisoned { .. })) {
            env.close_without_sync();
            env = file.open(options).unwrap();
            assert!(everything(&env) == before, "round {round}: opened again");
        }
        check(&env, "after a failure");
        let taken_up = compact(&env, &small_steps(), "taken up");
        assert_compact(&env, &format!("{durability:?}: {result:?}, then {taken_up:?}"));
    }
    assert!(failed > 5 && fine >= 15, "{failed} failed, {fine} fine");
}

/// A store that may hardly grow is compacted with the room that it has, or says that a step has none.
#[test]
fn a_store_at_its_bound() {
    let mut rng = rng();
    for holes in [false, true] {
        let (_dir, path) = fresh();
        let env = Options::new().open(&path).unwrap();
        random_load(&env, "t", &TableOptions::new(), 20_000, &mut rng);
        compact(&env, &small_steps().fill(60), "before the bound");
        if holes {
            thin_out(&env, "t", &mut rng);
        }
        let mut txn = env.write().unwrap();
        let used = env.info().unwrap().used_len + 8 * env.page_size() as u64;
        txn.set_geometry(geometry(|g| (g.lower, g.upper) = (0, used))).unwrap();
        txn.commit().unwrap();
        let before = everything(&env);
        // All of it in one step, which is more than the bound leaves where there are no holes.
        let options =
            if holes { small_steps() } else { small_steps().step(8 << 20, Duration::MAX) };
        match env.compact(&options, &mut |_, _| true) {
            Ok(report) => assert!(holes && report.used_after < report.used_before, "{report:?}"),
            Err(Error::MapFull { .. }) => assert!(!holes),
            Err(other) => panic!("{other:?}"),
        }
        check(&env, "at the bound");
        assert!(everything(&env) == before);
    }
}

/// A damaged page is not given a fresh checksum.
#[test]
fn damage_is_not_hidden() {
    let mut rng = rng();
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    random_load(&env, "t", &TableOptions::new(), 8000, &mut rng);
    thin_out(&env, "t", &mut rng);
    let mut leaves = Vec::new();
    env.walk_pages(&mut |visit| {
        if visit.table == b"t" && visit.kind == PageKind::Leaf {
            leaves.push(visit.page.0 as usize);
        }
        true
    })
    .unwrap();
    env.close().unwrap();
    let mut bytes = file.image();
    // A byte of a value: only the checksum knows.
    bytes[leaves[leaves.len() / 2] * 4096 + 4090] ^= 1;
    let env = MemoryFile::new(&bytes).open(Options::new()).unwrap();
    let refused = env.compact(&small_steps(), &mut |_, _| true);
    assert!(matches!(refused, Err(Error::Corrupted { .. })), "{refused:?}");
    assert!(!env.check(&mut |_, _| true).unwrap().is_ok());
}
