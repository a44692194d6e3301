//! Stores on block devices: fixed in length, full of what was there before. The first tests have a file in memory that
//! is so; the last one a real device, where one can be had.

use std::path::Path;
use std::process::Command;

use zubilo::{Error, Options};

use crate::common::memory::MemoryFile;
use crate::common::process::{apart, ended_well, fork};
use crate::common::{check, contents, put_all};

const LEN: usize = 4 << 20;

/// A device that another store or file system has left its bytes on, its first and last MiB set to zeros.
fn blank() -> MemoryFile {
    let mut bytes = vec![0xA5; LEN];
    bytes[..1 << 20].fill(0);
    bytes[LEN - (1 << 20)..].fill(0);
    MemoryFile::fixed(&bytes)
}

#[test]
fn a_store_lives_in_a_fixed_length_and_is_full_at_its_end() {
    let device = blank();
    let env = device.open(Options::new()).unwrap();
    put_all(&env, "t", [("first", vec![1; 5000])]);
    for round in 0..200u32 {
        put_all(&env, "t", (0..40u32).map(|n| (n.to_be_bytes(), [round as u8; 700])));
    }
    let expected = contents(&env.read().unwrap());
    let mut write = env.write().unwrap();
    let mut table = write.table("t").unwrap();
    let too_much = (0..6000u32).try_for_each(|n| table.put(n.to_be_bytes(), [9; 1000]));
    let too_much = too_much.and_then(|()| write.commit().map(drop));
    assert!(matches!(too_much, Err(Error::MapFull { .. })), "{too_much:?}");
    assert_eq!(contents(&env.read().unwrap()), expected);
    let mut write = env.write().unwrap();
    write.drop_table("t").unwrap();
    write.commit().unwrap();
    put_all(&env, "u", [("after", "that")]);
    check(&env, "in a fixed length");
    env.close().unwrap();
    assert_eq!(device.image().len(), LEN);
    let env = device.open_on_boot(2, Options::new()).unwrap();
    assert_eq!(env.read().unwrap().table("u").unwrap().len(), 1);
    assert_eq!(env.info().unwrap().file_len, LEN as u64);
}

#[test]
fn a_device_that_is_not_blank_is_left_alone() {
    for at in [0, 512, 1024, 65_536, (1 << 20) - 1, LEN - 1, LEN - (1 << 20)] {
        let device = blank();
        device.flip(at, 1);
        let image = device.image();
        match device.open(Options::new()) {
            Err(Error::NotAStore { found, .. }) => assert!(found.contains("not blank"), "{found}"),
            other => panic!("a byte at {at}: {:?}", other.map(drop)),
        }
        assert!(device.image() == image);
    }
    // Without a store on it, and none wanted.
    assert!(blank().open(Options::new().create(false)).is_err());
}

/// A file as a block device, while this lives.
struct Loop(String);

impl Loop {
    /// None where this machine or user cannot have one.
    fn of(file: &Path) -> Option<Loop> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let name = String::from_utf8(made.stdout).ok()?.trim().to_string();
        (made.status.success() && Path::new(&name).exists()).then_some(Loop(name))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_store_on_a_loop_device() {
    let _apart = apart();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("disk");
    std::fs::write(&file, vec![0; 8 << 20]).unwrap();
    let Some(device) = Loop::of(&file) else {
        println!("skipped: no loop device can be had here");
        return;
    };
    let lock = dir.path().join("lock");
    let options = || Options::new().lock_path(&lock);
    let env = match options().open(&device.0) {
        Err(Error::Io { source, .. }) => {
            println!("skipped: the loop device cannot be opened: {source}");
            return;
        }
        opened => opened.unwrap(),
    };
    for round in 0..20u32 {
        put_all(&env, "t", (0..200u32).map(|n| (n.to_be_bytes(), [round as u8; 300])));
    }
    assert_eq!(env.info().unwrap().file_len, 8 << 20);
    // Another process with the same lock file takes part; with another one it does not get in.
    assert!(ended_well(fork(|| {
        let env = options().open(&device.0).unwrap();
        assert_eq!(env.read().unwrap().table("t").unwrap().len(), 200);
        put_all(&env, "t", [("from", "a child")]);
    })));
    let elsewhere = dir.path().join("elsewhere");
    assert!(ended_well(fork(|| {
        let opened = Options::new().lock_path(&elsewhere).open(&device.0);
        assert!(matches!(opened, Err(Error::Busy(_))), "{:?}", opened.map(drop));
    })));
    let expected = contents(&env.read().unwrap());
    assert_eq!(expected[&b"t"[..]].len(), 201);
    check(&env, "on a device");
    env.close().unwrap();
    drop(Loop(device.0.clone()));
    std::mem::forget(device);
    // The file under the device is the store.
    let env = Options::new().create(false).open(&file).unwrap();
    assert_eq!(contents(&env.read().unwrap()), expected);
}
