//! How much memory this process may use: the machine's, or less by the limits of its control groups.

use std::fs;
use std::path::Path;

/// Where the second version of control groups is mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes; as many as there may be where nothing is known.
pub(crate) fn memory_limit() -> u64 {
    let told = |path| fs::read_to_string(path).unwrap_or_default();
    let machine = machine_memory(&told("/proc/meminfo"));
    machine.min(group_limit(Path::new(GROUPS), &told("/proc/self/cgroup")))
}

fn machine_memory(info: &str) -> u64 {
    let kilobytes =
        |line: &str| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok();
    info.lines()
        .find_map(kilobytes)
        .map_or(u64::MAX, |kilobytes: u64| kilobytes.saturating_mul(1024))
}

/// The least of the limits of a group and of those around it. `own` is the list of groups of a process.
fn group_limit(root: &Path, own: &str) -> u64 {
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return u64::MAX;
    };
    let limits = Path::new(path).ancestors().filter_map(|group| {
        let text = fs::read_to_string(root.join(group).join("memory.max")).ok()?;
        // "max" is no limit.
        text.trim().parse().ok()
    });
    limits.min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_the_groups_around_counts() {
        let root = tempfile::tempdir().expect("directory");
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).expect("groups");
        assert_eq!(group_limit(root.path(), "0::/a/b\n"), u64::MAX);
        fs::write(inner.join("memory.max"), "max\n").expect("limit");
        assert_eq!(group_limit(root.path(), "0::/a/b\n"), u64::MAX);
        fs::write(root.path().join("a/memory.max"), "1048576\n").expect("limit");
        assert_eq!(group_limit(root.path(), "0::/a/b\n"), 1 << 20);
        fs::write(inner.join("memory.max"), "4096\n").expect("limit");
        assert_eq!(group_limit(root.path(), "1:name=x:/\n0::/a/b\n"), 4096);
        assert_eq!(group_limit(root.path(), "0::/a\n"), 1 << 20);
        assert_eq!(group_limit(root.path(), "1:memory:/a/b\n"), u64::MAX);
    }

    #[test]
    fn the_machine_has_what_it_says() {
        assert_eq!(machine_memory("HugePages: 1\nMemTotal:       24684084 kB\n"), 24684084 << 10);
        assert_eq!(machine_memory("MemFree: 12 kB\n"), u64::MAX);
        assert!((1 << 20..u64::MAX).contains(&memory_limit()));
    }
}
