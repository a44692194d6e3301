//! `salvage`: what comes out of damaged stores, and how its exit code shows how much that is.

use zubilo::{Options, PageKind};

use crate::harness::{Model, Place, contents, run, small_model};

const PAGE: usize = 4096;

fn big_model() -> Model {
    let records = |n: u32| (n.to_be_bytes().to_vec(), vec![n as u8; 100]);
    Model::from([
        (b"main".to_vec(), (0..2000).map(records).collect()),
        (b"other".to_vec(), (0..50).map(records).collect()),
    ])
}

#[test]
fn a_whole_store_is_copied() {
    let place = Place::new();
    let store = place.store("s", &big_model());
    let shown = run(&["salvage", &store, &place.arg("new"), "--json"]).code(0).json();
    assert_eq!((&shown["list_gaps"], &shown["tables"][0]["records"]), (&0.into(), &2000.into()));
    assert_eq!(contents(place.path("new")), big_model());
    run(&["chk", &place.arg("new"), "-q"]).ok();
    // Nothing is written over.
    run(&["salvage", &store, &place.arg("new")]).code(2).says("exists");
}

#[test]
fn without_metas_everything_is_found_by_its_pages() {
    let place = Place::new();
    let store = place.store("s", &big_model());
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[..4 * PAGE].fill(0xee);
    std::fs::write(&store, &bytes).unwrap();
    run(&["chk", &store]).code(3);
    let shown = run(&["salvage", &store, &place.arg("new")]).code(3);
    let text = String::from_utf8(shown.out).unwrap();
    assert!(text.contains("no meta page is whole") && text.contains("2,000 found"), "{text}");
    assert_eq!(contents(place.path("new")), big_model());
    run(&["chk", &place.arg("new"), "-q"]).ok();
    assert_eq!(std::fs::read(&store).unwrap(), bytes, "the damaged file was changed");
}

#[test]
fn a_damaged_leaf_costs_its_records_only() {
    let place = Place::new();
    let store = place.store("s", &big_model());
    let mut leaves = Vec::new();
    let env = Options::new().read_only(true).open(&store).unwrap();
    env.walk_pages(&mut |visit| {
        if visit.kind == PageKind::Leaf && visit.table == b"main" {
            leaves.push((visit.page.0 as usize, visit.entries));
        }
        true
    })
    .unwrap();
    drop(env);
    let (page, entries) = leaves[leaves.len() / 2];
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[page * PAGE + 1000] ^= 4;
    std::fs::write(&store, &bytes).unwrap();
    let shown = run(&["salvage", &store, &place.arg("new"), "--json"]).code(3).json();
    assert_eq!(shown["tables"][0]["gaps"], 1);
    let found = contents(place.path("new"));
    let whole = big_model();
    assert_eq!(found[&b"main"[..]].len(), 2000 - entries);
    assert!(
        found[&b"main"[..]]
            .iter()
            .all(|record| whole[&b"main"[..]].get(record.0) == Some(record.1))
    );
    assert_eq!(found[&b"other"[..]], whole[&b"other"[..]]);
}

#[test]
fn text_comes_out_as_dump_writes_it() {
    let place = Place::new();
    let store = place.store("s", &small_model());
    let dumped = run(&["dump", &store, "--json"]).ok();
    let salvaged = run(&["salvage", &store, "--json"]).code(0);
    assert_eq!(String::from_utf8(salvaged.out).unwrap(), dumped);
    assert!(salvaged.err.contains("\"list_gaps\":0"));
    assert_eq!(
        run(&["salvage", &store, "-f", "csv"]).ok(),
        run(&["dump", &store, "-f", "csv", "-e", "escaped"]).ok()
    );
}

#[test]
fn what_is_no_store_is_refused() {
    let place = Place::new();
    std::fs::write(place.path("text"), vec![b'x'; 100_000]).unwrap();
    run(&["salvage", &place.arg("text")]).code(3);
    run(&["salvage", &place.arg("missing")]).code(4);
}
