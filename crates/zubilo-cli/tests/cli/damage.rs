//! Damaged stores: exit code 3, never a panic or a signal, and nothing made worse.

use std::path::Path;

use support::{Rng, rng};

use zubilo::{Options, PageKind, TxnId};

use crate::harness::{Model, Place, random_model, run, run_with};

const PAGE: usize = 4096;

/// A store of some size, as bytes, and the pages of trees that older commits than the last two
/// wrote: an open verifies the last ones by itself and goes back to the commit before.
fn store_bytes(place: &Place, rng: &mut Rng) -> (Vec<u8>, Vec<usize>) {
    let mut model = random_model(rng);
    let records = (0..400u32).map(|i| (i.to_be_bytes().to_vec(), vec![i as u8; 60]));
    model.insert(b"main".to_vec(), records.collect());
    let store = place.store("good", &model);
    for key in ["later", "later still"] {
        run(&["put", &store, "--create", "-t", "second", key, "1"]).ok();
    }
    let env = Options::new().read_only(true).open(&store).unwrap();
    let mut old = Vec::new();
    env.walk_pages(&mut |visit| {
        if matches!(visit.kind, PageKind::Leaf | PageKind::Branch) && visit.birth < TxnId(3) {
            old.push(visit.page.0 as usize);
        }
        true
    })
    .unwrap();
    assert!(old.len() > 5);
    (std::fs::read(store).unwrap(), old)
}

