//! Who has the key gets in, and nobody else.

use zubilo::{Env, Error, Options, Salvage};

use super::{KEY, open, options};
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
