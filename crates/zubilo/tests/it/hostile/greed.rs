//! Stores with right checksums that would take a whole disk: of their own growth, and of a compact copy of
//! pages that they lead to again and again.

use twox_hash::XxHash3_64;
use zubilo::{Durability, Env, Error, Options, PageKind, TableOptions};

use crate::common::memory::MemoryFile;
use crate::common::{check, put_all};

const PAGE: usize = 4096;

fn image_of(fill: impl Fn(&Env)) -> Vec<u8> {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().durability(Durability::NoSync)).unwrap();
    fill(&env);
    check(&env, "before the lies");
    env.close().unwrap();
    file.image()
}

/// Sets the step of growth that all metas name.
fn with_growth(image: &[u8], growth: u64) -> Vec<u8> {
    let mut image = image.to_vec();
    for meta in image[..4 * PAGE].chunks_exact_mut(PAGE).filter(|m| m[8..].starts_with(b"ZUBILO")) {
        meta[88..96].copy_from_slice(&growth.to_le_bytes());
        zubilo::seal_meta(meta);
    }
    image
}

#[test]
fn a_file_grows_by_no_more_than_is_plausible() {
    let image = image_of(|env| {
        put_all(env, "t", [("key", vec![1; 1000])]);
    });
    let (mib, gib) = (1 << 20, 1 << 30);
    // A step that somebody may have wanted is kept to.
    for (growth, most) in [
        (8 * mib, 10 * mib),
        (gib, gib + 2 * mib),
        (1 << 40, gib + 2 * mib),
        (u64::MAX, gib + 2 * mib),
    ] {
        let file = MemoryFile::with_reserve(&with_growth(&image, growth), 1 << 36);
        let env = file.open(Options::new()).unwrap();
        put_all(&env, "t", [("large", vec![2; 1 << 20])]);
        let len = file.len();
        assert!(len > 1 << 20 && len <= most, "{len} bytes for a growth of {growth}");
        check(&env, "after growing");
    }
}

fn number(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// A reference to a large value, a table's descriptor, the descriptor of a tree of values: kind of the
/// record, and whether it is in the tree of names.
type What = (usize, bool);
const LARGE_VALUE: What = (1, false);
const TABLE: What = (2, true);
const VALUES: What = (2, false);

/// Makes all such records in a store's leaves hold what the first of them holds; gives their number.
fn lead_to_one_place(image: &mut [u8], (kind, is_name): What) -> usize {
    let mut leaves = Vec::new();
    let env = MemoryFile::new(image).open(Options::new()).unwrap();
    env.walk_pages(&mut |visit| {
        if visit.kind == PageKind::Leaf {
            leaves.push(visit.page.0 as usize);
        }
        true
    })
    .unwrap();
    drop(env);
    let (mut first, mut count) = (None, 0);
    for leaf in leaves {
        let page = &mut image[leaf * PAGE..][..PAGE];
        if page[24] != 2 || is_name != (page[40..44] == [0; 4]) {
            continue;
        }
        let (records, prefix) = (number(page, 28), number(page, 30));
        for i in 0..records {
            let at = number(page, 48 + prefix + 4 * records + 2 * i);
            let (key_and_kind, len) = (number(page, at), number(page, at + 2));
            if key_and_kind >> 14 == kind {
                let value = &mut page[at + 4 + (key_and_kind & 0x3fff)..][..len];
                value.copy_from_slice(first.get_or_insert_with(|| value.to_vec()));
                count += 1;
            }
        }
        let sum = XxHash3_64::oneshot(&page[8..]);
        page[..8].copy_from_slice(&sum.to_le_bytes());
    }
    count
}

/// What is written to it is counted.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn compact_copy(image: &[u8]) -> (zubilo::Result<()>, usize) {
    let env = MemoryFile::new(image).open(Options::new()).unwrap();
    let mut copy = Counted(0);
    let done = env.copy_to_writer(&mut copy, true, &mut |_, _| true);
    (done.map(drop), copy.0)
}

#[track_caller]
fn assert_copied_once(mut image: Vec<u8>, what: What, records: usize) {
    let (done, whole) = compact_copy(&image);
    done.unwrap();
    assert_eq!(lead_to_one_place(&mut image, what), records);
    let (done, written) = compact_copy(&image);
    assert!(matches!(done, Err(Error::Corrupted { reason: "a page belongs to two places", .. })));
    assert!(written <= whole, "{written} bytes of {whole}");
}

#[test]
fn a_compact_copy_takes_a_large_value_once() {
    let all = |env: &Env| {
        put_all(env, "t", (0..50u8).map(|i| ([i], vec![i; 9000])));
    };
    assert_copied_once(image_of(all), LARGE_VALUE, 50);
}

#[test]
fn a_compact_copy_takes_a_table_once() {
    let all = |env: &Env| {
        for name in ["a", "b", "c", "d"] {
            put_all(env, name, (0..90u8).map(|i| ([i], vec![i; 300])));
        }
    };
    assert_copied_once(image_of(all), TABLE, 4);
}

#[test]
fn a_compact_copy_takes_the_values_of_a_key_once() {
    for options in [TableOptions::new().duplicates(), TableOptions::new().fixed_duplicates()] {
        let image = image_of(|env| {
            let mut txn = env.write().unwrap();
            let mut table = txn.create_table("many", options.clone()).unwrap();
            for key in 0..6u8 {
                (0..600u32).for_each(|v| table.put([key], v.to_be_bytes()).unwrap());
            }
            txn.commit().unwrap();
        });
        assert_copied_once(image, VALUES, 6);
    }
}
