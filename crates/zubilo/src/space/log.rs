//! The free-space log: what lies on disk of the space map, from encoding to loading.
//!
//! The log is a row of bytes: a *base* (the whole map as of some commit), then a *delta* for each
//! commit since. Its end, the newest deltas, lies in the meta page ([`LogRoot`]), so that a small commit
//! spends no page on it; the rest lies in *segments*, runs of pages of which each names the one before.
//! A segment may end anywhere, so a base takes whatever free pages there are, in as many segments as
//! it takes. The oldest segment begins with the base; a store that has no segment yet began empty.
//!
//! Nothing in the log refers to itself: no delta names the segments' own pages. Whoever loads the log
//! adds them as used, and a new base releases the old segments in the delta of its commit.
//!
//! This module knows no file. A [`SegmentReader`] and a [`SegmentWriter`] bring the pages.

use twox_hash::XxHash3_64;

use super::codec::{self, Reader};
use super::{Delta, Extent, Malformed, Retired, Space};
use crate::error::{Error, Result};
use crate::num::{PageNo, load_u64};

/// Bytes of the log that fit a meta page.
pub(crate) const TAIL_MAX: usize = 3216;
/// A segment starts with the reference to the one before, the bytes of all segments before, and the
/// length of its own part of the log. Zeros fill its last page.
const HEAD: usize = 48;
/// Deltas in less than this are never worth a new base.
const DELTAS_MIN: u64 = 64 << 10;
/// What a delta may become longer by until its commit's end is known.
const END_GROWTH: usize = 10;

/// A run of pages that holds a part of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// First page; 0 is none.
    pub(crate) first: u64,
    /// Bytes: whole pages.
    pub(crate) len: u64,
    /// XXH3-64 of all of them.
    pub(crate) checksum: u64,
    /// Transaction that wrote it.
    pub(crate) txn: u64,
}

impl Segment {
    pub(crate) fn is_some(&self) -> bool {
        self.first != 0
    }

    pub(crate) fn pages(&self, shift: u32) -> u64 {
        self.len.div_ceil(1 << shift)
    }

    fn extent(&self, shift: u32) -> Extent {
        Extent { first: self.first, count: self.pages(shift) }
    }

    fn damaged(&self, reason: &'static str) -> Error {
        Error::Corrupted { page: PageNo(self.first), reason }
    }
}

/// The end of the log, as a meta page holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogRoot {
    pub(crate) newest: Segment,
    /// Length of the newest delta, the last bytes of the log.
    pub(crate) newest_delta: u32,
    /// Encoded deltas since the newest segment, at most [`TAIL_MAX`] bytes.
    pub(crate) tail: Vec<u8>,
}

impl LogRoot {
    /// The log of a store whose first commit is `delta`.
    pub(crate) fn of_one(delta: &Delta) -> LogRoot {
        let mut root = LogRoot::default();
        root.push(delta);
        root
    }

    fn push(&mut self, delta: &Delta) {
        let before = self.tail.len();
        delta.encode(&mut self.tail);
        self.newest_delta = (self.tail.len() - before) as u32;
    }
}

/// The log as a commit left it.
#[derive(Clone, Copy)]
pub(crate) struct LogOf<'m> {
    pub(crate) root: &'m LogRoot,
    pub(crate) txn: u64,
    /// The first page never used.
    pub(crate) end: u64,
    pub(crate) page_shift: u32,
}

/// Where segments are read from.
pub(crate) trait SegmentReader<'p> {
    /// The `len` bytes from page `first` on; none if they lie outside the store.
    fn segment(&self, first: u64, len: u64) -> Option<&'p [u8]>;
}

/// Where segments go.
pub(crate) trait SegmentWriter {
    /// Takes pages and makes the file reach past them.
    fn place(&mut self, space: &mut Space, pages: u64) -> Result<Vec<Extent>>;

    /// Writes whole pages.
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()>;
}

