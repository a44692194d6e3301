//! Durable commits whose records go to the redo log: what a power cut leaves is made anew at open.
//!
//! A power cut is played on a copy of the file: its weak metas are gone, as another boot would not trust them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zubilo::{CompactOptions, Durability, Env, Options, TableOptions, TxnId};

use support::Rng;

use crate::common::{Records, check, fresh, rng};

const RING: u64 = 64 << 10;

fn logged() -> Options {
    Options::new().redo_log(RING)
}

/// With calls for the pages, and with stores through a map.
fn both_ways() -> [Options; 2] {
    [logged(), logged().writable_map(true)]
}

/// A store with some records on disk and an empty log.
fn store(path: &Path, options: Options) -> Env {
    let env = options.open(path).unwrap();
    let mut write = env.write().unwrap();
    let mut table = write.create_table("t", TableOptions::new()).unwrap();
    (0..200u32).for_each(|i| table.put(i.to_be_bytes(), [7; 100]).unwrap());
    write.commit().unwrap();
    // In pages, until no meta is left that names no log.
    for _ in 0..3 {
        put(&env, 0, &[7; 100]);
    }
    env
}

fn put(env: &Env, key: u32, value: &[u8]) -> TxnId {
    let mut write = env.write().unwrap();
    write.table("t").unwrap().put(key.to_be_bytes(), value).unwrap();
    write.commit().unwrap()
}

/// What the power being cut now would leave, beside the store.
fn cut(path: &Path, name: &str) -> PathBuf {
    let mut bytes = fs::read(path).unwrap();
    for meta in bytes.chunks_mut(4096).take(4) {
        if meta[8..14] == *b"ZUBILO" && meta[21] == 0 {
            meta.fill(0);
        }
    }
    let to = path.with_file_name(name);
    fs::write(&to, bytes).unwrap();
    to
}

