//! Wall and CPU time.

use std::time::Instant;

/// What a piece of work cost, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) wall: f64,
    /// User and system time of all threads of the process.
    pub(crate) cpu: f64,
}

/// Seconds of CPU that all threads of the process have used.
pub(crate) fn cpu_now() -> f64 {
    // SAFETY: the structure is plain numbers, and the call fills the one that it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Runs `work` and measures its cost.
pub(crate) fn measure(work: impl FnOnce()) -> Cost {
    let (cpu, wall) = (cpu_now(), Instant::now());
    work();
    Cost { wall: wall.elapsed().as_secs_f64(), cpu: cpu_now() - cpu }
}
