//! What the figures depend on besides the code.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Settings;

pub(super) fn describe(settings: &Settings) -> Vec<(String, String)> {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory) = (file("/proc/cpuinfo"), file("/proc/meminfo"));
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("");
        line.trim_start_matches([' ', '\t', ':']).to_owned()
    };
    let mounts = file("/proc/self/mounts");
    let (file_system, options) = mount_of(&mounts, &settings.dir);
    let entries = [
        ("date", said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
        ("commit", commit()),
        ("cpu", field(&cpu, "model name")),
        ("cores", std::thread::available_parallelism().map_or(0, |n| n.get()).to_string()),
        ("memory", field(&memory, "MemTotal")),
        ("kernel", file("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("file system", format!("{file_system} ({options})")),
        ("compiler", said("rustc", &["--version"])),
        ("flags", flags()),
        ("seed", format!("{:#x}", settings.seed)),
        ("load at start", file("/proc/loadavg").trim().to_owned()),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn flags() -> String {
    if cfg!(debug_assertions) {
        "DEBUG BUILD: the figures mean nothing".into()
    } else {
        "release, lto thin, codegen-units 1, no target-cpu".into()
    }
}

/// The first line that a program prints, or that it does not run here.
fn said(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => format!("unknown: {program}: {error}"),
    }
}

fn commit() -> String {
    let changed = !said("git", &["status", "--porcelain"]).is_empty();
    let commit = said("git", &["rev-parse", "--short", "HEAD"]);
    format!("{commit}{}", if changed { ", with changes" } else { "" })
}

/// Type and options of the file system that holds a directory.
fn mount_of(mounts: &str, dir: &Path) -> (String, String) {
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let parts = mounts.lines().map(|l| l.split(' ').collect::<Vec<_>>());
    let holding = parts.filter(|p| p.len() > 3 && dir.starts_with(p[1]));
    let longest = holding.max_by_key(|p| p[1].len());
    longest.map_or_else(Default::default, |p| (p[2].to_owned(), p[3].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_holds_a_directory() {
        let mounts = "a / ext4 rw 0 0\nb /no/such xfs rw,noatime 0 0\nc /no tmpfs ro 0 0\n";
        let of = |path: &str| mount_of(mounts, Path::new(path)).0;
        assert_eq!(of("/no/such/place"), "xfs");
        assert_eq!(of("/no/other"), "tmpfs");
        assert_eq!(of("/none"), "ext4");
    }
}
