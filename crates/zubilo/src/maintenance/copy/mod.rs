//! Hot copies: a snapshot becomes a store of its own while readers and the writer go on.
//!
//! `plain` copies the pages as they are, `compact` builds the trees anew without gaps. Both write
//! strictly forward but for the metas, which come first in a stream and last in a file. The
//! snapshot is pinned meanwhile; by the rule of births and deaths that holds back its own pages
//! only, however long the copy takes.
//!
//! `changes` streams what is new since an older commit, `restore` makes a store of a copy and such streams.

mod changes;
mod compact;
mod new_file;
mod plain;
mod restore;
#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use crate::crypt::{Sealer, Secret};
use crate::env::EnvInner;
use crate::env::meta::{META_COUNT, Meta};
use crate::env::open::new_opening;
use crate::error::{Error, Result};
use crate::maintenance::check::{PageKind, check_written, verify, verify_visiting};
use crate::num::TxnId;
use crate::platform::{FileId, Purpose};
use crate::space::log::Segment;
use crate::tree::build::PageSink;
use crate::txn::{ReadTxn, pinned};

use new_file::NewFile;
pub(crate) use restore::Part;

/// Gets the number of pages done and of all pages; stops the work by giving false.
type Progress<'p> = &'p mut dyn FnMut(u64, u64) -> bool;

/// Copies to a new file, all or nothing.
pub(crate) fn to_path(
    env: &Arc<EnvInner>,
    path: &Path,
    compact: bool,
    secret: Option<&Secret>,
    progress: Progress<'_>,
) -> Result<TxnId> {
    let file = create(env, path).map_err(Error::io_at("create", path))?;
    let copied = copy_to_file(env, (&file, path), compact, secret, progress);
    if copied.is_err() {
        // The error that ended the copy says more than one of the removal could.
        let _ = std::fs::remove_file(path);
    }
    copied
}

/// Streams a copy.
pub(crate) fn to_writer(
    env: &Arc<EnvInner>,
    out: &mut dyn Write,
    compact: bool,
    secret: Option<&Secret>,
    progress: Progress<'_>,
) -> Result<TxnId> {
    let (txn, meta) = pinned(env)?;
    let page_size = env.page_size();
    let sealer = sealer_of(env, secret)?;
    let sealer = sealer.as_ref();
    let zeros = vec![0; sealer.map_or(page_size, Sealer::stride)];
    let mut stream = Stream { out, at: META_COUNT, page_size, zeros, sealer };
    let failed = || Error::io("write the copy");
    if compact {
        // A stream starts with the meta, so the trees are laid out twice: once for the meta.
        let opening = new_opening();
        let compacted = compact::run(&txn, &meta, opening, &mut Nowhere, &mut |_, _| true)?;
        stream.out.write_all(&meta_pages(&compacted, sealer)).map_err(failed())?;
        compact::run(&txn, &meta, opening, &mut stream, progress)?;
    } else {
        // Verified first: what is in the stream cannot be taken back.
        let purposes = purposes(&txn, &meta, &mut |done, all| progress(done, all * 2))?;
        let meta = plain::meta(meta);
        stream.out.write_all(&meta_pages(&meta, sealer)).map_err(failed())?;
        let mut progress = |done, all| progress(all + done, all * 2);
        plain::run(&txn, &meta, &purposes, &mut stream, &mut progress)?;
        stream.fill_to(meta.end)?;
    }
    stream.out.flush().map_err(failed())?;
    Ok(txn.id())
}

/// Streams what is new since commit `since`.
pub(crate) fn changes_to_writer(
    env: &Arc<EnvInner>,
    since: TxnId,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<TxnId> {
    if env.data.decryption().is_some() {
        return Err(Error::Invalid(
            "changes of an encrypted store would be readable: copy all of it",
        ));
    }
    let (txn, meta) = pinned(env)?;
    if since > txn.id() {
        return Err(Error::Invalid("changes since a commit that there is not yet"));
    }
    // Each page is verified on the way; of a chosen commit that says less than of the newest.
    check_written(env, &meta)?;
    changes::run(&txn, &plain::meta(meta), since.0, out, progress)?;
    Ok(txn.id())
}

/// The same to a new file, all or nothing.
pub(crate) fn changes_to_path(
    env: &Arc<EnvInner>,
    since: TxnId,
    path: &Path,
    progress: Progress<'_>,
) -> Result<TxnId> {
    let new = NewFile::create(env, path)?;
    let mut out = BufWriter::with_capacity(1 << 16, &new.file);
    let txn = changes_to_writer(env, since, &mut out, progress)?;
    drop(out);
    new.file.sync_all().map_err(Error::io_at("flush", &new.path))?;
    new.finish()?;
    Ok(txn)
}

/// Makes the file of a copy, with no more rights than those of the store's file.
fn create(env: &EnvInner, path: &Path) -> io::Result<File> {
    // What another file has that has its name now means nothing.
    let ours = |m: &Metadata| FileId { device: m.dev(), inode: m.ino() } == env.data.id();
    let source = fs::metadata(env.data.path()).ok().filter(ours);
    let mode = source.as_ref().map_or(0o600, MetadataExt::mode) & 0o666 | 0o600;
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)?;
    if let Some(source) = source {
        let new = file.metadata()?;
        // To another group the rights mean nothing but what they are for all others.
        let others = new.mode() & 0o007;
        let tight = new.mode() & (0o707 | others << 3);
        if new.gid() != source.gid() && new.mode() & 0o777 != tight & 0o777 {
            file.set_permissions(Permissions::from_mode(tight & 0o777))?;
        }
    }
    Ok(file)
}

