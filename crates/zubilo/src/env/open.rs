//! Bringing a file to life: creation, the choice of the commit to trust, joining other users.

use std::cmp::Ordering::{Equal, Greater};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};

use twox_hash::XxHash3_64;

use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::planted::{Bug, has};
use crate::platform::{self, Advice, DataFile};
use crate::shared::{Role, Shared, Word};
use crate::space::log::{self, LogRoot};
use crate::sync::Ordering;
use crate::tree::verify::Verifier;
use crate::tree::{Snapshot, TreeDesc, TreeOptions};

use super::checkpoint::MetaLock;
use super::choose;
use super::counters::Counters;
use super::flusher::Flusher;
use super::join::{self, Joined};
use super::log::Level;
use super::meta::{META_COUNT, Meta, Trust};
use super::metas::{self, Found, SlotState};
use super::options::{DEFAULT_RESERVE, Options, VerifyReads};
use super::prepared::{Before, Besides};
use super::{Checks, EnvInner, Root, redo};

/// From opened parts to a live store.
pub(crate) fn start(
    data: Box<dyn DataFile>,
    joined: Joined,
    boot_id: [u8; 16],
    mut options: Options,
    checks: &'static Checks,
) -> Result<Arc<EnvInner>> {
    let Joined { shared, role, claim, unclaimed, guard, shut } = joined;
    if boot_id == [0; 16] {
        shared.note_hidden_user();
    }
    let shift = page_shift(data.as_ref(), &shared, role, boot_id, checks, &options)?;
    // From now on it is a store like others, if it can be written.
    options.at_commit = options.at_commit.filter(|_| options.read_only);
    advise(data.as_ref(), &options);
    let verifier = match options.verify {
        VerifyReads::Never => Verifier::never(data.as_ref()),
        VerifyReads::Always => Some(Verifier::always(data.as_ref())),
        VerifyReads::FirstTouch => {
            Some(Verifier::first_touch(data.as_ref(), shared.newest_root()[1]))
        }
    };
    let decrypting = Verifier::never(data.as_ref()).map(Arc::new);
    let geometry_pending = AtomicBool::new(options.geometry.is_some());
    let memory = platform::memory_limit();
    let dirty_limit = options.dirty_limit_of(platform::private_memory_limit(memory));
    let inner = Arc::new(EnvInner {
        data,
        _claim: claim,
        _guard: guard,
        _shut: shut,
        shared,
        options,
        shift,
        reach: AtomicU64::new(0),
        boot_id,
        opening: AtomicU32::new(new_opening()),
        checks,
        verifier,
        decrypting,
        flusher: Flusher::new(),
        counters: Counters::default(),
        close_without_sync: AtomicBool::new(false),
        closed: AtomicBool::new(false),
        geometry_pending,
        memory: AtomicU64::new(memory),
        dirty_limit,
        outgrown: AtomicBool::new(false),
        lazy_now: AtomicBool::new(false),
        fork_generation: platform::fork_generation(),
        writer: Mutex::new(None),
        checkpointing: Mutex::new(()),
    });
    // A length that is not known is no reason to fail here.
    inner.look_at_length(inner.data.len().unwrap_or(0));
    if role == Role::First {
        inner.shared.set_encrypted(inner.decrypting.is_some());
        // Before others are let in: they must see what the log has.
        if !inner.options.is_look() {
            redo::recover(&inner)?;
        }
        inner.shared.announce()?;
    }
    announce(&inner, unclaimed);
    Ok(inner)
}

/// The page size's shift; the first opener brings the store up.
fn page_shift(
    data: &dyn DataFile,
    shared: &Shared,
    role: Role,
    boot_id: [u8; 16],
    checks: &'static Checks,
    options: &Options,
) -> Result<u32> {
    let shift = match role {
        Role::First => {
            let shift = match options.at_commit {
                Some(txn) => choose::bring_up(data, shared, boot_id, checks, options, txn)?,
                None => bring_up(data, shared, boot_id, checks, options)?,
            };
            join::record_identity(data, shared)?;
            shift
        }
        Role::Joined if options.at_commit.is_some() => return Err(Error::Busy(choose::IN_USE)),
        Role::Joined => {
            // The user who left it, the last one then, ended a moment ago.
            shared.word(Word::Stamp).store(0, Ordering::SeqCst);
            shared.newest_root()[12] as u32
        }
    };
    if !(12..=16).contains(&shift) {
        return Err(Error::Corrupted {
            page: PageNo(0),
            reason: "the lock file names no page size",
        });
    }
    Ok(shift)
}

