//! The data file: lengths, blocks, limits, and what is refused.

use std::io::{ErrorKind, IoSlice};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::Error;
use crate::platform::testing::{Program, apart, say, task};
use crate::platform::{Advice, Claim, DataFile, OpenFile, WritableMap, open_data, os_page_size};

const HOW: OpenFile = OpenFile {
    read_only: false,
    create: true,
    mode: 0o600,
    reserve: 64 << 20,
    writable_map: WritableMap::No,
    large_calls: false,
};

fn open(path: &Path) -> Box<dyn DataFile> {
    open_data(path, &HOW).expect("open").0
}

fn bytes(file: &dyn DataFile, at: u64, len: usize) -> Vec<u8> {
    assert!(at + len as u64 <= file.len().expect("length"));
    // SAFETY: the range lies within the file and its map, and nobody writes meanwhile.
    unsafe { std::slice::from_raw_parts(file.base().add(at as usize), len).to_vec() }
}

#[test]
fn what_is_written_shows_in_the_map() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    let (file, empty) = open_data(&path, &HOW).expect("open");
    assert!(empty);
    file.grow(1 << 20, false).expect("grow");
    let many: Vec<Vec<u8>> = (0..3000u32).map(|i| i.to_le_bytes().to_vec()).collect();
    // More slices than one call takes, empty ones at the start, inside and at the end.
    let mut slices: Vec<IoSlice<'_>> = vec![IoSlice::new(&[]); 1500];
    slices.extend(many.iter().map(|part| IoSlice::new(part)));
    slices.insert(2000, IoSlice::new(&[]));
    slices.push(IoSlice::new(&[]));
    file.write_at(4096, &mut slices).expect("write");
    assert_eq!(bytes(&*file, 4096, 12000), many.concat());
    file.sync_data().expect("flush");
    file.sync_directory().expect("flush the directory");
    drop(file);
    let (again, empty) = open_data(&path, &OpenFile { read_only: true, ..HOW }).expect("open");
    assert!(!empty);
    assert_eq!(bytes(&*again, 4096, 12000), many.concat());
    assert!(again.write_at(0, &mut [IoSlice::new(b"x")]).is_err());
}

#[test]
fn grown_space_is_really_allocated() {
    let dir = tempfile::tempdir().expect("directory");
    for zeroed in [false, true] {
        let path = dir.path().join(format!("store-{zeroed}"));
        let file = open(&path);
        for len in [4096, 4096, 1 << 20, 9 << 20, 1 << 20] {
            let longest = file.len().expect("length").max(len);
            file.grow(len, zeroed).expect("grow");
            let found = std::fs::metadata(&path).expect("status");
            assert_eq!(found.len(), longest);
            assert!(found.blocks() * 512 >= longest, "{} blocks", found.blocks());
        }
        assert!(bytes(&*file, 0, 9 << 20).iter().all(|&byte| byte == 0));
        file.truncate(8192).expect("cut");
        file.truncate(1 << 20).expect("not longer");
        assert_eq!(file.len().expect("length"), 8192);
    }
}

#[test]
fn nothing_outgrows_the_reservation() {
    let dir = tempfile::tempdir().expect("directory");
    let how = OpenFile { reserve: 1, ..HOW };
    let (file, _) = open_data(&dir.path().join("store"), &how).expect("open");
    let page = os_page_size() as u64;
    assert_eq!(file.reserved(), page);
    file.grow(page, true).expect("grow");
    assert_eq!(file.grow(page + 1, true).expect_err("limit").kind(), ErrorKind::InvalidInput);
    assert_eq!(file.len().expect("length"), page);
}

#[test]
fn an_impossible_reservation_is_halved() {
    let dir = tempfile::tempdir().expect("directory");
    let how = OpenFile { reserve: 1 << 60, writable_map: WritableMap::Yes, ..HOW };
    let (file, _) = open_data(&dir.path().join("store"), &how).expect("open");
    assert!(file.reserved() >= 64 << 20 && file.reserved() < 1 << 60);
    file.grow(4096, false).expect("grow");
    let writable = file.writable().expect("asked for");
    // SAFETY: the first byte of a file of one page, in its writable map.
    unsafe { writable.write(7) };
    assert_eq!(bytes(&*file, 0, 1), [7]);
}

/// ext2 and ext3 give the same number as ext4, but cannot fill holes: a store into one would be a signal
/// when the disk is full. ext4 keeps a file as they do if it is asked to.
#[test]
fn a_file_with_holes_that_cannot_be_filled_is_written_by_calls() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    let plain = std::fs::File::create(&path).expect("create");
    let output = std::process::Command::new("chattr").arg("-e").arg(&path).output();
    if !output.is_ok_and(|output| output.status.success()) {
        println!("not ext4, or without chattr: nothing to test");
        return;
    }
    plain.set_len(1 << 20).expect("a hole");
    for (writable_map, expected) in [(WritableMap::WhereSafe, false), (WritableMap::Yes, true)] {
        let (file, _) = open_data(&path, &OpenFile { writable_map, ..HOW }).expect("open");
        assert_eq!(file.writable().is_some(), expected, "{writable_map:?}");
    }
}

#[test]
fn pages_that_are_populated_are_resident() {
    let dir = tempfile::tempdir().expect("directory");
    let file = open(&dir.path().join("store"));
    file.grow(1 << 20, true).expect("grow");
    file.advise(0, 1 << 20, Advice::Populate).expect("populate");
    let resident = file.resident(64 << 10, 512 << 10).expect("asked");
    assert_eq!(resident.len(), (512 << 10) / os_page_size());
    assert!(resident.iter().all(|resident| *resident));
    assert!(file.resident(100, 4096).is_err(), "not at a page");
    assert!(file.resident(0, u64::MAX).is_err(), "outside of the map");
}

