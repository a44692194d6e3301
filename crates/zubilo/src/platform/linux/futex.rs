//! Sleeping until a word of shared memory changes. The kernel finds the sleepers by the place in the file
//! (or in this process's memory), so it works between processes of any namespaces.

use std::time::Duration;

use crate::sync::AtomicU64;

/// Sleeps while the lower half of `word` is `low`, no longer than `time`; false if all of that has passed.
/// May return early.
#[cfg(not(loom))]
pub(crate) fn wait_while(word: &AtomicU64, low: u32, time: Duration) -> bool {
    let pause = time;
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the word is aligned and borrowed for the whole call, which only reads it; the time outlives it.
    let done = unsafe {
        libc::syscall(libc::SYS_futex, half(word), libc::FUTEX_WAIT, low, &raw const time)
    };
    match std::io::Error::last_os_error().raw_os_error() {
        _ if done == 0 => true,
        // Another value, a signal: the caller looks again.
        Some(libc::EAGAIN | libc::EINTR) => true,
        Some(libc::ETIMEDOUT) => false,
        // A sandbox without the call.
        _ => {
            std::thread::sleep(pause.min(Duration::from_millis(1)));
            false
        }
    }
}

/// Wakes one of those who sleep on `word`.
#[cfg(not(loom))]
pub(crate) fn wake_one(word: &AtomicU64) {
    // SAFETY: the call uses the address only, to find who sleeps there.
    unsafe { libc::syscall(libc::SYS_futex, half(word), libc::FUTEX_WAKE, 1) };
}

/// Where the lower half of a word lies.
#[cfg(not(loom))]
fn half(word: &AtomicU64) -> *const u32 {
    let halves = std::ptr::from_ref(word).cast::<u32>();
    if cfg!(target_endian = "big") { halves.wrapping_add(1) } else { halves }
}

/// The model checker knows no sleep: as if the time had passed.
#[cfg(loom)]
pub(crate) fn wait_while(_word: &AtomicU64, _low: u32, _time: Duration) -> bool {
    loom::thread::yield_now();
    false
}

/// As above.
#[cfg(loom)]
pub(crate) fn wake_one(_word: &AtomicU64) {}
