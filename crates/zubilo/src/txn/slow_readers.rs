//! What a writer does about readers that hold pages back: it asks the program when there is no room, and
//! expires parked readers beyond the bounds that the program has set.

use crate::env::info::ReaderInfo;
use crate::env::log::Level;
use crate::env::slow::{SlowReader, SlowReaderAction};
use crate::env::{EnvInner, checkpoint};
use crate::error::{Error, Result};
use crate::space::Space;

use super::space_writer::SpaceWriter;

/// What the program was asked so far for one piece of room.
#[derive(Default)]
struct Asked {
    tries: u32,
    /// What was committed was made durable.
    flushed: bool,
    /// Readers that were to be expired and are at work: slot and snapshot.
    at_work: Vec<(u32, u64)>,
}

impl SpaceWriter {
    /// Takes pages; where there are none, has the program see to slow readers until there are.
    pub(super) fn with_room<T>(
        &mut self,
        mut take: impl FnMut(&mut SpaceWriter) -> Result<T>,
    ) -> Result<T> {
        let mut asked = Asked::default();
        loop {
            match take(self) {
                Err(full @ Error::MapFull { .. }) if self.env.options.slow_reader.is_some() => {
                    if !self.make_room(&mut asked)? {
                        return Err(full);
                    }
                }
                taken => return taken,
            }
        }
    }

    /// Whether it is worth to look for room again.
    #[cold]
    fn make_room(&mut self, asked: &mut Asked) -> Result<bool> {
        let env = std::sync::Arc::clone(&self.env);
        if !asked.flushed && env.steady() < env.shared.newest() {
            // The last commit that is on the disk for certain keeps its pages, as a reader does.
            checkpoint::checkpoint(&env)?;
            asked.flushed = true;
            self.look_for_pins()?;
            return Ok(true);
        }
        let Some(function) = &env.options.slow_reader else { return Ok(false) };
        let held = self.state()?.space.retired_pages();
        env.shared.clean_dead();
        self.look_for_pins()?;
        if self.state()?.space.retired_pages() < held {
            // A reader has ended since there was no room.
            return Ok(true);
        }
        let Some(mut slow) = self.slowest(&env, asked)? else { return Ok(false) };
        slow.tries = asked.tries;
        asked.tries += 1;
        match function.ask(&slow) {
            SlowReaderAction::Retry => {}
            SlowReaderAction::Expire => {
                if !env.expire_reader(&slow.reader)? {
                    asked.at_work.push((slow.reader.slot, slow.reader.txn.0));
                }
            }
            SlowReaderAction::GiveUp => return Ok(false),
        }
        env.shared.clean_dead();
        self.look_for_pins()?;
        Ok(true)
    }

    /// The reader that holds back most.
    fn slowest(&self, env: &EnvInner, asked: &Asked) -> Result<Option<SlowReader>> {
        let space = &self.state()?.space;
        let readers = holders(env, space);
        let mut open = readers
            .into_iter()
            .filter(|(reader, _)| !asked.at_work.contains(&(reader.slot, reader.txn.0)));
        Ok(open.next().map(|(reader, held_bytes)| SlowReader { reader, held_bytes, tries: 0 }))
    }
}

/// The readers that hold pages back, and how many bytes, that with the most first, then the oldest.
fn holders(env: &EnvInner, space: &Space) -> Vec<(ReaderInfo, u64)> {
    let readers = env.readers().into_iter().filter(|reader| reader.lag > 0);
    let with_held = readers.map(|reader| {
        let held = space.held_by(reader.txn.0) << env.shift;
        (reader, held)
    });
    let mut holders: Vec<_> = with_held.filter(|(_, held)| *held > 0).collect();
    holders.sort_by_key(|(reader, held)| (std::cmp::Reverse(*held), reader.txn));
    holders
}

/// Expires the parked readers that are beyond the bounds of [`Options`](crate::Options); gives their number.
pub(super) fn expire_beyond_bounds(env: &EnvInner, space: &Space) -> u32 {
    let mut expired = 0;
    if let Some(bound) = env.options.expire_behind {
        expired = env.shared.expire_behind(bound);
        if expired > 0 {
            let what = format_args!("{expired} parked readers expired, behind for {bound:?}");
            env.log(Level::Warn, what);
        }
    }
    match env.options.expire_held {
        // What has just been expired is still counted as held back.
        Some(bound) if expired == 0 => expire_holders(env, space, bound),
        _ => expired,
    }
}

/// Expires parked readers while more than so many bytes are held back.
fn expire_holders(env: &EnvInner, space: &Space, bound: u64) -> u32 {
    let mut held = space.retired_pages() << env.shift;
    if held <= bound {
        return 0;
    }
    let holders = holders(env, space);
    // A snapshot that somebody else reads stays pinned.
    let is_busy = |txn| holders.iter().any(|(other, _)| other.txn == txn && !other.is_parked);
    let (mut expired, mut freed_of) = (0, None);
    for (reader, bytes) in holders.iter().filter(|(reader, _)| !is_busy(reader.txn)) {
        // All readers of one snapshot go together: it is pinned until the last one has ended.
        if held <= bound && freed_of != Some(reader.txn) {
            break;
        }
        if env.expire_reader(reader).unwrap_or(false) {
            expired += 1;
            if freed_of.replace(reader.txn) != Some(reader.txn) {
                held = held.saturating_sub(*bytes);
            }
        }
    }
    expired
}
