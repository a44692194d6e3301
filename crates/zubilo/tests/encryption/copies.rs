//! Copies: under the same key, another one or none; and what is left of damaged stores.

use std::os::unix::fs::FileExt;

use zubilo::{Error, Options, Salvage};

use super::{open, options};
use crate::common::{check, contents, fresh, put_all};

fn records() -> impl Iterator<Item = (String, Vec<u8>)> {
    (0..2000).map(|i| (format!("key {i}"), vec![i as u8; 20 + i % 30 * 300]))
}

#[test]
fn copies_get_the_key_that_is_asked_for() {
    let (dir, path) = fresh();
    let env = options().open(&path).unwrap();
    put_all(&env, "t", records());
    let model = contents(&env.read().unwrap());
    let others = [
        ("the same", options()),
        ("another", Options::new().encryption_key(&[9; 32])),
        ("a passphrase", Options::new().passphrase("another")),
        ("none", Options::new()),
    ];
    for (what, other) in &others {
        for compact in [false, true] {
            let copy = dir.path().join(format!("{what} {compact}"));
            env.copy_to_path_as(&copy, compact, other, &mut |_, _| true).unwrap();
            let mut stream = Vec::new();
            env.copy_to_writer_as(&mut stream, compact, other, &mut |_, _| true).unwrap();
            let streamed = dir.path().join(format!("{what} {compact} streamed"));
            std::fs::write(&streamed, stream).unwrap();
            for copy in [copy, streamed] {
                let copied = other.clone().open(&copy).unwrap();
                check(&copied, what);
                assert_eq!(contents(&copied.read().unwrap()), model, "{what}");
                put_all(&copied, "t", [("more", "in the copy")]);
                check(&copied, what);
                copied.close().unwrap();
                let again = other.clone().open(&copy).unwrap();
                assert_eq!(again.read().unwrap().table("t").unwrap().len(), 2001);
                // And back.
                let back = copy.with_extension("back");
                again.copy_to_path_as(&back, compact, &options(), &mut |_, _| true).unwrap();
                assert_eq!(open(&back).read().unwrap().table("t").unwrap().len(), 2001);
            }
        }
    }
}

#[test]
fn a_copy_has_keys_of_its_own() {
    let (dir, path) = fresh();
    let env = options().open(&path).unwrap();
    put_all(&env, "t", records());
    let copy = dir.path().join("copy");
    env.copy_to_path(&copy, false, &mut |_, _| true).unwrap();
    env.close().unwrap();
    // A page of the store in the same place of its copy.
    let from = std::fs::File::open(&path).unwrap();
    let to = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
    let mut page = [0; 4136];
    let at = 5 * 4096 + 2 * 4136;
    from.read_exact_at(&mut page, at).unwrap();
    to.write_all_at(&page, at).unwrap();
    let env = options().open(&copy).unwrap();
    assert!(env.check(&mut |_, _| true).is_ok_and(|report| !report.is_ok()));
}

#[test]
fn what_is_left_of_a_damaged_store_is_brought_out() {
    let (_dir, path) = fresh();
    let env = options().open(&path).unwrap();
    put_all(&env, "t", records());
    env.close().unwrap();
    let count = |expected: u64| {
        let left = Salvage::open_as(&path, &options(), None).unwrap();
        let table = left.tables().iter().find(|table| table.name == b"t").unwrap();
        let mut all = 0;
        let counted = left.records(table, &mut |key, value| {
            let i: usize = std::str::from_utf8(key).unwrap()[4..].parse().unwrap();
            assert_eq!(value, vec![i as u8; 20 + i % 30 * 300]);
            all += 1;
            Ok(())
        });
        counted.unwrap();
        assert!(all >= expected && all <= 2000, "{all}");
        all
    };
    assert_eq!(count(2000), 2000);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for page in [20, 60, 300] {
        file.write_all_at(&[0; 7], 5 * 4096 + (page - 4) * 4136 + 1000).unwrap();
    }
    assert!(count(1000) < 2000);
    // Without metas too; without the header nobody can.
    file.write_all_at(&[0; 4 * 4096], 0).unwrap();
    let left = Salvage::open_as(&path, &options(), None).unwrap();
    assert!(left.pages() > 10);
    file.write_all_at(&[0; 4096], 4 * 4096).unwrap();
    assert!(Salvage::open_as(&path, &options(), None).is_err());
}

#[test]
fn one_copy_of_the_header_is_enough() {
    let (_dir, path) = fresh();
    put_all(&options().open(&path).unwrap(), "t", [("k", "v")]);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0xff; 512], 4 * 4096).unwrap();
    drop(open(&path));
    file.write_all_at(&[0xff; 512], 4 * 4096 + 2048).unwrap();
    assert!(matches!(options().open(&path), Err(Error::Corrupted { .. })));
}
