//! The options that all commands share, and how a store is opened for each kind of work.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{Metadata, Permissions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use lmdb_file::{Error as LmdbError, LmdbFile};
use zubilo::{Env, Error, Options, TxnId, VerifyReads, WriteTxn};

use crate::encoding::Encoding;
use crate::failure::{Code, Doing, Done, Failure};
use crate::interrupt;
use crate::keys::KeyArgs;
use crate::output::note;

/// The store, and how to speak.
#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    /// The store's file, or the folder with data.mdb
    pub(crate) store: PathBuf,
    /// Machine-readable output, and errors as JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

/// The store, for commands that only read.
#[derive(Args, Debug)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    at: StoreArgs,
    /// Use no lock file. Only for a store that nobody else has open
    #[arg(long)]
    no_lock: bool,
}

/// For commands that can look at an older commit.
#[derive(Args, Debug)]
pub(crate) struct CommitArg {
    /// Of this commit, instead of the newest that can be trusted: `zubilo commits` lists them. Nobody else may
    /// have the store open
    #[arg(long, value_name = "NUMBER")]
    pub(crate) commit: Option<u64>,
}

impl CommitArg {
    /// The options that open the chosen commit.
    pub(crate) fn set(&self, options: Options) -> Options {
        match self.commit {
            Some(commit) => options.at_commit(TxnId(commit)),
            None => options,
        }
    }
}

impl Deref for ReadArgs {
    type Target = StoreArgs;

    fn deref(&self) -> &StoreArgs {
        &self.at
    }
}

/// Which table.
#[derive(Args, Debug)]
pub(crate) struct TableArg {
    /// The table's name, with \xNN for bytes that are not text
    #[arg(short, long, default_value = "main")]
    table: OsString,
}

impl TableArg {
    pub(crate) fn name(&self) -> Done<Vec<u8>> {
        table_name(&self.table)
    }
}

/// The name of a table given as an argument.
pub(crate) fn table_name(text: &OsString) -> Done<Vec<u8>> {
    Encoding::Escaped.argument("--table", text)
}

/// For commands that print records.
#[derive(Args, Debug)]
pub(crate) struct VerifyArg {
    /// Verify the checksum of each page that is read: damage is an error (code 3) instead of wrong bytes
    #[arg(long)]
    verify: bool,
}

impl VerifyArg {
    pub(crate) fn open(&self, store: &ReadArgs) -> Done<Env> {
        match self.verify {
            true => store.open_to_read_verified(),
            false => store.open_to_read(),
        }
    }
}

/// For commands that change the store.
#[derive(Args, Debug)]
pub(crate) struct WriteArgs {
    /// Seconds to wait for another writer to finish
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    wait: u64,
}

/// For commands that may make a new store.
#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// Make the store and the table if they are missing
    #[arg(long)]
    pub(crate) create: bool,
    /// Bytes of a page of a new store
    #[arg(long, requires = "create", value_name = "BYTES",
          value_parser = clap::builder::PossibleValuesParser::new(PAGE_SIZES))]
    page_size: Option<String>,
}

pub(crate) const PAGE_SIZES: [&str; 5] = ["4096", "8192", "16384", "32768", "65536"];

impl CreateArgs {
    /// For a command that always makes what is missing.
    pub(crate) fn new(page_size: Option<String>) -> CreateArgs {
        CreateArgs { create: true, page_size }
    }
}

impl ReadArgs {
    /// Opens an existing store for reading only.
    pub(crate) fn open_to_read(&self) -> Done<Env> {
        self.at.noted(self.open_with(VerifyReads::Never, &CommitArg { commit: None })?)
    }

    /// For a store that is one of several.
    pub(crate) fn of(store: &Path, json: bool, no_lock: bool, keys: &KeyArgs) -> ReadArgs {
        let at = StoreArgs { store: store.to_path_buf(), json, keys: keys.clone() };
        ReadArgs { at, no_lock }
    }

    /// As [`ReadArgs::open_to_read`]; checksums are verified when a page is first read.
    pub(crate) fn open_to_read_verified(&self) -> Done<Env> {
        self.open_verified_at(&CommitArg { commit: None })
    }

    /// The same, of a commit that may have been chosen.
    pub(crate) fn open_verified_at(&self, at: &CommitArg) -> Done<Env> {
        let env = self.open_with(VerifyReads::FirstTouch, at)?;
        // Whoever has chosen an older commit knows that there are newer ones.
        if at.commit.is_some() { Ok(env) } else { self.at.noted(env) }
    }

    /// As [`ReadArgs::open_to_read`], for commands that report by themselves a commit that is not
    /// trusted.
    pub(crate) fn open_to_report(&self) -> Done<Env> {
        self.open_to_report_at(&CommitArg { commit: None })
    }

    /// The same, of a commit that may have been chosen.
    pub(crate) fn open_to_report_at(&self, at: &CommitArg) -> Done<Env> {
        self.open_with(VerifyReads::Never, at)
    }

