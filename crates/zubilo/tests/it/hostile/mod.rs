//! Damaged and crafted stores: valid ones are changed, checksums are made right again so that the
//! lies get past them, and everything is tried on the result. It may go well or end in an error that
//! says so; it never panics, hangs, or reads outside the file.
//!
//! `ZUBILO_SEED` repeats one case, `ZUBILO_CASES` sets the number of cases of each test.

mod damage;
mod detection;
mod exercise;
mod greed;
mod moved;
mod rewritten;
mod stores;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, number};
use damage::Damage;

/// One case may take this long, on a busy machine too.
const CASE_MAX: Duration = Duration::from_secs(30);

/// The case that runs, for the handler of signals and the watch.
static RUNNING: AtomicU64 = AtomicU64::new(0);

/// Names the case when it reads outside of the file.
fn name_the_case_on_a_fault() {
    extern "C" fn handler(_: libc::c_int) {
        let mut line = *b"\nfault in the case with ZUBILO_SEED=00000000000000000000\n";
        let mut rest = RUNNING.load(Ordering::SeqCst);
        let end = line.len() - 1;
        for place in line[end - 20..end].iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        // SAFETY: both calls are allowed in a handler.
        unsafe {
            libc::write(2, line.as_ptr().cast(), line.len());
            libc::_exit(99);
        }
    }
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT] {
        // SAFETY: the handler does only what a handler may.
        unsafe { libc::signal(signal, handler as extern "C" fn(libc::c_int) as usize) };
    }
}

/// Ends the process when a case hangs.
fn watch_for_hangs() {
    std::thread::spawn(|| {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let now = RUNNING.load(Ordering::SeqCst);
            if now != last {
                (last, since) = (now, Instant::now());
            } else if now != 0 && since.elapsed() > CASE_MAX {
                eprintln!("the case with ZUBILO_SEED={now} hangs");
                std::process::exit(98);
            }
        }
    });
}

fn cases(name: &str, stores: &[Vec<u8>], base: u64, count: u64, damage: impl Fn(&mut Damage)) {
    // One at a time: the faults and hangs name one case.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        name_the_case_on_a_fault();
        watch_for_hangs();
    });
    let single = std::env::var("ZUBILO_SEED").ok().and_then(|s| s.parse().ok());
    let count = number("ZUBILO_CASES", count);
    let seeds = single.map_or(base..base + count, |seed: u64| seed..seed + 1);
    let mut opened = 0;
    for seed in seeds.clone() {
        RUNNING.store(seed, Ordering::SeqCst);
        let case = || {
            let mut rng = Rng::new(seed);
            let mut damaged = Damage::of(&stores[(seed % stores.len() as u64) as usize], &mut rng);
            damage(&mut damaged);
            let bytes = damaged.finish();
            exercise::all(&MemoryFile::new(&bytes), &mut rng)
        };
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(case)) {
            Ok(was_opened) => opened += u64::from(was_opened),
            Err(_) => panic!("{name}: the case with ZUBILO_SEED={seed} panicked"),
        }
    }
    RUNNING.store(0, Ordering::SeqCst);
    println!("{name}: {opened} of {} damaged stores could be opened", seeds.count());
}

#[test]
fn flipped_bits() {
    cases("flipped bits", &stores::all(), 1_000_000, 1000, |d| d.flip_bits());
}

#[test]
fn lies_under_right_checksums() {
    cases("lies", &stores::all(), 2_000_000, 3000, |d| d.lie_in_pages());
}

#[test]
fn wild_references_and_cycles() {
    cases("references", &stores::all(), 3_000_000, 2000, |d| d.redirect());
}

#[test]
fn pages_in_wrong_places() {
    cases("pages", &stores::all(), 4_000_000, 1500, |d| d.move_pages());
}

#[test]
fn lies_in_metas_and_the_free_space_log() {
    cases("metas", &stores::all(), 5_000_000, 2000, |d| d.lie_in_metas());
}

#[test]
fn cut_files() {
    cases("cuts", &stores::all(), 6_000_000, 500, |d| d.cut());
}

/// All kinds of damage at once.
#[test]
fn ruins() {
    cases("ruins", &stores::all(), 7_000_000, 1500, |d| {
        d.lie_in_pages();
        d.redirect();
        d.lie_in_metas();
    });
}
