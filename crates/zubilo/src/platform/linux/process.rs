//! Facts about processes: who we are, whether another is still there, whether we are a forked
//! child. Nothing here is kept in shared memory; the lock file stores a [`Process`] as words.

use std::cell::Cell;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{read_small, retry, small_file};
use crate::platform::PerProcess;

/// Names a process for as long as the system is up, also after its id was given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Process id as seen in its own namespace.
    pub(crate) pid: u32,
    /// A random number that no other process has, whatever its namespaces.
    pub(crate) nonce: u64,
    /// The pid namespace; zero if unknown.
    pub(crate) namespace: u64,
}

impl Process {
    /// The calling process.
    pub(crate) fn this() -> Process {
        // Right in whatever instance of /proc is mounted: `self` is found by the caller, not by its number.
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
        Process { pid: std::process::id(), nonce: nonce(), namespace }
    }

    /// True only when the process is certainly gone: its number, of our own pid namespace, belongs to
    /// nobody. A process of another namespace counts as present, and so does a number in use, be it by
    /// another process: start times would distinguish these, but what is read of them depends on the
    /// time namespace of the reader, and on whose /proc is mounted.
    pub(crate) fn is_gone(&self, this: &Process) -> bool {
        let Ok(pid) = libc::pid_t::try_from(self.pid) else { return false };
        if self.namespace == 0 || self.namespace != this.namespace || pid <= 0 {
            return false;
        }
        // SAFETY: signal 0 is never delivered; the call only asks whether the process exists.
        let found = unsafe { libc::kill(pid, 0) } == 0;
        !found && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }
}

/// True only when the process `pid` of our own pid namespace has no thread with this number.
pub(crate) fn is_thread_gone(pid: u32, thread: u32) -> bool {
    let (Ok(pid), Ok(thread)) = (libc::pid_t::try_from(pid), libc::pid_t::try_from(thread)) else {
        return false;
    };
    if pid <= 0 || thread <= 0 {
        return false;
    }
    // SAFETY: as in `Process::is_gone`.
    let found = unsafe { libc::syscall(libc::SYS_tgkill, pid, thread, 0) } == 0;
    !found && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// A number by chance, from the system itself: what a library keeps of chance, a forked child has too.
fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is valid for its length.
    let got = retry(|| unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 8, 0) });
    match got {
        Ok(8) => u64::from_ne_bytes(bytes),
        // A sandbox without the call.
        _ => {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u32(std::process::id());
            hasher.write_u64(std::ptr::from_ref(&bytes).addr() as u64);
            hasher.finish()
        }
    }
}

/// A number by chance.
struct Nonce(u64);

impl Default for Nonce {
    fn default() -> Nonce {
        Nonce(random())
    }
}

/// This process's number by chance; a forked child gets another.
fn nonce() -> u64 {
    static NONCE: PerProcess<Nonce> = PerProcess::new();
    NONCE.get().0
}

/// Field 22 of `/proc/PID/stat`. The second field, the program's name in parentheses, may hold
/// spaces and parentheses itself, so the fields are counted from its last `)`.
pub(crate) fn process_start_time(pid: u32) -> Option<u64> {
    start_time_of(&small_file(format!("/proc/{pid}/stat"))?)
}