/// Advises the system how the file will be read; what it makes of that is its own affair.
fn advise(data: &dyn DataFile, options: &Options) {
    if options.huge_pages {
        let _ = data.advise(0, data.reserved(), Advice::HugePages);
    }
    if options.read_ahead == Some(false) {
        let _ = data.advise(0, data.reserved(), Advice::Random);
    }
}

/// Logs what was opened, and what is wrong with it, before anything is written.
fn announce(env: &EnvInner, unclaimed: bool) {
    let (newest, steady) = (env.shared.newest(), env.steady());
    let (path, size) = (env.data.path().display(), env.page_size());
    let what = format_args!("{path} is open: commit {newest}, on disk {steady}, pages of {size}");
    env.log(Level::Info, what);
    if unclaimed {
        let what = "the data file cannot be claimed, because of locks of those who may only read it \
                    or for want of locks in its file system: whoever comes by another lock file is not \
                    seen";
        env.log(Level::Warn, format_args!("{path}: {what}"));
    }
    if let Some(txn) = metas::unpublished(&env.shared) {
        let what = format_args!("commit {txn} was cut off or is damaged, it is not trusted");
        env.log(Level::Warn, what);
    }
    if let Some((_, txn)) = metas::prepared(&env.shared) {
        let what = "is prepared and waits for its decision, nobody writes until then";
        env.log(Level::Warn, format_args!("transaction {txn} {what}"));
    }
    // The lock, as a meta that is being written looks like a damaged one.
    let lock = MetaLock::take(&env.shared);
    let damaged = lock.map(|_lock| metas::damaged(env.data.as_ref(), env.shift));
    for meta in damaged.unwrap_or_default() {
        if meta.may_be_newer_than(TxnId(newest)) {
            let what = format_args!(
                "page {}: {meta}; a commit newer than {newest} may be lost with it: copy the file and \
                 run `zubilo salvage` before anything is written",
                meta.page.0
            );
            env.log(Level::Error, what);
        } else {
            env.log(Level::Warn, format_args!("page {}: {meta}", meta.page.0));
        }
    }
}

/// Whether metas say that their pages are encrypted.
pub(super) fn is_encrypted(metas: &[(usize, Meta)]) -> bool {
    metas.iter().any(|(_, meta)| meta.authenticator.is_some())
}

fn damaged(reason: &'static str) -> Error {
    Error::Corrupted { page: PageNo(0), reason }
}

/// The metas of the file, newest first, each with its slot; of a store that is created if there is none.
pub(super) fn found_or_created(
    data: &dyn DataFile,
    shared: &Shared,
    boot_id: [u8; 16],
    options: &Options,
    unflushed: Option<u64>,
) -> Result<Vec<(usize, Meta)>> {
    let may_create = !options.read_only && options.create;
    Ok(match metas::read(data)? {
        // It was none when this process looked for the key.
        Found::Metas(metas) if data.decryption().is_none() && is_encrypted(&metas) => {
            return Err(Error::KeyMissing);
        }
        // A creation whose flush failed: it may not be on disk, and nothing is lost with it.
        Found::Metas(metas)
            if unflushed == Some(0) && may_create && metas.iter().all(|(_, m)| m.txn == 1) =>
        {
            vec![(0, create(data, shared, boot_id, options)?)]
        }
        Found::Metas(metas) => metas,
        Found::Nothing if may_create => vec![(0, create(data, shared, boot_id, options)?)],
        found => return Err(metas::unusable(found, data)),
    })
}

