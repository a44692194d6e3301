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

const COMMITS_WEAKLY: &str = "sharing::boots::child_commits_weakly";
const COUNTS: &str = "sharing::boots::child_counts";

/// A program that says this next.
#[track_caller]
fn hears(mut program: Program, what: &str, store: &std::path::Path) -> Program {
    assert_eq!(program.hear(), what, "{}", store.display());
    program
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
            let writer = Program::start_by(&words(before), COMMITS_WEAKLY, &path);
            hears(writer, "committed", &path).kill();
            let reader = Program::start_by(&words(after), COUNTS, &path);
            hears(reader, "found 100", &path).finish();
        }
    }
}

/// So many weak commits that the free-space log is begun anew, more than once.
#[test]
#[ignore = "program: run by other tests"]
fn child_commits_weakly_for_long() {
    let Some(path) = task() else { return };
    let env = Options::new().durability(Durability::NoSync).open(path).unwrap();
    for n in 0..3000u64 {
        put_all(&env, "t", [((n * 7919 % 1000).to_be_bytes(), vec![n as u8; 200])]);
    }
    put_all(&env, "last", [("k", "v")]);
    say("committed");
    wait();
}

/// Says whether the last of these commits is there; the store is whole in any case.
#[test]
#[ignore = "program: run by other tests"]
fn child_looks_for_the_last() {
    let Some(path) = task() else { return };
    let env = Options::new().durability(Durability::NoSync).open(path).unwrap();
    say(if env.read().unwrap().table("last").is_ok() { "all" } else { "what is on disk" });
    check(&env, "in the child");
}

/// Weak commits of a process that sees the number of this run, found by one that does not, and the reverse.
/// Nobody can tell the latter from an open after a power cut. Where it was there before, or another that sees
/// as little, writers provide for it. An open by the first one ever falls back to what is on disk.
#[test]
fn weak_commits_are_found_by_those_who_see_less_and_were_there_before() {
    let _apart = apart();
    if !may_mount("weak_commits_are_found_by_those_who_see_less_and_were_there_before") {
        return;
    }
    let (dir, _) = fresh();
    let views = views(dir.path());
    for (before, after, was_there, expected) in [
        (0, 0, false, "all"),
        (0, 1, false, "what is on disk"),
        (0, 1, true, "all"),
        (0, 2, true, "all"),
        (1, 0, false, "all"),
        (1, 2, false, "all"),
        (2, 1, false, "all"),
    ] {
        let what = format!("{before}-{after}-{was_there}");
        let path = dir.path().join(&what);
        let start = |view: usize, name: &str| {
            let program = format!("sharing::boots::{name}");
            Program::start_by(&words(&views[view]), &program, &path)
        };
        if was_there {
            let mut guest = start(after, "child_looks_for_the_last");
            assert_eq!(guest.hear(), "what is on disk");
            guest.finish();
        }
        let mut writer = start(before, "child_commits_weakly_for_long");
        assert_eq!(writer.hear(), "committed");
        writer.kill();
        let mut reader = start(after, "child_looks_for_the_last");
        assert_eq!(reader.hear(), expected, "{what}");
        reader.finish();
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
            let service = Program::start_by(&words(before), COMMITS_WEAKLY, &path);
            let service = hears(service, "committed", &path);
            let shell = Program::start_by(&words(after), COUNTS, &path);
            hears(shell, "found 100", &path).finish();
            service.finish();
        }
    }
}