fn copy_to_file(
    env: &Arc<EnvInner>,
    (mut file, path): (&File, &Path),
    compact: bool,
    secret: Option<&Secret>,
    progress: Progress<'_>,
) -> Result<TxnId> {
    let (txn, meta) = pinned(env)?;
    let sealer = sealer_of(env, secret)?;
    let sealer = sealer.as_ref();
    let mut sink = Sparse { file, path, page_size: env.page_size(), sealer };
    let meta = if compact {
        compact::run(&txn, &meta, new_opening(), &mut sink, progress)?
    } else {
        let meta = plain::meta(meta);
        // Where they matter they must be known before.
        let purposes = match sealer.is_some() || env.data.decryption().is_some() {
            true => purposes(&txn, &meta, &mut |_, all| progress(0, all * 2))?,
            false => Vec::new(),
        };
        plain::run(&txn, &meta, &purposes, &mut sink, &mut |done, all| progress(done, all * 2))?;
        // The pages are in memory now if there is room; without its meta the copy is none yet.
        verify(&txn, &meta, &mut |done, all| progress(all + done.min(all), all * 2))?;
        progress(meta.end * 2, meta.end * 2);
        meta
    };
    let io = |op| Error::io_at(op, path);
    let len = meta.end << env.shift;
    file.set_len(sealer.map_or(len, |sealer| sealer.file_len(len)))
        .map_err(io("set the length of"))?;
    file.sync_all().map_err(io("flush"))?;
    file.seek(SeekFrom::Start(0)).map_err(io("write"))?;
    file.write_all(&meta_pages(&meta, sealer)).map_err(io("write"))?;
    file.sync_all().map_err(io("flush"))?;
    flush_directory(path)?;
    Ok(txn.id())
}

/// Flushes the directory of a new file.
fn flush_directory(path: &Path) -> Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|d| d.sync_all())
        .map_err(Error::io_at("flush the directory", directory))
}

/// Verifies the snapshot; gives what its pages serve that are not of trees.
fn purposes(
    txn: &ReadTxn,
    meta: &Meta,
    progress: Progress<'_>,
) -> Result<Vec<(u64, u64, Purpose)>> {
    let mut purposes = Vec::new();
    let mut has_room = true;
    verify_visiting(txn, meta, progress, &mut |visit| {
        if visit.kind == PageKind::Run {
            has_room = purposes.try_reserve(1).is_ok();
            if has_room {
                purposes.push((visit.page.0, visit.count, Purpose::Value));
            }
        }
        has_room
    })
    .map_err(|error| if has_room { error } else { Error::no_memory("note the copied pages") })?;
    let log = meta.load_log(&txn.snapshot(), &[], txn.env().plausible_pages())?.log;
    let segment = |s: &Segment| (s.first, s.pages(meta.page_shift), Purpose::Log);
    purposes.extend(log.segments().iter().map(segment));
    purposes.sort_unstable_by_key(|(first, ..)| *first);
    Ok(purposes)
}

/// What encrypts a copy, where that is asked for.
fn sealer_of(env: &EnvInner, secret: Option<&Secret>) -> Result<Option<Sealer>> {
    secret.map(|secret| Sealer::new(secret, env.shift)).transpose()
}

/// The meta pages of a copy: the meta and empty ones. In an encrypted one the header follows.
fn meta_pages(meta: &Meta, sealer: Option<&Sealer>) -> Vec<u8> {
    let of = |sealer: &Sealer| sealer.authenticator(meta.to_authenticate().as_slice());
    let meta = Meta { authenticator: sealer.map(of), ..meta.clone() };
    let mut pages = meta.encode().to_vec();
    pages.resize((META_COUNT as usize) << meta.page_shift, 0);
    pages.extend(sealer.map(Sealer::header).unwrap_or_default());
    pages
}

/// Takes pages and keeps none: for finding out where everything will be.
struct Nowhere;

impl PageSink for Nowhere {
    fn pages(&mut self, _first: u64, _bytes: &[u8], _purpose: Purpose) -> Result<()> {
        Ok(())
    }
}

/// Pages to a stream; pages that are left out become zeros.
struct Stream<'o> {
    out: &'o mut dyn Write,
    at: u64,
    page_size: usize,
    /// A page of them.
    zeros: Vec<u8>,
    sealer: Option<&'o Sealer>,
}

impl Stream<'_> {
    fn fill_to(&mut self, page: u64) -> Result<()> {
        while self.at < page {
            self.out.write_all(&self.zeros).map_err(Error::io("write the copy"))?;
            self.at += 1;
        }
        Ok(())
    }
}

impl PageSink for Stream<'_> {
    fn pages(&mut self, first: u64, bytes: &[u8], purpose: Purpose) -> Result<()> {
        self.fill_to(first)?;
        self.at += (bytes.len() / self.page_size) as u64;
        let sealed = self.sealer.map(|sealer| sealer.seal(first, bytes, purpose)).transpose()?;
        let bytes = sealed.as_deref().unwrap_or(bytes);
        self.out.write_all(bytes).map_err(Error::io("write the copy"))
    }
}

/// Pages to a file; pages that are left out become holes.
struct Sparse<'f> {
    file: &'f File,
    path: &'f Path,
    page_size: usize,
    sealer: Option<&'f Sealer>,
}

impl PageSink for Sparse<'_> {
    fn pages(&mut self, first: u64, bytes: &[u8], purpose: Purpose) -> Result<()> {
        use std::os::unix::fs::FileExt;
        let sealed = self.sealer.map(|sealer| sealer.seal(first, bytes, purpose)).transpose()?;
        let at = match self.sealer {
            Some(sealer) => sealer.place(first),
            None => first * self.page_size as u64,
        };
        let bytes = sealed.as_deref().unwrap_or(bytes);
        self.file.write_all_at(bytes, at).map_err(Error::io_at("write", self.path))
    }
}
