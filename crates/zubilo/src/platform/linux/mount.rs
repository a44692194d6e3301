//! Mounts: whether a file cannot be written by anybody, or merely not through the mount it was opened by.

use std::fs;
use std::os::fd::RawFd;

/// Whether the file system itself is read-only, through whatever mount it is seen. A mount alone can be
/// so, as containers get it, while others write the same files; and a file system that only shows the files
/// of others can be so, such as an overlay. In doubt false.
pub(crate) fn is_medium_read_only(fd: RawFd) -> bool {
    let facts = fs::read_to_string(format!("/proc/self/fdinfo/{fd}"));
    let mounts = fs::read_to_string("/proc/self/mountinfo");
    match (facts, mounts) {
        (Ok(facts), Ok(mounts)) => is_read_only_in(&facts, &mounts).unwrap_or(false),
        _ => false,
    }
}

/// The same, from what the kernel says of a descriptor and of the mounts.
fn is_read_only_in(facts: &str, mounts: &str) -> Option<bool> {
    let id = facts.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let mount = mounts.lines().find(|line| line.split(' ').next() == Some(id))?;
    // Behind the dash: kind, source, options of the file system.
    let (_, system) = mount.split_once(" - ")?;
    let mut words = system.split(' ');
    let (kind, options) = (words.next()?, words.nth(1)?);
    // Those that show what lies elsewhere, where others may write it.
    let is_view = kind == "fuse"
        || ["overlay", "fuse.", "virtiofs", "ecryptfs", "aufs", "unionfs"]
            .iter()
            .any(|view| kind.starts_with(view));
    Some(!is_view && options.split(',').any(|option| option == "ro"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_mount_is_not_a_read_only_medium() {
        let mounts = "22 1 8:1 / / rw,relatime - ext4 /dev/sda rw\n\
                      23 22 8:1 /srv /data ro,relatime shared:4 - ext4 /dev/sda rw,errors=remount-ro\n\
                      24 22 7:0 / /cd ro - iso9660 /dev/loop0 ro,nojoliet\n\
                      25 22 0:9 / /merged ro - overlay none ro,lowerdir=/srv\n\
                      26 22 0:7 / /far ro - fuse.sshfs host: ro\n";
        let of =
            |id: u32| is_read_only_in(&format!("pos:\t0\nflags:\t02\nmnt_id:\t{id}\n"), mounts);
        assert_eq!((of(22), of(23), of(24)), (Some(false), Some(false), Some(true)));
        assert_eq!(
            (of(25), of(26)),
            (Some(false), Some(false)),
            "a view of files that lie elsewhere"
        );
        assert_eq!(of(2), None);
        assert_eq!(is_read_only_in("", mounts), None);
        assert_eq!(is_read_only_in("mnt_id:\t22\n", "22 cut off"), None);
    }
}