/// As the only user: chooses the commit to trust, or creates the store; fills the lock file.
pub(super) fn bring_up(
    data: &dyn DataFile,
    shared: &Shared,
    boot_id: [u8; 16],
    checks: &'static Checks,
    options: &Options,
) -> Result<u32> {
    let unflushed = shared.was_poisoned_on_this_boot();
    let new = matches!(metas::read(data)?, Found::Nothing);
    let metas = found_or_created(data, shared, boot_id, options, unflushed)?;
    let created = metas.len() == 1 && metas[0].1.txn == 1;
    let Standing { replaced, untouched } = standing(data, shared, &metas);
    let known = if replaced { 0 } else { metas::steady(shared) };
    // The users before have seen, on this boot and in this file, the flush that put the newest commit on
    // disk, and nobody has written anything after it that counts.
    let is_known = |m: &Meta| m.trust != Trust::Weak && m.txn == known && shared.knows_steady();
    // A newer one in a slot was wiped by a writer that was killed: that may not be on disk.
    let newer = metas::newest_in_slots(shared) > known;
    let settled = unflushed.is_none() && !newer && untouched;
    let settled = settled && metas.first().is_some_and(|(_, m)| is_known(m));
    if !settled {
        flush_leftovers(data, shared, options)?;
    }
    // Without a flush no commit becomes steady by being there.
    let failed = shared.word(Word::Poisoned).load(Ordering::SeqCst) != 0;
    let steady_max = if failed { known } else { u64::MAX };
    let len = data.len().map_err(Error::io_at("find the length of", data.path()))?;
    shared.word(Word::FileLen).store(len, Ordering::SeqCst);
    let flushed = |m: &Meta| created || unflushed.is_none_or(|steady| m.txn <= steady);
    // An image of the disk that was restored on the same boot, in place, looks like the file itself. Who
    // wrote weak commits and was killed has left a lock file that knows of them.
    // The kernel forgets what it knows of a device with its last user, failed writes too.
    let doubt = shared.is_stranger() || replaced || data.is_fixed();
    let rule = TrustRule { data, metas: &metas, len, boot_id, doubt, checks };
    let chosen = metas.iter().find(|(_, m)| flushed(m) && rule.is_trusted(m));
    let (slot, meta) = chosen.ok_or_else(|| none_is_whole(&metas, len, unflushed))?;
    if meta.txn == 1 {
        flush_directory(data, options)?;
    }
    // Below a steady commit no other one is needed, so none is looked at.
    let enough = meta.trust != Trust::Weak && meta.txn <= steady_max;
    let is_steady = |m: &Meta| match enough {
        true => m.txn == meta.txn,
        false => m.txn <= steady_max && rule.is_steady(m),
    };
    let before = Before {
        words: metas::words(shared),
        are_known: shared.knows_steady() && !replaced,
        has_failed: unflushed.is_some() || failed,
    };
    let besides = Besides::find(data, meta, &before);
    if before.has_failed && !before.are_known && !options.read_only {
        besides.write_again(data, shared)?;
    }
    fill_lock_file(shared, &metas, (*slot, meta), is_steady, &besides);
    if !new && (doubt || boot_id == [0; 16] || records_may_miss(data, meta)) {
        note_attempt(shared, meta);
    }
    shared.publish(&Root::of(meta).to_words(meta.page_shift));
    // Whoever only reads leaves the warning and what it is about to the first writer.
    let rejected = metas::unpublished(shared).is_some();
    let doubtful = |m: &Meta| m.txn > meta.txn && is_weak_of(m, boot_id);
    if unflushed.is_none() && !(doubt && metas.iter().any(|(_, m)| doubtful(m))) {
        shared.forget_poison();
    } else if !(rejected && options.read_only) {
        settle_poison(data, shared, meta.page_shift)?;
    }
    Ok(meta.page_shift)
}

/// Nobody knows of the attempts at the next commit. What the lock file says of them on this boot stays.
fn note_attempt(shared: &Shared, meta: &Meta) {
    if !has(Bug::AttemptsForgotten) {
        shared.word(Word::Attempt).store(meta.txn + 1, Ordering::SeqCst);
    }
}

/// The store was created just now, or by a process that was killed before it had come to this.
fn flush_directory(data: &dyn DataFile, options: &Options) -> Result<()> {
    match data.sync_directory() {
        Err(_) if options.read_only => Ok(()),
        synced => synced.map_err(Error::io_at("flush the directory of", data.path())),
    }
}

/// What the lock file is to what is in the data file now.
struct Standing {
    /// It knows another content: something was written over the bytes of the file.
    replaced: bool,
    /// Nobody has changed the file since the last user ended.
    untouched: bool,
}