    fn open_with(&self, verify: VerifyReads, at: &CommitArg) -> Done<Env> {
        let options = Options::new().read_only(true).create(false).lock_file(!self.no_lock);
        let options = at.set(options.verify_reads(verify));
        self.at.keys.set(options)?.open(self.at.file()).map_err(|error| {
            let failure = self.at.failed(&error, "name an existing store");
            match is_shut_lock_file(&error) && !self.no_lock {
                true => failure.advise(
                    "readers register themselves there: let this user write to it, or, while no \
                     other process has the store open, add --no-lock",
                ),
                false => failure,
            }
        })
    }
}

impl StoreArgs {
    /// Opens an existing store for writing.
    pub(crate) fn open_to_write(&self) -> Done<Env> {
        self.noted(self.open(Options::new().create(false), "name an existing store")?)
    }

    /// Opens a store for writing, and makes it if that was asked for.
    pub(crate) fn open_or_create(&self, how: &CreateArgs, options: Options) -> Done<Opened<'_>> {
        let mut options = options.create(how.create);
        if let Some(size) = how.page_size.as_ref().and_then(|size| size.parse().ok()) {
            options = options.page_size(size);
        }
        let missing = match how.create {
            true => "name a file in a folder that exists",
            false => "name an existing store, or add --create",
        };
        let is_new = how.create && self.file().symlink_metadata().is_err();
        if is_new {
            self.keys.for_new()?;
        }
        let env = self.noted(self.open(options, missing)?)?;
        Ok(Opened { env, new: is_new.then_some(self) })
    }

    /// Makes a store.
    pub(crate) fn make(&self, options: Options) -> Done<Env> {
        self.open(options.create(true), "name a file in a folder that exists")
    }

    /// Opens it in another way.
    pub(crate) fn open_for(&self, options: Options, missing: &str) -> Done<Env> {
        self.open(options, missing)
    }

    fn open(&self, options: Options, missing: &str) -> Done<Env> {
        self.keys.set(options)?.open(self.file()).map_err(|error| self.failed(&error, missing))
    }

    /// The store's file: where a folder is named in which a program of LMDB would keep its data, that.
    pub(crate) fn file(&self) -> Cow<'_, Path> {
        data_file(&self.store)
    }

    /// What to say when the store does not open; `missing` is the advice where there is none.
    fn failed(&self, error: &Error, missing: &str) -> Failure {
        let what = match error {
            // These name the file themselves.
            Error::Io { path: Some(_), .. } | Error::NotAStore { .. } => "open".to_string(),
            _ => format!("open {}", self.store.display()),
        };
        let failure = Failure::store(what, error);
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                failure.advise(missing)
            }
            Error::NotAStore { .. } if is_lmdb(&self.store) => {
                let path = self.store.display();
                failure.advise(format!("LMDB wrote it; `zubilo import {path} NEW` takes it over"))
            }
            Error::NotAStore { .. } if self.store.is_dir() => {
                let path = self.store.display();
                let what = format!("open {path}");
                Failure::new(Code::Damaged, what, "this is a folder, and no data.mdb is in it")
                    .advise(stores_in(&self.store))
            }
            Error::NotAStore { found, .. } if found.contains("shorter") => {
                failure.advise("name a store; of this one hardly anything can be left")
            }
            Error::NotAStore { .. } => failure
                .advise("name a store; of one whose start is destroyed `zubilo salvage` reads what is left"),
            Error::Corrupted { .. } => failure
                .advise("restore the store from a copy, or bring out what is readable with `zubilo salvage`"),
            Error::KeyMissing => failure.advise("give --key-file, --passphrase-file or --passphrase"),
            Error::NotEncrypted => failure.advise(
                "leave the key out; `zubilo copy` with --to-key-file makes an encrypted copy",
            ),
            Error::Busy(_) => failure.advise("end the process that has it open"),
            _ => failure,
        }
    }

    /// Says so if the store holds a commit that is not trusted: records may be missing.
    fn noted(&self, env: Env) -> Done<Env> {
        if let Some(txn) = env.info().doing("read the figures")?.untrusted {
            note(self.json, &untrusted_text(txn));
        }
        Ok(env)
    }
}

/// A store that may have been made by this command.
pub(crate) struct Opened<'s> {
    pub(crate) env: Env,
    new: Option<&'s StoreArgs>,
}

impl Opened<'_> {
    /// After a failure: what this command has made goes again, if nothing was committed and nobody else
    /// uses it.
    pub(crate) fn discard_if_empty(self) {
        let Opened { env, new: Some(store) } = self else { return };
        let Ok(info) = env.info() else { return };
        drop(env);
        // Who has it alone can remove it: nobody is in it, and nobody comes in.
        let alone = Options::new().create(false).exclusive(true);
        let Ok(alone) = store.keys.set(alone) else { return };
        let Ok(env) = alone.open(store.file()) else { return };
        let unchanged = env.info().is_ok_and(|now| now.newest == info.newest);
        let empty =
            env.read().is_ok_and(|read| read.tables().is_ok_and(|tables| tables.is_empty()));
        if unchanged && empty {
            remove_store(&store.store);
        }
    }
}

