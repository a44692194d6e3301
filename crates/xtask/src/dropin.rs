//! The drop-in for LMDB: built, named and put where it is wanted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The cargo profile: small code.
const PROFILE: &str = "dropin";
/// Inlines what is marked for it, and little besides: an eighth less code, and gets and scans that
/// are as fast.
const FLAGS: &str = "-C llvm-args=-inline-threshold=40 -C llvm-args=-inlinehint-threshold=150 \
                     -C link-arg=-Wl,-z,noseparate-code";
/// Functions of equal code become one; the linker that Rust brings along for this machine can.
const LINKER: &str = if cfg!(target_arch = "x86_64") { " -C link-arg=-Wl,--icf=all" } else { "" };
const TOOLS: [&str; 5] = ["mdb_stat", "mdb_copy", "mdb_dump", "mdb_load", "mdb_drop"];
/// The promised bound of the library.
const LIBRARY_MAX: u64 = 1 << 20;

/// Builds the drop-in and leaves it in `dir`.
pub(crate) fn build(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    let dir = dir.canonicalize()?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default() + " " + FLAGS + LINKER;
    let packages = ["build", "--profile", PROFILE, "-p", "liblmdb", "-p", "lmdb-tools"];
    run(cargo().env("RUSTFLAGS", flags).args(packages))?;
    let built = target_dir()?.join(PROFILE);
    let sources = root().join("crates/liblmdb/include");
    place(&built.join("liblmdb.so"), &dir.join("liblmdb.so.0"))?;
    place(&built.join("liblmdb.a"), &dir.join("liblmdb.a"))?;
    for tool in TOOLS {
        place(&built.join(tool), &dir.join(tool))?;
    }
    for entry in fs::read_dir(&sources)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "h") {
            place(&path, &dir.join(path.file_name().context("a header without a name")?))?;
        }
    }
    let template = fs::read_to_string(sources.join("lmdb.pc.in"))?;
    let prefix = dir.to_str().context("the directory's name is not UTF-8")?;
    fs::write(dir.join("lmdb.pc"), template.replace("@PREFIX@", prefix))?;
    let link = dir.join("liblmdb.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link)?;
    }
    symlink("liblmdb.so.0", &link)?;
    check_size(&dir.join("liblmdb.so.0"))
}

fn check_size(library: &Path) -> Result<()> {
    let len = library.metadata()?.len();
    println!("{}: {len} bytes", library.display());
    if len >= LIBRARY_MAX {
        bail!("the library has {len} bytes, at least {LIBRARY_MAX}");
    }
    Ok(())
}

/// Copies in one step: programs may have the old file mapped.
fn place(from: &Path, to: &Path) -> Result<()> {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    fs::copy(from, &part).with_context(|| format!("{} is missing", from.display()))?;
    fs::rename(&part, to).with_context(|| format!("{} cannot be written", to.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).into()
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if status.success() { Ok(()) } else { bail!("{command:?}: {status}") }
}

/// Where cargo builds.
fn target_dir() -> Result<PathBuf> {
    let output = cargo().args(["metadata", "--format-version", "1", "--no-deps"]).output()?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let dir = found.get("target_directory").and_then(|dir| dir.as_str());
    Ok(dir.context("cargo does not tell where it builds")?.into())
}
