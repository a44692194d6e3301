//! Who has the key gets in, and nobody else.

use std::os::unix::fs::FileExt;

use zubilo::{Env, Error, Options, Salvage};

use super::{KEY, open, options};
use crate::common::process::{Program, apart, say, task, wait};
use crate::common::{contents, fresh, put_all};

#[test]
fn a_store_opens_with_its_key_only() {
    let (_dir, path) = fresh();
    put_all(&options().open(&path).unwrap(), "t", [("k", "v")]);
    assert!(matches!(Options::new().open(&path), Err(Error::KeyMissing)));
    assert!(matches!(Options::new().read_only(true).open(&path), Err(Error::KeyMissing)));
    assert!(matches!(Env::stored_commits(&path), Err(Error::KeyMissing)));
    assert!(matches!(Salvage::open(&path), Err(Error::KeyMissing)));
    for bit in [0, 100, 255] {
        let mut wrong = KEY;
        wrong[bit / 8] ^= 1 << (bit % 8);
        let wrong = Options::new().encryption_key(&wrong);
        assert!(matches!(wrong.clone().open(&path), Err(Error::WrongKey)));
        assert!(matches!(Env::stored_commits_as(&path, &wrong), Err(Error::WrongKey)));
        assert!(matches!(Salvage::open_as(&path, &wrong, None), Err(Error::WrongKey)));
    }
    assert!(matches!(Options::new().passphrase(KEY).open(&path), Err(Error::WrongKey)));
    let env = open(&path);
    assert_eq!(contents(&env.read().unwrap()).len(), 1);
    drop(env);
    assert!(!Env::stored_commits_as(&path, &options()).unwrap().is_empty());
}

#[test]
fn a_passphrase_opens_what_was_made_with_it() {
    let (_dir, path) = fresh();
    let with = |phrase: &str| Options::new().passphrase(phrase).open(&path);
    put_all(&with("gut gehütet").unwrap(), "t", [("k", "v")]);
    assert_eq!(contents(&with("gut gehütet").unwrap().read().unwrap()).len(), 1);
    for wrong in ["", "gut gehuetet", "gut gehütet "] {
        assert!(matches!(with(wrong), Err(Error::WrongKey)));
    }
    assert!(matches!(options().open(&path), Err(Error::WrongKey)));
    assert!(matches!(Options::new().open(&path), Err(Error::KeyMissing)));
}

#[test]
fn a_key_is_refused_where_nothing_is_encrypted() {
    let (_dir, path) = fresh();
    put_all(&Options::new().open(&path).unwrap(), "t", [("k", "v")]);
    assert!(matches!(options().open(&path), Err(Error::NotEncrypted)));
    assert!(matches!(Salvage::open_as(&path, &options(), None), Err(Error::NotEncrypted)));
    assert_eq!(contents(&Options::new().open(&path).unwrap().read().unwrap()).len(), 1);
}

/// The second open of a process shares what the first has decrypted.
#[test]
fn a_second_handle_needs_the_key_too() {
    let (_dir, path) = fresh();
    let _env = options().open(&path).unwrap();
    options().open(&path).unwrap();
    assert!(matches!(Options::new().open(&path), Err(Error::KeyMissing)));
    assert!(matches!(Options::new().encryption_key(&[1; 32]).open(&path), Err(Error::WrongKey)));
    let (_dir, path) = fresh();
    let _env = Options::new().open(&path).unwrap();
    assert!(matches!(options().open(&path), Err(Error::NotEncrypted)));
}

#[test]
fn what_would_show_the_content_is_refused() {
    let (_dir, path) = fresh();
    assert!(matches!(options().redo_log(1 << 20).open(&path), Err(Error::Invalid(_))));
    let env = options().open(&path).unwrap();
    let since = env.read().unwrap().id();
    let changes = env.copy_changes_to_writer(since, &mut Vec::new(), &mut |_, _| true);
    assert!(matches!(changes, Err(Error::Invalid(_))));
}

#[test]
fn keys_are_not_shown() {
    let shown = format!("{:?}", Options::new().passphrase("visible?").encryption_key(&[0x41; 32]));
    assert!(!shown.contains("visible") && !shown.contains("65, 65") && !shown.contains("AAAA"));
    let shown = format!("{:?}", Options::new().passphrase("visible?"));
    assert!(!shown.contains("visible") && shown.contains("Passphrase"));
}

