//! Opening: what it costs, what is refused and left alone, what a second open gives.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use zubilo::{Durability, Env, Error, Options};

use crate::common::process::{apart, ended_well, fork};
use crate::common::{check, contents, fresh, put_all};

fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push("-lock");
    lock.into()
}

/// Bytes and times of a file, and what lies beside it.
fn state(path: &Path) -> (Vec<u8>, i64, i64, Vec<PathBuf>) {
    let found = fs::metadata(path).unwrap();
    let bytes = if found.is_file() { fs::read(path).unwrap() } else { Vec::new() };
    let beside = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut beside: Vec<_> = beside.map(|entry| entry.unwrap().path()).collect();
    beside.sort();
    (bytes, found.mtime(), found.mtime_nsec(), beside)
}

/// Every way of opening refuses the file and changes nothing.
#[track_caller]
fn assert_foreign(path: &Path) {
    let before = state(path);
    let options = Options::new();
    let ways = [
        options.clone(),
        options.clone().create(false),
        options.clone().read_only(true),
        options.clone().exclusive(true),
        options.clone().lock_file(false),
        options.clone().writable_map(true).page_size(65536),
    ];
    for way in ways {
        let result = way.clone().open(path);
        let refused = matches!(&result, Err(Error::NotAStore { path: named, .. }) if named.ends_with(path.file_name().unwrap()));
        assert!(refused, "{}: {:?} with {way:?}", path.display(), result.err());
        assert!(state(path) == before, "{}: changed by {way:?}", path.display());
    }
}

/// The start of a data file as LMDB writes it on this machine: two meta pages.
fn lmdb_file() -> Vec<u8> {
    let mut file = vec![0; 2 * 4096];
    for (number, meta) in file.chunks_exact_mut(4096).enumerate() {
        meta[..8].copy_from_slice(&(number as u64).to_le_bytes());
        meta[10..12].copy_from_slice(&8u16.to_le_bytes());
        meta[16..20].copy_from_slice(&0xBEEF_C0DEu32.to_le_bytes());
        meta[20..24].copy_from_slice(&1u32.to_le_bytes());
        meta[32..40].copy_from_slice(&1_048_576u64.to_le_bytes());
        meta[40..44].copy_from_slice(&4096u32.to_le_bytes());
    }
    file
}