/// Puts the bytes at `name`, without a lock file from before.
fn place_store(place: &Place, name: &str, bytes: &[u8]) -> String {
    let path = place.arg(name);
    let _ = std::fs::remove_file(format!("{path}-lock"));
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_flipped_byte_is_found() {
    let mut rng = rng();
    let place = Place::new();
    let (good, old) = store_bytes(&place, &mut rng);
    for _ in 0..20 {
        let mut bad = good.clone();
        let page = old[rng.index(old.len())];
        bad[page * PAGE + rng.index(PAGE)] ^= 1 << rng.below(8);
        let store = place_store(&place, "bad", &bad);
        run(&["chk", &store]).code(3);
        let shown = run(&["chk", &store, "--json"]).code(3).json();
        assert_eq!(shown["problems"][0]["page"], page);
    }
}

#[test]
fn a_damaged_last_commit_is_reported() {
    let place = Place::new();
    let store = place.small_store("s");
    run(&["put", &store, "k", "the newest"]).ok();
    run(&["chk", &store, "--strict", "-q"]).ok();
    let mut bytes = std::fs::read(&store).unwrap();
    let at = bytes.windows(10).rposition(|w| w == b"the newest").unwrap();
    bytes[at] ^= 1;
    let store = place_store(&place, "s", &bytes);
    run(&["get", &store, "k"]).code(1).says("note: the file holds a newer commit, 3");
    let noted = run(&["get", &store, "k", "--json"]).code(1).says("{\"note\":\"the file holds");
    assert_eq!(noted.json()["found"], false);
    let shown = run(&["chk", &store, "--json"]).code(0).json();
    assert_eq!((&shown["txn"], &shown["untrusted"]), (&2.into(), &3.into()));
    let shown = run(&["chk", &store, "--strict", "-q"]).code(3);
    assert!(String::from_utf8_lossy(&shown.out).contains("not trusted"));
    assert!(run(&["stat", &store]).ok().contains("not trusted"));
    run(&["put", &store, "k", "again"]).ok();
    run(&["chk", &store, "--strict", "-q"]).ok();
}

#[test]
fn problems_are_listed_and_dump_stops_at_them() {
    let place = Place::new();
    let records = (0..4000u32).map(|i| (i.to_be_bytes().to_vec(), vec![b'v'; 60]));
    let model = Model::from([(b"main".to_vec(), records.collect())]);
    let mut bytes = std::fs::read(place.store("good", &model)).unwrap();
    // An open verifies the last commits; the damage is to be in an older one.
    let store = place_store(&place, "s", &bytes);
    for key in ["later", "later still"] {
        run(&["put", &store, "--create", "-t", "second", key, "1"]).ok();
    }
    bytes = std::fs::read(&store).unwrap();
    let at = bytes.windows(60).position(|w| w == [b'v'; 60]).unwrap();
    bytes[at] ^= 0x10;
    let store = place_store(&place, "s", &bytes);
    let shown = run(&["chk", &store]).code(3);
    let text = String::from_utf8_lossy(&shown.out);
    assert!(text.contains("table \"main\"") && text.contains("problem"), "{text}");
    let shown = run(&["chk", &store, "--json"]).code(3).json();
    assert_eq!(shown["ok"], false);
    assert_eq!(shown["problems"][0]["table"], "main");
    assert!(shown["problems"][0]["page"].as_u64() > Some(3));
    let dumped = run(&["dump", &store, "-t", "main"]).code(3).says("zubilo chk");
    assert!(!dumped.out.ends_with(b"DATA=END\n"));
    run(&["dump", &store, "-t", "second"]).ok();
    run(&["copy", &store, &place.arg("copy"), "--compact"]).code(3);
    assert!(!place.path("copy").exists(), "an unfinished copy was left");
}

/// Runs every command on a store; none may do worse than report the damage.
fn try_everything(place: &Place, store: &str) {
    let copy = place.arg("copy");
    let commands: [&[&str]; 11] = [
        &["get", store, "a"],
        &["scan", store, "--from", "a"],
        &["scan", store, "--reverse", "--json"],
        &["tables", store],
        &["stat", store],
        &["chk", store],
        &["dump", store, "-f", "jsonl"],
        &["copy", store, &copy],
        &["copy", store, "-", "--compact"],
        &["put", store, "--create", "k", "v"],
        &["del", store, "--prefix", "a"],
    ];
    for args in commands {
        let _ = std::fs::remove_file(Path::new(&copy));
        let done = run(args);
        assert!([0, 1, 3, 4].contains(&done.code), "{args:?}: {done:?}");
        // A note on a commit that is not trusted may come first.
        let is_error = |line: &str| line.starts_with("zubilo: ") || line.starts_with("{\"error\":");
        let shown = done.err.lines().any(is_error);
        let explained = shown || args[0] == "chk";
        assert!([0, 1].contains(&done.code) || explained, "{args:?}: {done:?}");
    }
    let input = b"VERSION=3\nHEADER=END\n 61\n 62\nDATA=END\n";
    let loaded = run_with(&["load", store], input);
    assert!([0, 3, 4].contains(&loaded.code), "{loaded:?}");
    let dropped = run(&["drop", store, "-t", "main", "-y"]);
    assert!([0, 1, 3, 4].contains(&dropped.code), "{dropped:?}");
}

#[test]
fn random_damage_never_ends_in_a_panic() {
    let mut rng = rng();
    let place = Place::new();
    let (good, _) = store_bytes(&place, &mut rng);
    for round in 0..25 {
        let mut bad = good.clone();
        match round % 5 {
            0 => bad.truncate(rng.range(1..bad.len())),
            1 => {
                let page = rng.index(bad.len() / PAGE);
                bad[page * PAGE..][..PAGE].fill(rng.byte());
            }
            2 => {
                let (a, b) = (rng.index(bad.len() / PAGE), rng.index(8));
                bad.copy_within(a * PAGE..(a + 1) * PAGE, b * PAGE);
            }
            _ => {
                for _ in 0..rng.range(1..200) {
                    let at = rng.index(bad.len());
                    bad[at] = rng.byte();
                }
            }
        }
        let store = place_store(&place, "bad", &bad);
        try_everything(&place, &store);
    }
}

#[test]
fn a_store_without_a_whole_meta_is_damaged() {
    let mut rng = rng();
    let place = Place::new();
    let (mut bytes, _) = store_bytes(&place, &mut rng);
    for meta in bytes[..4 * PAGE].chunks_mut(PAGE) {
        // The magic number at the start stays, so that this is a store, but a broken one.
        meta[100..].fill(0xaa);
    }
    let store = place_store(&place, "bad", &bytes);
    for command in ["tables", "stat", "chk", "scan", "dump"] {
        run(&[command, &store]).code(3).says("zubilo: open");
    }
    run(&["put", &store, "--create", "k", "v"]).code(3);
    assert!(std::fs::read(&store).unwrap() == bytes, "the damaged file was changed");
}

#[test]
fn an_older_commit_is_listed_checked_copied_and_gone_back_to() {
    let place = Place::new();
    let store = place.small_store("s");
    for value in ["older", "newest"] {
        run(&["put", &store, "k", value]).ok();
    }
    let listed = run(&["commits", &store, "--json", "--check"]).code(0).json();
    let commits = listed.as_array().unwrap();
    let of = |n: usize| commits[n]["txn"].as_u64().unwrap();
    assert!(commits.len() >= 2 && of(0) == of(1) + 1, "{listed}");
    assert_eq!((&commits[0]["whole"], &commits[0]["state"]), (&true.into(), &"on disk".into()));
    let text = run(&["commits", &store]).ok();
    assert!(text.starts_with(&format!("commit {}: on disk", of(0))), "{text}");
    // The commit before the newest is still whole: its pages are the steady point's.
    assert_eq!(commits[1]["whole"], true, "{listed}");
    let older = of(1).to_string();
    run(&["chk", &store, "--commit", &older]).ok();
    let copy = place.arg("copy");
    run(&["copy", &store, &copy, "--commit", &older]).ok();
    assert_eq!(run(&["get", &copy, "k"]).ok(), "older\n");
    let out = place.arg("salvaged");
    run(&["salvage", &store, &out, "--commit", &older]).ok();
    assert_eq!(run(&["get", &out, "k"]).ok(), "older\n");
    run(&["chk", &store, "--commit", "999"]).code(4).says("names the chosen commit");
    // Nothing is lost without a word.
    let before = std::fs::read(&store).unwrap();
    run(&["commits", &store, "--go-back-to", &older]).code(2).says("--yes");
    run(&["commits", &store, "--go-back-to", "999", "--yes"]).code(4);
    assert!(std::fs::read(&store).unwrap() == before);
    run(&["commits", &store, "--go-back-to", &older, "--yes"]).ok();
    assert_eq!(run(&["get", &store, "k"]).ok(), "older\n");
    run(&["chk", &store, "--strict"]).ok();
}
