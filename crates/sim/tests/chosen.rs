//! Power cuts of a store whose caller chooses the commit to open: what a disk has left is looked at commit by
//! commit, one of them is gone back to, and the power is cut in the middle of that.

use std::sync::Arc;

use sim::disk::SimDisk;
use sim::image::{Choice, Replay, Start};
use sim::model::{History, State, Table};
use support::Rng;
use zubilo::{Durability, Env, Error, Options, TxnId};

const METAS_END: u64 = 4 * 4096;

fn open(disk: &SimDisk, boot: u8, options: Options) -> zubilo::Result<Env> {
    Env::open_parts(Box::new(disk.clone()), [boot; 16], options)
}

/// A session of some commits, each with its state.
fn live(disk: &SimDisk, durability: Durability, redo: u64, rng: &mut Rng) -> History {
    let options = Options::new().durability(durability).redo_log(redo);
    let env = open(disk, 1, options).unwrap();
    let mut history = History::new();
    let mut state = State::new();
    for round in 0..14 {
        let mut txn = env.write().unwrap();
        let mut table = txn.table_or_create("t").unwrap();
        let model: &mut Table = Arc::make_mut(state.entry(b"t".to_vec()).or_default());
        for _ in 0..1 + rng.below(25) {
            let key = format!("{:03}", rng.below(150)).into_bytes();
            let len = if rng.one_in(30) { 9000 } else { rng.below(90) as usize };
            let value: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
            table.put(&key, &value).unwrap();
            model.put(&key, value);
        }
        let id = txn.commit().unwrap();
        history.add(id.0, Arc::new(state.clone()));
        if round % 5 == 4 {
            env.sync().unwrap();
        }
    }
    env.close_without_sync();
    history
}

/// Whether the full check finds nothing wrong. Metas that name other commits are not of this one.
fn is_whole(env: &Env) -> bool {
    match env.check(&mut |_, _| true) {
        Ok(report) => report.problems.iter().all(|problem| problem.page.0 < 4),
        Err(Error::Corrupted { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

struct Judge<'h> {
    history: &'h History,
    went_back: u32,
    refused: u32,
    cut: u32,
}

impl Judge<'_> {
    /// All that can be chosen in one state of the disk.
    fn all_commits(&mut self, image: &[u8], rng: &mut Rng, what: &str) {
        let disk = || SimDisk::new(image, false);
        let Ok(stored) = Env::stored_commits_of(&disk(), [2; 16]) else { return };
        let before = open(&disk(), 2, Options::new().create(false)).and_then(|env| env.info());
        let before = before.map_or(0, |info| info.newest.0);
        for txn in stored.iter().filter(|s| s.used_len > 0).filter_map(|s| s.txn) {
            let what = format!("{what}, commit {txn}");
            let look = disk();
            let options = Options::new().read_only(true).at_commit(txn);
            let whole = match open(&look, 2, options) {
                Ok(env) => {
                    let whole = is_whole(&env);
                    if whole {
                        self.history.matches(&env.read().unwrap()).expect(&what);
                    }
                    whole
                }
                Err(Error::Corrupted { .. }) => false,
                Err(error) => panic!("{what}: {error}"),
            };
            assert!(look.events().is_empty(), "{what}: a look wrote");
            self.one_commit(image, txn, (whole, before), rng, &what);
        }
    }

    fn one_commit(
        &mut self,
        image: &[u8],
        txn: TxnId,
        (whole, before): (bool, u64),
        rng: &mut Rng,
        what: &str,
    ) {
        let disk = SimDisk::new(image, false);
        match open(&disk, 2, Options::new().at_commit(txn).discard_newer(true)) {
            Ok(env) => {
                assert!(whole, "{what}: gone back to, and not whole");
                assert_eq!(env.info().unwrap().newest, txn, "{what}");
                self.history.matches(&env.read().unwrap()).expect(what);
                self.went_back += 1;
            }
            Err(Error::Corrupted { .. }) => {
                assert!(!whole, "{what}: whole, and refused");
                assert!(disk.events().is_empty(), "{what}: a refusal wrote");
                self.refused += 1;
                return;
            }
            Err(error) => panic!("{what}: {error}"),
        }
        // The power is cut somewhere on the way back, or just after it.
        let events = disk.events();
        let start = Start { durable: image.to_vec(), exists: true, ..Start::nothing() };
        let mut replay = Replay::new(&start, &events);
        loop {
            let choice = Choice::random(rng);
            let choice = if choice == Choice::Absent { Choice::Sectors } else { choice };
            let cut = SimDisk::new(&replay.image(choice, METAS_END, rng), false);
            let is_over = replay.position() == events.len();
            match open(&cut, 3, Options::new().create(false)) {
                Ok(env) => {
                    let found = env.info().unwrap().newest.0;
                    let expected = if is_over { vec![txn.0] } else { vec![txn.0, before] };
                    assert!(expected.contains(&found), "{what}, {choice:?}: {found}, {expected:?}");
                    self.history.matches(&env.read().unwrap()).expect(what);
                    assert!(is_whole(&env), "{what}, {choice:?}");
                }
                Err(error) => {
                    assert!(before == 0 && !is_over, "{what}, {choice:?}: {error}");
                }
            }
            self.cut += 1;
            if !replay.step() {
                return;
            }
        }
    }
}

fn survive(durability: Durability, redo: u64) {
    let mut rng = support::rng();
    let disk = SimDisk::new(&[], false);
    let history = live(&disk, durability, redo, &mut rng);
    let events = disk.events();
    let start = Start::nothing();
    let mut replay = Replay::new(&start, &events);
    let mut judge = Judge { history: &history, went_back: 0, refused: 0, cut: 0 };
    let points = events.len() as u64;
    while replay.step() {
        if !rng.one_in(points / 60 + 1) {
            continue;
        }
        let choice = Choice::random(&mut rng);
        let image = replay.image(choice, METAS_END, &mut rng);
        let what = format!("event {} {choice:?}", replay.position());
        judge.all_commits(&image, &mut rng, &what);
    }
    let Judge { went_back, refused, cut, .. } = judge;
    println!("{went_back} commits gone back to, {refused} refused, {cut} power cuts on the way");
    assert!(went_back > 10 && cut > 50);
}

#[test]
fn after_power_cuts_of_durable_commits() {
    survive(Durability::Sync, 0);
}

#[test]
fn after_power_cuts_of_weak_commits() {
    survive(Durability::NoSync, 0);
}

#[test]
fn with_a_redo_log() {
    survive(Durability::Sync, 1 << 20);
}