fn sqlite_file() -> Vec<u8> {
    let mut file = vec![0; 8192];
    file[..16].copy_from_slice(b"SQLite format 3\0");
    file[16..18].copy_from_slice(&4096u16.to_be_bytes());
    file[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    file
}

#[test]
fn foreign_files_are_refused_and_left_as_they_are() {
    let mut marked = b"12345678ZUBILO\x1a".to_vec();
    marked.resize(100, b'x');
    let files: [(&str, Vec<u8>); 9] = [
        ("text", b"Dear diary,\ntoday nothing happened.\n".repeat(1000)),
        ("short text", b"x".to_vec()),
        ("lmdb", lmdb_file()),
        ("sqlite", sqlite_file()),
        ("a page of text", vec![b'a'; 4096]),
        ("zeros with one bit", [vec![0; 70_000], vec![1], vec![0; 10]].concat()),
        ("many zeros", vec![0; (1 << 20) + 1]),
        ("almost the magic number", marked),
        ("elf", fs::read("/proc/self/exe").unwrap()),
    ];
    for (name, bytes) in files {
        let (_dir, path) = fresh();
        let path = path.with_file_name(name);
        fs::write(&path, bytes).unwrap();
        assert_foreign(&path);
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let (dir, path) = fresh();
    fs::create_dir(&path).unwrap();
    assert_foreign(&path);
    let pipe = dir.path().join("pipe");
    let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is a string that ends in a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert_foreign(&pipe);
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_foreign(&socket);
    for device in ["/dev/null", "/dev/zero", "/dev/urandom"] {
        let result = Options::new().open(device);
        assert!(matches!(result, Err(Error::NotAStore { .. })), "{device}");
        assert!(!lock_of(Path::new(device)).exists());
    }
}

#[test]
fn a_foreign_lock_file_is_refused_and_left_as_it_is() {
    let (_dir, path) = fresh();
    put_all(&Options::new().open(&path).unwrap(), "t", [("k", "v")]);
    let text = b"somebody else's notes, long enough to be read as words: ".repeat(100);
    fs::write(lock_of(&path), &text).unwrap();
    let before = fs::read(&path).unwrap();
    match Options::new().open(&path) {
        Err(Error::NotAStore { path: named, .. }) => assert!(named.ends_with("store-lock")),
        other => panic!("{:?}", other.err()),
    }
    assert!(fs::read(lock_of(&path)).unwrap() == text && fs::read(&path).unwrap() == before);
    fs::remove_file(lock_of(&path)).unwrap();
    assert_eq!(contents(&Options::new().open(&path).unwrap().read().unwrap()).len(), 1);
}

#[test]
fn a_newer_format_is_refused_and_left_as_it_is() {
    let (_dir, path) = fresh();
    put_all(&Options::new().open(&path).unwrap(), "t", [("k", "v")]);
    fs::remove_file(lock_of(&path)).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    for meta in 0..4 {
        let meta = &mut bytes[meta * 4096..][..4096];
        if meta[8..].starts_with(b"ZUBILO") {
            meta[16..20].copy_from_slice(&7u32.to_le_bytes());
            zubilo::seal_meta(meta);
        }
    }
    fs::write(&path, &bytes).unwrap();
    let before = state(&path);
    assert!(matches!(Options::new().open(&path), Err(Error::Version { found: 7, .. })));
    assert!(state(&path) == before);
}

#[test]
fn a_missing_store_is_created_only_if_wanted() {
    let (dir, path) = fresh();
    for options in [Options::new().create(false), Options::new().read_only(true)] {
        match options.open(&path) {
            Err(Error::Io { source, path: Some(named), .. }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
                assert_eq!(*named, path);
            }
            other => panic!("{:?}", other.err()),
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    assert!(matches!(Options::new().open(path.join("none/store")), Err(Error::Io { .. })));
    // A creation that was cut off: nothing, or zeros.
    for zeros in [0, 1, 4096, 65536, 1 << 20] {
        fs::write(&path, vec![0; zeros]).unwrap();
        let refused = Options::new().read_only(true).open(&path);
        assert!(refused.is_err(), "{zeros} zeros are no store to read");
        let env = Options::new().open(&path).unwrap();
        put_all(&env, "t", [("k", "v")]);
        check(&env, "made of zeros");
        env.close().unwrap();
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_second_open_gives_the_same_store() {
    let _apart = apart();
    let (dir, path) = fresh();
    let first = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    put_all(&first, "t", [("k", "1")]);
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    let hard = dir.path().join("hard");
    fs::hard_link(&path, &hard).unwrap();
    let directory = dir.path().file_name().unwrap();
    let detour = dir.path().join("..").join(directory).join("store");
    for other in [&path, &link, &hard, &detour] {
        let second = Options::new().read_only(true).open(other).unwrap();
        put_all(&first, "t", [("k", other.as_os_str().as_bytes())]);
        // One table of readers, one writer, the options of the first open.
        let read = second.read().unwrap();
        assert_eq!(first.readers().len(), 1);
        assert_eq!(
            read.table("t").unwrap().get("k").unwrap().unwrap(),
            other.as_os_str().as_bytes()
        );
        let txn = first.write().unwrap();
        assert!(matches!(second.write(), Err(Error::Busy(_))));
        drop(txn);
        put_all(&second, "t", [("l", "of the second")]);
        second.close().unwrap();
    }
    assert!(matches!(Options::new().exclusive(true).open(&path), Err(Error::Busy(_))));
    // It ends with the last handle.
    first.close().unwrap();
    let reader = Options::new().read_only(true).open(&path).unwrap();
    assert!(matches!(Options::new().open(&path), Err(Error::Busy(_))));
    assert!(matches!(reader.write(), Err(Error::ReadOnly)));
    drop(reader);
    check(&Options::new().exclusive(true).open(&path).unwrap(), "opened once more");
    assert!(!lock_of(&link).exists() && !lock_of(&hard).exists());
}

/// A store that is opened and closed by many threads at once is one store at any time.
#[test]
fn opens_at_once_end_with_one_store() {
    let (_dir, path) = fresh();
    std::thread::scope(|scope| {
        for thread in 0..6u8 {
            let path = &path;
            scope.spawn(move || {
                for n in 0..15u8 {
                    let env = Options::new().durability(Durability::NoSync).open(path).unwrap();
                    put_all(&env, "t", [([thread, n], "x")]);
                }
            });
        }
    });
    let env = Options::new().open(&path).unwrap();
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 90);
    check(&env, "at the end");
}

fn as_nobody(job: impl FnOnce()) -> bool {
    ended_well(fork(|| {
        // SAFETY: plain calls that change this child process only.
        unsafe {
            assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
            assert_eq!(libc::setgid(65534), 0);
            assert_eq!(libc::setuid(65534), 0);
        }
        job();
    }))
}

fn is_root() -> bool {
    // SAFETY: a call without arguments that cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[track_caller]
fn assert_denied(result: Result<Env, Error>) {
    match result {
        Err(Error::Io { source, path: Some(_), .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
        }
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn another_users_store_is_refused_and_left_as_it_is() {
    let _apart = apart();
    if !is_root() {
        println!("skipped: only root can become somebody else");
        return;
    }
    let (dir, path) = fresh();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    put_all(&Options::new().open(&path).unwrap(), "t", [("k", "v")]);
    for (store, lock) in [(0o600, 0o600), (0o644, 0o600), (0o644, 0o644), (0o666, 0o600)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(store)).unwrap();
        fs::set_permissions(lock_of(&path), fs::Permissions::from_mode(lock)).unwrap();
        let before = (state(&path), fs::read(lock_of(&path)).unwrap());
        assert!(as_nobody(|| {
            assert_denied(Options::new().open(&path));
            assert_denied(Options::new().create(false).open(&path));
            assert_denied(Options::new().exclusive(true).open(&path));
            // A writer could not see this reader.
            assert_denied(Options::new().read_only(true).open(&path));
        }));
        assert!((state(&path), fs::read(lock_of(&path)).unwrap()) == before);
    }
    // On the caller's word that nobody writes.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(as_nobody(|| {
        let env = Options::new().read_only(true).lock_file(false).open(&path).unwrap();
        assert_eq!(contents(&env.read().unwrap()).len(), 1);
    }));
}

/// Mounts a small file system of its own; false where that is not permitted.
fn mount(at: &Path, read_only: bool) -> bool {
    let target = CString::new(at.as_os_str().as_bytes()).unwrap();
    let again = if read_only { libc::MS_REMOUNT | libc::MS_RDONLY } else { 0 };
    // SAFETY: all strings end in a zero byte; no data is passed.
    let result = unsafe {
        let kind = c"tmpfs".as_ptr();
        libc::mount(kind, target.as_ptr(), kind, again, std::ptr::null())
    };
    result == 0
}

#[test]
fn a_store_on_a_read_only_file_system_can_be_read() {
    let _apart = apart();
    let dir = tempfile::tempdir().unwrap();
    if !mount(dir.path(), false) {
        println!("skipped: mounting is not permitted here");
        return;
    }
    struct Unmount<'p>(&'p Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let target = CString::new(self.0.as_os_str().as_bytes()).unwrap();
            // SAFETY: the string ends in a zero byte.
            unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        }
    }
    let _unmount = Unmount(dir.path());
    for with_lock_file in [true, false] {
        assert!(with_lock_file || mount_writable(dir.path()));
        let path = dir.path().join("store");
        let env = Options::new().open(&path).unwrap();
        put_all(&env, "t", [("k", vec![7; 10_000])]);
        let model = contents(&env.read().unwrap());
        env.close().unwrap();
        if !with_lock_file {
            fs::remove_file(lock_of(&path)).unwrap();
        }
        assert!(mount(dir.path(), true));
        let before = state(&path);
        let env = Options::new().read_only(true).open(&path).unwrap();
        assert_eq!(contents(&env.read().unwrap()), model);
        check(&env, "on a read-only file system");
        assert!(matches!(env.write(), Err(Error::ReadOnly)));
        env.close().unwrap();
        match Options::new().open(&path) {
            Err(Error::Io { source, .. }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
            }
            other => panic!("{:?}", other.err()),
        }
        assert!(state(&path) == before);
    }
    println!("ran on a tmpfs mounted for reading only");
}

fn mount_writable(at: &Path) -> bool {
    let target = CString::new(at.as_os_str().as_bytes()).unwrap();
    // SAFETY: all strings end in a zero byte; no data is passed.
    unsafe {
        let kind = c"tmpfs".as_ptr();
        libc::mount(kind, target.as_ptr(), kind, libc::MS_REMOUNT, std::ptr::null()) == 0
    }
}

/// What one thread has cost: faults of pages, bytes read by calls.
fn costs() -> (i64, u64) {
    // SAFETY: all-zero bytes are a valid rusage, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        usage
    };
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    (usage.ru_minflt + usage.ru_majflt, read.parse().unwrap())
}

/// A store of about `bytes` bytes, every page of it steady and out of the kernel's memory.
fn cold_store(path: &Path, bytes: u64) {
    let options = Options::new().durability(Durability::NoSync);
    let env = options.clone().open(path).unwrap();
    for n in 0..bytes.div_ceil(64 << 20) {
        let left = (bytes - n * (64 << 20)).min(64 << 20);
        let records = (0..left / 10_000)
            .map(|r| ([n.to_be_bytes(), r.to_be_bytes()].concat(), [n as u8; 10_000]));
        put_all(&env, "large", records);
        put_all(
            &env,
            "small",
            (0..left / 10_000).map(|r| ([n.to_be_bytes(), r.to_be_bytes()].concat(), [0; 100])),
        );
    }
    env.close().unwrap();
    let file = fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    use std::os::fd::AsRawFd;
    // SAFETY: advice on an open descriptor.
    let done = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(done, 0);
}

/// Bytes of a file that are in the kernel's memory.
fn cached(path: &Path) -> u64 {
    use std::os::fd::AsRawFd;
    let file = fs::File::open(path).unwrap();
    let len = file.metadata().unwrap().len() as usize;
    let mut pages = vec![0u8; len.div_ceil(4096)];
    // SAFETY: a fresh map of the file, only asked about and then unmapped; one byte a page is
    // written to the vector.
    unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert!(map != libc::MAP_FAILED);
        assert_eq!(libc::mincore(map, len, pages.as_mut_ptr()), 0);
        libc::munmap(map, len);
    }
    pages.iter().filter(|page| **page & 1 != 0).count() as u64 * 4096
}

/// Faults, bytes read by calls, and bytes cached by opening a store that is not in memory.
fn cost_of_opening(bytes: u64) -> (i64, u64, u64) {
    let (_dir, path) = fresh();
    cold_store(&path, bytes);
    assert!(fs::metadata(&path).unwrap().len() > bytes * 9 / 10);
    let cold = cached(&path);
    let before = costs();
    let env = Options::new().open(&path).unwrap();
    let after = costs();
    let warm = cached(&path);
    check_cold(cold, bytes);
    println!(
        "FIGURES opening {bytes} bytes: {} faults, {} bytes read, {} bytes cached, {} before",
        after.0 - before.0,
        after.1 - before.1,
        warm,
        cold
    );
    assert!(env.read().unwrap().table("small").unwrap().len() > bytes / 11_000);
    (after.0 - before.0, after.1 - before.1, warm.saturating_sub(cold))
}

fn check_cold(cold: u64, bytes: u64) {
    assert!(cold < bytes / 4 || cold < 1 << 20, "the kernel keeps {cold} of {bytes} bytes");
}

fn opening_costs_the_same(bytes: u64) {
    let _apart = apart();
    let small = cost_of_opening(1 << 20);
    let large = cost_of_opening(bytes);
    assert!((small.0 - large.0).abs() <= 16, "faults: {small:?}, {large:?}");
    assert!(large.1 <= small.1 + 4096, "bytes read by calls: {small:?}, {large:?}");
    // How far the kernel reads ahead is its own affair.
    assert!(large.2 <= bytes / 16, "bytes read through the map: {small:?}, {large:?}");
}

#[test]
fn opening_a_large_store_costs_no_more_than_a_small_one() {
    opening_costs_the_same(200 << 20);
}

#[test]
#[ignore = "long: 10 GB of disk"]
fn long_opening_ten_gigabytes_costs_no_more_than_one_megabyte() {
    opening_costs_the_same(10 << 30);
}

/// Whether the kernel was told that pages are wanted in no order, for the map of a file.
fn wanted_in_no_order(path: &Path) -> bool {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let path = path.to_str().unwrap();
    let of_file = maps.lines().skip_while(|line| !line.ends_with(path));
    let flags = of_file.skip(1).find_map(|line| line.strip_prefix("VmFlags:"));
    flags.expect("the map of the store").split_whitespace().any(|flag| flag == "rr")
}

#[test]
fn the_kernel_reads_ahead_unless_it_shall_not() {
    let (_dir, path) = fresh();
    for (read_ahead, in_no_order) in [(None, false), (Some(true), false), (Some(false), true)] {
        let options = match read_ahead {
            Some(yes) => Options::new().read_ahead(yes),
            None => Options::new(),
        };
        let env = options.open(&path).unwrap();
        assert_eq!(wanted_in_no_order(&path), in_no_order, "{read_ahead:?}");
        env.close().unwrap();
    }
    // A file longer than any memory; what is past its end takes no room on the disk.
    let env = Options::new().reserve(1 << 45).open(&path).unwrap();
    env.close().unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 43).unwrap();
    let env = Options::new().reserve(1 << 45).open(&path).unwrap();
    assert!(wanted_in_no_order(&path));
    env.close().unwrap();
}