/// A creation that was killed after the header: whoever comes next creates the store, with the key of its own.
#[test]
fn a_creation_that_was_cut_off_is_done_anew() {
    let (_dir, path) = fresh();
    options().open(&path).unwrap().close().unwrap();
    let mut image = std::fs::read(&path).unwrap();
    image[..4 * 4096].fill(0);
    let rest = image[4 * 4096..].iter().filter(|byte| **byte != 0).count();
    assert!(rest > 64, "the header is there");
    for other in [Options::new().encryption_key(&[3; 32]), Options::new()] {
        let (_dir, path) = fresh();
        std::fs::write(&path, &image).unwrap();
        put_all(&other.clone().open(&path).unwrap(), "t", [("k", "v")]);
        assert_eq!(contents(&other.open(&path).unwrap().read().unwrap()).len(), 1);
        assert!(options().open(&path).is_err());
    }
}

/// Another process holds the store while somebody changes the metas in the file: whoever comes then must not get it as
/// one that is not encrypted, neither with the key nor without.
#[test]
fn who_joins_others_gets_no_plain_file_whatever_the_metas_say() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let plain_path = path.with_extension("plain");
    put_all(&options().open(&path).unwrap(), "t", [("k", "v")]);
    put_all(&Options::new().open(&plain_path).unwrap(), "t", [("k", "v")]);
    let mut holder = Program::start("keys::child_holds_the_store", &path);
    assert_eq!(holder.hear(), "open");
    let metas = std::fs::read(&path).unwrap()[..4 * 4096].to_vec();
    let of_plain = std::fs::read(&plain_path).unwrap()[..4 * 4096].to_vec();
    // Without its authenticator, and of the version that has none, sealed as anybody can.
    let mut degraded = metas.clone();
    for page in degraded.chunks_exact_mut(4096).filter(|page| page.iter().any(|b| *b != 0)) {
        page[16..20].copy_from_slice(&2u32.to_le_bytes());
        zubilo::seal_meta(page);
    }
    let scratched: Vec<u8> = metas.iter().map(|byte| byte ^ 0xa5).collect();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    for hostile in [vec![0; metas.len()], scratched, degraded, of_plain] {
        file.write_all_at(&hostile, 0).unwrap();
        let before = std::fs::read(&path).unwrap();
        for options in [options(), Options::new(), Options::new().read_only(true)] {
            options.open(&path).unwrap_err();
        }
        assert!(std::fs::read(&path).unwrap() == before, "nothing is written");
    }
    file.write_all_at(&metas, 0).unwrap();
    assert!(matches!(Options::new().open(&path), Err(Error::KeyMissing)));
    assert_eq!(contents(&options().open(&path).unwrap().read().unwrap()).len(), 1);
    holder.go();
    holder.finish();
}

#[test]
#[ignore = "program: run by other tests"]
fn child_holds_the_store() {
    let Some(path) = task() else { return };
    let _env = options().open(path).unwrap();
    say("open");
    wait();
}

/// Whoever can write the header could ask for all of the memory.
#[test]
fn a_header_cannot_ask_for_any_cost() {
    let (_dir, path) = fresh();
    let with = || Options::new().passphrase("phrase");
    with().open(&path).unwrap().close().unwrap();
    let image = std::fs::read(&path).unwrap();
    for (word, cost) in [(0, (1 << 20) + 1), (0, u32::MAX), (1, 17), (2, 17)] {
        let mut hostile = image.clone();
        for copy in [4 * 4096, 4 * 4096 + 2048] {
            let header = &mut hostile[copy..copy + 512];
            header[20 + word * 4..24 + word * 4].copy_from_slice(&u32::to_le_bytes(cost));
            let sum = twox_hash::XxHash3_64::oneshot(&header[..504]);
            header[504..].copy_from_slice(&sum.to_le_bytes());
        }
        std::fs::write(&path, &hostile).unwrap();
        assert!(matches!(with().open(&path), Err(Error::Corrupted { .. })), "{word}: {cost}");
    }
}
