//! A data file that counts what is written to it.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Mutex};

use zubilo::platform::{self, Advice, DataFile, FileId, OpenFile, WritableMap};

/// What was written since the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Calls that write, metas included.
    pub(crate) requests: u64,
    /// Runs of adjacent bytes, metas not counted.
    pub(crate) extents: u64,
    pub(crate) bytes: u64,
    pub(crate) flushes: u64,
    /// Where the last run ended.
    end: u64,
    /// Offset and length of each write, where they are wanted; metas not counted.
    places: Vec<(u64, u64)>,
}

/// Shared with the file.
pub(crate) type Counter = Arc<Mutex<Counts>>;

/// The counts since the last call.
pub(crate) fn take(counter: &Counter) -> Counts {
    std::mem::take(&mut *counter.lock().expect("no panic while counting"))
}

/// Offsets and lengths of the writes since the last call, of a file that is traced.
pub(crate) fn take_pages(counter: &Counter) -> Vec<(u64, u64)> {
    take(counter).places
}

/// A real file, counted.
pub(crate) struct Counted {
    file: Box<dyn DataFile>,
    counter: Counter,
    /// Everything below is meta pages.
    metas_end: u64,
    /// Whether the places of writes are kept.
    traced: bool,
}

impl Counted {
    /// Opens or creates the file at `path`.
    pub(crate) fn open(path: &Path, page_size: u64) -> (Counted, Counter) {
        let how = OpenFile {
            read_only: false,
            create: true,
            mode: 0o644,
            reserve: 64 << 30,
            writable_map: WritableMap::No,
            large_calls: false,
        };
        let (file, _) = platform::open_data(path, &how).expect("open");
        let counter = Counter::default();
        (
            Counted { file, counter: counter.clone(), metas_end: 3 * page_size, traced: false },
            counter,
        )
    }

    /// The same, which keeps the places of writes.
    pub(crate) fn traced(path: &Path, page_size: u64) -> (Counted, Counter) {
        let (file, counter) = Counted::open(path, page_size);
        (Counted { traced: true, ..file }, counter)
    }
}

// SAFETY: the file that it counts for keeps the promises.
unsafe impl DataFile for Counted {
    fn base(&self) -> *const u8 {
        self.file.base()
    }

    fn reserved(&self) -> u64 {
        self.file.reserved()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn write_at(&self, offset: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        let bytes: u64 = bufs.iter().map(|b| b.len() as u64).sum();
        {
            let mut counts = self.counter.lock().expect("no panic while counting");
            counts.requests += 1;
            counts.bytes += bytes;
            if offset >= self.metas_end {
                counts.extents += u64::from(counts.end != offset);
                counts.end = offset + bytes;
                if self.traced {
                    counts.places.push((offset, bytes));
                }
            }
        }
        self.file.write_at(offset, bufs)
    }

    fn grow(&self, new_len: u64, zeroed_written: bool) -> io::Result<()> {
        self.file.grow(new_len, zeroed_written)
    }

    fn truncate(&self, new_len: u64) -> io::Result<()> {
        self.file.truncate(new_len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.counter.lock().expect("no panic while counting").flushes += 1;
        self.file.sync_data()
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.file.sync_directory()
    }

    fn writable(&self) -> Option<*mut u8> {
        self.file.writable()
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) -> io::Result<()> {
        self.file.advise(offset, len, advice)
    }

    fn id(&self) -> FileId {
        self.file.id()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}
