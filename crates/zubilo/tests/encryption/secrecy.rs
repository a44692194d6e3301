//! Nothing of what is put can be found in the files.

use std::path::Path;

use zubilo::{CompactOptions, Durability, Geometry, Options, TableOptions};

use super::{open, options};
use crate::common::fresh;

/// What is looked for: in names of tables, keys, values of all lengths, values of a key.
const PLANTED: [&[u8]; 4] = [b"tell-no-table", b"tell-no-key", b"tell-no-value", b"tell-no-large"];

fn find(bytes: &[u8], what: &str) {
    for planted in PLANTED {
        let found = bytes.windows(planted.len()).position(|window| window == planted);
        assert_eq!(found, None, "{what}: {}", String::from_utf8_lossy(planted));
    }
}

/// Looks through all files of a directory.
fn find_in_all(dir: &Path, what: &str) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        find(&std::fs::read(&path).unwrap(), &format!("{what}: {}", path.display()));
    }
}

fn fill(options: Options, path: &Path) -> zubilo::Env {
    let env = options.open(path).unwrap();
    for round in 0..4u32 {
        env.update(|txn| {
            let mut table = txn.table_or_create("tell-no-table")?;
            for i in 0..800u32 {
                let key = format!("tell-no-key {}", i * 7 % 1600 + round);
                table.put(key, format!("tell-no-value {i} {}", "x".repeat(i as usize % 90)))?;
            }
            let large = b"tell-no-large ".repeat(3000 + round as usize);
            table.put(format!("tell-no-key large {round}"), large)?;
            let many = TableOptions::new().duplicates();
            let mut many = txn.table_or_create_with("tell-no-table of many", &many)?;
            for i in 0..600u32 {
                many.put("tell-no-key", format!("tell-no-value {}", i + round))?;
            }
            Ok(())
        })
        .unwrap();
        let mut txn = env.write().unwrap();
        txn.table("tell-no-table").unwrap().delete(format!("tell-no-key {round}")).unwrap();
        txn.commit().unwrap();
    }
    env
}

#[test]
fn planted_strings_are_in_no_file() {
    let with = |durability| options().durability(durability);
    let modes = [
        ("sync", with(Durability::Sync)),
        ("lazy", with(Durability::LAZY)),
        ("no flush", with(Durability::NoSync).writable_map(true)),
        ("written early", with(Durability::NoSync).dirty_limit(64 << 10)),
        ("a passphrase", Options::new().passphrase("tell-no-key")),
        ("large pages", with(Durability::Sync).page_size(65536)),
    ];
    for (what, options) in modes {
        let (dir, path) = fresh();
        let env = fill(options, &path);
        find_in_all(dir.path(), what);
        env.compact(&CompactOptions::default(), &mut |_, _| true).unwrap();
        find_in_all(dir.path(), what);
        for compact in [false, true] {
            let copy = dir.path().join(format!("copy {compact}"));
            env.copy_to_path(copy, compact, &mut |_, _| true).unwrap();
            let mut stream = Vec::new();
            env.copy_to_writer(&mut stream, compact, &mut |_, _| true).unwrap();
            assert!(stream.len() > 100_000);
            find(&stream, what);
        }
        find_in_all(dir.path(), what);
        env.close().unwrap();
        find_in_all(dir.path(), what);
    }
}

/// What is looked for is found where nothing is encrypted.
#[test]
fn the_search_finds_what_is_there() {
    let (_dir, path) = fresh();
    drop(fill(Options::new(), &path));
    let bytes = std::fs::read(&path).unwrap();
    for planted in PLANTED {
        assert!(bytes.windows(planted.len()).any(|window| window == planted));
    }
}

/// Two stores of one key and content, and a page that is written again with the same content, have nothing in common.
#[test]
fn the_same_content_never_looks_the_same() {
    let image = || {
        let (_dir, path) = fresh();
        let fixed = Geometry::default();
        fill(options().geometry(fixed), &path).close().unwrap();
        drop(open(&path));
        std::fs::read(&path).unwrap()
    };
    let (a, b) = (image(), image());
    let first = 5 * 4096;
    let parts = |bytes: &[u8]| -> std::collections::BTreeSet<Vec<u8>> {
        let whole = bytes[first..].chunks_exact(32).filter(|part| part.iter().any(|b| *b != 0));
        whole.map(<[u8]>::to_vec).collect()
    };
    let (a, b) = (parts(&a), parts(&b));
    assert!(a.len() > 1000 && b.len() > 1000);
    assert_eq!(a.intersection(&b).count(), 0);
}
