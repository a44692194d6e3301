//! Stores, and data files of LMDB, that bytes damage.
//!
//! An input is a small program, so that a fuzzer reaches every field of a file of many pages: a byte
//! that chooses the file, flags, a seed, then patches. A file of its own can follow instead.

use std::ffi::OsStr;
use std::sync::OnceLock;

use lmdb_file::{LmdbFile, Record};
use twox_hash::XxHash3_64;
use zubilo::Salvage;

use crate::common::Rng;
use crate::common::memory::MemoryFile;
use crate::{exercise, folder, stores};

/// The input brings the whole file.
const OWN_FILE: u8 = 0xFF;
/// Checksums of changed pages are made right.
const SEAL: u8 = 1;
/// The file ends early; two more bytes say where.
const CUT: u8 = 2;
const METAS: usize = 4;
const META_SIZE: usize = 4096;
/// No larger file is made of an input.
const FILE_MAX: usize = 1 << 20;
/// More than any file of that size can have records.
const RECORDS_MAX: usize = 2_000_000;

/// Bytes taken one after the other; zeros past the end.
struct Input<'i>(&'i [u8]);

impl<'i> Input<'i> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let taken = self.take(N);
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }

    fn take(&mut self, len: usize) -> &'i [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// A file made from an input: its bytes and a seed for what is done with it.
struct Made {
    bytes: Vec<u8>,
    seed: u64,
}

/// The pages of a file that were changed are patched by `page, place, length, bytes`.
fn make(data: &[u8], bases: &[Vec<u8>], page_size: impl Fn(&[u8]) -> usize, seal: bool) -> Made {
    let mut input = Input(data);
    let [base, flags, seed] = input.array();
    if base == OWN_FILE || bases.is_empty() {
        let bytes = input.0[..input.0.len().min(FILE_MAX)].to_vec();
        return Made { bytes, seed: seed.into() };
    }
    let mut bytes = bases[usize::from(base) % bases.len()].clone();
    let size = page_size(&bytes);
    let cut = if flags & CUT != 0 { usize::from(u16::from_le_bytes(input.array())) } else { 0 };
    let mut changed = Vec::new();
    while !input.0.is_empty() {
        let [page_low, page_high, at_low, at_high, len] = input.array();
        let pages = bytes.len() / size;
        let page = usize::from(u16::from_le_bytes([page_low, page_high])) % pages.max(1);
        let at = usize::from(u16::from_le_bytes([at_low, at_high])) % size;
        let patch = input.take(usize::from(len % 32) + 1);
        let start = page * size + at;
        let end = (start + patch.len()).min(bytes.len()).max(start);
        bytes[start..end].copy_from_slice(&patch[..end - start]);
        changed.push(page);
    }
    if seal && flags & SEAL != 0 {
        changed.iter().for_each(|page| seal_page(&mut bytes, *page, size));
    }
    bytes.truncate(bytes.len().saturating_sub(cut * 64));
    Made { bytes, seed: seed.into() }
}

fn seal_page(bytes: &mut [u8], page: usize, size: usize) {
    let len = if page < METAS { META_SIZE } else { size };
    if let Some(bytes) = bytes.get_mut(page * size..page * size + len) {
        if page < METAS {
            return zubilo::seal_meta(bytes);
        }
        let checksum = XxHash3_64::oneshot(&bytes[8..]);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
    }
}

fn bases() -> &'static [Vec<u8>] {
    static BASES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    BASES.get_or_init(stores::all)
}

fn made_store(data: &[u8]) -> Made {
    make(data, bases(), |bytes| 1 << bytes[20], true)
}

/// Everything is done with a store: read, write, check, copy, salvage.
pub(crate) fn store(data: &[u8]) {
    let made = made_store(data);
    exercise::all(&MemoryFile::new(&made.bytes), &mut Rng::new(made.seed));
}

/// What is left of a store is brought out.
pub(crate) fn salvage(data: &[u8]) {
    let Ok(salvage) = Salvage::of_bytes(made_store(data).bytes) else { return };
    for table in salvage.tables() {
        let mut left = RECORDS_MAX;
        let counted = salvage.records(table, &mut |key, value| {
            std::hint::black_box((key.last(), value.last()));
            left = left.checked_sub(1).expect("more records than there can be");
            Ok(())
        });
        std::hint::black_box(counted.is_ok());
    }
}

/// One small change in each of some pages of each store, and a cut.
pub(crate) fn store_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut rng = Rng::new(3);
    for (base, bytes) in bases().iter().enumerate() {
        let pages = (bytes.len() >> bytes[20]) as u64;
        for _ in 0..24 {
            let mut seed = vec![base as u8, SEAL, rng.next() as u8];
            for _ in 0..1 + rng.below(3) {
                let page = rng.below(pages) as u16;
                let at = rng.pick(&[24, 28, 30, 32, 48, 56, 64, 72, 90, 110, 224, 256, 300, 320]);
                let value = rng.pick(&[0, 1, 255, 7]);
                seed.extend(page.to_le_bytes());
                seed.extend(u16::to_le_bytes(at));
                seed.extend([1, value, rng.next() as u8]);
            }
            seeds.push(seed);
        }
        seeds.push(vec![base as u8, CUT, 1, rng.next() as u8, 1]);
    }
    seeds
}

