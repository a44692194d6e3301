//! Opening: flags to options, the map size that holds, files that are not ours.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use zubilo::{Error, Options};

use crate::abi::env as flag;
use crate::beyond::tell_anyway;
use crate::dbi::Handles;
use crate::errors::{Code, Result};

use super::settings::ADDRESSES;
use super::{FIRST_TXN, MDB_env, Opened, names};

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
    // One that is told is stored by the first commit: not without need.
    let options = match settings.geometry {
        Some(geometry) => options.geometry(geometry),
        None => options,
    };
    let options = match flags & flag::NORDAHEAD {
        0 => options,
        _ => options.read_ahead(false),
    };
    let options = settings.extra.apply(options);
    let store = options.open(&data).map_err(|error| explain(error, &data))?;
    let info = store.info()?;
    if flags & (flag::NOSYNC | flag::MAPASYNC) != 0 && flags & flag::RDONLY == 0 {
        store.set_lazy(true)?;
    }
    let_children_have(&store);
    // A map size too small for what is in use is raised; one that was never told is the file's, and that of
    // a file that has none, since the engine's own interface made it, is without bound.
    let stored = info.geometry.upper;
    let made = info.newest.0 <= FIRST_TXN && stored == u64::MAX && flags & flag::RDONLY == 0;
    let map_size = match wanted {
        0 if made => super::DEFAULT_MAP_SIZE,
        0 if stored == u64::MAX => 0,
        0 => stored.max(info.used_len),
        wanted => wanted.max(info.used_len),
    };
    env.map_size.store(map_size, Ordering::Relaxed);
    env.flags.store(flags, Ordering::Relaxed);
    settings.path = Some(path.to_owned());
    if flags & flag::NOLOCK == 0 {
        settings.max_readers = info.max_readers;
    }
    let turn = (flags & flag::NOLOCK != 0).then(|| Mutex::new(()));
    let handles = Handles::new(settings.max_dbs);
    let writing = AtomicBool::new(false);
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

/// The code of a failed open; of an original LMDB file it is told what to do with it.
fn explain(error: Error, path: &Path) -> Code {
    match &error {
        Error::NotAStore { .. } if is_lmdb(path) => {
            tell_anyway(format_args!(
                "{0} was written by the original LMDB. Its records can be taken \
                 over: zubilo import {0} NEW",
                path.display()
            ));
            Code::VERSION_MISMATCH
        }
        Error::Incompatible(_) => Code::VERSION_MISMATCH,
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

/// Whether a file has the mark of LMDB's first page, with its version.
fn is_lmdb(path: &Path) -> bool {
    let mut start = [0; 24];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    // Behind a page header of 16 bytes, or of 12 in files of 32-bit systems; either byte order.
    let mark = 0xBEEF_C0DEu32;
    read.is_ok()
        && [12, 16].iter().any(|at| {
            let found = start.get(*at..).and_then(|rest| rest.first_chunk::<4>());
            found == Some(&mark.to_le_bytes()) || found == Some(&mark.to_be_bytes())
        })
}
