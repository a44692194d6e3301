//! Installs what users of a machine want: the command with its manual pages and completions, and the drop-in
//! for LMDB where compilers and `pkg-config` look.
//!
//! `DESTDIR` goes before all paths, as packagers of distributions expect; nothing outside of it is touched.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::dropin::{self, TOOLS, cargo, root, run, target_dir};

pub(crate) const USAGE: &str = "\
usage: cargo xtask install [--prefix DIR] [--libdir DIR] [--command-only]
  --prefix DIR    where the files will be used; default /usr/local
  --libdir DIR    where libraries belong; default PREFIX/lib
  --command-only  the command `zubilo` alone, without the drop-in for LMDB
The environment variable DESTDIR goes before all paths.";

/// Where things belong.
struct Places {
    destdir: PathBuf,
    prefix: PathBuf,
    libdir: PathBuf,
}

impl Places {
    /// A path of the installed system, below `DESTDIR`; its directory is made.
    fn staged(&self, path: &Path) -> Result<PathBuf> {
        let inside = path.strip_prefix("/").context("paths of an installation are absolute")?;
        let staged = self.destdir.join(inside);
        let folder = staged.parent().context("a path without a directory")?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(staged)
    }

    fn install(&self, from: &Path, to: &Path, mode: u32) -> Result<()> {
        let to = self.staged(to)?;
        dropin::place(from, &to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
        println!("{}", to.display());
        Ok(())
    }

    fn write(&self, to: &Path, text: &[u8]) -> Result<()> {
        let to = self.staged(to)?;
        fs::write(&to, text).with_context(|| to.display().to_string())?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o644))?;
        println!("{}", to.display());
        Ok(())
    }
}

/// Builds and installs.
pub(crate) fn install(arguments: &[OsString]) -> Result<()> {
    let mut prefix = PathBuf::from("/usr/local");
    let (mut libdir, mut command_only) = (None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut path = || rest.next().map(PathBuf::from).context(USAGE);
        match argument.to_str() {
            Some("--prefix") => prefix = path()?,
            Some("--libdir") => libdir = Some(path()?),
            Some("--command-only") => command_only = true,
            _ => bail!(USAGE),
        }
    }
    let libdir = libdir.unwrap_or_else(|| prefix.join("lib"));
    let destdir = std::env::var_os("DESTDIR").filter(|dir| !dir.is_empty()).unwrap_or("/".into());
    let places = Places { destdir: destdir.into(), prefix, libdir };
    install_command(&places)?;
    if command_only { Ok(()) } else { install_dropin(&places) }
}

/// The command, its manual pages, and completions for the usual shells.
fn install_command(places: &Places) -> Result<()> {
    run(cargo().args(["build", "--release", "--locked", "-p", "zubilo-cli"]))?;
    let command = target_dir()?.join("release/zubilo");
    places.install(&command, &places.prefix.join("bin/zubilo"), 0o755)?;
    let pages = tempfile::tempdir()?;
    run(Command::new(&command).arg("man").arg(pages.path()))?;
    for entry in fs::read_dir(pages.path())? {
        let page = entry?;
        let to = places.prefix.join("share/man/man1").join(page.file_name());
        places.install(&page.path(), &to, 0o644)?;
    }
    let completions = [
        ("bash", "share/bash-completion/completions/zubilo"),
        ("zsh", "share/zsh/site-functions/_zubilo"),
        ("fish", "share/fish/vendor_completions.d/zubilo.fish"),
    ];
    for (shell, to) in completions {
        let output = Command::new(&command).args(["completions", shell]).output()?;
        if !output.status.success() {
            bail!("no completions for {shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
        places.write(&places.prefix.join(to), &output.stdout)?;
    }
    Ok(())
}

/// Libraries, headers, `lmdb.pc` and tools.
fn install_dropin(places: &Places) -> Result<()> {
    let built = tempfile::tempdir()?;
    dropin::build(built.path())?;
    let (libdir, include) = (&places.libdir, places.prefix.join("include"));
    for (name, mode) in [("liblmdb.so.0", 0o755), ("liblmdb.a", 0o644)] {
        places.install(&built.path().join(name), &libdir.join(name), mode)?;
    }
    let link = places.staged(&libdir.join("liblmdb.so"))?;
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link)?;
    }
    symlink("liblmdb.so.0", &link)?;
    println!("{}", link.display());
    for entry in fs::read_dir(built.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "h") {
            let name = path.file_name().context("a header without a name")?;
            places.install(&path, &include.join(name), 0o644)?;
        }
    }
    for tool in TOOLS {
        places.install(&built.path().join(tool), &places.prefix.join("bin").join(tool), 0o755)?;
    }
    let text = dropin::pkg_config(&root(), &places.prefix, libdir, &include)?;
    places.write(&libdir.join("pkgconfig/lmdb.pc"), text.as_bytes())
}