/// Under LMDB's names the lock file has LMDB's, whoever opens: programs of the drop-in, which names the
/// folder, and those in Rust must not write side by side.
#[test]
fn the_lock_file_of_data_mdb_is_lock_mdb() {
    let (dir, path) = fresh();
    let data = dir.path().join("data.mdb");
    let env = Options::new().open(&data).unwrap();
    assert!(dir.path().join("lock.mdb").exists());
    let other = Options::new().lock_path(dir.path().join("lock.mdb")).open(&data).unwrap();
    let txn = env.write().unwrap();
    std::thread::scope(|scope| {
        assert!(scope.spawn(|| other.try_write().unwrap().is_none()).join().unwrap());
    });
    drop(txn);
    assert!(!dir.path().join("data.mdb-lock").exists());
    let lock = Options::default_lock_path(&path);
    assert_eq!(lock.file_name().unwrap().to_str(), Some("store-lock"), "{}", path.display());
}

#[test]
fn who_wants_a_lock_file_does_not_get_a_store_that_is_open_without_one() {
    let (_dir, path) = fresh();
    let unlocked = Options::new().lock_file(false);
    let first = unlocked.clone().open(&path).unwrap();
    let second = unlocked.clone().open(&path).unwrap();
    for wanted in [Options::new(), Options::new().exclusive(true), Options::new().read_only(true)] {
        let refused = wanted.open(&path);
        assert!(matches!(refused, Err(Error::Busy(_))), "{:?}", refused.err());
    }
    drop((first, second));
    let first = Options::new().open(&path).unwrap();
    // The other way round nobody loses anything.
    let second = unlocked.open(&path).unwrap();
    drop((first, second));
}

/// Another process writes the first meta while this one looks at the file: that is no foreign file. On a busy machine
/// the other one may be stopped for longer than it is waited for.
#[test]
fn a_store_that_is_being_created_is_waited_for() {
    let (_dir, path) = fresh();
    drop(Options::new().open(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    let mut half = whole.clone();
    half[..4096].fill(0xab);
    let refused = || {
        fs::write(&path, &half).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let first = whole[..4096].to_vec();
        let creator = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(8));
            file.write_all_at(&first, 0).unwrap();
        });
        let opened = Options::new().open(&path);
        creator.join().unwrap();
        opened.err()
    };
    let refusals: Vec<_> = (0..5).map_while(|_| refused()).collect();
    assert!(refusals.len() < 5, "{refusals:?}");
}
