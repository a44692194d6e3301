//! Several processes and threads: one writes, others read the pages that it uses again.

use std::sync::atomic::{AtomicBool, Ordering};

use zubilo::{Durability, Env};

use super::{open, options};
use crate::common::process::{Program, apart, say, task};
use crate::common::{check, fresh, put_all};

const RECORDS: u32 = 300;

/// A commit in which every record says the same.
fn write(env: &Env, round: u32) {
    let value =
        |i: u32| [round.to_le_bytes(), i.to_le_bytes()].concat().repeat(1 + i as usize % 40);
    put_all(env, "t", (0..RECORDS).map(|i| (i.to_be_bytes(), value(i))));
    put_all(env, "large", [("k", round.to_le_bytes().repeat(5000))]);
}

/// Reads a snapshot; gives the round that it is of.
fn read(env: &Env) -> u32 {
    let read = env.read().unwrap();
    let round_of = |value: &[u8]| u32::from_le_bytes(value[..4].try_into().unwrap());
    let table = read.table("t").unwrap();
    let mut rounds = Vec::new();
    for (i, record) in table.iter().enumerate() {
        let (key, value) = record.unwrap();
        assert_eq!(key, (i as u32).to_be_bytes());
        let (eights, rest) = value.as_chunks::<8>();
        assert!(rest.is_empty() && eights.iter().all(|eight| *eight == eights[0]));
        assert_eq!(value[4..8], (i as u32).to_le_bytes());
        rounds.push(round_of(value));
    }
    assert_eq!(rounds.len(), RECORDS as usize);
    assert!(rounds.iter().all(|round| *round == rounds[0]), "of several commits");
    let large = read.table("large").unwrap().get("k").unwrap().unwrap();
    assert!(large.chunks_exact(4).all(|part| part == &large[..4]));
    // The large value is committed by itself, after the others.
    let behind = rounds[0] - round_of(large);
    assert!(behind <= 1);
    rounds[0]
}

#[test]
#[ignore = "program: run by other tests"]
fn child_reads_until_the_last_round() {
    let Some(path) = task() else { return };
    let last: u32 = std::env::var("ROUNDS").unwrap().parse().unwrap();
    let env = options().open(path).unwrap();
    say("open");
    let mut before = 0;
    while before < last {
        let round = read(&env);
        assert!(round >= before);
        before = round;
    }
    say("done");
}

#[test]
fn processes_read_what_another_one_writes() {
    let _apart = apart();
    const ROUNDS: u32 = 300;
    let (_dir, path) = fresh();
    let env = options().durability(Durability::NoSync).open(&path).unwrap();
    write(&env, 0);
    let program = "sharing::child_reads_until_the_last_round";
    let start =
        || Program::start_as(program, &path, |command| command.env("ROUNDS", ROUNDS.to_string()));
    let mut readers: Vec<_> = (0..3).map(|_| start()).collect();
    readers.iter_mut().for_each(|reader| assert_eq!(reader.hear(), "open"));
    for round in 1..=ROUNDS {
        write(&env, round);
        if round % 50 == 0 {
            assert_eq!(read(&env), round);
        }
    }
    for mut reader in readers {
        assert_eq!(reader.hear(), "done");
        reader.finish();
    }
    let used = env.info().unwrap().file_len;
    assert!(used < 16 << 20, "pages are used again: {used}");
    check(&env, "after all");
    env.close().unwrap();
    assert_eq!(read(&open(&path)), ROUNDS);
}

/// Threads of one process share what is decrypted.
#[test]
fn threads_read_what_another_one_writes() {
    const ROUNDS: u32 = 200;
    let (_dir, path) = fresh();
    let env = options().durability(Durability::NoSync).open(&path).unwrap();
    write(&env, 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut before = 0;
                while !done.load(Ordering::SeqCst) {
                    let round = read(&env);
                    assert!(round >= before);
                    before = round;
                }
            });
        }
        for round in 1..=ROUNDS {
            write(&env, round);
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(read(&env), ROUNDS);
}

/// One process writes after the other: what the first has decrypted is not what the second has written.
#[test]
fn writers_take_turns() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = options().open(&path).unwrap();
    write(&env, 0);
    for round in 1..=6 {
        assert_eq!(read(&env), round * 2 - 2);
        let program = "sharing::child_writes_a_round";
        let written = round * 2 - 1;
        let child =
            Program::start_as(program, &path, |command| command.env("ROUND", written.to_string()));
        child.finish();
        assert_eq!(read(&env), written);
        write(&env, written + 1);
    }
    check(&env, "after all");
}

#[test]
#[ignore = "program: run by other tests"]
fn child_writes_a_round() {
    let Some(path) = task() else { return };
    let env = options().open(path).unwrap();
    let round: u32 = std::env::var("ROUND").unwrap().parse().unwrap();
    assert_eq!(read(&env), round - 1);
    write(&env, round);
    assert_eq!(read(&env), round);
}
