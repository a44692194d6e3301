//! Files that are copies of others, made outside of the store on the same boot: whole after a process
//! was killed, or of what a disk may have held at a power cut.

use std::fs;
use std::path::Path;

use zubilo::{Durability, Env, Options};

use crate::common::{check, contents, put_all};

const PAGE: usize = 4096;

fn record(i: u32, round: u32) -> (Vec<u8>, Vec<u8>) {
    let large = if i == 7 { 9000 } else { 60 };
    (format!("key-{i:04}").into_bytes(), format!("{round:0>large$}").into_bytes())
}

fn open(path: &Path) -> Env {
    Options::new().durability(Durability::NoSync).open(path).unwrap()
}

/// Replaces some records, in a commit of its own.
fn change(env: &Env, round: u32) {
    put_all(env, "t", (0..40).map(|i| record((i * 37 + round * 5) % 500, round)));
}

#[test]
fn a_copy_after_a_kill_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let env = open(&path);
    put_all(&env, "t", (0..500).map(|i| record(i, 0)));
    // Some with, some without a steady point behind them, and enough for a new base of the free-space log.
    for rounds in [0, 3, 1500] {
        (1..=rounds).for_each(|round| change(&env, round));
        let expected = contents(&env.read().unwrap());
        let copy = dir.path().join(format!("copy-{rounds}"));
        fs::copy(&path, &copy).unwrap();
        let copied = open(&copy);
        assert_eq!(contents(&copied.read().unwrap()), expected, "after {rounds}");
        check(&copied, "the copy");
        change(&copied, 9999);
        copied.close_without_sync();
        let again = open(&copy);
        assert_ne!(contents(&again.read().unwrap()), expected, "the copy's own commit");
        check(&again, "the copy opened again");
    }
}

/// Each page that changed since the steady point is there or not: a commit from that point on must be
/// found, whichever page is missing, and whatever was there before it.
#[test]
fn a_copy_of_what_a_power_cut_left_is_not_trusted_blindly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let env = open(&path);
    put_all(&env, "t", (0..500).map(|i| record(i, 0)));
    (1..20).for_each(|round| change(&env, round));
    env.sync().unwrap();
    let mut states = vec![contents(&env.read().unwrap())];
    let mut images = vec![fs::read(&path).unwrap()];
    for round in 20..26 {
        change(&env, round);
        states.push(contents(&env.read().unwrap()));
        images.push(fs::read(&path).unwrap());
    }
    let now = images.pop().unwrap();
    let (mut trusted, mut refused) = (0, 0);
    for (n, image) in images.iter().enumerate() {
        for at in (4 * PAGE..now.len()).step_by(PAGE) {
            let mut old = image.get(at..at + PAGE).unwrap_or(&[0; PAGE]).to_vec();
            old.resize(PAGE, 0);
            if old == now[at..at + PAGE] {
                continue;
            }
            let mut torn = now.clone();
            torn[at..at + PAGE].copy_from_slice(&old);
            let copy = dir.path().join(format!("torn-{n}-{at}"));
            fs::write(&copy, torn).unwrap();
            let found = open(&copy);
            let what = contents(&found.read().unwrap());
            check(&found, "a copy without a page");
            let commit = states.iter().position(|state| *state == what);
            let commit = commit.unwrap_or_else(|| panic!("page {} as of image {n}", at / PAGE));
            if commit + 1 == states.len() {
                trusted += 1
            } else {
                refused += 1
            }
            drop(found);
            fs::remove_file(&copy).unwrap();
        }
    }
    assert!(refused > 20, "{refused} refused, {trusted} trusted");
}

/// An image that was restored in place has the file's inode and time of birth. Without a lock file that
/// knows of its weak commits they are looked at; and what the first one could not trust the second
/// must not trust either, whether the first one may write or not.
#[test]
fn an_image_restored_in_place_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let lock = dir.path().join("store-lock");
    let env = open(&path);
    put_all(&env, "t", (0..500).map(|i| record(i, 0)));
    env.sync().unwrap();
    let steady = contents(&env.read().unwrap());
    let before = fs::read(&path).unwrap();
    change(&env, 1);
    let newest = contents(&env.read().unwrap());
    env.close_without_sync();
    let now = fs::read(&path).unwrap();
    // All of the weak commit's pages are missing, its meta is there.
    let mut torn = now.clone();
    torn[4 * PAGE..].fill(0);
    torn[4 * PAGE..before.len()].copy_from_slice(&before[4 * PAGE..]);
    for (image, expected) in [(&now, &newest), (&torn, &steady)] {
        for read_only in [[false, false], [true, true], [true, false]] {
            fs::remove_file(&lock).unwrap();
            // The same file: only its content changes.
            fs::write(&path, image).unwrap();
            for read_only in read_only {
                let options = Options::new().durability(Durability::NoSync).read_only(read_only);
                let env = options.open(&path).unwrap();
                assert_eq!(contents(&env.read().unwrap()), *expected, "{read_only}");
                check(&env, "a restored image");
                env.close_without_sync();
            }
        }
    }
}