/// What a log says.
pub(crate) struct Loaded {
    pub(crate) log: FreeSpaceLog,
    pub(crate) space: Space,
    /// Deltas since the base, oldest first.
    pub(crate) deltas: Vec<Delta>,
}

/// The segments of the log, for whoever goes on writing it.
pub(crate) struct FreeSpaceLog {
    page_shift: u32,
    /// Oldest first.
    segments: Vec<Segment>,
    /// What the next meta has room for, at most [`TAIL_MAX`].
    tail_max: usize,
}

/// Segments and what they hold, oldest first.
struct Part {
    /// The one before them; none if they are the beginning of the log.
    before: Segment,
    segments: Vec<Segment>,
    bytes: Vec<u8>,
}

fn malformed(page: u64) -> impl Fn(Malformed) -> Error {
    move |m| match m {
        Malformed::NO_MEMORY => Error::no_memory("read the free-space log"),
        m => Error::Corrupted { page: PageNo(page), reason: m.0 },
    }
}

fn room<T>(items: usize) -> Result<Vec<T>> {
    codec::room(items).map_err(|_| no_room())
}

fn no_room() -> Error {
    Error::no_memory("read or write the free-space log")
}

/// The segment before this one, the bytes of all before, and this one's part of the log.
fn open<'p>(reader: &dyn SegmentReader<'p>, segment: &Segment) -> Result<(Segment, u64, &'p [u8])> {
    let damaged = |reason| segment.damaged(reason);
    let bytes = reader
        .segment(segment.first, segment.len)
        .ok_or_else(|| damaged("a segment of the free-space log leads outside the store"))?;
    if XxHash3_64::oneshot(bytes) != segment.checksum {
        return Err(damaged("the checksum of a segment of the free-space log is wrong"));
    }
    let word = |i: usize| load_u64(bytes, i * 8).unwrap_or_default();
    let before = Segment { first: word(0), len: word(1), checksum: word(2), txn: word(3) };
    let body = usize::try_from(word(5)).ok().and_then(|len| bytes.get(HEAD..)?.get(..len));
    let body = body.ok_or_else(|| damaged("a segment of the free-space log is cut off"))?;
    Ok((before, word(4), body))
}

/// The newest segments of the log, as far back as they are `wanted`.
fn collect<'p>(
    reader: &dyn SegmentReader<'p>,
    log: &LogOf<'_>,
    wanted: &dyn Fn(&Segment) -> bool,
) -> Result<Part> {
    let (mut segments, mut bodies) = (Vec::new(), Vec::new());
    let mut next = log.root.newest;
    // The bytes up to and with `next`: they fall from segment to segment, so the way back ends.
    let mut upto = None;
    while next.is_some() && wanted(&next) {
        let (before, at, body) = open(reader, &next)?;
        let end = at.checked_add(next.len).filter(|end| end >> log.page_shift <= log.end);
        if next.len == 0 || end.is_none() || upto.is_some_and(|upto| end != Some(upto)) {
            return Err(next.damaged("the segments of the free-space log do not follow each other"));
        }
        if before.is_some() != (at > 0) || before.txn > next.txn || next.txn > log.txn {
            return Err(next.damaged("the free-space log does not go back in time"));
        }
        upto = Some(at);
        segments.push(next);
        bodies.push(body);
        next = before;
    }
    segments.reverse();
    let mut bytes = room(bodies.iter().map(|body| body.len()).sum())?;
    bodies.iter().rev().for_each(|body| bytes.extend_from_slice(body));
    Ok(Part { before: next, segments, bytes })
}

