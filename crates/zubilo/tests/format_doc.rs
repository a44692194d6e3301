//! `docs/file-format.md` against a real file: the fields follow each other without gaps, and hold
//! what the document says.

use std::fs;
use std::path::Path;

use zubilo::Options;

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
    assert_gapless(&meta, 4096);
    assert_gapless(&desc, 80);
    assert_gapless(&table("## Blob reference"), 32);
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
    let get = |text| number(newest, &meta, text);
    assert_eq!(newest[8..16], *b"ZUBILO\x1a\n");
    assert_eq!((get("format version"), get("page size"), get("trust")), (1, 12, 2));
    assert_eq!((get("transaction"), info.newest.0), (3, 3));
    assert_eq!(get("end") << 12, info.used_len);
    assert_eq!(newest[24..40], info.uuid);
    assert_eq!((get("geometry: lower"), get("geometry: upper")), (0, u64::MAX));
    assert_eq!((get("identity for"), get("bytes in the chain")), (3, 0));
    let log = meta.last().unwrap();
    let log_len = get("length of the log") as usize;
    assert!(log_len > 0 && newest[log.at + log_len..].iter().all(|b| *b == 0));

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
