//! Copies hold what the snapshot holds, whatever happens to the source meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use crate::{Durability, Env, Options, VerifyReads};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn fill(env: &Env, from: u32, to: u32) {
    let mut txn = env.write().unwrap();
    for name in ["a", "b"] {
        let mut table = txn.table_or_create(name).unwrap();
        for i in from..to {
            let len = if i % 97 == 0 { 9000 } else { (i % 60) as usize };
            table.put(i.wrapping_mul(0x9E37_79B9).to_be_bytes(), vec![i as u8; len]).unwrap();
        }
    }
    txn.commit().unwrap();
}

fn contents(env: &Env) -> Vec<Records> {
    let txn = env.read().unwrap();
    let table = |name| {
        let records = txn.table(name).unwrap().iter();
        records.map(|r| r.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
    };
    vec![table("a"), table("b")]
}

fn check_copy(path: &Path, expected: &[Records]) {
    let copy = Options::new().durability(Durability::NoSync).open(path).unwrap();
    assert_eq!(contents(&copy), expected);
    let report = copy.check(&mut |_, _| true).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
    // A copy is a store like any other.
    fill(&copy, 5000, 5100);
    let report = copy.check(&mut |_, _| true).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
}

#[test]
fn copies_to_files_and_streams_hold_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::NoSync);
    let env = options.open(dir.path().join("source")).unwrap();
    for i in 0..10 {
        fill(&env, i * 200, i * 200 + 300);
    }
    env.write().unwrap().table("a").unwrap().delete_range(&[0u8][..]..&[0x40u8][..]).unwrap();
    let expected = contents(&env);
    for compact in [false, true] {
        let path = dir.path().join(format!("file-{compact}"));
        env.copy_to_path(&path, compact, &mut |_, _| true).unwrap();
        check_copy(&path, &expected);
        assert!(env.copy_to_path(&path, compact, &mut |_, _| true).is_err(), "never overwrites");

        let path = dir.path().join(format!("stream-{compact}"));
        let mut out = std::fs::File::create(&path).unwrap();
        env.copy_to_writer(&mut out, compact, &mut |_, _| true).unwrap();
        out.flush().unwrap();
        check_copy(&path, &expected);
    }
}

#[test]
fn a_writer_may_go_on_during_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::NoSync);
    let env = options.open(dir.path().join("source")).unwrap();
    fill(&env, 0, 5000);
    for compact in [false, true] {
        let expected = contents(&env);
        let path = dir.path().join(format!("copy-{compact}"));
        let mut round = 0;
        env.copy_to_path(&path, compact, &mut |_, _| {
            round += 1;
            fill(&env, round * 10, round * 10 + 500);
            true
        })
        .unwrap();
        assert!(round > 1, "the writer wrote during the copy");
        check_copy(&path, &expected);
    }
}

#[test]
fn a_stopped_copy_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("source")).unwrap();
    fill(&env, 0, 100);
    let path = dir.path().join("copy");
    let stopped = env.copy_to_path(&path, false, &mut |_, _| false);
    assert!(matches!(stopped, Err(crate::Error::Stopped)), "{stopped:?}");
    assert!(!path.exists());
}

#[test]
fn an_empty_store_can_be_copied() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("source")).unwrap();
    for compact in [false, true] {
        let path = dir.path().join(format!("copy-{compact}"));
        env.copy_to_path(&path, compact, &mut |_, _| true).unwrap();
        let copy = Options::new().open(&path).unwrap();
        assert!(copy.read().unwrap().tables().unwrap().is_empty());
        assert!(copy.check(&mut |_, _| true).unwrap().is_ok());
    }
}

#[test]
fn damage_is_not_copied() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("source");
    let options = Options::new().verify_reads(VerifyReads::Never).durability(Durability::NoSync);
    let env = options.clone().open(&path).unwrap();
    fill(&env, 0, 2000);
    env.close().unwrap();
    // Inside a value: no structure is hurt, only the checksum shows it.
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(59).position(|w| w == [59; 59]).unwrap();
    bytes[at + 30] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let env = options.open(&path).unwrap();
    for compact in [false, true] {
        let path = dir.path().join("copy");
        let copied = env.copy_to_path(&path, compact, &mut |_, _| true);
        assert!(matches!(copied, Err(crate::Error::Corrupted { .. })), "{copied:?}");
        assert!(!path.exists());
    }
    let mut out = Vec::new();
    let copied = env.copy_to_writer(&mut out, false, &mut |_, _| true);
    assert!(matches!(copied, Err(crate::Error::Corrupted { .. })), "{copied:?}");
    assert!(out.is_empty());
}