/// The pages of the stores, each alone and with the one before it.
pub(crate) fn page_seeds() -> Vec<Vec<u8>> {
    page_seeds_of(bases())
}

fn page_seeds_of(bases: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for bytes in bases {
        let size = 1usize << bytes[20];
        // Not the metas, nor segments of the free-space log, which bear no number: what a page has as
        // its kind is any byte of theirs.
        let pages: Vec<&[u8]> = (bytes.chunks_exact(size).enumerate().skip(METAS))
            .filter(|(n, page)| {
                page[8..16] == (*n as u64).to_le_bytes() && matches!(page[24], 1..=3)
            })
            .map(|(_, page)| page)
            .collect();
        for pair in pages.windows(2).step_by(pages.len() / 20 + 1) {
            let mut seed = vec![0, 1, 3, if size == 4096 { 0 } else { 7 }, 4];
            seed.extend(b"some/common/path");
            for page in pair {
                // What lies between the arrays and the records is left out.
                let heap = u16::from_le_bytes([page[32], page[33]]);
                let count = usize::from(u16::from_le_bytes([page[28], page[29]]));
                let front = (48 + 200 + count * 16).min(size / 2);
                let back = (size - usize::from(heap)).min(size / 2);
                seed.extend((front as u16).to_le_bytes());
                seed.extend(&page[..front]);
                seed.extend((back as u16).to_le_bytes());
                seed.extend(&page[size - back..]);
            }
            seeds.push(seed);
        }
    }
    seeds
}

fn lmdb_files() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        vec![
            include_bytes!("../../lmdb-file/tests/fixtures/pages512.mdb").to_vec(),
            include_bytes!("../../lmdb-file/tests/fixtures/pages2k.mdb").to_vec(),
            include_bytes!("../../lmdb-file/tests/fixtures/bits32.mdb").to_vec(),
        ]
    })
}

/// Bytes of a page, as the first meta has them.
fn lmdb_page_size(bytes: &[u8]) -> usize {
    let file = LmdbFile::new(bytes);
    file.map_or(4096, |file| file.info().page_size as usize)
}

/// A file of LMDB is read, and then taken over into a store.
pub(crate) fn lmdb_import(data: &[u8]) {
    let made = make(data, lmdb_files(), lmdb_page_size, false);
    let Some(records) = read_lmdb(&made.bytes) else { return };
    assert!(records < RECORDS_MAX, "a walk in circles");
    let (_folder, dir) = folder();
    let (old, new) = (dir.join("data.mdb"), dir.join("new"));
    std::fs::write(&old, &made.bytes).expect("the file can be written");
    let mut arguments = vec![OsStr::new("zubilo"), OsStr::new("import")];
    arguments.extend([old.as_os_str(), new.as_os_str(), OsStr::new("--json")]);
    cli_parts::run(&arguments);
}

/// Number of records; none if the file is refused as a whole.
fn read_lmdb(bytes: &[u8]) -> Option<usize> {
    let file = LmdbFile::new(bytes).ok()?;
    let mut reader = file.reader();
    let (mut record, mut seen) = (Record::default(), 0);
    for table in file.tables().ok()? {
        if reader.begin(&table).is_err() {
            continue;
        }
        while let Ok(true) = reader.next(&mut record) {
            seen += 1;
            assert!(seen < RECORDS_MAX, "a walk in circles");
        }
    }
    Some(seen)
}

/// The files as they are, and with a changed field here and there.
pub(crate) fn lmdb_seeds() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(5);
    let mut seeds = Vec::new();
    for (base, bytes) in lmdb_files().iter().enumerate() {
        seeds.push(vec![base as u8, 0, 0]);
        let size = lmdb_page_size(bytes);
        for _ in 0..40 {
            let mut seed = vec![base as u8, 0, 0];
            let page = rng.below((bytes.len() / size) as u64) as u16;
            seed.extend(page.to_le_bytes());
            seed.extend((rng.below(64) as u16).to_le_bytes());
            seed.extend([0, rng.pick(&[0, 1, 2, 5, 255])]);
            seeds.push(seed);
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_is_no_page_whatever_its_store_is_called() {
        let seeds = page_seeds();
        for kind in 1..=3 {
            let mut bases = bases().to_vec();
            // The identity lies in the metas where pages have their kind and where their heap starts.
            bases.iter_mut().for_each(|bytes| bytes[24..40].fill(kind));
            bases.iter_mut().for_each(|bytes| bytes[32..34].fill(0xFF));
            assert_eq!(page_seeds_of(&bases), seeds);
        }
    }
}
