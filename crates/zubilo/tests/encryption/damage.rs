//! A file that somebody has changed: what is read is what was written, or an error.

use zubilo::{Durability, Error, Result};

use super::{STRIDE, options, place};
use crate::common::memory::MemoryFile;
use crate::common::{Model, contents, put_all, rng};

const PAGE: usize = 4096;
/// A store of some commits: its file, and what each commit held.
fn sample() -> (Vec<u8>, Vec<Model>, Vec<Vec<u8>>) {
    let file = MemoryFile::new(&[]);
    let env = file.open(options().durability(Durability::Sync)).unwrap();
    let (mut models, mut images) = (Vec::new(), Vec::new());
    for round in 0..6u32 {
        let record = |i: u32| (format!("key {}", i * 3 + round), vec![round as u8; 60]);
        put_all(&env, "t", (0..60).map(record));
        put_all(&env, "large", [(round.to_be_bytes(), vec![round as u8; 9000])]);
        models.push(contents(&env.read().unwrap()));
        images.push(file.image());
    }
    drop(env);
    (file.image(), models, images)
}

/// Reads all of it, and writes to it.
fn read(image: &[u8]) -> Result<Model> {
    let file = MemoryFile::new(image);
    let env = file.open(options())?;
    let read = env.read()?;
    let mut all = Model::new();
    for name in read.tables()? {
        let table = read.table(&name)?;
        let mut records = crate::common::Records::new();
        for record in table.iter() {
            let (key, value) = record?;
            records.insert(key.to_vec(), value.to_vec());
        }
        all.insert(name, records);
    }
    drop(read);
    // Whatever comes of it, a change must not do more than fail.
    let _ = env.update(|txn| txn.table_or_create("t")?.put("key 3", "new"));
    Ok(all)
}

/// What is read is one of the commits, or there is an error of damage.
fn harmless(image: &[u8], models: &[Model], what: impl Fn() -> String) -> bool {
    match read(image) {
        Ok(found) => {
            let known = found.is_empty() || models.contains(&found) || is_between(&found, models);
            assert!(known, "{}: neither an error nor a commit", what());
            true
        }
        Err(Error::Corrupted { .. } | Error::WrongKey | Error::NotAStore { .. }) => false,
        Err(Error::Version { .. } | Error::NotEncrypted | Error::Io { .. }) => false,
        Err(error) => panic!("{}: {error}", what()),
    }
}

/// The commit between two of the list: one table is of the later, one of the former.
fn is_between(found: &Model, models: &[Model]) -> bool {
    let of = |name: &[u8]| found.get(name);
    let first = found.len() == 1 && of(b"t") == models[0].get(&b"t"[..]);
    first
        || models.windows(2).any(|pair| {
            of(b"t") == pair[1].get(&b"t"[..]) && of(b"large") == pair[0].get(&b"large"[..])
        })
}

#[test]
fn every_byte_that_is_changed_is_found_or_does_not_matter() {
    let (image, models, _) = sample();
    assert_eq!(read(&image).unwrap(), models[5]);
    let mut rng = rng();
    let (mut refused, mut flipped) = (0, 0);
    let mut at = 0;
    while at < image.len() {
        let mut changed = image.clone();
        changed[at] ^= 1 << rng.below(8);
        let found = harmless(&changed, &models, || format!("byte {at}"));
        refused += u64::from(!found);
        flipped += 1;
        // Most of them where a byte does something else than its neighbours.
        let trailer = at >= 5 * PAGE && (at - 5 * PAGE) % STRIDE >= PAGE;
        let step = if trailer {
            6
        } else if at < 5 * PAGE {
            64
        } else {
            400
        };
        at += 1 + rng.below(step) as usize;
    }
    assert!(flipped > 1000 && refused > flipped / 20, "{refused} of {flipped}");
}

#[test]
fn a_page_in_the_place_of_another_is_found() {
    let (image, models, _) = sample();
    let pages = (image.len() - 5 * PAGE) / STRIDE;
    let mut rng = rng();
    let mut refused = 0;
    for _ in 0..400 {
        let (from, to) =
            (4 + rng.below(pages as u64) as usize, 4 + rng.below(pages as u64) as usize);
        if image[place(from)] == image[place(to)] {
            continue;
        }
        let mut changed = image.clone();
        changed.copy_within(place(from), place(to).start);
        refused += u64::from(!harmless(&changed, &models, || format!("{from} at {to}")));
    }
    assert!(refused > 10, "{refused}");
}

/// What a page was before, in its own place, is authentic: nobody knows a page's age but by what refers to it. It
/// never leads to bytes that nobody has written; see docs/encryption.md.
#[test]
fn an_old_version_of_a_page_shows_nothing_but_what_was_written() {
    let (image, models, images) = sample();
    let pages = (image.len() - 5 * PAGE) / STRIDE;
    let (mut refused, mut put_back) = (0, 0);
    for older in &images {
        for page in 4..4 + pages {
            let Some(old) = older.get(place(page)) else { continue };
            if *old == image[place(page)] || old.iter().all(|byte| *byte == 0) {
                continue;
            }
            let mut changed = image.clone();
            changed[place(page)].copy_from_slice(old);
            put_back += 1;
            match read(&changed) {
                Err(Error::Corrupted { .. }) => refused += 1,
                Err(error) => panic!("page {page}: {error}"),
                Ok(found) => {
                    for (key, value) in found.values().flatten() {
                        let known = models.iter().flat_map(Model::values);
                        let mut known = known.flat_map(|records| records.get(key));
                        assert!(known.any(|v| v == value), "page {page}: made up");
                    }
                }
            }
        }
    }
    assert!(put_back > 5, "{refused} of {put_back}");
}

/// Metas are readable, and nobody without the key can make one.
#[test]
fn a_meta_that_was_made_without_the_key_is_none() {
    let (image, models, _) = sample();
    for slot in 0..4 {
        let mut changed = image.clone();
        let page = slot * PAGE;
        // The user words, and a checksum that is right for them: the first sector has all fields.
        changed[page + 184] ^= 1;
        zubilo::seal_meta(&mut changed[page..page + PAGE]);
        harmless(&changed, &models, || format!("meta {slot}"));
        let file = MemoryFile::new(&changed);
        if let Ok(env) = file.open(options()) {
            let words = env.read().unwrap().user_words();
            assert_eq!(words.words, [0; 3], "meta {slot}");
        }
    }
}
