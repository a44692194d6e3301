//! The simulated file. What the store writes is seen by its map at once, as in the kernel's cache;
//! every call goes into a log, from which [`crate::image`] makes the states a disk could be in.
//!
//! A call can be made to fail, to kill its process (it unwinds with [`Killed`], which leaves what is
//! shared as a killed process leaves it), or to run a hook first: that is how other threads and
//! processes come in between at exactly one place.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, IoSlice};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use zubilo::platform::{Advice, DataFile, FileId};

use crate::mistake::Mistake;

/// Address space of a simulated file.
const RESERVE: usize = 256 << 20;
/// Pieces in which writes through the map are looked for.
const PIECE: usize = 4096;

/// One entry of the log.
#[derive(Clone, Debug)]
pub enum Event {
    /// Bytes written, by call or through the map.
    Write {
        /// Where.
        at: u64,
        /// What.
        data: Box<[u8]>,
    },
    /// The file became longer.
    Grow(u64),
    /// The file became shorter.
    Truncate(u64),
    /// A flush succeeded: all before the event of this index is on disk.
    Sync {
        /// Events there were when it was called.
        upto: usize,
    },
    /// A write that is durable by itself, or a flush of a range, succeeded: the bytes of this range are on disk, as far
    /// as they were written before the event of this index.
    SyncRange {
        /// Where.
        at: u64,
        /// How many bytes.
        len: u64,
        /// Events there were after the write, or when the flush was called.
        upto: usize,
    },
    /// A flush failed: what was not on disk may never get there.
    SyncFailed,
    /// The directory entry is on disk.
    SyncDirectory,
    /// What the workload says about the next state.
    Mark(Mark),
}

/// What the judge must know about a moment.
#[derive(Clone, Debug)]
pub enum Mark {
    /// This transaction is about to commit this state.
    Attempt(u64, Arc<crate::model::State>),
    /// It was acknowledged.
    Ack(u64),
    /// It was acknowledged as durable.
    Durable(u64),
    /// After a power cut this is the newest: newer ones must never come back.
    Cut(u64),
}

/// The calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Any of the following.
    Any,
    /// `write_at`.
    Write,
    /// `grow`.
    Grow,
    /// `truncate`.
    Truncate,
    /// `sync_data`.
    Sync,
    /// `sync_directory`.
    SyncDirectory,
}

/// What happens instead of, or after, a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It fails with this error number and does nothing.
    Fail(i32),
    /// A write does its first half and fails.
    Short(i32),
    /// It does all it should and fails all the same.
    Late(i32),
    /// The process is killed before the call.
    KillBefore,
    /// The process is killed after the call.
    KillAfter,
}

/// Thrown by a call that kills its process.
pub struct Killed;

type Hook = Box<dyn FnMut(Call) + Send>;

struct Planned {
    call: Call,
    /// Calls of this kind still to come before it.
    after: u64,
    effect: Effect,
    /// Fails all following calls too.
    stays: bool,
}

struct State {
    len: u64,
    events: Vec<Arc<Event>>,
    /// What the log knows of the content, when there is a writable map.
    shadow: Option<Vec<u8>>,
    planned: Vec<Planned>,
    hook: Option<Hook>,
    /// Calls so far.
    calls: Vec<Call>,
    /// A flush has failed; all later ones do.
    flush_failed: bool,
    /// What is planted.
    mistake: Option<Mistake>,
}

struct Inner {
    base: NonNull<u8>,
    writable: bool,
    /// Which file this is; copies are others.
    home: AtomicU64,
    state: Mutex<State>,
}

// SAFETY: the memory belongs to the value; what threads may do with it is the store's business, as
// with the real map.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; no handle is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), RESERVE) };
    }
}

/// A handle on a simulated file. The store gets one; clones look at the same file.
#[derive(Clone)]
pub struct SimDisk(Arc<Inner>);

