//! Replacing with the old value, user words, sequences, the lag of readers, dirty bytes, and that nested
//! levels undo them all.

use crate::common::{check, fresh, geometry, rng};
use zubilo::{Env, Error, Options, Result, TableOptions, TxnId, WriteTxn};

fn open() -> (tempfile::TempDir, Env) {
    let (dir, path) = fresh();
    (dir, Options::new().open(path).unwrap())
}

fn values(txn: &mut WriteTxn, key: &str) -> Vec<Vec<u8>> {
    let table = txn.table("many").unwrap();
    table.get_all(key).unwrap().map(|v| v.unwrap().to_vec()).collect()
}

#[test]
fn a_replaced_value_is_handed_back() {
    let (_dir, env) = open();
    let mut txn = env.write().unwrap();
    let mut one = txn.create_table("one", TableOptions::new()).unwrap();
    assert_eq!(one.replace("key", "first").unwrap(), None);
    assert_eq!(one.replace("key", "second").unwrap().as_deref(), Some(&b"first"[..]));
    let large = vec![7; 100_000];
    assert_eq!(one.replace("key", &large).unwrap().as_deref(), Some(&b"second"[..]));
    assert_eq!(one.replace("key", "").unwrap(), Some(large));
    assert_eq!(one.update("other", "never stored").unwrap(), None);
    assert_eq!(one.get("other").unwrap(), None);
    assert_eq!(one.update("key", "third").unwrap().as_deref(), Some(&b""[..]));
    assert!(!one.replace_value("key", "second", "no").unwrap());
    assert!(one.replace_value("key", "third", "fourth").unwrap());
    assert_eq!(one.get_with_count("key").unwrap(), Some((&b"fourth"[..], 1)));
    assert!(!one.delete_value("key", "third").unwrap());
    assert_eq!(one.take("key").unwrap().as_deref(), Some(&b"fourth"[..]));
    assert_eq!(one.take("key").unwrap(), None);
    assert!(one.is_empty());
    txn.commit().unwrap();
    check(&env, "after the commit");
}

#[test]
fn one_of_many_values_must_be_named() {
    let (_dir, env) = open();
    let mut txn = env.write().unwrap();
    let mut many = txn.create_table("many", TableOptions::new().duplicates()).unwrap();
    assert_eq!(many.replace("key", "b").unwrap(), None);
    assert_eq!(many.update("key", "c").unwrap().as_deref(), Some(&b"b"[..]));
    assert_eq!(many.replace("key", "b").unwrap().as_deref(), Some(&b"c"[..]));
    many.put("key", "d").unwrap();
    assert_eq!(many.get_with_count("key").unwrap(), Some((&b"b"[..], 2)));
    for ambiguous in [many.replace("key", "x"), many.update("key", "x"), many.take("key")] {
        assert!(matches!(ambiguous, Err(Error::ManyValues { values: 2 })), "{ambiguous:?}");
    }
    assert_eq!(many.len(), 2, "an ambiguous change changes nothing");
    assert!(many.replace_value("key", "d", "a").unwrap());
    assert!(!many.replace_value("key", "d", "a").unwrap());
    assert_eq!(values(&mut txn, "key"), [b"a", b"b"]);
    let mut many = txn.table("many").unwrap();
    assert!(many.replace_value("key", "a", "b").unwrap(), "what is there already stays once");
    assert_eq!(many.len(), 1);
    assert_eq!(many.take("key").unwrap().as_deref(), Some(&b"b"[..]));
    txn.commit().unwrap();
    check(&env, "after the commit");
}

#[test]
fn values_of_large_sets_are_replaced_and_cursors_follow() {
    let (_dir, env) = open();
    let mut rng = rng();
    let mut txn = env.write().unwrap();
    let mut many = txn.create_table("many", TableOptions::new().duplicates()).unwrap();
    let mut model = std::collections::BTreeSet::new();
    let value = |n: u64| format!("value {n:06}").into_bytes();
    for n in 0..2000 {
        many.put("key", value(n * 2)).unwrap();
        model.insert(value(n * 2));
    }
    let id = many.id();
    let cursor = txn.open_cursor(id).unwrap();
    for _ in 0..3000 {
        let (old, new) = (value(rng.below(4000)), value(rng.below(4000)));
        let there = model.remove(&old);
        if there {
            model.insert(new.clone());
            txn.cursor(cursor).unwrap().seek_pair("key", &old).unwrap();
        }
        assert_eq!(txn.at(id).unwrap().replace_value("key", &old, &new).unwrap(), there);
        if there {
            let mut at = txn.cursor(cursor).unwrap();
            assert_eq!(at.current().unwrap(), Some((&b"key"[..], &new[..])));
        }
    }
    assert_eq!(values(&mut txn, "key"), model.into_iter().collect::<Vec<_>>());
    txn.commit().unwrap();
    check(&env, "after the commit");
}

