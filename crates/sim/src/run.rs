//! A run: one session of a workload, then the states that its log allows, each opened, judged, used
//! and opened again; some of them crash once more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use crate::disk::{Event, SimDisk};
use crate::image::{Choice, Replay, Start};
use crate::model::History;
use crate::plan::{Plan, Twist};
use crate::session::{Expect, Failure, Session, advance, end};
use crate::watch::{beat, watch};
use support::Rng;

/// Writes below which all subsets are tried, where a workload asks for it.
const EXHAUSTIVE_MAX: usize = 7;
/// Crashes after which no further one is tried.
const GENERATIONS: u32 = 3;

/// What runs found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// States judged.
    pub states: u64,
    /// States in which something was wrong: a description of each.
    pub failures: Vec<String>,
    /// Of these, such with something corrupt.
    pub corrupt: u64,
    /// Of these, such with a commit lost.
    pub lost: u64,
    /// Of these, such with a wrong answer of a call.
    pub misbehaved: u64,
}

impl Outcome {
    /// Adds another outcome.
    pub fn add(&mut self, other: Outcome) {
        self.states += other.states;
        self.corrupt += other.corrupt;
        self.lost += other.lost;
        self.misbehaved += other.misbehaved;
        self.failures.extend(other.failures);
    }

    /// Adds a failure.
    pub fn fail(&mut self, place: String, failure: &Failure) {
        match failure {
            Failure::Lost(_) => self.lost += 1,
            Failure::Corrupt(_) => self.corrupt += 1,
            Failure::Misbehaved(_) => self.misbehaved += 1,
        }
        self.failures.push(format!("{place}: {failure}"));
    }
}

/// Where a system begins that was restarted, and found the commits up to `found`.
fn restarted(replay: &Replay<'_>, image: Vec<u8>, found: u64) -> Start {
    Start {
        durable: image,
        doomed: Default::default(),
        exists: true,
        durable_txn: found,
        acked_txn: found,
        attempted: replay.attempted,
        history: replay.history.clone(),
    }
}

/// Whether a program that knows no redo log would open the store without what is in the log only: a whole meta says that
/// there are records, and an older one names no log.
fn loses_for_older_programs(image: &[u8], page_size: usize) -> bool {
    let metas = (0..4).filter_map(|i| image.get(i * page_size..i * page_size + 4096));
    let whole = |meta: &&[u8]| {
        let is_sealed = |sector: &[u8]| {
            let seal = twox_hash::XxHash3_64::oneshot(&sector[..504]);
            sector[504..] == seal.to_le_bytes()
        };
        // What binds the sectors: else they are of several metas.
        let mut bound = meta[8..504].to_vec();
        (1..7).for_each(|i| bound.extend_from_slice(&meta[i * 512 + 504..][..8]));
        let is_bound = meta[..8] == twox_hash::XxHash3_64::oneshot(&bound).to_le_bytes();
        meta[8..14] == *b"ZUBILO" && is_bound && meta.chunks(512).all(is_sealed)
    };
    let metas: Vec<&[u8]> = metas.filter(whole).collect();
    let number = |meta: &&[u8]| meta[56..64].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    // At 22: there is a log, and it has the record of this commit.
    let of = |is: fn(u8) -> bool| metas.iter().filter(move |meta| is(meta[22])).map(number);
    let (logged, without) = (of(|bits| bits & 2 != 0).max(), of(|bits| bits == 0).min());
    logged > without && without.is_some()
}

/// Changes a disk before it is used: for planted bugs.
pub type Prepare<'p> = &'p dyn Fn(&SimDisk);

/// One run of a workload.
pub struct Run<'p> {
    plan: &'p Plan,
    seed: u64,
    prepare: Prepare<'p>,
    outcome: Outcome,
    /// Ends the run at the first failure.
    fail_fast: bool,
}

/// Where a crash happens.
struct Scene<'s> {
    start: &'s Start,
    events: &'s [Arc<Event>],
    boot: u8,
    home: u64,
    generation: u32,
    /// No crash before this event.
    from: usize,
}

impl<'p> Run<'p> {
    /// Runs `plan` with `seed` and judges about `states` states.
    pub fn start(plan: &'p Plan, seed: u64, states: u64, prepare: Prepare<'p>) -> Outcome {
        let _watched = watch(format!("{} --seed {seed}", plan.name));
        let mut run = Run { plan, seed, prepare, outcome: Outcome::default(), fail_fast: true };
        // A panic of the engine is a failure like others; its message has been printed.
        let run_all = AssertUnwindSafe(|| run.first_life(states));
        if catch_unwind(run_all).is_err() {
            let place = run.place(&format!("state {}", run.outcome.states));
            run.outcome.fail(place, &Failure::Misbehaved("a panic".into()));
        }
        run.outcome
    }

    fn place(&self, what: &str) -> String {
        format!("{} --seed {} {what}", self.plan.name, self.seed)
    }

    fn done(&self) -> bool {
        self.fail_fast && !self.outcome.failures.is_empty()
    }

    fn first_life(&mut self, states: u64) {
        let mut rng = Rng::new(self.seed ^ 0x005E_ED0F_CAFE);
        let start = Start::nothing();
        let disk = SimDisk::new(&[], self.plan.writable);
        (self.prepare)(&disk);
        let expect = Expect { floor: 0, ceiling: 1, durable: 0, boot: 1, fresh: true };
        let begun = Session::begin(self.plan, &disk, expect, History::new(), rng.fork());
        let ran = begun.and_then(|session| {
            let session = Arc::new(Mutex::new(session));
            let ran = advance(&session, self.plan.warm);
            let from = disk.events().len();
            let ran = ran.and_then(|()| advance(&session, self.plan.steps - self.plan.warm));
            end(&session);
            ran.map(|()| from)
        });
        match ran {
            Err(failure) => self.outcome.fail(self.place("first session"), &failure),
            Ok(from) => {
                let from = if self.plan.warm == 0 { 0 } else { from };
                let events = disk.events();
                let (start, events) = (&start, &events);
                let scene = Scene { start, events, boot: 1, home: 1, generation: 1, from };
                self.explore(&scene, states, &mut rng);
            }
        }
    }

