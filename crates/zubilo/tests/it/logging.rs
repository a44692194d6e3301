//! What a store tells: messages to a logger, audits after commits, the options of tables, handles on
//! tables that outlive transactions.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use crate::common::{fresh, geometry, put_all, without_panic_messages};
use zubilo::{Error, KeyOrder, Level, Options, TableOptions};

type Messages = Arc<Mutex<Vec<(Level, String)>>>;

fn listening(most: Level) -> (Options, Messages) {
    let messages = Messages::default();
    let to = Arc::clone(&messages);
    let options = Options::new().logger(most, move |level, message| {
        to.lock().unwrap().push((level, message.to_string()));
    });
    (options, messages)
}

fn count(messages: &Messages, level: Level, part: &str) -> usize {
    let all = messages.lock().unwrap();
    all.iter().filter(|(l, m)| *l == level && m.contains(part)).count()
}

#[test]
fn the_logger_hears_of_what_it_asked_for() {
    for most in [Level::Warn, Level::Debug] {
        let (_dir, path) = fresh();
        let (options, messages) = listening(most);
        let small = geometry(|g| g.upper = 1 << 20);
        let env = options.geometry(small).dirty_limit(100 << 10).open(&path).unwrap();
        put_all(&env, "t", [("key", "value")]);
        let mut txn = env.write().unwrap();
        let mut table = txn.table("t").unwrap();
        let full = (0..10_000u32).find_map(|n| table.put(n.to_be_bytes(), [0; 500]).err());
        assert!(matches!(full, Some(Error::MapFull { .. })), "{full:?}");
        drop(txn);
        let all = most == Level::Debug;
        assert_eq!(count(&messages, Level::Info, "is open"), usize::from(all));
        assert_eq!(count(&messages, Level::Debug, "commit 2:"), usize::from(all));
        assert_eq!(count(&messages, Level::Info, "written early") > 0, all);
        assert!(count(&messages, Level::Warn, "upper bound") > 0);
    }
}

#[test]
fn a_panicking_logger_disturbs_nothing() {
    let (_dir, path) = fresh();
    let options = Options::new().logger(Level::Debug, |_, _| panic!("a fault of the logger"));
    let env = options.open(path).unwrap();
    put_all(&env, "t", [("key", "value")]);
    put_all(&env, "t", [("key", "other")]);
    assert_eq!(env.read().unwrap().table("t").unwrap().get("key").unwrap(), Some(&b"other"[..]));
}

/// A panic's value is the program's too, and may panic itself when it is dropped.
#[test]
fn a_logger_whose_panics_panic_disturbs_nothing() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("another fault of the logger");
        }
    }
    without_panic_messages(|| {
        let (_dir, path) = fresh();
        let options = Options::new().logger(Level::Debug, |_, _| std::panic::panic_any(Bomb));
        let env = options.open(path).unwrap();
        put_all(&env, "t", [("key", "value")]);
        put_all(&env, "t", [("key", "other")]);
        let read = env.read().unwrap();
        assert_eq!(read.table("t").unwrap().get("key").unwrap(), Some(&b"other"[..]));
    });
}

#[test]
fn an_audit_finds_damage_at_the_next_commit() {
    let (_dir, path) = fresh();
    let (options, messages) = listening(Level::Error);
    let env = options.audit(true).open(&path).unwrap();
    put_all(&env, "sound", (0..5000u32).map(|n| (n.to_be_bytes(), b"a value to be looked for")));
    assert!(messages.lock().unwrap().is_empty());
    let bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(10).position(|w| w == b"looked for").unwrap() as u64;
    std::fs::File::options().write(true).open(&path).unwrap().write_all_at(b"X", at).unwrap();
    let mut txn = env.write().unwrap();
    txn.table_or_create("other").unwrap().put("key", "value").unwrap();
    match txn.commit() {
        Err(Error::Corrupted { page, .. }) => assert_eq!(page.0, at / 4096),
        other => panic!("{other:?}"),
    }
    assert!(count(&messages, Level::Error, "audit of commit 3") > 0);
    // The commit itself was sound.
    assert_eq!(env.read().unwrap().table("other").unwrap().len(), 1);
}