/// Decodes deltas of rising transactions, up to that of the log's commit.
fn decode_deltas(
    mut bytes: &[u8],
    log: &LogOf<'_>,
    into: &mut Vec<Delta>,
) -> Result<(), Malformed> {
    while !bytes.is_empty() {
        let (delta, used) = Delta::decode(bytes)?;
        if into.last().is_some_and(|last| last.txn >= delta.txn) || delta.txn > log.txn {
            return Err(Malformed("the free-space log is not in order"));
        }
        bytes = bytes.get(used..).filter(|_| used > 0).unwrap_or_default();
        into.try_reserve(1).map_err(|_| Malformed::NO_MEMORY)?;
        into.push(delta);
    }
    Ok(())
}

/// Reads the log, and makes the space map of it: pages `0..start` are used in an empty store. No page
/// that the log speaks of lies beyond `pages_max`; that bounds the memory this takes.
pub(crate) fn load<'p>(
    reader: &dyn SegmentReader<'p>,
    log: &LogOf<'_>,
    start: u64,
    pins: &[u64],
    pages_max: u64,
) -> Result<Loaded> {
    let part = collect(reader, log, &|_| true)?;
    let first = part.segments.first().map_or(0, |segment| segment.first);
    let read = || {
        let mut bytes = part.bytes.as_slice();
        let (mut space, base) = match bytes {
            [] => (Space::new(start), 0),
            _ => {
                let mut reader = Reader::new(bytes);
                let txn = reader.number()?;
                let space = Space::decode(&mut reader, pins, pages_max)?;
                bytes = reader.rest();
                (space, txn)
            }
        };
        let mut deltas = Vec::new();
        decode_deltas(bytes, log, &mut deltas)?;
        decode_deltas(&log.root.tail, log, &mut deltas)?;
        // The commit that wrote the base is in it.
        deltas.retain(|delta| delta.txn > base);
        space.set_pins(pins);
        let used: Vec<Extent> = part.segments.iter().map(|s| s.extent(log.page_shift)).collect();
        space.follow(&deltas, &used, pages_max)?;
        match space.end() == log.end {
            true => Ok((space, deltas)),
            false => Err(Malformed("the free-space log does not lead to the commit's end")),
        }
    };
    let (space, deltas) = read().map_err(malformed(first))?;
    let log =
        FreeSpaceLog { page_shift: log.page_shift, segments: part.segments, tail_max: TAIL_MAX };
    Ok(Loaded { log, space, deltas })
}

/// The delta of the log's own commit. Reads, and so verifies, all segments that the commit wrote.
pub(crate) fn newest_delta<'p>(reader: &dyn SegmentReader<'p>, log: &LogOf<'_>) -> Result<Delta> {
    let part = collect(reader, log, &|segment| segment.txn == log.txn)?;
    let len = log.root.newest_delta as usize;
    // It lies in the tail or, where that is too small for it, at the end of the segments.
    let from = if log.root.tail.is_empty() { &part.bytes } else { &log.root.tail };
    let bytes = from.len().checked_sub(len).and_then(|at| from.get(at..));
    let delta = bytes.and_then(|bytes| Delta::decode(bytes).ok()).map(|(delta, _)| delta);
    let wrong = || malformed(0)(Malformed("the free-space log does not end with its commit"));
    delta.filter(|delta| delta.txn == log.txn).ok_or_else(wrong)
}

/// Most bytes of a base with the commit of this delta, if a tail has so many bytes at most.
fn base_len(delta: &Delta, space: &Space, tail_max: usize) -> usize {
    let bound = space.encoded_len_bound();
    let own = Some(delta.encoded_len() + END_GROWTH).filter(|len| *len > tail_max).unwrap_or(0);
    // Each segment may cut a free run in two.
    bound + bound / 128 + 64 + own
}

impl FreeSpaceLog {
    /// The pages of each segment, oldest first.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Pages of all segments.
    pub(crate) fn pages(&self) -> u64 {
        self.segments.iter().map(|segment| segment.pages(self.page_shift)).sum()
    }

    /// Keeps the next tail so many bytes shorter than it might be.
    pub(crate) fn leave_room(&mut self, bytes: usize) {
        self.tail_max = TAIL_MAX - bytes;
    }