/// Whether this is a weak commit that was found whole in a copy of its file, where records before it may not be. The next
/// one is flushed then, and does not lean on them.
fn records_may_miss(data: &dyn DataFile, meta: &Meta) -> bool {
    let has_unflushed = meta.redo.is_some_and(|log| log.has_unflushed);
    let is_copied = meta.trust == Trust::Weak && !is_at_home(data, meta);
    has_unflushed && is_copied && !has(Bug::RecordOfCopyTrusted)
}

/// Compares what the users before have left in the lock file with the data file, as the first user. From then on
/// the lock file says nothing of the file's stamp, until the end.
fn standing(data: &dyn DataFile, shared: &Shared, metas: &[(usize, Meta)]) -> Standing {
    let left = shared.word(Word::Stamp).load(Ordering::SeqCst);
    let untouched = left != 0 && data.stamp() == Some(left);
    // Without a stamp the users before were killed: then the metas have to do.
    let changed = left != 0 && !untouched;
    let replaced =
        shared.knows_steady() && (changed || !metas::newest_is_in_its_slot(shared, metas));
    if replaced {
        // In this order: killed in between, what is known is not used.
        shared.distrust();
        metas::forget_all(shared);
    }
    shared.word(Word::Stamp).store(0, Ordering::SeqCst);
    Standing { replaced, untouched }
}

/// Why there is no commit to trust.
fn none_is_whole(metas: &[(usize, Meta)], len: u64, unflushed: Option<u64>) -> Error {
    match unflushed {
        // Pages are missing that a commit has, and no commit is left that can do without them.
        None if metas.iter().any(|(_, m)| m.end << m.page_shift > len) => Error::Corrupted {
            page: PageNo(len >> metas.first().map_or(0, |(_, m)| m.page_shift)),
            reason: "the file is truncated: it ends before this page",
        },
        None => damaged("no commit is whole"),
        Some(_) => damaged(
            "after a failed flush no commit is known to be on disk before a restart of the system; \
                 if the file was put there anew since, delete its lock file",
        ),
    }
}

/// What the last users wrote may still be in the kernel only. From here on it is taken for durable
/// (its predecessor's pages are reused), so it must be.
fn flush_leftovers(data: &dyn DataFile, shared: &Shared, options: &Options) -> Result<()> {
    let Err(error) = data.sync_data() else { return Ok(()) };
    // Also if the last users ran before a restart: others may have written the file since, by a restore of it.
    // A region that nobody else sees ends with this user.
    if shared.is_shared() {
        shared.word(Word::Poisoned).store(1, Ordering::SeqCst);
    }
    // Whoever only reads may do so; nobody writes until all have closed the store.
    if options.read_only { Ok(()) } else { Err(Error::io_at("flush", data.path())(error)) }
}

/// Wipes commits that were not trusted because a flush had failed, or because the lock file knew
/// nothing of them: the next opener would know nothing of that, and could trust them.
fn settle_poison(data: &dyn DataFile, shared: &Shared, shift: u32) -> Result<()> {
    let wiped = metas::wipe_unpublished(data, shared, shift)?;
    if !wiped.is_empty() {
        data.sync_data().map_err(Error::io_at("flush", data.path()))?;
        metas::forget(shared, &wiped);
    }
    shared.forget_poison();
    Ok(())
}

/// Chooses among metas that others have written to a store without a lock file, as at open.
pub(super) fn trust_newest(env: &EnvInner, metas: &[(usize, Meta)], len: u64) -> Result<()> {
    let (data, boot_id, checks) = (env.data.as_ref(), env.boot_id, env.checks);
    let rule = TrustRule { data, metas, len, boot_id, doubt: false, checks };
    let newer = metas.iter().filter(|(_, m)| m.txn > env.shared.newest());
    let mut newer = newer.filter(|(_, m)| m.page_shift == env.shift);
    if let Some((slot, meta)) = newer.find(|(_, m)| rule.is_trusted(m)) {
        let besides = Besides::NOTHING;
        fill_lock_file(&env.shared, metas, (*slot, meta), |m| rule.is_steady(m), &besides);
        env.shared.adopt(&Root::of(meta).to_words(env.shift));
        env.shared.word(Word::Attempt).store(meta.txn + 1, Ordering::SeqCst);
    }
    Ok(())
}