/// Removes a store that a command has made and could not finish, with its lock file.
pub(crate) fn remove_store(store: &Path) {
    for path in [store, &Options::default_lock_path(store)] {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                note(false, &format!("cannot remove {}: {error}", path.display()));
            }
            _ => {}
        }
    }
}

/// The mode of a new file with the contents of another one, before the process's mask; whoever makes it
/// may write to it.
pub(crate) fn mode_like(old: &Metadata) -> u32 {
    old.mode() & 0o777 | 0o600
}

/// Gives a new file, and its lock file, no more rights than those of the file whose contents it has got:
/// where their groups differ the old one's rights were not meant for the new one.
pub(crate) fn tighten(new: &Path, old: &Metadata) -> Done<()> {
    let failed = |e| Failure::io(format!("set the mode of {}", new.display()), &e);
    for path in [new, &Options::default_lock_path(new)] {
        let now = match path.metadata() {
            Ok(now) => now,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        let mode = now.mode() & 0o777;
        let everybody = (old.mode() & 0o7) << 3;
        let group = if now.gid() == old.gid() { old.mode() & 0o070 } else { everybody };
        let due = mode & (0o700 | group | old.mode() & 0o7);
        if due != mode {
            std::fs::set_permissions(path, Permissions::from_mode(due)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Whether the lock file is there and this user may not write to it, or may not make it.
fn is_shut_lock_file(error: &Error) -> bool {
    matches!(error, Error::Io { path: Some(path), source, .. }
        if source.kind() == io::ErrorKind::PermissionDenied
            && [&b"-lock"[..], b"/lock.mdb"]
                .iter()
                .any(|end| path.as_os_str().as_encoded_bytes().ends_with(end)))
}

/// The data file in a folder that has one, as the drop-in for LMDB keeps it; else the path itself.
pub(crate) fn data_file(path: &Path) -> Cow<'_, Path> {
    let inner = path.join("data.mdb");
    if path.is_dir() && inner.is_file() { inner.into() } else { path.into() }
}

/// Stores in a folder, for who has named the folder.
fn stores_in(folder: &Path) -> String {
    const LOOKED_AT: usize = 1000;
    const NAMED: usize = 5;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(LOOKED_AT);
    let is_store = |path: &PathBuf| path.is_file() && is_store(path);
    let mut stores: Vec<_> = entries.map(|entry| entry.path()).filter(is_store).collect();
    stores.sort();
    let names: Vec<_> = stores.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    match stores.len() {
        0 => "name the store's file".to_string(),
        1 => format!("name the store in it: {}", names.join("")),
        n if n > NAMED => format!("name one of the stores in it: {}, ...", names.join(", ")),
        _ => format!("name one of the stores in it: {}", names.join(", ")),
    }
}

/// Whether the file is a store of Zubilo's; it is only read.
pub(crate) fn is_store(path: &Path) -> bool {
    let options = Options::new().read_only(true).create(false).lock_file(false);
    matches!(options.open(data_file(path)), Ok(_) | Err(Error::KeyMissing))
}

/// Whether LMDB has written the file, or the file in this folder.
fn is_lmdb(path: &Path) -> bool {
    match LmdbFile::open(path) {
        Ok(_) => true,
        Err(error) => matches!(error, LmdbError::Unsupported(_) | LmdbError::Damaged { .. }),
    }
}

impl WriteArgs {
    /// Begins the write transaction; waits for another writer as long as was asked for.
    pub(crate) fn begin(&self, env: &Env) -> Done<WriteTxn> {
        let start = Instant::now();
        let patience = Duration::from_secs(self.wait);
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(txn) = env.try_write().doing("begin to write")? {
                return Ok(txn);
            }
            if interrupt::came() {
                return Err(Failure::new(Code::Interrupted, "begin to write", "interrupted"));
            }
            if start.elapsed() >= patience {
                let cause = format!("another process is writing; waited for {} s", self.wait);
                return Err(Failure::new(Code::Other, "begin to write", cause)
                    .advise("try again later, or wait longer with --wait"));
            }
            std::thread::sleep(pause.min(patience.saturating_sub(start.elapsed())));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

/// A character that takes one byte.
pub(crate) fn one_byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ if text == "\\t" => Ok(b'\t'),
        _ => Err("one character of ASCII, or \\t, expected".into()),
    }
}

/// What there is to say about a commit that is in the file and not trusted.
pub(crate) fn untrusted_text(txn: TxnId) -> String {
    format!(
        "the file holds a newer commit, {txn}, that is not trusted: it was cut off before it was \
         acknowledged, or it is damaged. If it should be there, restore from a copy or try \
         `zubilo salvage`, before anything writes to the store: the next write wipes it"
    )
}
