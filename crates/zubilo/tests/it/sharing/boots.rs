//! Systems that hide which run of theirs this is, and containers with a number of their own.

use std::fs;
use std::path::Path;

use zubilo::{Durability, Options};

use super::{by_shell, words};
use crate::common::process::{Program, apart, may_mount, say, task, wait};
use crate::common::{check, fresh, put_all};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Commits without flushes, the last ones at the end of the store.
#[test]
#[ignore = "program: run by other tests"]
fn child_commits_weakly() {
    let Some(path) = task() else { return };
    let env = Options::new().durability(Durability::NoSync).open(path).unwrap();
    for n in 0..100u64 {
        put_all(&env, "t", [(n.to_be_bytes(), [7; 500])]);
    }
    say("committed");
    wait();
}

#[test]
#[ignore = "program: run by other tests"]
fn child_counts() {
    let Some(path) = task() else { return };
    match Options::new().durability(Durability::NoSync).open(path) {
        Ok(env) => {
            let read = env.read().unwrap();
            say(format!("found {}", read.table("t").map_or(0, |table| table.len())));
            drop(read);
            put_all(&env, "other", [("k", "v")]);
            check(&env, "in the child");
        }
        Err(error) => say(format!("refused: {error}")),
    }
}

/// Ways to see the number of this run: none, or one of the container's own.
fn views(dir: &Path) -> [[String; 6]; 3] {
    let own = dir.join("boot_id");
    fs::write(&own, "01234567-89ab-4def-8123-456789abcdef\n").unwrap();
    [
        by_shell("true"),
        by_shell(&format!("mount --bind /dev/null {BOOT_ID}")),
        by_shell(&format!("mount --bind {} {BOOT_ID}", own.display())),
    ]
}

/// The end of a process, however hard, loses no commit.
#[test]
fn a_killed_process_loses_nothing_wherever_the_boot_id_is_hidden() {
    let _apart = apart();
    if !may_mount("a_killed_process_loses_nothing_wherever_the_boot_id_is_hidden") {
        return;
    }
    let (dir, _) = fresh();
    let views = views(dir.path());
    for (i, before) in views.iter().enumerate() {
        for (j, after) in views.iter().enumerate() {
            let path = dir.path().join(format!("store-{i}-{j}"));
            let program = "sharing::boots::child_commits_weakly";
            let mut writer = Program::start_by(&words(before), program, &path);
            assert_eq!(writer.hear(), "committed");
            writer.kill();
            let program = "sharing::boots::child_counts";
            let mut reader = Program::start_by(&words(after), program, &path);
            assert_eq!(reader.hear(), "found 100", "views {i} and {j}");
            reader.finish();
        }
    }
}

/// A shell beside a service: the same system, whatever the two see of it.
#[test]
fn users_with_different_views_of_the_boot_share_a_store() {
    let _apart = apart();
    if !may_mount("users_with_different_views_of_the_boot_share_a_store") {
        return;
    }
    let (dir, _) = fresh();
    let views = views(dir.path());
    for (i, before) in views.iter().enumerate() {
        for (j, after) in views.iter().enumerate() {
            let path = dir.path().join(format!("store-{i}-{j}"));
            let program = "sharing::boots::child_commits_weakly";
            let mut service = Program::start_by(&words(before), program, &path);
            assert_eq!(service.hear(), "committed");
            let program = "sharing::boots::child_counts";
            let mut shell = Program::start_by(&words(after), program, &path);
            assert_eq!(shell.hear(), "found 100", "views {i} and {j}");
            shell.finish();
            service.finish();
        }
    }
}