    /// Where the last page of a segment ends.
    pub(crate) fn pages_end(&self) -> u64 {
        let ends = self.segments.iter().map(|segment| segment.extent(self.page_shift).end());
        ends.max().unwrap_or(0)
    }

    /// Brings this process's log and `space`, as of commit `known`, up to the log of a later commit of
    /// other processes. False if it must be loaded anew: a base was written since, or the log does not
    /// reach back that far. Then and after an error both are of no use.
    pub(crate) fn catch_up<'p>(
        &mut self,
        reader: &dyn SegmentReader<'p>,
        known: u64,
        log: &LogOf<'_>,
        space: &mut Space,
        pins: &[u64],
        pages_max: u64,
    ) -> Result<bool> {
        let last = self.segments.last().copied().unwrap_or_default();
        let part = collect(reader, log, &|segment| segment.txn > last.txn)?;
        if part.before != last || !last.is_some() && !part.segments.is_empty() {
            return Ok(false);
        }
        let mut deltas = Vec::new();
        let first = part.segments.first().map_or(0, |segment| segment.first);
        decode_deltas(&part.bytes, log, &mut deltas).map_err(malformed(first))?;
        decode_deltas(&log.root.tail, log, &mut deltas).map_err(malformed(0))?;
        deltas.retain(|delta| delta.txn > known);
        if !deltas.iter().map(|delta| delta.txn).eq(known + 1..=log.txn) {
            return Ok(false);
        }
        let used: Vec<Extent> = part.segments.iter().map(|s| s.extent(log.page_shift)).collect();
        space.set_pins(pins);
        self.segments.extend(part.segments);
        Ok(space.follow(&deltas, &used, pages_max).is_ok() && space.end() == log.end)
    }

    /// Adds what a commit did, `delta`, to the log that ends in `root`; its end is set here. Retires in
    /// `space` what it released. With `rebase`, or when the deltas have become longer than a base, writes
    /// a base. Gives the number of pages written.
    pub(crate) fn append(
        &mut self,
        root: &mut LogRoot,
        space: &mut Space,
        mut delta: Delta,
        rebase: bool,
        writer: &mut dyn SegmentWriter,
    ) -> Result<u64> {
        delta.end = space.end();
        let len = delta.encoded_len() + END_GROWTH;
        let before = self.pages();
        let fits = root.tail.len() + len <= self.tail_max;
        if rebase || !fits && self.wants_base(root.tail.len() + len, space) {
            let old = self.segments.drain(..).map(|s| (s.extent(self.page_shift), s.txn));
            delta.released.extend(old.map(|(Extent { first, count }, birth)| Retired {
                first,
                count,
                birth,
                death: delta.txn,
            }));
            space.retire(&delta.released);
            self.write_base(root, space, &mut delta, writer)?;
            return Ok(self.pages());
        }
        space.retire(&delta.released);
        if !fits {
            self.write_deltas(root, space, &mut delta, len, writer)?;
        } else {
            delta.end = space.end();
            root.push(&delta);
        }
        Ok(self.pages() - before)
    }

    /// Pages that [`append`](Self::append) takes for a commit of this delta, or a few less.
    pub(crate) fn pages_wanted(
        &self,
        root: &LogRoot,
        space: &Space,
        delta: &Delta,
        rebase: bool,
    ) -> u64 {
        let len = delta.encoded_len() + END_GROWTH;
        let tail = root.tail.len();
        let bytes = match (rebase, tail + len <= self.tail_max) {
            (false, true) => return 0,
            (true, _) => base_len(delta, space, self.tail_max),
            (false, false) if self.wants_base(tail + len, space) => {
                base_len(delta, space, self.tail_max)
            }
            (false, false) => tail + if len <= self.tail_max { 0 } else { len },
        };
        self.pages_for(bytes)
    }

    /// The commit that wrote the base; 0: the log begins with an empty store.
    pub(crate) fn base(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.txn)
    }

    /// Whether a base is due in place of one more segment with so many bytes of deltas.
    fn wants_base(&self, more: usize, space: &Space) -> bool {
        let Some(base) = self.segments.first() else { return true };
        let deltas = self.segments.iter().filter(|segment| segment.txn != base.txn);
        let bytes = deltas.map(|segment| segment.len).sum::<u64>() + (more + HEAD) as u64;
        bytes > DELTAS_MIN && bytes > space.encoded_len_bound() as u64
    }

    /// Moves the tail to a segment, and with it this commit's delta if the tail is too small for it.
    fn write_deltas(
        &mut self,
        root: &mut LogRoot,
        space: &mut Space,
        delta: &mut Delta,
        len: usize,
        writer: &mut dyn SegmentWriter,
    ) -> Result<()> {
        let in_tail = len <= self.tail_max;
        let longest = root.tail.len() + if in_tail { 0 } else { len };
        let extents = self.place(longest, space, writer)?;
        delta.end = space.end();
        let mut bytes = room(longest)?;
        bytes.append(&mut root.tail);
        if in_tail {
            root.push(delta);
        } else {
            let before = bytes.len();
            delta.encode(&mut bytes);
            root.newest_delta = (bytes.len() - before) as u32;
        }
        self.write(&extents, &bytes, delta.txn, root, writer)
    }

    /// Begins the log anew with the whole map, this commit included.
    fn write_base(
        &mut self,
        root: &mut LogRoot,
        space: &mut Space,
        delta: &mut Delta,
        writer: &mut dyn SegmentWriter,
    ) -> Result<()> {
        let longest = base_len(delta, space, self.tail_max);
        let extents = self.place(longest, space, writer)?;
        let mut bytes = room(longest)?;
        codec::put(&mut bytes, delta.txn);
        space.encode(&mut bytes).map_err(|_| no_room())?;
        delta.end = space.end();
        *root = LogRoot::default();
        root.push(delta);
        if root.tail.len() > self.tail_max {
            bytes.append(&mut root.tail);
        }
        self.write(&extents, &bytes, delta.txn, root, writer)
    }

    /// Takes pages for so many bytes, however they lie.
    fn place(
        &self,
        bytes: usize,
        space: &mut Space,
        writer: &mut dyn SegmentWriter,
    ) -> Result<Vec<Extent>> {
        writer.place(space, self.pages_for(bytes))
    }

    /// At worst each page is a segment of its own.
    fn pages_for(&self, bytes: usize) -> u64 {
        (bytes as u64).div_ceil((1 << self.page_shift) - HEAD as u64)
    }

    /// Writes a part of the log over the whole of its extents, so that each of their pages is known.
    fn write(
        &mut self,
        extents: &[Extent],
        mut body: &[u8],
        txn: u64,
        root: &mut LogRoot,
        writer: &mut dyn SegmentWriter,
    ) -> Result<()> {
        let mut at: u64 = self.segments.iter().map(|segment| segment.len).sum();
        for extent in extents {
            let len = extent.count << self.page_shift;
            let (part, rest) = body.split_at(body.len().min(len as usize - HEAD));
            body = rest;
            let mut bytes = room(len as usize)?;
            let before = root.newest;
            let head = [before.first, before.len, before.checksum, before.txn];
            for word in head.into_iter().chain([at, part.len() as u64]) {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            bytes.extend_from_slice(part);
            bytes.resize(len as usize, 0);
            writer.write(extent.first, &bytes)?;
            let checksum = XxHash3_64::oneshot(&bytes);
            root.newest = Segment { first: extent.first, len, checksum, txn };
            self.segments
                .try_reserve(1)
                .map_err(|_| Error::no_memory("list the free-space log"))?;
            self.segments.push(root.newest);
            at += len;
        }
        match body {
            [] => Ok(()),
            _ => Err(Error::Invalid("a part of the free-space log is longer than its estimate")),
        }
    }
}
