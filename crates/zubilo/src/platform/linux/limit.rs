//! How much memory this process may use: the machine's, or less by the limits of its control groups.

use std::path::Path;

use super::small_file;

/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes; as many as there may be where nothing is known.
pub(crate) fn memory_limit() -> u64 {
    let groups = small_file("/proc/self/cgroup").unwrap_or_default();
    machine_memory().min(group_limit(Path::new(GROUPS), &String::from_utf8_lossy(&groups)))
}

/// Of so many bytes of memory those that may belong to nobody else: less where the process has a limit
/// for them.
pub(crate) fn private_memory_limit(memory: u64) -> u64 {
    let mut limit = libc::rlimit64 { rlim_cur: libc::RLIM64_INFINITY, rlim_max: 0 };
    // SAFETY: the call writes one rlimit to the place it is given. When it fails there is no limit.
    unsafe { libc::getrlimit64(libc::RLIMIT_DATA, &raw mut limit) };
    memory.min(limit.rlim_cur)
}

fn machine_memory() -> u64 {
    // SAFETY: plain numbers, of which the call writes one set to the place it is given.
    let (known, info) = unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        (libc::sysinfo(&raw mut info) == 0, info)
    };
    let bytes = info.totalram.saturating_mul(u64::from(info.mem_unit));
    if known { bytes } else { u64::MAX }
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

/// The least of the limits in `file` of a group and of those around it.
fn least_limit(root: &Path, group: &str, file: &str) -> Option<u64> {
    let limits = Path::new(group).ancestors().filter_map(|group| {
        let text = small_file(root.join(group).join(file))?;
        // "max" is no limit.
        str::from_utf8(&text).ok()?.trim().parse().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let info = fs::read_to_string("/proc/meminfo").expect("figures");
        let total =
            info.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("the total");
        let kilobytes = total.split_whitespace().next().expect("a number");
        assert_eq!(machine_memory(), kilobytes.parse::<u64>().expect("a number") << 10);
        assert!((1 << 20..=machine_memory()).contains(&memory_limit()));
    }
}
