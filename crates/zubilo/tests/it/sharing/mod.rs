//! Who shares a store with whom: mounts, namespaces, several names of one file, files that are replaced,
//! strangers with permission to read, systems that hide their number. Most of it needs root.

mod boots;
mod files;
mod mounts;
mod opens;
mod strangers;
mod writers;

use std::path::Path;

use zubilo::{Durability, Env, Options};

use crate::common::process::{say, task, wait};
use crate::common::put_all;

/// Runs a program of its own in a namespace of mounts, after the shell has made it what `script` says.
fn by_shell(script: &str) -> [String; 6] {
    let script = format!("{script} && exec \"$@\"");
    ["unshare", "-m", "sh", "-c", &script, "sh"].map(String::from)
}

/// As the words of a command.
fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

const RECORDS: u64 = 50;

fn records(fill: u8) -> impl Iterator<Item = ([u8; 8], Vec<u8>)> {
    (0..RECORDS).map(move |n| (n.to_be_bytes(), vec![fill; 3000]))
}

/// A store with something to read, open.
fn store(path: &Path) -> Env {
    let env = Options::new().durability(Durability::NoSync).open(path).unwrap();
    put_all(&env, "t", records(1));
    env
}

/// Commits that use pages again as soon as nobody pins them.
fn churn(env: &Env) {
    for fill in 2..40 {
        put_all(env, "t", records(fill));
        // Dead readers are looked for every 100 ms at most.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

// ---- programs that tests start ----

/// Reads, keeps the slices, and says in the end how many have changed.
#[test]
#[ignore = "program: run by other tests"]
fn child_keeps_slices() {
    let Some(path) = task() else { return };
    let env = match Options::new().read_only(true).open(path) {
        Ok(env) => env,
        Err(error) => return say(format!("refused: {error}")),
    };
    let read = match env.read() {
        Ok(read) => read,
        Err(error) => return say(format!("refused: {error}")),
    };
    let table = read.table("t").unwrap();
    let slices: Vec<&[u8]> = table.iter().map(|r| r.unwrap().1).collect();
    let copies: Vec<Vec<u8>> = slices.iter().map(|slice| slice.to_vec()).collect();
    say(format!("keeps {}", slices.len()));
    wait();
    let changed = slices.iter().zip(&copies).filter(|(slice, copy)| slice != copy).count();
    say(format!("changed {changed}"));
    wait();
    drop(read);
    let read = env.read().unwrap();
    let all = read.table("t").unwrap().iter().map(|r| r.unwrap().1[0]);
    let fills: std::collections::BTreeSet<u8> = all.collect();
    say(format!("then {fills:?}"));
    wait();
}

/// Opens for writing, commits, and says what it was told.
#[test]
#[ignore = "program: run by other tests"]
fn child_writes() {
    let Some(path) = task() else { return };
    let env = match Options::new().durability(Durability::NoSync).open(path) {
        Ok(env) => env,
        Err(error) => return say(format!("refused: {error}")),
    };
    say("open");
    wait();
    churn(&env);
    say("written");
    wait();
}