impl SimDisk {
    /// A file that holds `content`.
    pub fn new(content: &[u8], writable: bool) -> SimDisk {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for fresh memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), RESERVE, access, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED, "no address space for a simulated file");
        let base = NonNull::new(base.cast::<u8>()).expect("a map is never at zero");
        assert!(content.len() <= RESERVE, "the content is longer than the simulated file can be");
        // SAFETY: fresh memory of at least this length.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), base.as_ptr(), content.len()) };
        let state = Mutex::new(State {
            len: content.len() as u64,
            events: Vec::new(),
            shadow: writable.then(|| content.to_vec()),
            planned: Vec::new(),
            hook: None,
            calls: Vec::new(),
            flush_failed: false,
            mistake: None,
        });
        SimDisk(Arc::new(Inner { base, writable, home: AtomicU64::new(1), state }))
    }

    /// Makes it the file that this number names: a copy of another is another.
    pub fn settle(&self, home: u64) {
        self.0.home.store(home, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Starts the log with what a session before left in the cache of the same running system.
    pub fn inherit(&self, pending: &[Arc<Event>]) {
        self.state().events.extend_from_slice(pending);
    }

    /// Adds a mark to the log.
    pub fn mark(&self, mark: Mark) {
        let mut state = self.state();
        self.notice_map_writes(&mut state);
        state.events.push(Arc::new(Event::Mark(mark)));
    }

    /// The log so far.
    pub fn events(&self) -> Vec<Arc<Event>> {
        let mut state = self.state();
        self.notice_map_writes(&mut state);
        state.events.clone()
    }

    /// Calls of a kind so far.
    pub fn calls(&self, call: Call) -> u64 {
        self.state().calls.iter().filter(|c| call == Call::Any || **c == call).count() as u64
    }

    /// Plans an effect for the call of kind `call` that comes after `after` others; with `stays`
    /// for all later ones too.
    pub fn plan(&self, call: Call, after: u64, effect: Effect, stays: bool) {
        self.state().planned.push(Planned { call, after, effect, stays });
    }

    /// All who had the file open have closed it: who opens it now hears nothing of a flush that failed.
    pub fn closed(&self) {
        self.state().flush_failed = false;
    }

    /// Forgets all plans; true if none was left, that is if all had their effect.
    pub fn unplan(&self) -> bool {
        let mut state = self.state();
        let left = state.planned.iter().filter(|p| !p.stays || p.after > 0).count();
        state.planned.clear();
        left == 0
    }

    /// Runs `hook` before each call, outside of the disk's own lock. It is not called for calls that
    /// it causes itself.
    pub fn set_hook(&self, hook: Option<Hook>) {
        let before = std::mem::replace(&mut self.state().hook, hook);
        drop(before); // It may close a store, which uses the disk.
    }

    /// The medium decays: a bit of the file flips.
    pub fn flip(&self, at: u64, bit: u32) {
        let state = self.state();
        assert!(at < state.len, "no byte {at}");
        // SAFETY: inside the map; nothing else uses the store meanwhile.
        unsafe { *self.0.base.as_ptr().add(at as usize) ^= 1 << (bit % 8) };
    }

    /// Has all who use the file make a mistake.
    pub fn plant(&self, mistake: Option<Mistake>) {
        self.state().mistake = mistake;
    }

    fn run_hook(&self, call: Call) {
        let hook = self.state().hook.take();
        if let Some(mut hook) = hook {
            hook(call);
            let mut state = self.state();
            match state.hook {
                None => state.hook = Some(hook),
                // Dropped when nothing is locked: it may close a store.
                Some(_) => drop((state, hook)),
            }
        }
    }

    /// What was planned for this call.
    fn planned(&self, state: &mut State, call: Call) -> Option<Effect> {
        state.calls.push(call);
        let mut effect = None;
        state.planned.retain_mut(|p| {
            if effect.is_some() || p.call != Call::Any && p.call != call {
                return true;
            }
            if p.after > 0 {
                p.after -= 1;
                return true;
            }
            effect = Some(p.effect);
            p.stays
        });
        effect
    }

    /// Runs one call with its plan; `half` is what a short call does.
    fn call(
        &self,
        call: Call,
        work: impl FnOnce(&mut State) -> io::Result<()>,
        half: impl FnOnce(&mut State),
    ) -> io::Result<()> {
        self.run_hook(call);
        let mut state = self.state();
        self.notice_map_writes(&mut state);
        let failed = |code| Err(io::Error::from_raw_os_error(code));
        let result = match self.planned(&mut state, call) {
            None => work(&mut state),
            Some(Effect::Fail(code)) => failed(code),
            Some(Effect::Short(code)) => {
                half(&mut state);
                failed(code)
            }
            Some(Effect::Late(code)) => {
                work(&mut state)?;
                failed(code)
            }
            Some(Effect::KillBefore) => {
                drop(state);
                std::panic::resume_unwind(Box::new(Killed));
            }
            Some(Effect::KillAfter) => {
                let _ = work(&mut state);
                drop(state);
                std::panic::resume_unwind(Box::new(Killed));
            }
        };
        if call == Call::Sync && result.is_err() {
            state.flush_failed = true;
            state.events.push(Arc::new(Event::SyncFailed));
        }
        result
    }

    fn put(&self, state: &mut State, at: u64, data: &[u8]) {
        let end = at + data.len() as u64;
        assert!(end <= state.len, "a write to {at}..{end} beyond the end at {}", state.len);
        let place = self.0.base.as_ptr().wrapping_add(at as usize);
        // SAFETY: inside the map, as the length is; the store must not have readers there.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place, data.len()) };
        if let Some(shadow) = &mut state.shadow {
            shadow[at as usize..end as usize].copy_from_slice(data);
        }
        state.events.push(Arc::new(Event::Write { at, data: data.into() }));
    }

    /// Logs what was written through the map since the last call: it could have been written back
    /// at any moment since then.
    fn notice_map_writes(&self, state: &mut State) {
        let State { shadow: Some(shadow), events, len, .. } = state else { return };
        // SAFETY: inside the map; only the writer's thread writes, and it is in this call.
        let now = unsafe { std::slice::from_raw_parts(self.0.base.as_ptr(), *len as usize) };
        for (i, (old, new)) in shadow.chunks_mut(PIECE).zip(now.chunks(PIECE)).enumerate() {
            if old != new {
                old.copy_from_slice(new);
                let at = (i * PIECE) as u64;
                events.push(Arc::new(Event::Write { at, data: new.into() }));
            }
        }
    }

    fn set_len(&self, state: &mut State, len: u64) {
        let (from, to) = (len.min(state.len) as usize, state.len as usize);
        // SAFETY: inside the map. What is cut off is no longer looked at: garbage there shows if it
        // is after all.
        unsafe { std::ptr::write_bytes(self.0.base.as_ptr().add(from), 0xdb, to - from) };
        if len > state.len {
            let (from, count) = (state.len as usize, (len - state.len) as usize);
            // SAFETY: inside the map, as `grow` checks.
            unsafe { std::ptr::write_bytes(self.0.base.as_ptr().add(from), 0, count) };
        }
        if let Some(shadow) = &mut state.shadow {
            shadow.resize(len as usize, 0);
        }
        state.len = len;
    }
}

fn joined(bufs: &[IoSlice<'_>]) -> Vec<u8> {
    bufs.iter().flat_map(|buf| buf.iter().copied()).collect()
}

// SAFETY: the map is reserved once, as long as asked, and only the engine writes to it.
unsafe impl DataFile for SimDisk {
    fn base(&self) -> *const u8 {
        self.0.base.as_ptr()
    }

    fn reserved(&self) -> u64 {
        RESERVE as u64
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn write_at(&self, at: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        let data = joined(bufs);
        let half = &data[..data.len() / 2];
        self.call(
            Call::Write,
            |state| {
                self.put(state, at, &data);
                Ok(())
            },
            |state| self.put(state, at, half),
        )
    }

    fn grow(&self, new_len: u64, _zeroed_written: bool) -> io::Result<()> {
        let work = |state: &mut State| {
            if new_len > RESERVE as u64 {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
            if new_len > state.len {
                self.set_len(state, new_len);
                state.events.push(Arc::new(Event::Grow(new_len)));
            }
            Ok(())
        };
        self.call(Call::Grow, work, |_| ())
    }

    fn truncate(&self, new_len: u64) -> io::Result<()> {
        let work = |state: &mut State| {
            let too_far = state.mistake == Some(Mistake::CutTooFar);
            let new_len = if too_far { new_len / 2 } else { new_len };
            if new_len < state.len {
                self.set_len(state, new_len);
                state.events.push(Arc::new(Event::Truncate(new_len)));
            }
            Ok(())
        };
        self.call(Call::Truncate, work, |_| ())
    }

    fn sync_data(&self) -> io::Result<()> {
        let upto = {
            let mut state = self.state();
            self.notice_map_writes(&mut state);
            state.events.len()
        };
        let work = |state: &mut State| {
            if state.flush_failed {
                // What the trait demands: nothing shows what was lost.
                return Err(io::Error::other("an earlier flush has failed"));
            }
            if !state.mistake.is_some_and(|m| m.skips_flush(&state.events, &state.calls)) {
                state.events.push(Arc::new(Event::Sync { upto }));
            }
            Ok(())
        };
        let result = self.call(Call::Sync, work, |_| ());
        if self.state().mistake == Some(Mistake::FailedFlushIgnored) { Ok(()) } else { result }
    }

    fn write_durably(&self, at: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        let data = joined(bufs);
        let half = &data[..data.len() / 2];
        let work = |state: &mut State| {
            if state.flush_failed {
                return Err(io::Error::other("an earlier flush has failed"));
            }
            self.put(state, at, &data);
            if state.mistake != Some(Mistake::NotFlushed) {
                let (len, upto) = (data.len() as u64, state.events.len());
                state.events.push(Arc::new(Event::SyncRange { at, len, upto }));
            }
            Ok(())
        };
        self.call(Call::Sync, work, |state| self.put(state, at, half))
    }

    fn sync_range(&self, at: u64, len: u64) -> io::Result<()> {
        let upto = {
            let mut state = self.state();
            self.notice_map_writes(&mut state);
            state.events.len()
        };
        let work = |state: &mut State| {
            if state.flush_failed {
                return Err(io::Error::other("an earlier flush has failed"));
            }
            if state.mistake != Some(Mistake::NotFlushed) {
                state.events.push(Arc::new(Event::SyncRange { at, len, upto }));
            }
            Ok(())
        };
        self.call(Call::Sync, work, |_| ())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let work = |state: &mut State| {
            if state.mistake != Some(Mistake::DirectoryNotFlushed) {
                state.events.push(Arc::new(Event::SyncDirectory));
            }
            Ok(())
        };
        self.call(Call::SyncDirectory, work, |_| ())
    }

    fn writable(&self) -> Option<*mut u8> {
        // The stores up to now come before those that the caller is about to make.
        self.notice_map_writes(&mut self.state());
        self.0.writable.then_some(self.0.base.as_ptr())
    }

    fn advise(&self, _offset: u64, _len: u64, _advice: Advice) -> io::Result<()> {
        Ok(())
    }

    fn id(&self) -> FileId {
        FileId { device: 0, inode: self.0.base.as_ptr() as u64 }
    }

    fn home(&self) -> u64 {
        self.0.home.load(Ordering::Relaxed)
    }

    /// Of the content: a disk that goes on where another stopped is the same file.
    fn stamp(&self) -> Option<u64> {
        let state = self.state();
        // SAFETY: inside the map, as the length is; the store writes nothing meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.base.as_ptr(), state.len as usize) };
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Some(hasher.finish().max(1))
    }

    fn path(&self) -> &Path {
        Path::new("simulated")
    }
}
