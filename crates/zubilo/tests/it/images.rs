//! Images of the disk that are opened on the boot on which they were made, as from a snapshot of a file
//! system. The boot's number stands in the weak commits, and proves nothing: their pages may be missing.

use std::path::Path;

use zubilo::{Durability, Env, Options};

use crate::common::process::{Program, say, task};
use crate::common::{check, contents, fresh, put_all};

fn options() -> Options {
    Options::new().durability(Durability::NoSync)
}

/// Ten steady records, then many weak commits.
fn fill(env: &Env) {
    put_all(env, "t", (0..10u32).map(|n| (n.to_be_bytes(), b"steady".to_vec())));
    env.sync().unwrap();
    for n in 10..60u32 {
        put_all(env, "t", [(n.to_be_bytes(), vec![n as u8; 300])]);
    }
}

fn records(env: &Env) -> usize {
    contents(&env.read().unwrap())[&b"t"[..]].len()
}

#[test]
#[ignore = "program: run by other tests"]
fn child_writes_weakly() {
    let Some(path) = task() else { return };
    let env = options().open(&path).unwrap();
    fill(&env);
    say("written");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// A store whose writer was killed after weak commits.
fn killed(path: &Path) {
    let mut program = Program::start("images::child_writes_weakly", path);
    assert_eq!(program.hear(), "written");
    program.kill();
}

fn lock_file(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    name.into()
}

#[test]
fn weak_commits_of_the_killed_are_there() {
    let (_dir, path) = fresh();
    killed(&path);
    assert!(lock_file(&path).exists());
    let env = options().open(&path).unwrap();
    assert_eq!(records(&env), 60);
    check(&env, "after the kill");
}

#[test]
fn a_torn_image_on_the_same_boot_falls_back_to_what_is_steady() {
    let (dir, path) = fresh();
    killed(&path);
    let whole = std::fs::read(&path).unwrap();
    // Pages of weak commits that never came to the disk.
    let image = dir.path().join("image");
    let mut torn = whole.clone();
    for page in torn.chunks_exact_mut(4096).skip(4) {
        if page
            .windows(4)
            .any(|w| matches!(w, [a, b, c, d] if a == b && b == c && c == d && *a > 9))
        {
            page.fill(0);
        }
    }
    assert!(torn != whole);
    for read_only_first in [false, true] {
        std::fs::write(&image, &torn).unwrap();
        drop(std::fs::remove_file(lock_file(&image)));
        if read_only_first {
            // Twice: what the first one could not believe the second must not believe either.
            for _ in 0..2 {
                let env = options().read_only(true).open(&image).unwrap();
                assert_eq!(records(&env), 10);
            }
        }
        for round in 0..3 {
            let env = options().open(&image).unwrap();
            assert_eq!(records(&env), 10 + round, "read only first: {read_only_first}");
            check(&env, "an image");
            put_all(&env, "t", [((100 + round as u32).to_be_bytes(), b"new")]);
            env.close_without_sync();
        }
    }
}
