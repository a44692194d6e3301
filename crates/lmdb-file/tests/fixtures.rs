//! Files of machines of 32 bits, and with other sizes of pages, as `fixtures/make.c` wrote them.

use std::path::PathBuf;

use lmdb_file::{LmdbFile, Record};

type Contents = Vec<(Vec<u8>, Vec<u8>)>;

/// What `make.c` puts into each table, in the tables' order.
fn expected() -> Vec<(Option<&'static str>, Contents)> {
    let number = |n: u32| n.to_le_bytes().to_vec();
    let plain = (0..150u32).map(|i| {
        let len = if i % 50 == 49 { 5000 } else { i as usize * 37 % 90 };
        (format!("{:05}", i * 7).into_bytes(), vec![i as u8; len])
    });
    let mut numbers: Vec<u32> = (0..100u32).map(|i| i.wrapping_mul(1_000_003)).collect();
    numbers.sort();
    let numbers = numbers.into_iter().map(|n| (number(n), b"n".to_vec()));
    let values = |few: u32, many: u32, value: &dyn Fn(u32) -> Vec<u8>| -> Contents {
        let counts = [few, many, few];
        let keys = b"abc".iter().zip(counts);
        keys.flat_map(|(key, n)| (0..n).map(move |j| (vec![*key], j)))
            .map(|(key, j)| (key, value(j)))
            .collect()
    };
    let texts = values(3, 400, &|j| format!("value {j:03}").into_bytes());
    let packed = values(3, 1500, &|j| number(j * 7919));
    vec![
        (None, vec![(b"unnamed".to_vec(), b"u".to_vec())]),
        (Some("numbers"), numbers.collect()),
        (Some("packed"), packed),
        (Some("plain"), plain.collect()),
        (Some("texts"), texts),
    ]
}

#[test]
fn other_machines_and_page_sizes_are_read() {
    let fixtures = [
        ("bits32.mdb", 32, 4096),
        ("pages512.mdb", 64, 512),
        ("pages2k.mdb", 64, 2048),
        ("pages32k.mdb", 64, 32768),
    ];
    for (name, bits, page_size) in fixtures {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        let file = LmdbFile::open(path).unwrap();
        assert_eq!((file.info().bits, file.info().page_size), (bits, page_size), "{name}");
        let tables = file.tables().unwrap();
        let mut reader = file.reader();
        let mut record = Record::default();
        let expected = expected();
        assert_eq!(tables.len(), expected.len(), "{name}");
        for (table, (wanted, contents)) in tables.iter().zip(expected) {
            assert_eq!(table.name.as_deref(), wanted.map(str::as_bytes), "{name}");
            assert_eq!(table.records(), contents.len() as u64, "{name}, {wanted:?}");
            reader.begin(table).unwrap();
            for pair in &contents {
                assert!(reader.next(&mut record).unwrap(), "{name}, {wanted:?}");
                assert!((&record.key, &record.value) == (&pair.0, &pair.1), "{name}, {wanted:?}");
            }
            assert!(!reader.next(&mut record).unwrap(), "{name}, {wanted:?}");
        }
    }
}