#[test]
fn options_can_be_read_and_used_again() {
    let (_dir, path) = fresh();
    let env = Options::new().open(path).unwrap();
    let reversed = |a: &[u8], b: &[u8]| b.cmp(a);
    let all = [
        TableOptions::new(),
        TableOptions::new().align_values(8).key_order(KeyOrder::Integer),
        TableOptions::new().duplicates().key_order(KeyOrder::Reversed),
        TableOptions::new().fixed_duplicates().value_order(KeyOrder::Integer),
        TableOptions::new().compare_keys(reversed).compare_values(reversed),
    ];
    let mut txn = env.write().unwrap();
    for (n, options) in all.iter().enumerate() {
        let told = txn.create_table([n as u8], options.clone()).unwrap().options();
        assert_eq!(format!("{told:?}"), format!("{options:?}"));
    }
    txn.commit().unwrap();
    let read = env.read().unwrap();
    let mut txn = env.write().unwrap();
    for (n, options) in (0u8..).zip(&all) {
        let told = read.table_options([n]).unwrap();
        assert_eq!(format!("{told:?}"), format!("{options:?}"));
        assert_eq!(read.table_stats([n]).unwrap().entries, 0);
        if told.keys() == KeyOrder::Custom {
            assert!(matches!(txn.create_table("c", told.clone()), Err(Error::Incompatible { .. })));
            let with = read.table_with([n], options).unwrap().options();
            txn.create_table("c", with).unwrap().put("key", "value").unwrap();
        } else {
            txn.create_table([n, n], told.clone()).unwrap();
        }
        assert_eq!(told.has_duplicates(), n >= 2);
        assert_eq!(told.has_fixed_values(), n == 3);
        assert_eq!(told.alignment(), if n == 1 { 8 } else { 1 });
        let values = [KeyOrder::Bytes, KeyOrder::Integer, KeyOrder::Custom];
        assert_eq!(told.values(), values[usize::from(n.saturating_sub(2))]);
    }
}

#[test]
fn handles_outlive_transactions_but_not_their_tables() {
    let (_dir, path) = fresh();
    let env = Options::new().open(path).unwrap();
    let backwards = TableOptions::new().compare_keys(|a, b| b.cmp(a));
    let mut txn = env.write().unwrap();
    let mut table = txn.create_table("t", backwards.clone()).unwrap();
    (0..100u8).for_each(|n| table.put([n], [n]).unwrap());
    let handle = table.handle();
    assert!(matches!(env.read().unwrap().open(&handle), Err(Error::NoSuchTable { .. })));
    txn.commit().unwrap();
    for _ in 0..3 {
        let read = env.read().unwrap();
        let table = read.open(&handle).unwrap();
        assert_eq!(table.get([7]).unwrap(), Some(&[7][..]));
        assert_eq!(table.iter().next().unwrap().unwrap().0, [99]);
        assert_eq!(read.handle_with("t", &backwards).unwrap().name(), b"t");
        assert!(read.handle("t").is_err(), "it needs its comparator");
    }
    let mut txn = env.write().unwrap();
    txn.open(&handle).unwrap().put([100], [100]).unwrap();
    txn.rename_table("t", "u").unwrap();
    assert!(matches!(txn.open(&handle), Err(Error::NoSuchTable { .. })));
    txn.rename_table("u", "t").unwrap();
    assert_eq!(txn.open(&handle).unwrap().len(), 101);
    txn.drop_table("t").unwrap();
    txn.create_table("t", backwards).unwrap();
    assert!(matches!(txn.open(&handle), Err(Error::NoSuchTable { .. })), "a table made anew");
    txn.commit().unwrap();
    assert!(matches!(env.read().unwrap().open(&handle), Err(Error::NoSuchTable { .. })));
}

#[test]
fn readers_are_listed_with_thread_and_lag() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", [("key", "1")]);
    let old = env.read().unwrap();
    let (began, end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        put_all(&env, "t", [("key", "2")]);
        scope.spawn(|| {
            let _new = env.read().unwrap();
            began.wait();
            end.wait();
        });
        began.wait();
        put_all(&env, "t", [("key", "3")]);
        let info = env.info().unwrap();
        let mut readers = info.readers.clone();
        readers.sort_by_key(|reader| reader.txn);
        end.wait();
        let lags: Vec<u64> = readers.iter().map(|reader| reader.lag).collect();
        assert_eq!(lags, [2, 1]);
        assert!(readers.iter().all(|reader| reader.pid == std::process::id()));
        assert_ne!(readers[0].thread, readers[1].thread);
        assert_eq!((info.oldest_reader(), readers[0].txn), (Some(old.id()), old.id()));
    });
    drop(old);
    assert_eq!(env.info().unwrap().oldest_reader(), None);
}
