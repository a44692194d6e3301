//! Heap memory runs out: each large allocation of a workload fails, one after the other, alone or with
//! all that follow it. Sizes that the data or the caller choose must end in an error, not in the end of
//! the process; the old data stays readable, and the store goes on when there is memory again.
//!
//! Reads allocate nothing at all, which the same allocator counts.
//!
//! A process that dies of it cannot tell: each case runs in a process of its own. `ZUBILO_MEMORY_CASE`
//! repeats one (test `case`), `ZUBILO_CASES` sets how many allocations of a part fail at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use zubilo::{Durability, Env, Error, Options, Salvage, TableOptions};

/// Smaller allocations are those of a bounded size: pages, names, handles. They do not fail here.
const LARGE: usize = 64 << 10;
const CASE: &str = "ZUBILO_MEMORY_CASE";

static ARMED: AtomicBool = AtomicBool::new(false);
/// Large allocations since the workload began.
static SEEN: AtomicU64 = AtomicU64::new(0);
static FAIL_FROM: AtomicU64 = AtomicU64::new(u64::MAX);
static FAIL_TO: AtomicU64 = AtomicU64::new(0);
thread_local! {
    /// Allocations of this thread.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

struct Failing;

fn fails(size: usize) -> bool {
    OWN.set(OWN.get() + 1);
    if size < LARGE || !ARMED.load(Ordering::SeqCst) {
        return false;
    }
    let n = SEEN.fetch_add(1, Ordering::SeqCst);
    (FAIL_FROM.load(Ordering::SeqCst)..FAIL_TO.load(Ordering::SeqCst)).contains(&n)
}

// SAFETY: hands on what it is given to the system's allocator, or gives no memory, as is allowed.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && fails(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static MEMORY: Failing = Failing;

/// A part of the workload: what it does to a store that has the records of `prepare`.
type Part = fn(&Env, &Path) -> zubilo::Result<()>;

const PARTS: [(&str, Part); 9] = [
    ("values", values),
    ("nested", nested),
    ("many", many_values),
    ("wide", wide),
    ("spill", spill),
    ("holes", holes),
    ("group", group),
    ("copies", copies),
    ("reading", reading),
];

fn options(part: &str) -> Options {
    let options = Options::new().durability(Durability::NoSync);
    if part == "spill" { options.dirty_limit(1 << 20) } else { options }
}

fn key(n: u32) -> [u8; 4] {
    n.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

fn prepare(env: &Env) -> zubilo::Result<()> {
    let mut txn = env.write()?;
    let mut table = txn.table_or_create("old")?;
    for n in 0..20_000u32 {
        table.put(key(n), n.to_be_bytes().repeat(20))?;
    }
    table.put("large", vec![7; 500_000])?;
    txn.commit().map(drop)
}

fn old_data_is_there(env: &Env) {
    let read = env.read().expect("read");
    let table = read.table("old").expect("the table");
    assert_eq!(table.get("large").expect("get").map(<[u8]>::len), Some(500_000));
    for n in (0..20_000u32).step_by(97) {
        let found = table.get(key(n)).expect("get").expect("a record");
        assert_eq!(found, n.to_be_bytes().repeat(20));
    }
}

/// Large values, put, reserved, replaced.
fn values(env: &Env, _: &Path) -> zubilo::Result<()> {
    let mut txn = env.write()?;
    let mut table = txn.table_or_create("new")?;
    for (n, value) in VALUES.get().expect("made before").iter().enumerate() {
        table.put([n as u8], value)?;
        table.reserve([100 + n as u8], value.len())?.fill(3);
    }
    table.replace([1], &VALUES.get().expect("made before")[2])?;
    table.delete([0])?;
    txn.commit().map(drop)
}

static VALUES: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();

fn nested(env: &Env, _: &Path) -> zubilo::Result<()> {
    let mut txn = env.write()?;
    let value = &VALUES.get().expect("made before")[1];
    for level in 0..4u8 {
        let done = txn.nested(|txn| {
            let mut table = txn.table_or_create("new")?;
            table.put([level], value)?;
            for n in 0..2000u32 {
                table.put(key(n), [level; 100])?;
            }
            txn.nested(|txn| txn.table("new")?.put([level], &value[..100_000]))?;
            if level == 2 { Err(Error::Stopped) } else { Ok(()) }
        });
        match done {
            Err(Error::Stopped) if level == 2 => {}
            other => other?,
        }
    }
    txn.commit().map(drop)
}

fn many_values(env: &Env, _: &Path) -> zubilo::Result<()> {
    let mut txn = env.write()?;
    let options = TableOptions::new().fixed_duplicates();
    let mut table = txn.create_table("many", options)?;
    for n in 0..40_000u32 {
        table.put("key", key(n))?;
    }
    for n in 0..20_000u32 {
        table.delete_value("key", key(n))?;
    }
    txn.commit().map(drop)
}

/// So many changed pages that the lists of them are large.
fn wide(env: &Env, _: &Path) -> zubilo::Result<()> {
    let mut txn = env.write()?;
    let mut table = txn.table("old")?;
    for n in 0..20_000u32 {
        table.put(key(n), n.to_be_bytes().repeat(20))?;
    }
    let mut table = txn.table_or_create("new")?;
    for n in 0..30_000u32 {
        table.put(key(n), [1; 900])?;
    }
    txn.commit().map(drop)
}

fn spill(env: &Env, path: &Path) -> zubilo::Result<()> {
    wide(env, path)?;
    let mut txn = env.write()?;
    let mut table = txn.table("new")?;
    for n in 0..20_000u32 {
        table.delete(key(n))?;
    }
    for value in VALUES.get().expect("made before") {
        table.put("large", value)?;
    }
    txn.commit().map(drop)
}

/// A free-space log that is long: every other page of many falls free, beside a reader.
fn holes(env: &Env, _: &Path) -> zubilo::Result<()> {
    let mut txn = env.write()?;
    let mut table = txn.table_or_create("new")?;
    for n in 0..60_000u32 {
        table.put(n.to_be_bytes(), [1; 1200])?;
    }
    txn.commit()?;
    let held = env.read()?;
    for round in 0..3u32 {
        let mut txn = env.write()?;
        let mut table = txn.table("new")?;
        for n in (round..60_000).step_by(9) {
            table.put(n.to_be_bytes(), [round as u8; 1200])?;
        }
        txn.commit()?;
    }
    drop(held);
    let mut txn = env.write()?;
    txn.table("new")?.put("last", [1])?;
    txn.commit()?;
    env.space().map(drop)
}

fn group(env: &Env, _: &Path) -> zubilo::Result<()> {
    for n in 0..3u8 {
        env.update(move |txn| {
            let mut table = txn.table_or_create("new")?;
            table.put([n], &VALUES.get().expect("made before")[0])?;
            table.put([n, n], &VALUES.get().expect("made before")[1])
        })?;
    }
    Ok(())
}

fn copies(env: &Env, path: &Path) -> zubilo::Result<()> {
    for compact in [false, true] {
        let to = path.with_extension(if compact { "compact" } else { "plain" });
        env.copy_to_path(&to, compact, &mut |_, _| true)?;
        let copy = options("").open(&to)?;
        old_data_is_there(&copy);
    }
    env.copy_to_writer(&mut std::io::sink(), true, &mut |_, _| true).map(drop)
}

fn reading(env: &Env, path: &Path) -> zubilo::Result<()> {
    env.check(&mut |_, _| true)?.into_result()?;
    env.walk_pages(&mut |_| true)?;
    env.info()?;
    let read = env.read()?;
    let keys: Vec<[u8; 4]> = (0..2000).map(key).collect();
    read.table("old")?.get_many(&keys)?;
    let salvage = Salvage::open(path)?;
    for table in salvage.tables() {
        salvage.records(table, &mut |_, _| Ok(()))?;
    }
    // Another first open of the same contents reads the free-space log anew.
    let copy = path.with_extension("again");
    env.copy_to_path(&copy, false, &mut |_, _| true)?;
    let again = options("").open(&copy)?;
    let mut txn = again.write()?;
    txn.table("old")?.put("more", [1])?;
    txn.commit().map(drop)
}

/// One case in this process; gives the number of large allocations.
fn run(part: &str, from: u64, to: u64) -> u64 {
    let work = PARTS.iter().find(|(name, _)| *name == part).expect("a part").1;
    VALUES.get_or_init(|| [90_000, 300_000, 1 << 20].map(|len| vec![len as u8; len]).to_vec());
    let memory = Path::new("/dev/shm");
    let dir = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).expect("a folder");
    let path = dir.path().join("store");
    let env = options(part).open(&path).expect("open");
    prepare(&env).expect("records");
    FAIL_FROM.store(from, Ordering::SeqCst);
    FAIL_TO.store(to, Ordering::SeqCst);
    ARMED.store(true, Ordering::SeqCst);
    let done = work(&env, &path);
    ARMED.store(false, Ordering::SeqCst);
    let seen = SEEN.load(Ordering::SeqCst);
    match done {
        Ok(()) => {}
        Err(Error::Io { ref source, .. }) if source.kind() == std::io::ErrorKind::OutOfMemory => {
            assert!(from < seen, "an error without a cause");
        }
        Err(other) => panic!("not said clearly: {other:?}"),
    }
    old_data_is_there(&env);
    env.check(&mut |_, _| true).expect("check").into_result().expect("no damage");
    let mut txn = env.write().expect("write");
    txn.table_or_create("after").expect("a table").put("key", "value").expect("put");
    txn.commit().expect("commit");
    env.close().expect("close");
    let env = options(part).open(&path).expect("open again");
    old_data_is_there(&env);
    env.check(&mut |_, _| true).expect("check").into_result().expect("no damage");
    seen
}

#[test]
#[ignore = "one case, in a process of its own: run by the other test"]
fn case() {
    let Ok(case) = std::env::var(CASE) else { return };
    let words: Vec<&str> = case.split(' ').collect();
    let number = |n: usize| words[n].parse().expect("a number");
    println!("seen {}", run(words[0], number(1), number(2)));
}

/// Runs a case; gives the number of large allocations, or what the process said in the end.
fn in_a_process(case: &str) -> Result<u64, String> {
    let out = Command::new(std::env::current_exe().expect("this program"))
        .args(["case", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(CASE, case)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let seen = text.lines().find_map(|line| line.split_once("seen ")?.1.parse().ok());
    match seen {
        Some(seen) if out.status.success() => Ok(seen),
        _ => Err(format!("{:?} {}", out.status, String::from_utf8_lossy(&out.stderr))),
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default).max(1)
}

#[test]
fn large_allocations_that_fail_are_errors() {
    let (mut cases, mut found) = (0, Vec::new());
    for (part, _) in PARTS {
        let all = in_a_process(&format!("{part} {} {}", u64::MAX, u64::MAX)).expect("no failure");
        println!("{part}: {all} large allocations");
        // Of many that are alike a part.
        let step = all.div_ceil(number("ZUBILO_CASES", 12)).max(1) as usize;
        for n in (0..all).step_by(step) {
            for to in [n + 1, u64::MAX] {
                let case = format!("{part} {n} {to}");
                cases += 1;
                if let Err(why) = in_a_process(&case) {
                    found.push(format!("{CASE}='{case}': {why}"));
                }
            }
        }
    }
    println!("{cases} cases");
    assert!(cases > 50, "{cases}");
    assert!(found.is_empty(), "{} of {cases}:\n{}", found.len(), found.join("\n"));
}

/// Allocations of this thread while `work` runs.
fn counted(work: impl FnOnce()) -> u64 {
    let before = OWN.get();
    work();
    OWN.get() - before
}

/// Values are slices of the map, and nothing on the way to them is allocated: look-ups, walks from
/// either end and cursors, in order and in the order of integers.
#[test]
fn reads_allocate_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let env = options("").open(dir.path().join("store")).expect("open");
    prepare(&env).expect("prepare");
    let integers = TableOptions::new().key_order(zubilo::KeyOrder::Integer);
    let mut txn = env.write().expect("write");
    let mut table = txn.table_or_create_with("integers", &integers).expect("a table");
    (0..20_000u64).try_for_each(|n| table.put(n.to_ne_bytes(), [1; 50])).expect("put");
    txn.commit().expect("commit");

    let mut reader = env.reader().expect("a reader");
    drop(reader.begin().expect("begin"));
    let begun = counted(|| drop(reader.begin().expect("begin")));
    assert_eq!(begun, 0, "begin and end");
    let read = env.read().expect("read");
    let (old, new) = (read.table("old"), read.table_with("integers", &integers));
    let (old, new) = (old.expect("a table"), new.expect("a table"));
    let keys: Vec<[u8; 4]> = (0..100).map(key).collect();
    let numbers: Vec<[u8; 8]> = (0..100u64).map(|n| (n * 150).to_ne_bytes()).collect();

    assert!(counted(|| drop(std::hint::black_box(vec![1u8; 9]))) > 0, "nothing is counted");
    let walked = |iter: zubilo::Iter<'_>, back: bool| {
        let found = if back { iter.rev().take(500).count() } else { iter.take(500).count() };
        assert!(found > 0);
    };
    let work: [(&str, &dyn Fn()); 8] = [
        ("get", &|| keys.iter().for_each(|k| assert!(old.get(k).expect("get").is_some()))),
        ("batch", &|| old.get_many_with(&keys, |_, v| assert!(v.is_some())).expect("get")),
        ("integers", &|| numbers.iter().for_each(|k| assert!(new.get(k).expect("get").is_some()))),
        ("integers at once", &|| {
            new.get_many_with(&numbers, |_, v| assert!(v.is_some())).expect("get");
        }),
        ("ranges", &|| keys.iter().for_each(|k| walked(old.range(&k[..]..), false))),
        ("backwards", &|| keys.iter().for_each(|k| walked(old.range(..=&k[..]), true))),
        ("integers backwards", &|| walked(new.iter(), true)),
        ("cursors", &|| {
            for key in &keys {
                let mut cursor = old.cursor();
                assert!(cursor.seek(key).expect("seek").is_some());
                (0..100).for_each(|_| assert!(cursor.next().is_ok()));
            }
        }),
    ];
    for (name, work) in work {
        assert_eq!(counted(work), 0, "{name}");
    }
}
