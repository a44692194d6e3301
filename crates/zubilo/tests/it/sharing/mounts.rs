//! Mounts and namespaces, as containers have them.

use std::fs;
use std::path::Path;
use std::process::Command;

use zubilo::{Error, Options};

use super::{by_shell, churn, store, words};
use crate::common::process::{Program, apart, may_mount, say, task, wait};
use crate::common::{check, fresh};

fn read_only(dir: &Path) -> [String; 6] {
    let dir = dir.display();
    by_shell(&format!("mount --bind {dir} {dir} && mount -o remount,ro,bind {dir}"))
}

/// A writer elsewhere cannot see who does not write to the lock file.
#[test]
fn a_reader_on_a_read_only_mount_is_seen_or_refused() {
    let _apart = apart();
    if !may_mount("a_reader_on_a_read_only_mount_is_seen_or_refused") {
        return;
    }
    let (dir, path) = fresh();
    let env = store(&path);
    let command = read_only(dir.path());
    let mut reader = Program::start_by(&words(&command), "sharing::child_keeps_slices", &path);
    let said = reader.hear();
    if said.starts_with("refused") {
        assert!(said.contains("mounted for reading only"), "{said}");
    } else {
        churn(&env);
        reader.go();
        assert_eq!(reader.hear(), "changed 0");
    }
    reader.finish();
    check(&env, "with a reader on a read-only mount");
}

/// No lock file that it could see: a writer may make one at any time.
#[test]
fn a_reader_on_a_read_only_mount_without_a_lock_file_is_refused() {
    let _apart = apart();
    if !may_mount("a_reader_on_a_read_only_mount_without_a_lock_file_is_refused") {
        return;
    }
    let (dir, path) = fresh();
    store(&path).close().unwrap();
    fs::remove_file(Options::default_lock_path(&path)).unwrap();
    let command = read_only(dir.path());
    let mut reader = Program::start_by(&words(&command), "sharing::child_keeps_slices", &path);
    let said = reader.hear();
    assert!(said.contains("mounted for reading only"), "{said}");
    reader.finish();
}

/// Start times differ by the time namespace of who reads them.
#[test]
fn a_reader_in_another_time_namespace_is_alive() {
    let _apart = apart();
    if !may_mount("a_reader_in_another_time_namespace_is_alive") {
        return;
    }
    let (_dir, path) = fresh();
    let env = store(&path);
    let apart = ["unshare", "-T", "--boottime", "100000", "--fork", "--kill-child"];
    let mut reader = Program::start_by(&apart, "sharing::child_keeps_slices", &path);
    assert_eq!(reader.hear(), "keeps 50");
    churn(&env);
    assert_eq!(env.readers().len(), 1);
    reader.go();
    assert_eq!(reader.hear(), "changed 0");
    reader.finish();
}

/// In a pid namespace: a reader that sees the /proc outside, a writer with one of its own.
#[test]
#[ignore = "program: run by other tests"]
fn child_reads_beside_another_proc() {
    let Some(path) = task() else { return };
    let mut reader = Program::start("sharing::child_keeps_slices", &path);
    assert_eq!(reader.hear(), "keeps 50");
    let own = ["unshare", "-m", "--mount-proc"];
    let mut writer = Program::start_by(&own, "sharing::child_writes", &path);
    assert_eq!(writer.hear(), "open");
    writer.go();
    assert_eq!(writer.hear(), "written");
    reader.go();
    say(reader.hear());
    wait();
    writer.finish();
    reader.finish();
}

#[test]
fn a_reader_in_a_pid_namespace_without_its_own_proc_is_alive() {
    let _apart = apart();
    if !may_mount("a_reader_in_a_pid_namespace_without_its_own_proc_is_alive") {
        return;
    }
    let (_dir, path) = fresh();
    let env = store(&path);
    let by = ["unshare", "--pid", "--fork", "--kill-child"];
    let program = "sharing::mounts::child_reads_beside_another_proc";
    let mut both = Program::start_by(&by, program, &path);
    assert_eq!(both.hear(), "changed 0");
    both.finish();
    check(&env, "after a pid namespace");
}

/// On an overlay the first open for writing makes another file of it.
#[test]
#[ignore = "program: run by other tests"]
fn child_shares_an_overlay() {
    let Some(dir) = task() else { return };
    let path = dir.join("merged/store");
    let mut reader = Program::start("sharing::child_keeps_slices", &path);
    assert_eq!(reader.hear(), "keeps 50");
    let mut writer = Program::start("sharing::child_writes", &path);
    assert_eq!(writer.hear(), "open");
    writer.go();
    assert_eq!(writer.hear(), "written");
    reader.go();
    say(reader.hear());
    reader.go();
    say(reader.hear());
    reader.finish();
    writer.finish();
}

fn overlay(dir: &Path, options: &str) -> [String; 6] {
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let dir = dir.display();
    by_shell(&format!(
        "mount -t overlay none {dir}/merged \
         -o lowerdir={dir}/lower,upperdir={dir}/upper,workdir={dir}/work{options}"
    ))
}

