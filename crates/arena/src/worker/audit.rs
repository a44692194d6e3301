//! System calls of this process by kind, counted by the kernel's trace points through
//! `perf_event_open`. Counting slows each call a little, so it has a pass of its own.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use crate::spec::Audit;

const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const FLUSHES: [libc::c_long; 4] =
    [libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_msync, libc::SYS_sync_file_range];
const WRITES: [libc::c_long; 6] = [
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_io_uring_enter,
];

/// Running counters.
pub(super) struct Counters {
    all: Vec<File>,
    flushes: Vec<File>,
    writes: Vec<File>,
}

impl Counters {
    /// Counts from now on, in all threads that there are and those that these start.
    pub(super) fn start() -> Result<Counters, String> {
        let event = event_of("raw_syscalls/sys_enter")?;
        // Filters on one trace point: each further trace point costs tens of milliseconds to let go.
        let only = |calls: &[libc::c_long]| {
            let terms: Vec<String> = calls.iter().map(|call| format!("id == {call}")).collect();
            open_all(event, Some(&terms.join(" || ")))
        };
        let (flushes, writes) = (only(&FLUSHES)?, only(&WRITES)?);
        Ok(Counters { flushes, writes, all: open_all(event, None)? })
    }

    pub(super) fn stop(mut self) -> Audit {
        Audit {
            calls: total(&mut self.all),
            flushes: total(&mut self.flushes),
            writes: total(&mut self.writes),
        }
    }
}

fn total(files: &mut [File]) -> u64 {
    let mut sum = 0;
    for file in files {
        let mut count = [0; 8];
        if file.read_exact(&mut count).is_ok() {
            sum += u64::from_ne_bytes(count);
        }
    }
    sum
}

fn event_of(name: &str) -> Result<u64, String> {
    let mut why = String::new();
    for root in TRACING {
        let path = format!("{root}/events/{name}/id");
        match fs::read_to_string(&path) {
            Ok(text) => return text.trim().parse().map_err(|e| format!("{path}: {e}")),
            Err(error) if why.is_empty() => why = format!("{path}: {error}; mount tracefs there"),
            Err(_) => {}
        }
    }
    Err(why)
}

/// The event's counter for each thread of the process.
fn open_all(event: u64, filter: Option<&str>) -> Result<Vec<File>, String> {
    let threads = fs::read_dir("/proc/self/task").map_err(|e| e.to_string())?;
    let names = threads.filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok());
    names.map(|thread| open(event, thread, filter)).collect()
}

/// The head of `struct perf_event_attr`, as its first version has it; the kernel takes the rest
/// for zeros.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

const TYPE_TRACEPOINT: u32 = 2;
/// `_IOW('$', 6, char *)`.
const SET_FILTER: libc::c_ulong = 0x4008_2406;
const FLAG_INHERIT: u64 = 1 << 1;

fn open(event: u64, thread: libc::pid_t, filter: Option<&str>) -> Result<File, String> {
    let filter = filter.map(CString::new).transpose().map_err(|e| e.to_string())?;
    let attributes = Attributes {
        kind: TYPE_TRACEPOINT,
        size: size_of::<Attributes>() as u32,
        config: event,
        sample_period: 0,
        sample_type: 0,
        read_format: 0,
        flags: FLAG_INHERIT,
        wakeup_events: 0,
        bp_type: 0,
        bp_addr: 0,
    };
    // SAFETY: the structure is as large as it says and lives through the call; the descriptor that
    // comes back is nobody else's.
    let file = unsafe {
        let fd = libc::syscall(libc::SYS_perf_event_open, &attributes, thread, -1, -1, 0);
        match libc::c_int::try_from(fd) {
            Ok(fd) if fd >= 0 => File::from_raw_fd(fd),
            _ => return Err(format!("perf_event_open: {}", io::Error::last_os_error())),
        }
    };
    if let Some(filter) = filter {
        // SAFETY: the descriptor is open, the string ends with zero.
        let set = unsafe { libc::ioctl(file.as_raw_fd(), SET_FILTER, filter.as_ptr()) };
        if set != 0 {
            return Err(format!("PERF_EVENT_IOC_SET_FILTER: {}", io::Error::last_os_error()));
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_of_all_threads_are_counted() {
        let counters = match Counters::start() {
            Ok(counters) => counters,
            // Needs privileges; what it says then is part of the report.
            Err(why) => return assert!(!why.is_empty()),
        };
        let file = tempfile::tempfile().unwrap();
        file.sync_data().unwrap();
        std::thread::scope(|s| s.spawn(|| file.sync_all().unwrap()).join().unwrap());
        let audit = counters.stop();
        assert!(audit.flushes >= 2, "{audit:?}");
        assert!(audit.calls > audit.flushes + audit.writes, "{audit:?}");
    }
}