fn records(env: &Env, table: &str) -> Records {
    let read = env.read().unwrap();
    let table = read.table(table).unwrap();
    table.iter().map(|r| r.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

#[test]
fn acknowledged_commits_are_made_anew() {
    both_ways().into_iter().for_each(fifty_are_made_anew);
}

fn fifty_are_made_anew(options: Options) {
    let (_dir, path) = fresh();
    let env = store(&path, options);
    let on_disk = env.info().unwrap().steady;
    for i in 0..50u32 {
        let mut write = env.write().unwrap();
        let mut table = write.table("t").unwrap();
        table.put(i.to_be_bytes(), i.to_be_bytes()).unwrap();
        table.delete((i + 100).to_be_bytes()).unwrap();
        assert_eq!(table.next_sequence(3).unwrap(), u64::from(i) * 3);
        let report = write.commit_with_report().unwrap();
        assert_eq!(report.flushes, 1);
    }
    let info = env.info().unwrap();
    assert_eq!(info.steady, on_disk, "no page was flushed");
    assert_eq!(info.newest.0, on_disk.0 + 50);
    let mut expected = records(&env, "t");
    let image = cut(&path, "image");
    let found = logged().open(&image).unwrap();
    assert_eq!(found.info().unwrap().newest, info.newest);
    assert_eq!(found.info().unwrap().steady, info.newest);
    assert_eq!(records(&found, "t"), expected);
    assert_eq!(found.read().unwrap().table("t").unwrap().sequence(), 150);
    check(&found, "made anew");
    // It goes on from there, and what it adds survives too.
    put(&found, 5, b"after");
    expected.insert(5u32.to_be_bytes().to_vec(), b"after".to_vec());
    let again = logged().open(cut(&image, "again")).unwrap();
    assert_eq!(records(&again, "t"), expected);
    check(&again, "made anew twice");
}

/// Whoever only reads must not see an older state, and cannot write the newer one.
#[test]
fn readers_wait_for_someone_who_can_write() {
    let (_dir, path) = fresh();
    let env = store(&path, logged());
    put(&env, 1, b"one");
    let image = cut(&path, "image");
    let refused = Options::new().read_only(true).open(&image).unwrap_err().to_string();
    assert!(refused.contains("redo log"), "{refused}");
    // Also by one who logs nothing.
    drop(Options::new().durability(Durability::NoSync).open(&image).unwrap());
    let reader = Options::new().read_only(true).open(&image).unwrap();
    assert_eq!(records(&reader, "t").get(&1u32.to_be_bytes()[..]), Some(&b"one".to_vec()));
}

/// What a record cannot say is committed in pages, between others that are logged.
#[test]
fn what_cannot_be_logged_is_flushed() {
    let (_dir, path) = fresh();
    let env = store(&path, logged());
    let backwards = || TableOptions::new().compare_keys(|a, b| b.cmp(a));
    type Change<'c> = &'c dyn Fn(&mut zubilo::WriteTxn);
    let changes: [(&str, bool, Change<'_>); 12] = [
        ("a record", true, &|w| w.table("t").unwrap().put("k", "v").unwrap()),
        ("a new table", false, &|w| {
            w.create_table("new", TableOptions::new()).unwrap();
            w.create_table("gone", TableOptions::new()).unwrap().put("a", "b").unwrap();
        }),
        ("a renamed table", false, &|w| w.rename_table("new", "other").unwrap()),
        ("a range", true, &|w| {
            w.table("t")
                .unwrap()
                .delete_range(&10u32.to_be_bytes()[..]..&20u32.to_be_bytes()[..])
                .unwrap();
        }),
        ("a table that is emptied", true, &|w| {
            w.table("other").unwrap().clear().unwrap();
            w.table("t").unwrap().put("k", "cleared").unwrap();
        }),
        ("a table that goes", true, &|w| {
            w.table("t").unwrap().put("k", "before").unwrap();
            w.drop_table("gone").unwrap();
            w.table("t").unwrap().put("k", "after").unwrap();
        }),
        ("nothing of a range", true, &|w| {
            w.table("t").unwrap().delete_range(&[0xff; 8][..]..).unwrap();
            w.table("t").unwrap().put("k", "v").unwrap();
        }),
        ("user words", true, &|w| {
            w.table("t").unwrap().put("k", "w").unwrap();
            w.set_user_words([1, 2, 3]).unwrap();
        }),
        ("a reserved value", false, &|w| {
            w.table("t").unwrap().reserve("r", 5).unwrap().copy_from_slice(b"later");
        }),
        ("a table in a caller's order", false, &|w| {
            w.create_table("custom", backwards()).unwrap().put("a", "1").unwrap();
        }),
        ("a record of it", false, &|w| {
            w.table_with("custom", &backwards()).unwrap().put("b", "2").unwrap();
        }),
        ("a level that was undone", true, &|w| {
            w.table("t").unwrap().put("k", "x").unwrap();
            w.begin_nested().unwrap();
            w.drop_table("other").unwrap();
            w.table("t").unwrap().put("k", "undone").unwrap();
            w.abort_nested().unwrap();
            w.table("t").unwrap().put("l", "y").unwrap();
        }),
    ];
    for (what, is_logged, change) in changes {
        let mut write = env.write().unwrap();
        change(&mut write);
        let txn = write.commit().unwrap();
        assert_eq!(env.info().unwrap().steady < txn, is_logged, "{what}");
        let found = logged().open(cut(&path, "image")).unwrap();
        assert_eq!(found.info().unwrap().newest, txn, "{what}");
        assert_eq!(records(&found, "t"), records(&env, "t"), "{what}");
        check(&found, what);
        assert_eq!(found.read().unwrap().user_words(), env.read().unwrap().user_words());
        drop(found);
        fs::remove_file(path.with_file_name("image")).unwrap();
        let _ = fs::remove_file(path.with_file_name("image-lock"));
    }
}

/// The ring is gone round many times; at any moment all that was acknowledged is there.
#[test]
fn a_short_ring_serves_many_commits() {
    let mut rng = rng();
    both_ways().into_iter().for_each(|options| many_commits(&options, &mut rng));
}

fn many_commits(options: &Options, rng: &mut Rng) {
    let (_dir, path) = fresh();
    let env = store(&path, options.clone());
    let mut flushed = 0;
    for i in 0..1500 {
        let len = rng.below(900) as usize;
        let before = env.info().unwrap().steady;
        let txn = put(&env, rng.below(400) as u32, &rng.bytes(len));
        flushed += u32::from(env.info().unwrap().steady == txn);
        assert!(env.info().unwrap().steady >= before);
        if rng.one_in(60) {
            let image = cut(&path, &format!("image-{i}"));
            let found = options.clone().open(&image).unwrap();
            assert_eq!(found.info().unwrap().newest, txn);
            assert_eq!(records(&found, "t"), records(&env, "t"));
            check(&found, "image");
        }
    }
    assert!(flushed < 500, "{flushed} of 1500 commits were flushed");
    check(&env, "the end");
}

/// Who logs nothing, or is not durable, and who does, on one store.
#[test]
fn the_log_is_switched_on_and_off() {
    let (_dir, path) = fresh();
    drop(store(&path, Options::new()));
    let mut expected = 0;
    let all = [logged(), Options::new(), Options::new().durability(Durability::NoSync)];
    for round in 0..12u32 {
        let options = all[round as usize % all.len()].clone();
        let is_durable = round as usize % all.len() != 2;
        let env = options.open(&path).unwrap();
        for i in 0..5 {
            put(&env, i, &[round as u8; 50]);
        }
        let newest = env.info().unwrap().newest;
        let image = cut(&path, &format!("image-{round}"));
        let found = logged().open(&image).unwrap();
        let there = found.info().unwrap().newest.0;
        assert!(if is_durable { there == newest.0 } else { there >= expected }, "round {round}");
        check(&found, "image");
        check(&env, "store");
        expected = newest.0;
    }
}

/// The ring begins short, becomes longer with the store, and is given back on request.
#[test]
fn the_ring_grows_and_goes() {
    let (_dir, path) = fresh();
    let pages = |env: &Env| env.check(&mut |_, _| true).unwrap().redo_log_pages;
    let options = Options::new().redo_log(1 << 20);
    let env = store(&path, options.clone());
    assert_eq!(pages(&env), 16, "the least there is");
    let mut lengths = vec![16];
    for i in 0..400 {
        let txn = put(&env, 77 * i % 1000, &[i as u8; 1500]);
        let now = pages(&env);
        if lengths.last() != Some(&now) {
            lengths.push(now);
            assert_eq!(env.info().unwrap().steady, txn, "a new ring comes with a commit in pages");
            let image = cut(&path, &format!("image-{i}"));
            let found = options.clone().open(&image).unwrap();
            assert_eq!(found.info().unwrap().newest, txn);
            assert_eq!(records(&found, "t"), records(&env, "t"));
            check(&found, "image");
        }
    }
    assert!(lengths.is_sorted() && lengths.len() > 1, "{lengths:?}");
    assert!(lengths.iter().all(|&pages| pages <= 256), "{lengths:?}");
    let most = *lengths.last().unwrap();
    drop(env);
    // One who asks for less, or says nothing, leaves it alone.
    for options in [logged(), Options::new()] {
        let env = options.open(&path).unwrap();
        put(&env, 0, &[7; 100]);
        assert_eq!(pages(&env), most);
    }
    // One who wants none gives it back with the next commit, which a power cut may follow.
    let env = Options::new().redo_log(0).open(&path).unwrap();
    assert_eq!(pages(&env), most);
    let txn = put(&env, 0, b"without");
    assert_eq!(pages(&env), 0);
    let found = options.open(cut(&path, "without")).unwrap();
    assert_eq!(found.info().unwrap().newest, txn);
    assert_eq!(records(&found, "t"), records(&env, "t"));
    check(&found, "without");
}

/// A store that may have little gets a short ring, or none.
#[test]
fn a_bounded_store_keeps_its_ring_short() {
    for (upper, most) in [(256 << 10, 0), (1 << 20, 32)] {
        let (_dir, path) = fresh();
        let mut geometry = zubilo::Geometry::default();
        geometry.upper = upper;
        let env = store(&path, Options::new().redo_log(64 << 20).geometry(geometry));
        (0..100).for_each(|i| assert!(put(&env, i % 5, &[i as u8; 900]).0 > 0));
        let pages = env.check(&mut |_, _| true).unwrap().redo_log_pages;
        assert!(pages <= most && (pages > 0) == (most > 0), "{pages} pages of {upper} bytes");
    }
}

#[test]
fn compaction_gives_the_pages_back() {
    let (_dir, path) = fresh();
    let env = store(&path, logged());
    put(&env, 1, b"one");
    assert_eq!(env.check(&mut |_, _| true).unwrap().redo_log_pages, RING / 4096);
    // A store that is compact is left as it is, so there must be something to do.
    let mut write = env.write().unwrap();
    let mut table = write.table("t").unwrap();
    for i in (0..200u32).filter(|i| i % 4 != 0) {
        assert!(table.delete(i.to_be_bytes()).unwrap());
    }
    write.commit().unwrap();
    env.compact(&CompactOptions::default(), &mut |_, _| true).unwrap();
    check(&env, "compacted");
    assert_eq!(env.check(&mut |_, _| true).unwrap().redo_log_pages, 0);
    let expected = records(&env, "t");
    let image = cut(&path, "image");
    assert_eq!(records(&logged().open(&image).unwrap(), "t"), expected);
    // The next durable commit makes another.
    put(&env, 2, b"two");
    assert_eq!(env.check(&mut |_, _| true).unwrap().redo_log_pages, RING / 4096);
}

/// A program of before the redo log must not take the commit before the records for the newest.
#[test]
fn older_programs_refuse_a_store_with_a_log() {
    let (_dir, path) = fresh();
    let versions = |path: &Path| -> Vec<u8> {
        let file = fs::read(path).unwrap();
        let metas = file.chunks(4096).take(4).filter(|page| page[8..14] == *b"ZUBILO");
        metas.map(|page| page[16]).collect()
    };
    let env = store(&path, Options::new());
    assert!(versions(&path).iter().all(|&v| v == 2));
    drop(env);
    let env = logged().open(&path).unwrap();
    for i in 0..8 {
        put(&env, i, b"value");
    }
    env.sync().unwrap();
    for i in 0..8 {
        put(&env, i, b"value");
    }
    assert!(versions(&path).iter().all(|&v| v == 3), "{:?}", versions(&path));
    drop(env);
    // Of a version that is still to come this one refuses too, although older metas are beside it.
    let mut file = fs::read(&path).unwrap();
    let newest = (0..4)
        .max_by_key(|i| u64::from_le_bytes(file[i * 4096 + 56..][..8].try_into().unwrap()))
        .unwrap();
    file[newest * 4096 + 16] = 5;
    seal(&mut file[newest * 4096..][..4096]);
    fs::write(&path, file).unwrap();
    let refused = logged().open(&path).unwrap_err();
    assert!(matches!(refused, zubilo::Error::Version { found: 5, .. }), "{refused}");
}

/// Makes the checksums of a meta right: those of its sectors, their parity, and what binds them.
fn seal(meta: &mut [u8]) {
    let sum = |bytes: &[u8]| twox_hash::XxHash3_64::oneshot(bytes).to_le_bytes();
    for sector in meta.chunks_mut(512).skip(1).take(6) {
        let seal = sum(&sector[..504]);
        sector[504..].copy_from_slice(&seal);
    }
    let seals = (1..7).flat_map(|i| meta[i * 512 + 504..][..8].to_vec());
    let bound: Vec<u8> = meta[8..504].iter().copied().chain(seals).collect();
    meta[..8].copy_from_slice(&sum(&bound));
    let first = sum(&meta[..504]);
    meta[504..512].copy_from_slice(&first);
    for i in 0..504 {
        meta[7 * 512 + i] = (0..7).fold(0, |parity, sector| parity ^ meta[sector * 512 + i]);
    }
    let parity = sum(&meta[7 * 512..][..504]);
    meta[7 * 512 + 504..].copy_from_slice(&parity);
}

/// A copy is the snapshot, whatever the log has after it.
#[test]
fn copies_have_an_empty_log() {
    let (_dir, path) = fresh();
    let env = store(&path, logged());
    put(&env, 1, b"one");
    for compact in [false, true] {
        let to = path.with_file_name(format!("copy-{compact}"));
        let txn = env.copy_to_path(&to, compact, &mut |_, _| true).unwrap();
        put(&env, 1, b"later");
        let copy = Options::new().read_only(true).open(&to).unwrap();
        assert_eq!(copy.info().unwrap().newest, txn);
        check(&copy, "copy");
        drop(copy);
        let copy = logged().open(&to).unwrap();
        put(&copy, 9, b"in the copy");
        put(&copy, 8, b"in the copy");
        let image = cut(&to, &format!("image-{compact}"));
        assert_eq!(records(&logged().open(&image).unwrap(), "t"), records(&copy, "t"));
    }
}

/// Bytes that were written to the device of a folder, by whomever, and microseconds of CPU that this process has used.
/// What `/proc/self/io` counts is no measure: whole folios, however little of them is dirty.
fn spent(dir: &Path) -> (u64, u64) {
    let device = fs::metadata(dir).unwrap().dev();
    let name = [libc::major(device), libc::minor(device)].map(|n| n.to_string());
    let disks = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let line = disks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let sectors = line.filter(|words| words.get(..2).is_some_and(|w| w == name));
    let sectors = sectors.filter_map(|words| words.get(9)?.parse::<u64>().ok()).next();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|word| word.parse::<u64>().ok()).sum();
    (sectors.unwrap_or(0) * 512, ticks * 10_000)
}

/// Durable commits of one record each among 100,000, with and without the log in turns:
/// `cargo test --release -p zubilo --test it redo::figures -- --ignored --nocapture`. `DIR` names a folder on the
/// disk to measure, which nobody else should use.
#[test]
#[ignore = "measures"]
fn figures() {
    let dir = std::env::var_os("DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(dir).unwrap();
    let mut rng = rng();
    let ways = [
        ("pages", 0, false),
        ("log of 1 MiB", 1 << 20, false),
        ("log of 8 MiB", 8 << 20, false),
        ("log and map", 8 << 20, true),
    ];
    let stores: Vec<Env> = ways
        .iter()
        .map(|(name, bytes, map)| {
            let options = Options::new().redo_log(*bytes).writable_map(*map);
            let env = options.open(dir.path().join(name)).unwrap();
            let mut write = env.write().unwrap();
            let mut table = write.create_table("t", TableOptions::new()).unwrap();
            (0..100_000u32).for_each(|i| table.put(i.to_be_bytes(), [7; 100]).unwrap());
            write.commit().unwrap();
            put(&env, 1, &[1; 100]);
            env
        })
        .collect();
    let mut all = vec![(Vec::new(), 0, 0); ways.len()];
    for _ in 0..8 {
        for (env, (times, bytes, cpu)) in stores.iter().zip(&mut all) {
            let before = spent(dir.path());
            for _ in 0..2500 {
                let begin = std::time::Instant::now();
                put(env, rng.below(100_000) as u32, &rng.bytes(100));
                times.push(begin.elapsed().as_nanos() as u64);
            }
            let after = spent(dir.path());
            *bytes += after.0 - before.0;
            *cpu += after.1 - before.1;
        }
    }
    for ((name, ..), env) in ways.iter().zip(stores) {
        // Nothing is closed in order: the next open makes anew what is in the log.
        let info = env.info().unwrap();
        let count = info.newest.0 - info.steady.0;
        env.close_without_sync();
        let image = cut(&dir.path().join(name), "cut");
        let begin = std::time::Instant::now();
        let found = logged().open(&image).unwrap();
        let took = begin.elapsed().as_micros();
        println!("{name:12} after a power cut {count} commits are made anew in {took} us");
        drop(found);
    }
    for ((name, ..), (mut times, bytes, cpu)) in ways.iter().zip(all) {
        times.sort_unstable();
        let (count, at) =
            (times.len() as u64, |part: usize| times[times.len() * part / 1000] / 1000);
        println!(
            "{name:12} mean {:5} us, median {:4}, p99 {:5}, p99.9 {:6}, CPU {:3} us, {:6} bytes a commit",
            times.iter().sum::<u64>() / count / 1000,
            at(500),
            at(990),
            at(999),
            cpu / count,
            bytes / count
        );
    }
}
