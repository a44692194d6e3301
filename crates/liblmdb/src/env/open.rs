//! Opening: flags to options, the map size that holds, files that are not ours.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use zubilo::{Error, Options};

use crate::abi::env as flag;
use crate::dbi::Handles;
use crate::errors::{Code, Result};
use crate::txn::Turn;

use super::settings::{ADDRESSES, bound};
use super::{FIRST_TXN, MDB_env, Opened, convert, names};

/// Address space for the map, at least: growing the map size while open then costs nothing.
const RESERVE: u64 = 1 << 40;

pub(crate) fn open(env: &MDB_env, path: &CStr, flags: u32, mode: libc::mode_t) -> Result<()> {
    if env.opened.get().is_some() || flags & !flag::ALL != 0 {
        return Err(Code::EINVAL);
    }
    let mut flags = flags | env.flags.load(Ordering::Relaxed);
    if flags & flag::RDONLY != 0 {
        flags &= !flag::WRITEMAP;
    }
    let mut settings = env.settings();
    let data = names::data_file(path, flags & flag::NOSUBDIR != 0);
    let wanted = env.map_size.load(Ordering::Relaxed);
    if wanted > ADDRESSES {
        return Err(Code(libc::ENOMEM));
    }
    let mut options = Options::new();
    if settings.page_size > 0 {
        options = options.page_size(settings.page_size);
    }
    let options = options
        .lock_file(flags & flag::NOLOCK == 0)
        .read_only(flags & flag::RDONLY != 0)
        .max_readers(settings.max_readers)
        .mode(mode)
        .reserve(settings.extra.reserve().unwrap_or(RESERVE).max((wanted * 2).min(ADDRESSES / 2)));
    // A size that the program gives is stored by the first commit: not without need.
    let options = match settings.geometry {
        Some(geometry) => options.geometry(geometry),
        None => options,
    };
    let options = match flags & flag::NORDAHEAD {
        0 => options,
        _ => options.read_ahead(false),
    };
    let options = settings.extra.apply(options);
    let asked = convert::Asked {
        read_only: flags & flag::RDONLY != 0,
        lock_file: flags & flag::NOLOCK == 0,
        page_size: settings.page_size,
        has_key: settings.extra.has_key(),
    };
    let store = open_or_convert(&options, &data, &asked)?;
    let info = store.info()?;
    if flags & (flag::NOSYNC | flag::MAPASYNC) != 0 && flags & flag::RDONLY == 0 {
        store.set_lazy(true)?;
    }
    let_children_have(&store);
    // A map size too small for what is in use is raised; one that was never set is the file's, and that of
    // a file that has none, since the engine's own interface made it, is without bound.
    let stored = info.geometry.upper;
    let made = info.newest.0 <= FIRST_TXN && stored == u64::MAX && flags & flag::RDONLY == 0;
    let map_size = match wanted {
        0 if made => super::DEFAULT_MAP_SIZE,
        wanted => bound(wanted, stored, info.used_len),
    };
    env.map_size.store(map_size, Ordering::Relaxed);
    env.flags.store(flags, Ordering::Relaxed);
    settings.path = Some(path.to_owned());
    if flags & flag::NOLOCK == 0 {
        settings.max_readers = info.max_readers;
    }
    let turn = (flags & flag::NOLOCK != 0).then(|| Turn::of(&store));
    let handles = Handles::new(settings.max_dbs);
    let writing = AtomicU32::new(0);
    let opened = Opened { store, handles, token: Arc::new(()), writing, turn };
    env.opened.set(opened).map_err(|_| Code::EINVAL)
}

/// LMDB leaves its data file open over an exec, and programs hand it on.
fn let_children_have(store: &zubilo::Env) {
    if let Some(fd) = store.descriptor() {
        // SAFETY: changes a flag of a descriptor that is open.
        unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
    }
}

/// Opens the store; a data file of LMDB is converted before, where the user wants it.
fn open_or_convert(options: &Options, data: &Path, asked: &convert::Asked) -> Result<zubilo::Env> {
    loop {
        match options.clone().open(data) {
            // What it is converted to is not encrypted.
            Err(Error::NotAStore { .. }) if is_lmdb(data) && asked.has_key => {
                return Err(Code::ENV_ENCRYPTION);
            }
            Err(Error::NotAStore { .. }) if is_lmdb(data) => convert::convert(data, asked)?,
            opened => return opened.map_err(|error| explain(error, data)),
        }
    }
}

/// The code of a failed open.
fn explain(error: Error, path: &Path) -> Code {
    match &error {
        Error::Incompatible { .. } => Code::VERSION_MISMATCH,
        // Cut off in its creation, and nobody may finish that.
        Error::Corrupted { .. } if is_empty(path) => Code::ENOENT,
        _ if path.is_dir() => Code(libc::EISDIR),
        Error::Corrupted { .. } => Code::INVALID,
        _ => error.into(),
    }
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.len() == 0)
}

/// Whether a file has the magic number of LMDB's first page, with its version.
fn is_lmdb(path: &Path) -> bool {
    let mut start = [0; 24];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    // Behind a page header of 16 bytes, or of 12 in files of 32-bit systems; either byte order.
    let magic = 0xBEEF_C0DEu32;
    read.is_ok()
        && [12, 16].iter().any(|at| {
            let found = start.get(*at..).and_then(|rest| rest.first_chunk::<4>());
            found == Some(&magic.to_le_bytes()) || found == Some(&magic.to_be_bytes())
        })
}
