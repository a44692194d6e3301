//! One file with two names, two files under one name.

use std::fs;
use std::os::unix::fs::FileExt;

use zubilo::{Durability, Error, Options};

use super::{churn, records, store};
use crate::common::process::{Program, apart};
use crate::common::{check, contents, fresh, put_all};

#[test]
fn a_hard_link_leads_to_no_second_store() {
    let _apart = apart();
    let (dir, path) = fresh();
    let env = store(&path);
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let other = other.join("store");
    fs::hard_link(&path, &other).unwrap();
    for program in ["sharing::child_writes", "sharing::child_keeps_slices"] {
        let mut child = Program::start(program, &other);
        let said = child.hear();
        assert!(said.contains("another lock file"), "{program}: {said}");
        child.finish();
    }
    churn(&env);
    env.close().unwrap();
    let mut child = Program::start("sharing::child_keeps_slices", &other);
    assert_eq!(child.hear(), "keeps 50");
    assert!(matches!(Options::new().open(&path), Err(Error::Busy(_))), "beside a reader");
    child.finish();
    let env = Options::new().open(&path).unwrap();
    check(&env, "by its first name");
}

/// Two who come at the same moment by different names: at most one gets in.
#[test]
fn of_two_names_opened_at_once_one_is_refused() {
    let _apart = apart();
    let (dir, path) = fresh();
    store(&path).close().unwrap();
    let other = dir.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    for round in 0..8 {
        let mut both = [&path, &other].map(|name| Program::start("sharing::child_writes", name));
        let said = both.each_mut().map(|child| child.hear());
        let open = said.iter().filter(|said| *said == "open").count();
        assert_eq!(open, 1, "round {round}: {said:?}");
        both.into_iter().for_each(Program::finish);
    }
    check(&Options::new().open(&path).unwrap(), "at the end");
}

/// Those who have it open keep what they have; who comes by the name gets an error.
#[test]
fn a_file_that_was_replaced_while_open_is_not_joined() {
    let _apart = apart();
    let (dir, path) = fresh();
    let backup = dir.path().join("backup");
    store(&backup).close().unwrap();
    for replaced in [false, true] {
        let env = store(&path);
        churn(&env);
        if replaced {
            fs::rename(&backup, &path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        for program in ["sharing::child_writes", "sharing::child_keeps_slices"] {
            let mut child = Program::start(program, &path);
            let said = child.hear();
            let told = said.contains("another data file") || said.contains("os error 2");
            assert!(said.starts_with("refused") && told, "{program}: {said}");
            child.finish();
        }
        churn(&env);
        check(&env, "the file that was there before");
        env.close().unwrap();
        // Nobody is there any more: the file under the name is the store.
        let mut child = Program::start("sharing::child_writes", &path);
        assert_eq!(child.hear(), "open");
        child.go();
        assert_eq!(child.hear(), "written");
        child.finish();
        check(&Options::new().open(&path).unwrap(), "the file that is there now");
        fs::remove_file(&path).unwrap();
    }
}

/// A lock file that was deleted leads to another one; the data file tells of its users.
#[test]
fn a_lock_file_deleted_while_in_use_lets_nobody_in() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = store(&path);
    fs::remove_file(Options::default_lock_path(&path)).unwrap();
    let mut child = Program::start("sharing::child_writes", &path);
    let said = child.hear();
    assert!(said.contains("another lock file"), "{said}");
    child.finish();
    churn(&env);
    check(&env, "without a lock file");
}

/// Another store written over the bytes of one in use.
#[test]
fn a_file_overwritten_with_another_store_is_not_joined() {
    let _apart = apart();
    let (dir, path) = fresh();
    let other = dir.path().join("other");
    let another = Options::new().open(&other).unwrap();
    put_all(&another, "t", [("k", "v")]);
    another.close().unwrap();
    let env = store(&path);
    let bytes = fs::read(&other).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    let mut child = Program::start("sharing::child_keeps_slices", &path);
    let said = child.hear();
    assert!(said.contains("overwritten"), "{said}");
    child.finish();
    env.close_without_sync();
}

/// An error, and not the end of the process by a signal.
#[test]
fn a_file_truncated_in_use_is_an_error_for_who_comes() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = store(&path);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(64 << 10).unwrap();
    let mut child = Program::start("sharing::child_keeps_slices", &path);
    let said = child.hear();
    assert!(said.contains("truncated"), "{said}");
    child.finish();
    env.close_without_sync();
}

/// Users of a lock file at a place of its own find each other, however they write its path.
#[test]
fn a_lock_file_elsewhere_is_shared() {
    let _apart = apart();
    let (dir, path) = fresh();
    let folder = dir.path().join("locks");
    fs::create_dir(&folder).unwrap();
    let options = Options::new().lock_path(folder.join("../locks/one"));
    let env = options.open(&path).unwrap();
    put_all(&env, "t", [("k", "v")]);
    let mut child = Program::start("sharing::child_writes", &path);
    assert!(child.hear().contains("another lock file"));
    child.finish();
    assert_eq!(contents(&env.read().unwrap()).len(), 1);
}

/// A copy that was made while the store was written to: some pages are older than others. It is written over
/// the bytes of the store itself, whose lock file stays.
#[test]
fn a_torn_copy_written_over_the_store_is_not_trusted() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = store(&path);
    env.sync().unwrap();
    let commits =
        |fills: std::ops::Range<u8>| fills.for_each(|fill| _ = put_all(&env, "t", records(fill)));
    commits(2..12);
    let metas = fs::read(&path).unwrap()[..4 * 4096].to_vec();
    commits(12..22);
    let mut torn = fs::read(&path).unwrap();
    torn[..metas.len()].copy_from_slice(&metas);
    commits(22..30);
    env.close_without_sync();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&torn, 0).unwrap();
    drop(file);
    // All of one commit, or an error.
    if let Ok(env) = Options::new().durability(Durability::NoSync).open(&path) {
        check(&env, "the commit that was trusted");
    }
}