/// What decides whether a commit that an open finds can be trusted.
pub(super) struct TrustRule<'d> {
    pub(super) data: &'d dyn DataFile,
    pub(super) metas: &'d [(usize, Meta)],
    /// Bytes of the file.
    pub(super) len: u64,
    /// Of this run of the system.
    pub(super) boot_id: [u8; 16],
    /// Also a weak commit in its own file is trusted only if it is whole.
    pub(super) doubt: bool,
    pub(super) checks: &'static Checks,
}

impl TrustRule<'_> {
    /// Whether a commit can be trusted after whatever stopped its writer. Its end may lie outside of
    /// the file also when nothing is wrong: later commits cut the tail.
    pub(super) fn is_trusted(&self, meta: &Meta) -> bool {
        if !self.is_within(meta) {
            return false;
        }
        match meta.trust {
            Trust::Steady => true,
            Trust::Weak => {
                let here = is_weak_of(meta, self.boot_id);
                let known = here && !self.doubt && is_at_home(self.data, meta);
                let known = known || here && has(Bug::CopyTrusted) || has(Bug::BootNotCompared);
                if here || known {
                    return known || self.is_whole(meta, u64::MAX);
                }
                // The power may have been cut.
                is_of_unknown_boot(meta, self.boot_id) && self.is_whole(meta, self.on_disk())
            }
            Trust::Verified => self.is_verified(meta),
        }
    }

    /// Whether a commit that an open finds is on disk with all its pages, once the open has flushed.
    pub(super) fn is_steady(&self, meta: &Meta) -> bool {
        match meta.trust {
            Trust::Weak => false,
            Trust::Steady => true,
            Trust::Verified => self.is_within(meta) && self.is_verified(meta),
        }
    }

    /// The newest commit that is on disk whatever has happened.
    pub(super) fn on_disk(&self) -> u64 {
        let steady = self.metas.iter().filter(|(_, m)| self.is_steady(m));
        steady.map(|(_, m)| m.txn).max().unwrap_or(0)
    }

    pub(super) fn is_within(&self, meta: &Meta) -> bool {
        meta.end << meta.page_shift <= self.len.min(self.data.reserved())
    }

    fn is_verified(&self, meta: &Meta) -> bool {
        has(Bug::DigestNotVerified) || digest_holds(self.data, meta).unwrap_or(false)
    }

    /// Whether all that a commit can reach is there.
    pub(super) fn is_whole(&self, meta: &Meta, on_disk: u64) -> bool {
        let decrypting = Verifier::never(self.data);
        // SAFETY: `is_within` held; nobody else has the store open.
        let snapshot = unsafe {
            let (base, shift) = (self.data.base(), meta.page_shift);
            Snapshot::new(base, shift, meta.end, meta.txn, decrypting.as_ref())
        };
        let pages = plausible_pages(self.data, meta.page_shift);
        (self.checks.is_whole)(snapshot, meta, pages, on_disk)
    }
}

/// A weak commit of this boot, which is known.
pub(super) fn is_weak_of(meta: &Meta, boot_id: [u8; 16]) -> bool {
    meta.trust == Trust::Weak && meta.boot_id == boot_id && boot_id != [0; 16]
}

/// Whether nobody knows if the system was restarted since a weak commit: the number of its run was,
/// or is, hidden.
fn is_of_unknown_boot(meta: &Meta, boot_id: [u8; 16]) -> bool {
    meta.boot_id == [0; 16] || boot_id == [0; 16]
}

/// Whether a weak commit is in the file that it was written to.
fn is_at_home(data: &dyn DataFile, meta: &Meta) -> bool {
    meta.digest == data.home()
}

/// Pages that the free-space log of a plausible store speaks of. More than it may have now: it may have
/// shrunk, and be opened with less address space.
pub(super) fn plausible_pages(data: &dyn DataFile, shift: u32) -> u64 {
    data.reserved().max(DEFAULT_RESERVE) >> shift
}

