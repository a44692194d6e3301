//! Who writes: the writer lock between pid namespaces, where the numbers of threads repeat.

use zubilo::{Durability, Env, Options};

use super::{records, store};
use crate::common::process::{Program, apart, may_mount, say, task, wait};
use crate::common::{check, fresh};

/// The first process of a namespace of its own, as in a container: all of these have the number 1.
const CONTAINER: [&str; 4] = ["unshare", "--pid", "--fork", "--kill-child"];

fn open() -> Option<Env> {
    Some(Options::new().durability(Durability::NoSync).open(task()?).unwrap())
}

#[test]
#[ignore = "program: run by other tests"]
fn child_holds_the_writer_lock() {
    let Some(env) = open() else { return };
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("t").unwrap();
    records(7).for_each(|(key, value)| table.put(key, value).unwrap());
    say("writes");
    wait();
    txn.commit().unwrap();
    say("committed");
    wait();
}

#[test]
#[ignore = "program: run by other tests"]
fn child_waits_for_the_writer_lock() {
    let Some(env) = open() else { return };
    say("waits");
    drop(env.write().unwrap());
    say("wrote");
    wait();
}

/// Two containers whose main threads have one number: the end of the one that waits is not the end of the
/// one that writes.
#[test]
fn the_end_of_who_waits_does_not_let_others_in() {
    let _apart = apart();
    if !may_mount("the_end_of_who_waits_does_not_let_others_in") {
        return;
    }
    let (_dir, path) = fresh();
    let env = store(&path);
    let start =
        |name: &str| Program::start_by(&CONTAINER, &format!("sharing::writers::{name}"), &path);
    let mut writer = start("child_holds_the_writer_lock");
    assert_eq!(writer.hear(), "writes");
    for _ in 0..3 {
        let mut waiting = start("child_waits_for_the_writer_lock");
        assert_eq!(waiting.hear(), "waits");
        // Whether it sleeps by then is a matter of luck, and no matter of right or wrong.
        std::thread::sleep(std::time::Duration::from_millis(300));
        waiting.kill();
        assert!(env.try_write().unwrap().is_none(), "two write transactions at a time");
    }
    writer.go();
    assert_eq!(writer.hear(), "committed");
    writer.finish();
    drop(env.write().unwrap());
    check(&env, "after the end of who waited");
}