    /// Goes through a log and crashes here and there.
    fn explore(&mut self, scene: &Scene<'_>, states: u64, rng: &mut Rng) {
        let mut replay = Replay::new(scene.start, scene.events);
        let points = scene.events.len().saturating_sub(scene.from) as u64 + 1;
        loop {
            if self.done() {
                return;
            }
            if replay.position() >= scene.from {
                // On average `states` over all points.
                let mut count = states / points;
                count += u64::from(rng.below(points) < states % points);
                if self.plan.exhaustive && scene.generation == 1 {
                    self.exhaust(scene, &replay, rng);
                }
                for _ in 0..count {
                    let mut rng = rng.fork();
                    let choice = Choice::random(&mut rng);
                    self.crash(scene, &replay, choice, &mut rng);
                }
            }
            if !replay.step() {
                return;
            }
        }
    }

    /// All subsets of the writes at this moment, after each write and before each flush.
    fn exhaust(&mut self, scene: &Scene<'_>, replay: &Replay<'_>, rng: &mut Rng) {
        let writes = replay.pending_writes();
        let new = matches!(replay.last(), Some(Event::Write { .. }));
        if !new || writes > EXHAUSTIVE_MAX {
            return;
        }
        for bits in 0..1u64 << writes {
            let mut rng = rng.fork();
            self.crash(scene, replay, Choice::Exactly(bits), &mut rng);
        }
    }

    /// One state: judged, used, perhaps crashed again.
    fn crash(&mut self, scene: &Scene<'_>, replay: &Replay<'_>, choice: Choice, rng: &mut Rng) {
        self.outcome.states += 1;
        beat();
        // The lock file, which outlives the killed and records a failed flush, is not there any more.
        let choice = if choice.is_kill() && replay.poisoned { Choice::All } else { choice };
        let place = format!(
            "state {} generation {} event {} {choice:?}",
            self.outcome.states,
            scene.generation,
            replay.position()
        );
        let metas_end = 4 * u64::from(self.plan.page_size);
        let image = replay.image(choice, metas_end, rng);
        if loses_for_older_programs(&image, self.plan.page_size as usize) {
            let what = "a program that knows no log would take an older commit for the newest";
            self.outcome.fail(self.place(&place), &Failure::Lost(what.into()));
            return;
        }
        let kill = choice.is_kill();
        // What was there is also looked at in a copy, without a restart of the system. Where commits
        // were lost or cut off before, their pages may pass for those of later commits of the same number.
        let once = scene.generation == 1
            && matches!(self.plan.twist, Twist::Plain | Twist::Reopens | Twist::Interleaved);
        let copied = (kill || once) && rng.one_in(3);
        let home = scene.home + u64::from(copied);
        let (floor, boot) = if kill {
            (replay.acked, scene.boot)
        } else {
            (replay.durable_txn, scene.boot + u8::from(!copied))
        };
        let durable = replay.durable_txn;
        let expect = Expect { floor, ceiling: replay.attempted, durable, boot, fresh: !kill };
        let disk = SimDisk::new(&image, self.plan.writable);
        disk.settle(home);
        (self.prepare)(&disk);
        let (start, before) =
            if kill { replay.kept() } else { (restarted(replay, image, floor), Vec::new()) };
        disk.inherit(&before);
        match self.afterlife(&disk, expect, &start.history, rng) {
            Err(failure) => self.outcome.fail(self.place(&place), &failure),
            Ok(()) => {
                let again = scene.generation < GENERATIONS && rng.one_in(6);
                let result = self.last_reopen(&disk, &start, boot, rng);
                if let Err(failure) = result {
                    self.outcome.fail(self.place(&place), &failure);
                } else if again {
                    let events = disk.events();
                    let scene = Scene {
                        start: &start,
                        events: &events,
                        boot,
                        home,
                        generation: scene.generation + 1,
                        from: before.len(),
                    };
                    self.explore(&scene, 6, rng);
                }
            }
        }
    }

    /// Opens a crashed store, judges it, and goes on with it for a while.
    fn afterlife(
        &self,
        disk: &SimDisk,
        expect: Expect,
        history: &History,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        let session = Session::begin(self.plan, disk, expect, history.clone(), rng.fork())?;
        let session = Arc::new(Mutex::new(session));
        let ran = advance(&session, 2 + rng.below(4));
        end(&session);
        ran
    }

    /// Power cut after the afterlife: what was acknowledged must be on disk.
    fn last_reopen(
        &self,
        disk: &SimDisk,
        start: &Start,
        boot: u8,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        let events = disk.events();
        let mut replay = Replay::new(start, &events);
        while replay.step() {}
        let image = replay.image(Choice::None, 0, rng);
        let expect = Expect {
            floor: replay.durable_txn,
            ceiling: replay.attempted,
            durable: replay.durable_txn,
            boot: boot + 1,
            fresh: true,
        };
        let disk = SimDisk::new(&image, self.plan.writable);
        let session = Session::begin(self.plan, &disk, expect, replay.history.clone(), rng.fork())?;
        end(&Arc::new(Mutex::new(session)));
        Ok(())
    }
}