#[test]
fn user_words_are_committed_with_their_transaction() {
    let (_dir, env) = open();
    assert_eq!(env.read().unwrap().user_words().txn, TxnId(0));
    let old = env.read().unwrap();
    let mut txn = env.write().unwrap();
    txn.set_user_words([1, 2, u64::MAX]).unwrap();
    assert_eq!(txn.user_words().words, [1, 2, u64::MAX]);
    let committed = txn.commit().unwrap();
    assert_eq!(old.user_words().words, [0; 3], "a snapshot keeps its own");
    let read = env.read().unwrap();
    assert_eq!((read.user_words().words, read.user_words().txn), ([1, 2, u64::MAX], committed));
    let mut txn = env.write().unwrap();
    txn.set_user_words([9; 3]).unwrap();
    drop(txn);
    assert_eq!(env.read().unwrap().user_words().words, [1, 2, u64::MAX]);
}

#[test]
fn sequences_are_the_tables_own_and_last() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut txn = env.write().unwrap();
    let mut a = txn.table_or_create("a").unwrap();
    assert_eq!(a.next_sequence(1).unwrap(), 0);
    assert_eq!(a.next_sequence(10).unwrap(), 1);
    assert_eq!(a.next_sequence(0).unwrap(), 11);
    a.put("key", "value").unwrap();
    a.clear().unwrap();
    assert_eq!(a.next_sequence(1).unwrap(), 11, "clearing gives no number twice");
    assert_eq!(txn.table_or_create("b").unwrap().next_sequence(1).unwrap(), 0);
    txn.commit().unwrap();

    let mut aborted = env.write().unwrap();
    assert_eq!(aborted.table("a").unwrap().next_sequence(5).unwrap(), 12);
    aborted.abort();
    let copy = path.with_extension("copy");
    env.copy_to_path(&copy, true, &mut |_, _| true).unwrap();
    env.close().unwrap();
    for path in [path, copy] {
        let env = Options::new().open(path).unwrap();
        let read = env.read().unwrap();
        assert_eq!(read.table("a").unwrap().sequence(), 12);
        let mut txn = env.write().unwrap();
        let mut a = txn.table("a").unwrap();
        let room = u64::MAX - 12;
        assert_eq!(a.next_sequence(room).unwrap(), 12);
        assert!(matches!(a.next_sequence(1), Err(Error::Invalid(_))));
        assert_eq!(a.next_sequence(0).unwrap(), u64::MAX);
    }
}

#[test]
fn a_reader_knows_its_lag() {
    let (_dir, path) = fresh();
    let small = geometry(|g| g.upper = 4 << 20);
    let env = Options::new().geometry(small).open(path).unwrap();
    let mut old = env.read().unwrap();
    let begun = old.reader_lag().unwrap();
    for n in 0..10u8 {
        let mut txn = env.write().unwrap();
        txn.table_or_create("t").unwrap().put([n], vec![n; 200_000]).unwrap();
        txn.commit().unwrap();
    }
    let late = old.reader_lag().unwrap();
    assert_eq!((begun.commits, late.commits), (0, 10));
    assert!(begun.used < 0.1, "{begun:?}");
    // Ten values of 49 pages in 1024.
    assert!((0.47..0.6).contains(&late.used), "{late:?}");
    old.refresh().unwrap();
    assert_eq!(old.reader_lag().unwrap().commits, 0);
}