#[test]
fn advice_reaches_no_further_than_the_map() {
    let dir = tempfile::tempdir().expect("directory");
    let file = open(&dir.path().join("store"));
    file.grow(1 << 20, false).expect("grow");
    for advice in [Advice::Random, Advice::Normal, Advice::WillNeed, Advice::HugePages] {
        file.advise(5000, 10_000, advice).expect("inside");
        file.advise(0, u64::MAX, advice).expect("cut");
        file.advise(u64::MAX, u64::MAX, advice).expect("empty");
        file.advise(0, 0, advice).expect("empty");
    }
}

#[test]
fn only_regular_files_are_opened() {
    let dir = tempfile::tempdir().expect("directory");
    let refused = |path: &Path| match open_data(path, &HOW) {
        Err(Error::NotAStore { found, .. }) => found,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened"),
    };
    assert_eq!(refused(dir.path()), "a directory");
    assert_eq!(refused(Path::new("/dev/null")), "a device");
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("socket");
    assert_eq!(refused(&socket), "a socket");
    let pipe = dir.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().expect("text")).expect("no zero");
    // SAFETY: the name is a string that ends in a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert_eq!(refused(&pipe), "a pipe");
    let missing = OpenFile { create: false, ..HOW };
    let error = open_data(&dir.path().join("missing"), &missing).err().expect("missing");
    assert!(matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound));
}

#[test]
fn one_file_has_one_id_under_all_names() {
    let dir = tempfile::tempdir().expect("directory");
    let (path, link) = (dir.path().join("store"), dir.path().join("link"));
    let file = open(&path);
    std::os::unix::fs::symlink(&path, &link).expect("link");
    let linked = open(&link);
    assert_eq!(file.id(), linked.id());
    assert_eq!(file.path(), linked.path());
    assert_ne!(file.id(), open(&dir.path().join("other")).id());
}

#[test]
fn limits_give_errors_and_no_signals() {
    let _apart = apart();
    let dir = tempfile::tempdir().expect("directory");
    for program in ["file_size_limit", "data_limit", "full_disk"] {
        let task = dir.path().to_str().expect("text");
        let name = format!("platform::linux::tests::program_{program}");
        let mut child = Program::start(&name, task);
        let said = child.hear();
        assert!(said == "well" || said == "not permitted", "{program}: {said}");
        child.finish();
    }
}

#[test]
#[ignore = "run by limits_give_errors_and_no_signals"]
fn program_file_size_limit() {
    let Some(dir) = task() else { return };
    let path = Path::new(&dir).join("limited");
    let file = open(&path);
    file.grow(1 << 20, true).expect("grow");
    let limit = libc::rlimit64 { rlim_cur: 2 << 20, rlim_max: libc::RLIM64_INFINITY };
    // SAFETY: reads the structure given; the limit holds for this process alone.
    assert_eq!(unsafe { libc::setrlimit64(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    file.grow(2 << 20, true).expect("to the limit");
    for zeroed in [false, true] {
        let error = file.grow((2 << 20) + 1, zeroed).expect_err("limit");
        assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
    }
    let error = file.write_at(2 << 20, &mut [IoSlice::new(b"x")]).expect_err("limit");
    assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
    assert_eq!(file.len().expect("length"), 2 << 20);
    say("well");
}

#[test]
#[ignore = "run by limits_give_errors_and_no_signals"]
fn program_data_limit() {
    let Some(_) = task() else { return };
    let bytes = super::memory_limit() / 2;
    let limit = libc::rlimit64 { rlim_cur: bytes, rlim_max: libc::RLIM64_INFINITY };
    // SAFETY: reads the structure given; the limit holds for this process alone.
    assert_eq!(unsafe { libc::setrlimit64(libc::RLIMIT_DATA, &raw const limit) }, 0);
    assert_eq!(super::private_memory_limit(2 * bytes), bytes);
    say("well");
}

#[test]
#[ignore = "run by limits_give_errors_and_no_signals"]
fn program_full_disk() {
    let Some(dir) = task() else { return };
    let disk = Path::new(&dir).join("disk");
    std::fs::create_dir(&disk).expect("directory");
    let target = std::ffi::CString::new(disk.to_str().expect("text")).expect("no zero");
    // SAFETY: a mount namespace of this process alone; all strings end in zero bytes and outlive
    // the calls.
    let mounted = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(
                c"tmpfs".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                c"size=1m".as_ptr().cast(),
            ) == 0
    };
    if !mounted {
        return say("not permitted");
    }
    let file = open(&disk.join("store"));
    file.grow(512 << 10, true).expect("half");
    for zeroed in [false, true] {
        let error = file.grow(2 << 20, zeroed).expect_err("full");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(file.len().expect("length"), 512 << 10);
    }
    file.write_at(0, &mut [IoSlice::new(&[1; 512 << 10])]).expect("what was allocated is there");
    say("well");
}

/// A process that was killed gives up its place in the lock file before its claim, as it happens.
#[test]
fn a_claim_waits_for_the_end_of_the_one_before() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("data");
    let file = open(&path);
    let claim = || Claim::open(file.as_ref(), false).expect("open").expect("a file of the system");
    let before = claim();
    assert!(before.take(7, 0, false, &path).expect("claim"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            drop(before);
        });
        assert!(claim().take(7, 0, false, &path).expect("claim"), "not claimed");
    });
}
