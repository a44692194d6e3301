//! What a piece of work cost, from what the kernel counts for this process and its device.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use crate::spec::Costs;

/// Counts costs from when it is made.
pub(super) struct Meter {
    started: Instant,
    before: Costs,
    device: u64,
}

impl Meter {
    /// `device` as `device_of` gives it.
    pub(super) fn start(device: u64) -> Meter {
        Meter { before: now(device), device, started: Instant::now() }
    }

    pub(super) fn stop(&self) -> Costs {
        let wall_s = self.started.elapsed().as_secs_f64();
        let mut costs = now(self.device);
        combine(&mut costs, &self.before, |a, b| a.saturating_sub(b), |a, b| a - b);
        Costs { wall_s, ..costs }
    }
}

/// The sum of two costs.
pub(super) fn sum(mut a: Costs, b: &Costs) -> Costs {
    combine(&mut a, b, |a, b| a + b, |a, b| a + b);
    a
}

fn combine(into: &mut Costs, with: &Costs, int: fn(u64, u64) -> u64, float: fn(f64, f64) -> f64) {
    into.wall_s = float(into.wall_s, with.wall_s);
    into.user_s = float(into.user_s, with.user_s);
    into.system_s = float(into.system_s, with.system_s);
    for (a, b) in [
        (&mut into.read_calls, with.read_calls),
        (&mut into.write_calls, with.write_calls),
        (&mut into.written_bytes, with.written_bytes),
        (&mut into.dirtied_bytes, with.dirtied_bytes),
        (&mut into.fetched_bytes, with.fetched_bytes),
        (&mut into.device_writes, with.device_writes),
        (&mut into.device_bytes, with.device_bytes),
        (&mut into.device_flushes, with.device_flushes),
        (&mut into.faults, with.faults),
    ] {
        *a = int(*a, b);
    }
}

/// All counts since the process began; the wall clock is not among them.
fn now(device: u64) -> Costs {
    let mut costs = Costs::default();
    // SAFETY: the structure is plain numbers, and the call fills the one that it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    costs.user_s = seconds(usage.ru_utime);
    costs.system_s = seconds(usage.ru_stime);
    costs.faults = (usage.ru_minflt + usage.ru_majflt) as u64;
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = |name: &str| {
        let line = io.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
        line.and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    costs.read_calls = field("syscr");
    costs.write_calls = field("syscw");
    costs.written_bytes = field("wchar");
    costs.dirtied_bytes = field("write_bytes");
    costs.fetched_bytes = field("read_bytes");
    let disks = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    if let Some(counts) = disk_line(&disks, device) {
        // Fields as in the kernel's iostats document, counted from the major number.
        let at = |i: usize| counts.get(i).copied().unwrap_or(0);
        (costs.device_writes, costs.device_bytes) = (at(4), at(6) * 512);
        costs.device_flushes = at(15);
    }
    costs
}

/// The counts of a device: reads first, at 0.
fn disk_line(disks: &str, device: u64) -> Option<Vec<u64>> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    disks.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let number = |w: Option<&str>| w?.parse::<u64>().ok();
        if number(words.next())? != u64::from(major) || number(words.next())? != u64::from(minor) {
            return None;
        }
        Some(words.skip(1).filter_map(|w| w.parse().ok()).collect())
    })
}

/// The device of a directory.
pub(super) fn device_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.dev())
}

/// Lets the peak of memory begin anew.
pub(super) fn forget_peak() {
    // Refused on kernels without it; then the peak is that of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Most memory that was resident, mapped files included.
pub(super) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_device_is_found() {
        let text = " 254 0 vda 10 0 80 1 20 0 160 2 0 3 3 0 0 0 0 7 1\n 254 1 vdb 1 2 3 4 5 6 7\n";
        let counts = disk_line(text, libc::makedev(254, 0)).unwrap();
        assert_eq!((counts[0], counts[4], counts[6], counts[15]), (10, 20, 160, 7));
        assert_eq!(disk_line(text, libc::makedev(254, 1)).unwrap()[4], 5);
        assert!(disk_line(text, libc::makedev(8, 0)).is_none());
    }

    #[test]
    fn work_is_charged() {
        let dir = tempfile::tempdir().unwrap();
        let meter = Meter::start(device_of(dir.path()));
        fs::write(dir.path().join("x"), vec![1; 100_000]).unwrap();
        let costs = meter.stop();
        assert!(costs.written_bytes >= 100_000 && costs.write_calls >= 1, "{costs:?}");
        assert!(costs.wall_s > 0.0);
        let both = sum(costs, &costs);
        assert_eq!(both.written_bytes, 2 * costs.written_bytes);
    }
}