#[test]
fn bytes_are_dirty_when_their_page_was_changed() {
    let (_dir, path) = fresh();
    let env = Options::new().dirty_limit(256 << 10).open(path).unwrap();
    let mut txn = env.write().unwrap();
    let mut t = txn.table_or_create("t").unwrap();
    for n in 0..10_000u32 {
        t.put(n.to_be_bytes(), [5; 50]).unwrap();
    }
    t.put("large", vec![1; 20_000]).unwrap();
    assert!(t.is_dirty(t.get(0u32.to_be_bytes()).unwrap().unwrap()), "written early, but its own");
    assert!(t.is_dirty(t.get("large").unwrap().unwrap()));
    txn.commit().unwrap();
    let mut txn = env.write().unwrap();
    let mut t = txn.table("t").unwrap();
    let is_dirty =
        |t: &zubilo::WriteTable<'_>, n: u32| t.is_dirty(t.get(n.to_be_bytes()).unwrap().unwrap());
    assert!(!is_dirty(&t, 0) && !is_dirty(&t, 9_999));
    t.put(0u32.to_be_bytes(), [6; 50]).unwrap();
    assert!(is_dirty(&t, 0) && is_dirty(&t, 1), "the whole page may change");
    assert!(!is_dirty(&t, 9_999));
    assert!(!t.is_dirty(t.get("large").unwrap().unwrap()));
}

#[test]
fn nested_levels_undo_marks_and_replacements() {
    let (_dir, env) = open();
    let mut txn = env.write().unwrap();
    txn.set_user_words([1; 3]).unwrap();
    let mut many = txn.create_table("many", TableOptions::new().duplicates()).unwrap();
    many.put("key", "a").unwrap();
    many.put("key", "b").unwrap();
    many.next_sequence(3).unwrap();
    let id = many.id();
    let cursor = txn.open_cursor(id).unwrap();
    txn.cursor(cursor).unwrap().seek_pair("key", "b").unwrap();

    let undone: Result<()> = txn.nested(|txn| {
        txn.set_user_words([2; 3])?;
        txn.table_or_create("new")?.next_sequence(7)?;
        let mut many = txn.table("many")?;
        assert_eq!(many.next_sequence(1)?, 3);
        many.replace_value("key", "b", "c")?;
        many.delete_value("key", "a")?;
        assert_eq!(many.replace("key", "d")?.as_deref(), Some(&b"c"[..]));
        assert_eq!(txn.cursor(cursor)?.current()?, Some((&b"key"[..], &b"d"[..])));
        let inner: Result<()> = txn.nested(|txn| {
            txn.set_user_words([3; 3])?;
            txn.table("many")?.next_sequence(100)?;
            txn.drop_table("many")?;
            Ok(())
        });
        inner?;
        assert!(matches!(txn.table("many"), Err(Error::NoSuchTable { .. })));
        assert_eq!(txn.user_words().words, [3; 3]);
        Err(Error::Stopped)
    });
    assert!(matches!(undone, Err(Error::Stopped)));
    assert_eq!(txn.user_words().words, [1; 3]);
    assert_eq!(values(&mut txn, "key"), [b"a", b"b"]);
    assert_eq!(txn.cursor(cursor).unwrap().current().unwrap(), Some((&b"key"[..], &b"b"[..])));
    assert_eq!(txn.table("many").unwrap().next_sequence(1).unwrap(), 3);
    assert!(matches!(txn.table("new"), Err(Error::NoSuchTable { .. })));
    assert_eq!(txn.table_or_create("new").unwrap().next_sequence(1).unwrap(), 0);
    txn.commit().unwrap();
    let read = env.read().unwrap();
    assert_eq!(read.table("many").unwrap().sequence(), 4);
    assert_eq!(read.user_words().words, [1; 3]);
    check(&env, "after the commit");
}

#[test]
fn a_table_dropped_and_made_anew_at_two_depths_comes_back() {
    let (_dir, env) = open();
    let mut txn = env.write().unwrap();
    txn.table_or_create("t").unwrap().put("key", "first").unwrap();
    txn.begin_nested().unwrap();
    txn.drop_table("t").unwrap();
    txn.begin_nested().unwrap();
    txn.table_or_create("t").unwrap().put("other", "anew").unwrap();
    txn.abort_nested().unwrap();
    assert!(matches!(txn.table("t"), Err(Error::NoSuchTable { .. })));
    txn.abort_nested().unwrap();
    // Its record was never stored in the table of tables: the table must be the open one.
    assert_eq!(txn.table("t").unwrap().get("key").unwrap(), Some(&b"first"[..]));
    txn.commit().unwrap();
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 1);
}
