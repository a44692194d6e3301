//! The drop-in for LMDB: built, named and put where it is wanted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The cargo profile: small code.
const PROFILE: &str = "dropin";
/// Inlines what must be, and little besides; loops of unknown length are not unrolled.
const FLAGS: &str = "-C llvm-args=-inline-threshold=40 -C llvm-args=-inlinehint-threshold=80 \
                     -C llvm-args=-unroll-runtime=false -C link-arg=-Wl,-z,noseparate-code";
/// Functions of equal code become one; the linker that Rust brings along for this machine can.
const LINKER: &str = if BRINGS_LINKER { " -C link-arg=-Wl,--icf=all" } else { "" };
const BRINGS_LINKER: bool = cfg!(target_arch = "x86_64");
/// That linker also optimises our crates as a whole, and leaves the standard library as it is built:
/// then its handlers can be exchanged, see `panics.rs` in the library.
const WHOLE: &str = " -C linker-plugin-lto -C link-arg=-Wl,--lto-O2 \
                     -C link-arg=-Wl,-mllvm,-inline-threshold=40 \
                     -C link-arg=-Wl,-mllvm,-inlinehint-threshold=80";
/// What `build.rs` of the library wants to know, and the end of the standard library's name for it.
const HANDLERS: [(&str, &str); 2] = [
    ("ZUBILO_PANIC_SYMBOL", "_7___rustc17rust_begin_unwind"),
    ("ZUBILO_OUT_OF_MEMORY_SYMBOL", "_7___rustc26___rust_alloc_error_handler"),
];
pub(crate) const TOOLS: [&str; 5] = ["mdb_stat", "mdb_copy", "mdb_dump", "mdb_load", "mdb_drop"];
/// The promised bound of the library: a megabyte, and an eighth of one each for trust, for conversion, for what
/// LMDB does not have, for encryption, and for what else LMDB 1.0 has.
/// Comparison functions get the program's own values, so cursors and values are found again without
/// asking one; the data file is claimed and compared; damaged metas are rebuilt; checkpoints outlive their
/// process: 1,115,912 bytes. LMDB's files are read, taken over and compared: 1,222,216. Readers are parked and
/// expired, ranges estimated and split, memory warmed up and asked for, damaged stores opened at a chosen commit,
/// stores kept on block devices, errors name their tables: 1,401,424.
/// Stores are encrypted, and the redo log changes its length: 1,537,880. Commits in two phases, incremental copies
/// through C, and lazy commits in the redo log: 1,603,048.
const LIBRARY_MAX: u64 = (1 << 20) + (640 << 10);

/// Builds the drop-in and leaves it in `dir`.
pub(crate) fn build(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    let dir = dir.canonicalize()?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default() + " " + FLAGS + LINKER;
    let rustc = |what: &str, flags: &str| {
        let mut cargo = cargo();
        cargo.env("RUSTFLAGS", flags).args(["rustc", "--profile", PROFILE, "-p", "liblmdb"]);
        cargo.args(["--crate-type", what]);
        cargo
    };
    // One after the other: both leave their intermediate files under the same names.
    let built = target_dir()?.join(PROFILE);
    run(&mut rustc("staticlib", &flags))?;
    place(&built.join("liblmdb.a"), &dir.join("liblmdb.a"))?;
    let packages = ["build", "--profile", PROFILE, "-p", "lmdb-tools"];
    run(cargo().env("RUSTFLAGS", &flags).args(packages))?;
    let handlers = if BRINGS_LINKER { handlers()? } else { None };
    run(&mut match handlers {
        Some(handlers) => {
            let mut rustc = rustc("cdylib", &(flags + WHOLE));
            rustc.env("CARGO_PROFILE_DROPIN_LTO", "off").envs(handlers);
            rustc
        }
        None => rustc("cdylib", &flags),
    })?;
    let sources = root().join("crates/liblmdb/include");
    place(&built.join("liblmdb.so"), &dir.join("liblmdb.so.0"))?;
    for tool in TOOLS {
        place(&built.join(tool), &dir.join(tool))?;
    }
    for entry in fs::read_dir(&sources)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "h") {
            place(&path, &dir.join(path.file_name().context("a header without a name")?))?;
        }
    }
    fs::write(dir.join("lmdb.pc"), pkg_config(&root(), &dir, &dir, &dir)?)?;
    let link = dir.join("liblmdb.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link)?;
    }
    symlink("liblmdb.so.0", &link)?;
    check_size(&dir.join("liblmdb.so.0"))
}

/// What `pkg-config` reads: where the library and its headers will be.
pub(crate) fn pkg_config(
    root: &Path,
    prefix: &Path,
    libdir: &Path,
    include: &Path,
) -> Result<String> {
    let template = fs::read_to_string(root.join("crates/liblmdb/include/lmdb.pc.in"))?;
    let text = |path: &'_ Path| {
        path.to_str().map(str::to_owned).context("the directory's name is not UTF-8")
    };
    Ok(template
        .replace("@PREFIX@", &text(prefix)?)
        .replace("@LIBDIR@", &text(libdir)?)
        .replace("@INCLUDEDIR@", &text(include)?))
}

/// The names of the standard library's handlers, which differ between compilers; none if they are
/// not there under such names: then they stay in the library, which is a fifth larger.
fn handlers() -> Result<Option<Vec<(&'static str, String)>>> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir"]).output()?;
    let libraries = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    for entry in fs::read_dir(&libraries).with_context(|| format!("{libraries:?}"))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with("libstd-") || !name.ends_with(".rlib") {
            continue;
        }
        let bytes = fs::read(&path)?;
        let found = HANDLERS.map(|(variable, end)| Some((variable, symbol(&bytes, end)?)));
        return Ok(found.into_iter().collect());
    }
    Ok(None)
}

/// The symbol with this end in an object file's table of names: each ends with a zero byte.
fn symbol(bytes: &[u8], end: &str) -> Option<String> {
    let end = [end.as_bytes(), b"\0"].concat();
    let at = bytes.windows(end.len()).position(|window| window == end)?;
    let start = bytes[..at].iter().rposition(|byte| *byte == 0)? + 1;
    let symbol = std::str::from_utf8(&bytes[start..at + end.len() - 1]).ok()?;
    symbol.starts_with("_RNv").then(|| symbol.to_owned())
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
pub(crate) fn place(from: &Path, to: &Path) -> Result<()> {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    fs::copy(from, &part).with_context(|| format!("{} is missing", from.display()))?;
    fs::rename(&part, to).with_context(|| format!("{} cannot be written", to.display()))
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).into()
}

pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if status.success() { Ok(()) } else { bail!("{command:?}: {status}") }
}

/// Where cargo builds.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let output = cargo().args(["metadata", "--format-version", "1", "--no-deps"]).output()?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let dir = found.get("target_directory").and_then(|dir| dir.as_str());
    Ok(dir.context("cargo does not say where it builds")?.into())
}
