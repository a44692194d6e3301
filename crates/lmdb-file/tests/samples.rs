//! Files written by the original, read back: all table flags, values of all shapes. Then the same files
//! with bytes changed, and cut off: errors, never a panic or an endless walk.

mod original;

use std::time::{Duration, Instant};

use lmdb_file::{Error, LmdbFile, Record, Source};
use support::{Rng, rng};

use original::{Contents, Sample, write};

/// Everything in a file.
fn read<S: Source>(file: &LmdbFile<S>) -> Result<Vec<(Sample, Contents)>, Error> {
    let mut all = Vec::new();
    let mut reader = file.reader();
    let mut record = Record::default();
    for table in file.tables()? {
        let mut contents = Vec::new();
        reader.begin(&table)?;
        while reader.next(&mut record)? {
            // Nothing of the record is to be relied on by the reader.
            let Record { key, value } = std::mem::take(&mut record);
            contents.push((key, value));
        }
        assert_eq!(contents.len() as u64, table.records(), "{:?}", table.name);
        all.push((Sample { name: table.name.clone(), flags: table.flags.bits().into() }, contents));
    }
    Ok(all)
}

/// Records of a table with these flags; `many` makes trees of values.
fn records(rng: &mut Rng, flags: u32, many: bool) -> Contents {
    let integer_keys = flags & original::INTEGERKEY != 0;
    let fixed = flags & original::DUPFIXED != 0;
    let keys = if many { rng.range(1..8) } else { rng.index(600) };
    let size = rng.pick(&[4, 8]);
    let mut all = Contents::new();
    for _ in 0..keys {
        let len = rng.range(1..60);
        let key = if integer_keys { rng.bytes(8) } else { rng.bytes(len) };
        if flags & original::DUPSORT == 0 {
            // Now and then one in overflow pages.
            let len = if rng.one_in(9) { rng.index(20_000) } else { rng.index(300) };
            all.push((key, rng.bytes(len)));
            continue;
        }
        let values = if many { rng.range(1..3000) } else { rng.range(1..12) };
        for _ in 0..values {
            let integers = flags & original::INTEGERDUP != 0;
            let len = if fixed || integers { size } else { rng.range(1..40) };
            all.push((key.clone(), rng.bytes(len)));
        }
    }
    all
}

/// All combinations that the original accepts.
fn all_flags() -> Vec<u32> {
    use original::*;
    let keys = [0, REVERSEKEY, INTEGERKEY];
    let values = [
        0,
        DUPSORT,
        DUPSORT | REVERSEDUP,
        DUPSORT | DUPFIXED,
        DUPSORT | DUPFIXED | INTEGERDUP,
        DUPSORT | DUPFIXED | REVERSEDUP,
    ];
    keys.iter().flat_map(|k| values.iter().map(move |v| k | v)).collect()
}

#[test]
fn all_kinds_of_tables_are_read() {
    let mut rng = rng();
    let mut samples = Vec::new();
    for flags in all_flags() {
        for many in [false, true] {
            let name = format!("table {flags:02x} {many}").into_bytes();
            samples.push((Sample { name: Some(name), flags }, records(&mut rng, flags, many)));
        }
    }
    let (_dir, path, expected) = write(&samples);
    let file = LmdbFile::open(&path).unwrap();
    let info = file.info();
    assert_eq!((info.bits, info.page_size, info.one_meta_damaged), (64, 4096, false));
    assert!(read(&file).unwrap() == expected, "what was read is not what the original reads");
    assert!(file.is_unchanged().unwrap());
}

#[test]
fn the_unnamed_table_and_named_ones_stand_side_by_side() {
    let mut rng = rng();
    let unnamed = Sample { name: None, flags: 0 };
    let named = Sample { name: Some(b"m".to_vec()), flags: 0 };
    let samples = [(unnamed, records(&mut rng, 0, false)), (named, records(&mut rng, 0, false))];
    let (_dir, path, expected) = write(&samples);
    assert!(read(&LmdbFile::open(&path).unwrap()).unwrap() == expected);
}

#[test]
fn an_unnamed_table_can_have_flags() {
    let mut rng = rng();
    for flags in all_flags() {
        for many in [false, true] {
            let sample = (Sample { name: None, flags }, records(&mut rng, flags, many));
            let (_dir, path, expected) = write(&[sample]);
            let read = read(&LmdbFile::open(&path).unwrap()).unwrap();
            assert!(read == expected, "flags {flags:02x}");
        }
    }
}

#[test]
fn an_empty_file_of_the_original_has_no_records() {
    let (_dir, path, _) = write(&[]);
    let read = read(&LmdbFile::open(&path).unwrap()).unwrap();
    assert_eq!(read, [(Sample { name: None, flags: 0 }, vec![])]);
}

#[test]
fn a_folder_leads_to_its_data_file() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(LmdbFile::open(dir.path()), Err(Error::Io { .. })));
    let (_other, path, _) = write(&[]);
    std::fs::copy(path, dir.path().join("data.mdb")).unwrap();
    LmdbFile::open(dir.path()).unwrap();
}

#[test]
fn a_commit_during_the_reading_is_noticed() {
    let sample = |n: u8| (Sample { name: None, flags: 0 }, vec![(vec![n], vec![n])]);
    let (dir, path, _) = write(&[sample(1)]);
    let file = LmdbFile::open(&path).unwrap();
    assert!(file.is_unchanged().unwrap());
    original::append(dir.path(), &[sample(2)]);
    assert!(!file.is_unchanged().unwrap());
    assert!(LmdbFile::open(&path).unwrap().is_unchanged().unwrap());
}