#[test]
fn a_reader_on_an_overlay_has_the_file_that_writers_have() {
    let _apart = apart();
    if !may_mount("a_reader_on_an_overlay_has_the_file_that_writers_have") {
        return;
    }
    let (dir, _) = fresh();
    let command = overlay(dir.path(), "");
    store(&dir.path().join("lower/store")).close().unwrap();
    let program = "sharing::mounts::child_shares_an_overlay";
    let mut both = Program::start_by(&words(&command), program, dir.path());
    assert_eq!(both.hear(), "changed 0");
    assert_eq!(both.hear(), "then {39}");
    both.finish();
}

/// The folder is mounted for reading only, the overlay's file system is not: others may copy the file up.
#[test]
fn a_reader_that_cannot_copy_a_file_up_is_refused() {
    let _apart = apart();
    if !may_mount("a_reader_that_cannot_copy_a_file_up_is_refused") {
        return;
    }
    let (dir, _) = fresh();
    let mut command = overlay(dir.path(), "");
    store(&dir.path().join("lower/store")).close().unwrap();
    let merged = dir.path().join("merged");
    let mount = format!("&& mount -o remount,ro,bind {} && exec", merged.display());
    command[4] = command[4].replace("&& exec", &mount);
    let store = merged.join("store");
    let mut reader = Program::start_by(&words(&command), "sharing::child_keeps_slices", store);
    let said = reader.hear();
    assert!(said.contains("overlay"), "{said}");
    reader.finish();
}

/// The same file under two folders, each with a lock file of its own.
#[test]
fn one_file_mounted_under_two_folders_is_one_store() {
    let _apart = apart();
    if !may_mount("one_file_mounted_under_two_folders_is_one_store") {
        return;
    }
    let (dir, path) = fresh();
    let env = store(&path);
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let other = other.join("store");
    fs::write(&other, "").unwrap();
    let mount = format!("mount --bind {} {}", path.display(), other.display());
    let command = by_shell(&mount);
    for program in ["sharing::child_writes", "sharing::child_keeps_slices"] {
        let mut child = Program::start_by(&words(&command), program, &other);
        let said = child.hear();
        assert!(said.contains("another lock file"), "{program}: {said}");
        child.finish();
    }
    env.close().unwrap();
    // The other way round: whoever is first, under whatever name.
    let mut child = Program::start_by(&words(&command), "sharing::child_writes", &other);
    assert_eq!(child.hear(), "open");
    assert!(matches!(Options::new().open(&path), Err(Error::Busy(_))));
    child.finish();
    check(&Options::new().open(&path).unwrap(), "at the end");
}

/// In a namespace of mounts: a medium that is read-only when its reader comes, and not for ever.
#[test]
#[ignore = "program: run by other tests"]
fn child_reads_a_medium_that_becomes_writable() {
    let Some(dir) = task() else { return };
    let mount = |options: &str| {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "none"]).arg(&dir);
        assert!(command.status().unwrap().success());
    };
    mount("rw");
    let path = dir.join("store");
    store(&path).close().unwrap();
    mount("remount,ro");
    let mut reader = Program::start("sharing::child_keeps_slices", &path);
    assert_eq!(reader.hear(), "keeps 50");
    mount("remount,rw");
    // The first one keeps the snapshot that is on disk, whoever reads it.
    let mut said = String::new();
    for _ in 0..2 {
        let mut writer = Program::start("sharing::child_writes", &path);
        said = writer.hear();
        if said == "open" {
            writer.go();
            assert_eq!(writer.hear(), "written");
        }
        writer.finish();
    }
    say(format!("the writer: {said}"));
    reader.go();
    say(reader.hear());
    reader.finish();
    let mut writer = Program::start("sharing::child_writes", &path);
    say(writer.hear());
    writer.finish();
}

/// As a system does that is brought up, and a device that is updated.
#[test]
fn a_reader_of_a_medium_that_becomes_writable_keeps_its_pages() {
    let _apart = apart();
    if !may_mount("a_reader_of_a_medium_that_becomes_writable_keeps_its_pages") {
        return;
    }
    let (dir, _) = fresh();
    let program = "sharing::mounts::child_reads_a_medium_that_becomes_writable";
    let mut both = Program::start_by(&["unshare", "-m"], program, dir.path());
    let said = both.hear();
    assert_eq!(both.hear(), "changed 0", "{said}");
    assert_eq!(both.hear(), "open", "once the reader has ended");
    both.finish();
}

/// The layer below an overlay that nobody can write is a folder as any other.
#[test]
fn a_reader_on_a_read_only_overlay_keeps_its_pages_or_is_refused() {
    let _apart = apart();
    if !may_mount("a_reader_on_a_read_only_overlay_keeps_its_pages_or_is_refused") {
        return;
    }
    let (dir, _) = fresh();
    let command = overlay(dir.path(), ",ro");
    let env = store(&dir.path().join("lower/store"));
    let store = dir.path().join("merged/store");
    let mut reader = Program::start_by(&words(&command), "sharing::child_keeps_slices", store);
    let said = reader.hear();
    if said.starts_with("refused") {
        assert!(said.contains("overlay"), "{said}");
    } else {
        churn(&env);
        reader.go();
        assert_eq!(reader.hear(), "changed 0");
    }
    reader.finish();
}