/// Compares the digest of a commit with the pages it wrote.
fn digest_holds(data: &dyn DataFile, meta: &Meta) -> Option<bool> {
    let decrypting = Verifier::never(data);
    // SAFETY: the caller checked `end` against file and map; nobody else has the store open.
    let snapshot = unsafe {
        let (base, shift) = (data.base(), meta.page_shift);
        Snapshot::new(base, shift, meta.end, meta.txn, decrypting.as_ref())
    };
    // Segments of the log are verified on the way.
    let delta = log::newest_delta(&snapshot, &meta.log_of()).ok()?;
    let mut hasher = XxHash3_64::new();
    for extent in &delta.allocated {
        let len = extent.count.checked_shl(meta.page_shift)?;
        hasher.write(snapshot.bytes(extent.first, len, None)?);
    }
    Some(digest_of(data, hasher.finish()) == meta.digest)
}

/// The digest of a commit whose pages have this checksum. It is in a meta, which everybody can read.
pub(crate) fn digest_of(data: &dyn DataFile, checksum: u64) -> u64 {
    data.decryption().map_or(checksum, |decryption| decryption.blinded(checksum))
}

/// Says which slot holds what.
pub(super) fn fill_lock_file(
    shared: &Shared,
    metas: &[(usize, Meta)],
    (slot, chosen): (usize, &Meta),
    is_steady: impl Fn(&Meta) -> bool,
    besides: &Besides,
) {
    let mut words = besides.words;
    for (i, meta) in metas {
        words[*i] = match meta.txn.cmp(&chosen.txn) {
            // The chosen one is enough of its commit: what a checkpoint left, or damage, can go.
            Equal if *i != slot => 0,
            // Commits that were not trusted are wiped before the next one.
            Greater => metas::weak_word(meta.txn),
            _ if is_steady(meta) => metas::steady_word(meta.txn),
            _ => metas::weak_word(meta.txn),
        };
    }
    besides.note(shared);
    for (i, meta) in metas {
        metas::set_seal(shared, *i, meta.seal());
    }
    for (i, word) in words.into_iter().enumerate() {
        metas::set_word(shared, i, word);
    }
}

/// The first image of a store: one meta, on disk before anything else. The caller sees to the
/// directory entry.
fn create(
    data: &dyn DataFile,
    shared: &Shared,
    boot_id: [u8; 16],
    options: &Options,
) -> Result<Meta> {
    let shift = options.page_size.trailing_zeros();
    let meta = Meta {
        page_shift: shift,
        trust: Trust::Steady,
        uuid: new_uuid(),
        boot_id,
        txn: 1,
        end: META_COUNT,
        geometry: options.geometry.unwrap_or_default().into(),
        main: TreeDesc::empty(0, TreeOptions { order: 0, align: 1, flags: 0 }),
        user_words: [0; 4],
        digest: 0,
        next_table: 1,
        opening: new_opening(),
        log: LogRoot::default(),
        redo: None,
        prepared: None,
        authenticator: None,
    };
    let meta = metas::authenticated(data, &meta);
    let first = (META_COUNT << shift).next_multiple_of(64 << 10);
    if first > data.reserved().min(meta.geometry.upper) {
        return Err(Error::Invalid(
            "the upper bound leaves no room for an empty store: Geometry::upper",
        ));
    }
    let io = |op| Error::io_at(op, data.path());
    let flush = || {
        data.sync_data().map_err(|error| {
            (0..META_COUNT as usize).for_each(|i| metas::set_slot(shared, i, 0, SlotState::Weak));
            shared.word(Word::Poisoned).store(1, Ordering::SeqCst);
            io("flush")(error)
        })
    };
    data.grow(first, true).map_err(io("grow"))?;
    flush()?;
    metas::write(data, shared, 0, &meta)?;
    flush()?;
    Ok(meta)
}

/// A random identity, from the standard library's random hash keys.
fn new_uuid() -> [u8; 16] {
    let mut uuid = [0; 16];
    for (i, half) in uuid.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *half = by_chance(i).to_le_bytes();
    }
    uuid
}

/// A number by chance, not 0, for what is written from here on by this open.
pub(crate) fn new_opening() -> u32 {
    (by_chance(0) as u32).max(1)
}

/// A number by chance, one for each `salt`.
pub(super) fn by_chance(salt: usize) -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_usize(salt);
    hasher.write_u32(std::process::id());
    hasher.finish()
}