/// Reads bytes that may be anything; panics if it takes too long, or more than the file can hold.
fn exercise(bytes: &[u8]) -> Result<u64, Error> {
    let start = Instant::now();
    let file = LmdbFile::new(bytes)?;
    let (mut reader, mut record, mut records) = (file.reader(), Record::default(), 0u64);
    let mut first = None;
    for table in file.tables()? {
        let mut step = || -> Result<(), Error> {
            reader.begin(&table)?;
            while reader.next(&mut record)? {
                records += 1;
                assert!(record.value.len() <= bytes.len(), "a value larger than the file");
            }
            Ok(())
        };
        // What one table lacks does not keep from the next.
        first = first.or(step().err());
    }
    assert!(start.elapsed() < Duration::from_secs(20), "too long");
    first.map_or(Ok(records), Err)
}

#[test]
fn damage_is_an_error_and_nothing_worse() {
    let mut rng = rng();
    let mut samples = Vec::new();
    for flags in all_flags() {
        let name = format!("t{flags:02x}").into_bytes();
        let many = rng.one_in(2);
        let mut contents = records(&mut rng, flags, many);
        contents.truncate(400);
        samples.push((Sample { name: Some(name), flags }, contents));
    }
    let (_dir, path, _) = write(&samples);
    mutate(&mut rng, &std::fs::read(path).unwrap(), 4096, 3000);
    for (name, page_size) in [("bits32.mdb", 4096), ("pages512.mdb", 512), ("pages32k.mdb", 32768)]
    {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/");
        mutate(&mut rng, &std::fs::read(fixtures.to_owned() + name).unwrap(), page_size, 1000);
    }
}

/// Reads a file with random changes, again and again.
fn mutate(rng: &mut Rng, whole: &[u8], page_size: usize, rounds: u32) {
    exercise(whole).unwrap();
    let mut failed = 0;
    for _ in 0..rounds {
        let mut bytes = whole.to_vec();
        for _ in 0..rng.range(1..6) {
            let page = rng.index(bytes.len() / page_size) * page_size;
            // The heads of pages, where all structure is, more often than the rest.
            let at = match rng.below(4) {
                0 => rng.index(bytes.len()),
                1 => page + rng.index(16),
                2 => page + rng.index(200),
                _ => rng.index(2) * page_size + rng.index(160),
            };
            match rng.below(4) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => bytes[at] = [0, 1, 2, 0x7f, 0x80, 0xff][rng.index(6)],
                2 => bytes[at] = rng.byte(),
                _ => {
                    let (from, len) = (rng.index(bytes.len()), rng.range(1..64));
                    let len = len.min(bytes.len() - from.max(at));
                    bytes.copy_within(from..from + len, at);
                }
            }
        }
        if rng.one_in(16) {
            bytes.truncate(rng.index(bytes.len()));
        }
        failed += u32::from(exercise(&bytes).is_err());
    }
    assert!(failed > rounds / 10, "only {failed} of {rounds} changes were noticed");
}

#[test]
fn every_cut_is_an_error() {
    let mut rng = rng();
    let sample = (Sample { name: None, flags: 0 }, records(&mut rng, 0, false));
    let (_dir, path, expected) = write(&[sample]);
    let whole = std::fs::read(path).unwrap();
    for len in (0..whole.len()).step_by(512).chain([1, 15, 16, 100]) {
        match exercise(&whole[..len]) {
            Err(_) => {}
            // Only pages that hold nothing were cut off.
            Ok(records) => assert_eq!(records, expected[0].1.len() as u64, "cut to {len}"),
        }
    }
    assert!(matches!(exercise(b""), Err(Error::NotLmdb)));
    assert!(matches!(exercise(&[b'x'; 10_000]), Err(Error::NotLmdb)));
}

#[test]
fn one_good_meta_is_enough() {
    let sample = (Sample { name: None, flags: 0 }, vec![(b"k".to_vec(), b"v".to_vec())]);
    let (_dir, path, _) = write(&[sample]);
    let whole = std::fs::read(path).unwrap();
    let newest = LmdbFile::new(&*whole).unwrap().info().txn;
    for meta in 0..2 {
        let mut bytes = whole.clone();
        bytes[meta * 4096..][..200].fill(0xaa);
        let file = LmdbFile::new(&*bytes).unwrap();
        assert!(file.info().one_meta_damaged);
        // The one left is the newest commit or the one before.
        assert!(newest - file.info().txn <= 1);
    }
    let mut bytes = whole.clone();
    bytes[..200].fill(0);
    bytes[4096..4296].fill(0);
    let error = LmdbFile::new(&*bytes).err();
    assert!(matches!(error, Some(Error::NotLmdb)), "{error:?}");
}

#[test]
fn other_formats_are_recognised() {
    let (_dir, path, _) = write(&[]);
    let whole = std::fs::read(path).unwrap();
    let mut newer = whole.clone();
    for meta in 0..2 {
        newer[meta * 4096 + 20] = 2;
    }
    let message = LmdbFile::new(&*newer).err().unwrap().to_string();
    assert!(message.contains("format 2"), "{message}");
    let mut big = whole;
    for meta in 0..2 {
        big[meta * 4096 + 16..][..4].reverse();
    }
    let message = LmdbFile::new(&*big).err().unwrap().to_string();
    assert!(message.contains("big-endian"), "{message}");
}
