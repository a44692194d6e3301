//! The thread that checks the whole store in the background, slowly, so that damage is known while
//! a copy without it may still exist.
//!
//! A pass is the full check of one snapshot, held back to the rate that was asked for. It pins that
//! snapshot as a long read transaction does, no more. Findings are kept until the next pass ends.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use crate::env::EnvInner;
use crate::env::log::Level;
use crate::env::options::Scrub;
use crate::error::{Error, Result};
use crate::platform::{self, Thread};

use super::check::{self, CheckReport};

/// What the last pass in the background found.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// // Nothing is checked in the background unless `Options::scrub` says so.
/// match env.scrub_report() {
///     Some(last) => println!("{} problems in pass {}", last.report.problems.len(), last.passes),
///     None => println!("none has ended yet"),
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScrubReport {
    /// Passes finished since the store was opened.
    pub passes: u64,
    /// When the last of them ended.
    pub finished: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// What it found: [`CheckReport::problems`] names the damage.
    pub report: CheckReport,
}

/// What the handles and the thread share.
#[derive(Default)]
pub(crate) struct Scrubber {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    last: Option<ScrubReport>,
    stop: bool,
}

impl Scrubber {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The last finished pass.
    pub(crate) fn report(&self) -> Option<ScrubReport> {
        self.lock().last.clone()
    }

    /// Starts the thread.
    pub(crate) fn start(self: &Arc<Scrubber>, env: &Arc<EnvInner>, how: Scrub) -> Result<Thread> {
        let (scrubber, env) = (Arc::clone(self), Arc::clone(env));
        let job = move || scrub_until_stopped(&scrubber, &env, how);
        let spawned = platform::spawn(c"zubilo-scrub", job);
        spawned.map_err(Error::io("start the thread that checks in the background"))
    }

    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.wake.notify_all();
    }

    /// Sleeps until `time`; false if the thread is to end.
    fn sleep_until(&self, time: Instant) -> bool {
        let mut state = self.lock();
        while !state.stop {
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state = self.wake.wait_timeout(state, left).unwrap_or_else(|e| e.into_inner()).0;
        }
        false
    }
}

fn scrub_until_stopped(scrubber: &Scrubber, env: &Arc<EnvInner>, how: Scrub) {
    loop {
        let started = Instant::now();
        let rate = how.bytes_per_second.max(1) as f64 / env.page_size() as f64;
        let mut pace = |done: u64, _: u64| {
            scrubber.sleep_until(started + Duration::from_secs_f64(done as f64 / rate))
        };
        match check::run(env, &mut pace, &mut |_| true) {
            Err(Error::Stopped) => return,
            // No slot in the reader table, or a handle that is of no use: nothing was checked.
            Err(Error::ReadersFull { .. } | Error::Forked) => {}
            checked => {
                if let Err(error) = &checked {
                    env.log(Level::Error, format_args!("the check in the background: {error}"));
                }
                for problem in checked.iter().flat_map(|report| &report.problems) {
                    let at = format_args!("page {} is damaged: {}", problem.page, problem.reason);
                    env.log(Level::Error, at);
                }
                let mut state = scrubber.lock();
                state.last = Some(ScrubReport {
                    passes: state.last.as_ref().map_or(0, |l| l.passes) + 1,
                    finished: SystemTime::now(),
                    took: started.elapsed(),
                    report: checked.unwrap_or_else(|error| CheckReport::of_error(&error)),
                });
            }
        }
        if !scrubber.sleep_until(started + how.period) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::{Durability, Options};

    fn wait_for(env: &crate::Env, passes: u64) -> ScrubReport {
        let started = Instant::now();
        loop {
            if let Some(report) = env.scrub_report().filter(|r| r.passes >= passes) {
                return report;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "no pass ends");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn damage_is_found_while_the_store_is_open() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("store");
        let how = Scrub { bytes_per_second: 1 << 30, period: Duration::from_millis(10) };
        let options = Options::new().durability(Durability::NoSync).scrub(how);
        let env = options.open(&path).expect("open");
        let mut write = env.write().expect("begin");
        let mut table = write.table_or_create("t").expect("table");
        for i in 0..20_000u32 {
            table.put(i.to_be_bytes(), b"a value that is looked for").expect("put");
        }
        write.commit().expect("commit");
        let seen = wait_for(&env, 1).passes;
        // A pass that began before the commit may have ended after it.
        let sound = wait_for(&env, seen + 2).report;
        assert!(sound.is_ok(), "{:?}", sound.problems);
        assert_eq!(sound.entries, 20_000);

        let bytes = std::fs::read(&path).expect("read");
        let at = bytes.windows(10).position(|w| w == b"looked for").expect("a value") as u64;
        let file = std::fs::File::options().write(true).open(&path).expect("open");
        file.write_all_at(b"X", at).expect("write");
        let seen = env.scrub_report().map_or(0, |r| r.passes);
        let damaged = wait_for(&env, seen + 2).report;
        assert_eq!(damaged.problems[0].page.0, at / 4096);
    }

    #[test]
    fn closing_does_not_wait_for_a_slow_pass() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("store");
        let options = Options::new().durability(Durability::NoSync);
        let env = options.clone().open(&path).expect("open");
        let mut write = env.write().expect("begin");
        let mut table = write.table_or_create("t").expect("table");
        (0..50_000u32).for_each(|i| table.put(i.to_be_bytes(), [7; 40]).expect("put"));
        write.commit().expect("commit");
        env.close().expect("close");
        // At this rate a pass would take days; give it time to begin.
        let how = Scrub { bytes_per_second: 1, period: Duration::from_secs(3600) };
        let env = options.scrub(how).open(&path).expect("open");
        std::thread::sleep(Duration::from_millis(50));
        assert!(env.scrub_report().is_none());
        drop(env);
    }
}
