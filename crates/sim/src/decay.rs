//! Decay of the medium: single bits of live pages flip. The check must name the page, and a store
//! that verifies its reads must give an error or the right data.

use zubilo::{Durability, Env, Options, PageKind, VerifyReads};

use crate::disk::SimDisk;
use crate::model::{State, Table, compare};
use crate::run::Outcome;
use crate::session::Failure;
use support::Rng;

/// A store with all kinds of pages, and what it holds.
pub struct Aged {
    disk: SimDisk,
    env: Env,
    state: State,
    /// Live extents: first page and bytes.
    live: Vec<(u64, u64)>,
}

impl Aged {
    /// Builds a store; the same for the same seed.
    pub fn new(seed: u64) -> zubilo::Result<Aged> {
        let disk = SimDisk::new(&[], false);
        let options = Options::new().durability(Durability::Sync).verify_reads(VerifyReads::Always);
        let env = Env::open_parts(Box::new(disk.clone()), [1; 16], options)?;
        let mut rng = Rng::new(seed);
        let mut state = State::new();
        // Enough commits that the free-space log overflows into pages of its own.
        for _ in 0..120 {
            let mut txn = env.write()?;
            for name in [&b"one"[..], b"two"] {
                let mut table = txn.table_or_create(name)?;
                let model: &mut Table =
                    std::sync::Arc::make_mut(state.entry(name.to_vec()).or_default());
                for _ in 0..rng.below(12) {
                    let key = format!("key-{:04}", rng.below(80)).into_bytes();
                    let len = if rng.one_in(40) { 9000 } else { rng.below(200) as usize };
                    let value: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
                    table.put(&key, &value)?;
                    model.put(&key, value);
                }
            }
            txn.commit()?;
        }
        let mut live = Vec::new();
        let size = env.page_size() as u64;
        let report = env.check(&mut |_, _| true)?;
        report.into_result()?;
        env.walk_pages(&mut |visit| {
            if !matches!(visit.kind, PageKind::Free | PageKind::Retired) {
                // What follows a value or the free-space log on its last page is no data.
                let whole = matches!(visit.kind, PageKind::Branch | PageKind::Leaf);
                live.push((visit.page.0, if whole { size } else { visit.used }));
            }
            true
        })?;
        Ok(Aged { disk, env, state, live })
    }

    /// Bytes of live pages.
    pub fn bytes(&self) -> u64 {
        self.live.iter().map(|(_, len)| len).sum()
    }

    /// Flips bit `bit` of live byte `byte`, judges, and flips it back.
    pub fn flip(&self, byte: u64, bit: u32) -> Result<(), Failure> {
        let mut left = byte % self.bytes();
        let mut place = (0, 0);
        for &(first, len) in &self.live {
            if left < len {
                place = (first, first * self.env.page_size() as u64 + left);
                break;
            }
            left -= len;
        }
        let (page, at) = place;
        self.disk.flip(at, bit);
        let judged = self.judge(page, at);
        self.disk.flip(at, bit);
        judged
    }

    fn judge(&self, page: u64, at: u64) -> Result<(), Failure> {
        let unnoticed = |who: &str| {
            Err(Failure::Corrupt(format!("{who} does not see a flipped bit at byte {at}")))
        };
        // Damage of the free-space log may be the check's error instead of its finding.
        match self.env.check(&mut |_, _| true) {
            Ok(report) if report.is_ok() => return unnoticed("the check"),
            Ok(report) if !report.problems.iter().any(|p| p.page.0 == page) => {
                return Err(Failure::Misbehaved(format!(
                    "the check does not name page {page} but {:?}",
                    report.problems[0]
                )));
            }
            _ => {}
        }
        let read = self.env.read().map_err(|e| Failure::Misbehaved(e.to_string()))?;
        match compare(&read, &self.state) {
            Err(why) if !why.contains("is damaged") => {
                Err(Failure::Corrupt(format!("bit flipped at {at}: {why}")))
            }
            _ => Ok(()),
        }
    }
}

/// Judges `count` random flips.
pub fn flips(seed: u64, count: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let aged = match Aged::new(seed) {
        Ok(aged) => aged,
        Err(error) => {
            let failure = Failure::Misbehaved(error.to_string());
            outcome.fail(format!("decay --seed {seed}"), &failure);
            return outcome;
        }
    };
    let mut rng = Rng::new(seed ^ 0xF11B);
    for _ in 0..count {
        outcome.states += 1;
        if let Err(failure) = aged.flip(rng.next(), rng.below(8) as u32) {
            outcome.fail(format!("decay --seed {seed}"), &failure);
        }
    }
    outcome
}