fn start_time_of(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The kernel's random number of this boot, or zeros. Zeros, too, where another file is mounted over
/// the kernel's, as systemd-nspawn does: a container's own number says nothing of the system.
pub(crate) fn boot_id() -> [u8; 16] {
    // A process does not see another boot, and an open asks several times.
    static KNOWN: PerProcess<BootId> = PerProcess::new();
    KNOWN.get().0
}

/// What is seen as the number of this boot.
struct BootId([u8; 16]);

impl Default for BootId {
    fn default() -> BootId {
        let text = kernel_text("/proc/sys/kernel/random/boot_id");
        BootId(text.and_then(|text| parse_boot_id(&text)).unwrap_or([0; 16]))
    }
}

/// What the kernel says in a file of /proc.
fn kernel_text(path: &str) -> Option<String> {
    let file = fs::File::open(path).ok()?;
    // SAFETY: all zeros are a value of this plain structure.
    let mut found = unsafe { std::mem::zeroed::<libc::statfs64>() };
    // SAFETY: the descriptor is open and the structure outlives the call.
    retry(|| unsafe { libc::fstatfs64(file.as_raw_fd(), &raw mut found) } as isize).ok()?;
    let is_proc = found.f_type == libc::PROC_SUPER_MAGIC;
    is_proc.then(|| String::from_utf8(read_small(file)?).ok()).flatten()
}

fn parse_boot_id(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u32> =
        text.trim().chars().filter(|&c| c != '-').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let mut id = [0u8; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::try_from(pair[0] << 4 | pair[1]).ok()?;
    }
    Some(id)
}

static GENERATION: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Has every forked child count its generation up. `fork` runs the handler; a raw `clone` that
/// copies the address space without it goes unnoticed.
pub(crate) fn watch_forks() {
    // No lock: a child could be forked while another thread holds it. Registered twice by two threads, the
    // handler counts by two.
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if REGISTERED.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: the handler only touches an atomic, which is allowed between fork and exec; it
    // is a function of this program or library, which the C library unregisters on unload.
    let failed = unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    // The only failure is ENOMEM for a few bytes; going on would lose a promise silently.
    assert_eq!(failed, 0, "out of memory while registering for forks");
    REGISTERED.store(true, Ordering::Release);
}

#[inline]
pub(crate) fn fork_generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

thread_local! {
    /// The thread's number and the fork generation that it was asked in.
    static THREAD: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// The calling thread's number in its pid namespace; never zero. Asked once per thread, and again
/// after a fork, which gives the surviving thread a new number.
pub(crate) fn thread_id() -> u32 {
    let generation = fork_generation();
    match THREAD.get() {
        (id, asked_in) if id != 0 && asked_in == generation => id,
        _ => {
            // SAFETY: the call has no arguments and cannot fail.
            let id = unsafe { libc::syscall(libc::SYS_gettid) };
            let id = u32::try_from(id).unwrap_or(u32::MAX);
            THREAD.set((id, generation));
            id
        }
    }
}

/// Milliseconds of the coarse monotonic clock: read without a system call.
pub(crate) fn coarse_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec to the place it is given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    debug_assert_eq!(failed, 0);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

/// Nanoseconds of a clock that never goes back.
pub(crate) fn clock_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec to the place it is given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    debug_assert_eq!(failed, 0);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Runs something with all signals blocked in this thread.
pub(crate) fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: a set of signals is plain data; both calls get pointers to live ones of this frame.
    let before = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
        before
    };
    let result = run();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_survives_any_program_name() {
        let stat = b"7 (a) b (c)) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4711 99";
        assert_eq!(start_time_of(stat), Some(4711));
        assert_eq!(start_time_of(b"7 (cut) S 1 2"), None);
        assert_eq!(start_time_of(b""), None);
    }

    #[test]
    fn start_time_is_known_and_stable() {
        let pid = std::process::id();
        assert!(process_start_time(pid).is_some());
        assert_eq!(process_start_time(pid), process_start_time(pid));
        assert_eq!(process_start_time(u32::MAX), None);
    }

    #[test]
    fn boot_id_is_parsed_whole_or_not_at_all() {
        let parsed = parse_boot_id("00010203-0405-0607-0809-0a0b0c0d0eff\n");
        let expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff];
        assert_eq!(parsed, Some(expected));
        assert_eq!(parse_boot_id("0001"), None);
        assert_eq!(parse_boot_id("not-hex"), None);
        assert!(crate::platform::same_boot(&boot_id(), &boot_id()));
        assert!(!crate::platform::same_boot(&[0; 16], &[0; 16]));
    }

    #[test]
    fn a_process_is_gone_when_its_id_is_nobodys() {
        let this = Process::this();
        assert!(!this.is_gone(&this));
        let unused = Process { pid: i32::MAX as u32, ..this };
        assert!(unused.is_gone(&this));
        // Another namespace cannot be judged, and a number in use is somebody's.
        assert!(!Process { namespace: this.namespace + 1, ..unused }.is_gone(&this));
        assert!(!Process { namespace: 0, ..unused }.is_gone(&Process { namespace: 0, ..this }));
        assert!(!Process { nonce: this.nonce + 1, ..this }.is_gone(&this));
    }

    #[test]
    fn a_boot_id_that_is_not_the_kernels_is_none() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("boot_id");
        fs::write(&path, "00010203-0405-0607-0809-0a0b0c0d0eff\n").expect("write");
        assert_eq!(kernel_text(path.to_str().expect("a name")), None);
        assert!(kernel_text("/proc/sys/kernel/random/boot_id").is_some());
    }
}
