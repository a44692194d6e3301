//! `docs/file-format.md` against a real file: the fields follow each other without gaps, and hold
//! what the document says.

use std::fs;
use std::path::Path;

use zubilo::{KeyOrder, Options, TableOptions};

/// A row of a table of fields.
struct Field {
    at: usize,
    size: usize,
    text: String,
}

/// The table under a heading.
fn table(heading: &str) -> Vec<Field> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/file-format.md");
    let text = fs::read_to_string(path).unwrap();
    let start = text.find(heading).unwrap_or_else(|| panic!("no heading {heading}"));
    let section = text[start..].lines().skip(1).take_while(|l| !l.starts_with("## "));
    let rows = section.filter(|l| l.starts_with("| ") && !l.starts_with("| at"));
    let field = |row: &str| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let mut number = || cells.next().unwrap().parse().unwrap();
        Field { at: number(), size: number(), text: cells.next().unwrap().to_string() }
    };
    rows.map(field).collect()
}

fn assert_gapless(fields: &[Field], len: usize) {
    let mut at = 0;
    for field in fields {
        assert_eq!(field.at, at, "{}", field.text);
        at += field.size;
    }
    assert_eq!(at, len);
}

/// The number in the field whose text starts so.
fn number(bytes: &[u8], fields: &[Field], text: &str) -> u64 {
    let field =
        fields.iter().find(|f| f.text.starts_with(text)).unwrap_or_else(|| panic!("{text}"));
    let mut word = [0; 8];
    word[..field.size].copy_from_slice(&bytes[field.at..field.at + field.size]);
    u64::from_le_bytes(word)
}

#[test]
fn the_meta_is_as_documented() {
    let meta = table("## Meta");
    let desc = table("## Tree descriptor");
    assert_gapless(&meta, 3528);
    assert_gapless(&desc, 80);
    assert_gapless(&table("## Segment reference"), 32);
    assert_gapless(&table("## Page header"), 48);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zubilo");
    let env = Options::new().open(&path).unwrap();
    for name in ["a", "b"] {
        let mut write = env.write().unwrap();
        write.table_or_create(name).unwrap().put("key", "value").unwrap();
        write.commit().unwrap();
    }
    let info = env.info().unwrap();
    env.close().unwrap();

    let file = fs::read(&path).unwrap();
    let metas = file.chunks(4096).take(3);
    let newest = metas.max_by_key(|page| number(page, &meta, "transaction")).unwrap();
    let sum = twox_hash::XxHash3_64::oneshot;
    let sectors = newest.as_chunks::<512>().0;
    let (mut content, mut parity, mut seals) = (Vec::new(), [0; 504], Vec::new());
    for (i, sector) in sectors.iter().enumerate() {
        let (body, seal) = sector.split_at(504);
        assert_eq!(seal, sum(body).to_le_bytes(), "sector {i}");
        if i < 7 {
            content.extend_from_slice(body);
            parity.iter_mut().zip(body).for_each(|(to, byte)| *to ^= byte);
        }
        if (1..7).contains(&i) {
            seals.extend_from_slice(seal);
        }
    }
    assert_eq!(sectors[7][..504], parity);
    let newest = &content[..];
    let get = |text| number(newest, &meta, text);
    assert_eq!(get("binding"), sum(&[&newest[8..504], &seals].concat()));
    assert_eq!(newest[8..16], *b"ZUBILO\x1a\n");
    assert_eq!((get("format version"), get("page size"), get("trust")), (2, 12, 2));
    assert_eq!((get("transaction"), info.newest.0), (3, 3));
    assert_eq!(get("end") << 12, info.used_len);
    assert_eq!(newest[24..40], info.uuid);
    assert_eq!((get("geometry: lower"), get("geometry: upper")), (0, u64::MAX));
    assert_eq!(get("identity for"), 3);
    let log = meta.iter().find(|f| f.text.starts_with("free-space log: the tail")).unwrap();
    assert_eq!(get("redo log: 0"), 0);
    let (tail_len, delta_len) =
        (get("free-space log: length of the tail"), get("free-space log: length of the newest"));
    assert!(delta_len > 0 && delta_len < tail_len);
    assert!(newest[log.at + tail_len as usize..].iter().all(|b| *b == 0));

    let at = meta.iter().find(|f| f.text.starts_with("main tree")).unwrap().at;
    let main = &newest[at..at + 80];
    let get = |text| number(main, &desc, text);
    assert_eq!((get("records"), get("leaf pages"), get("branch pages")), (2, 1, 0));
    assert_eq!((get("depth"), get("order"), get("alignment"), get("identity")), (1, 0, 1, 0));

    let header = table("## Page header");
    let root = get("root page") as usize;
    let page = &file[root << 12..(root + 1) << 12];
    let get = |text| number(page, &header, text);
    assert_eq!((get("number of this page"), get("birth"), get("kind")), (root as u64, 3, 2));
    assert_eq!((get("level"), get("count"), get("table")), (0, 2, 0));
}

/// Where `what` ends in `bytes`, the last time that it stands there.
fn behind(bytes: &[u8], what: &[u8]) -> usize {
    let at = bytes.windows(what.len()).rposition(|w| w == what);
    at.expect("it is in the file") + what.len()
}

#[test]
fn duplicates_are_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zubilo");
    let env = Options::new().open(&path).unwrap();
    let mut write = env.write().unwrap();
    let options = TableOptions::new().value_order(KeyOrder::Reversed);
    let mut loose = write.create_table("loose", options).unwrap();
    for value in ["za", "", "ab", "c"] {
        loose.put("a few of them", value).unwrap();
    }
    let options = TableOptions::new().fixed_duplicates().value_order(KeyOrder::Integer);
    let mut fixed = write.create_table("fixed", options).unwrap();
    for value in [9u32, 5] {
        fixed.put("a pair of them", value.to_le_bytes()).unwrap();
    }
    for value in 0u32..800 {
        fixed.put("very many of them", value.to_le_bytes()).unwrap();
    }
    write.commit().unwrap();
    env.close().unwrap();

    let desc = table("## Tree descriptor");
    let file = fs::read(&path).unwrap();
    let set = &file[behind(&file, b"a few of them")..];
    assert_eq!(set[..17], *b"\0\0\x04\0\0\0\x02\0\x04\0\x05\0zaabc");
    let set = &file[behind(&file, b"a pair of them")..];
    assert_eq!(set[..10], [4, 0, 5, 0, 0, 0, 9, 0, 0, 0]);

    let of_table = &file[behind(&file, b"fixed")..][..80];
    let get = |text| number(of_table, &desc, text);
    assert_eq!((get("flags"), get("size of the values"), get("records")), (2 + 1 + 8, 4, 802));
    assert_eq!((get("pages of trees"), get("identity"), get("order")), (1, 2, 0));
    let of_loose = &file[behind(&file, b"loose")..][..80];
    assert_eq!(number(of_loose, &desc, "flags"), 1 + 4);

    let of_values = &file[behind(&file, b"very many of them")..][..80];
    let get = |text| number(of_values, &desc, text);
    assert_eq!((get("flags"), get("size of the values"), get("records")), (2, 4, 800));
    assert_eq!((get("order"), get("identity"), get("depth")), (2, 2 + (1 << 31), 1));

    let header = table("## Page header");
    let page = &file[(get("root page") as usize) << 12..][..4096];
    let get = |text| number(page, &header, text);
    assert_eq!((get("kind"), get("count"), get("packed leaves: size")), (3, 800, 4));
    assert_eq!((get("table"), page[48 + 4 * 700]), (2 + (1 << 31), 700u32 as u8));
}
