//! How much memory this process may use: the machine's, or less by the limits of its control groups.

use std::fs;
use std::path::Path;

/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes; as many as there may be where nothing is known.
pub(crate) fn memory_limit() -> u64 {
    let told = |path| fs::read_to_string(path).unwrap_or_default();
    let machine = machine_memory(&told("/proc/meminfo"));
    machine.min(group_limit(Path::new(GROUPS), &told("/proc/self/cgroup")))
}

/// Bytes of memory that belong to nobody else: less where the process has a limit for them.
pub(crate) fn private_memory_limit() -> u64 {
    let mut limit = libc::rlimit64 { rlim_cur: libc::RLIM64_INFINITY, rlim_max: 0 };
    // SAFETY: the call writes one rlimit to the place it is given. When it fails there is no limit.
    unsafe { libc::getrlimit64(libc::RLIMIT_DATA, &raw mut limit) };
    memory_limit().min(limit.rlim_cur)
}

fn machine_memory(info: &str) -> u64 {
    let kilobytes =
        |line: &str| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok();
    info.lines()
        .find_map(kilobytes)
        .map_or(u64::MAX, |kilobytes: u64| kilobytes.saturating_mul(1024))
}

/// The least of the limits of a group and of those around it, in both versions of control groups. `own` is
/// the list of groups of a process. In a container its own group may be what is mounted as the root.
fn group_limit(root: &Path, own: &str) -> u64 {
    let limits = own.lines().filter_map(|line| {
        let (_, group) = line.split_once(':')?;
        let (controllers, path) = group.split_once(":/")?;
        match controllers {
            // Above the lower one of the two the process is slowed down.
            "" => ["memory.max", "memory.high"]
                .into_iter()
                .filter_map(|file| least_limit(root, path, file))
                .min(),
            _ if controllers.split(',').any(|name| name == "memory") => {
                least_limit(&root.join("memory"), path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    limits.min().unwrap_or(u64::MAX)
}

/// The least of the limits that stand in `file` of a group and of those around it.
fn least_limit(root: &Path, group: &str, file: &str) -> Option<u64> {
    let limits = Path::new(group).ancestors().filter_map(|group| {
        let text = fs::read_to_string(root.join(group).join(file)).ok()?;
        // "max" is no limit.
        text.trim().parse().ok()
    });
    limits.min()
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
        fs::write(root.path().join("a/memory.high"), "524288\n").expect("limit");
        assert_eq!(group_limit(root.path(), "0::/a\n"), 1 << 19);
        assert_eq!(group_limit(root.path(), "nothing\n1:memory\n"), u64::MAX);
    }

    #[test]
    fn the_first_version_of_groups_has_a_folder_for_memory() {
        let root = tempfile::tempdir().expect("directory");
        let inner = root.path().join("memory/a");
        fs::create_dir_all(&inner).expect("groups");
        let unlimited = "9223372036854771712\n";
        fs::write(root.path().join("memory/memory.limit_in_bytes"), unlimited).expect("root");
        fs::write(inner.join("memory.limit_in_bytes"), "8192\n").expect("limit");
        assert_eq!(group_limit(root.path(), "4:memory:/a\n1:cpu:/a\n0::/\n"), 8192);
        assert_eq!(group_limit(root.path(), "4:cpu,memory:/a/gone\n"), 8192);
        assert_eq!(group_limit(root.path(), "4:cpu:/a\n3:memory_not:/a\n"), u64::MAX);
        assert_eq!(group_limit(root.path(), "4:memory:/\n"), i64::MAX as u64 / 4096 * 4096);
    }

    #[test]
    fn the_machine_has_what_it_says() {
        assert_eq!(machine_memory("HugePages: 1\nMemTotal:       24684084 kB\n"), 24684084 << 10);
        assert_eq!(machine_memory("MemFree: 12 kB\n"), u64::MAX);
        assert!((1 << 20..u64::MAX).contains(&memory_limit()));
    }
}
