//! What may go to other threads, and owned guards. What must not compile is in
//! `tests/must_not_compile.md`.

use std::sync::Arc;

use zubilo::{
    CommitReport, Cursor, Env, EnvInfo, Error, Iter, Options, OwnedValue, ParkedCursor, ReadTable,
    ReadTxn, ReaderInfo, TxnId, ViewTable, WriteTable, WriteTxn, WriteView,
};

use crate::common::{fresh, put_all};

const fn shared<T: Send + Sync>() {}

const _: () = {
    shared::<Env>();
    shared::<Options>();
    shared::<Error>();
    shared::<EnvInfo>();
    shared::<ReaderInfo>();
    shared::<TxnId>();
    shared::<ReadTxn>();
    shared::<ReadTable<'static>>();
    shared::<OwnedValue>();
    shared::<ParkedCursor>();
    shared::<WriteView<'static>>();
    shared::<ViewTable<'static>>();
    shared::<CommitReport>();
};

/// Ambiguous, and so not compilable, for a type that is `Send`.
trait NotSend<A> {
    const OK: () = ();
}
impl<T: ?Sized> NotSend<()> for T {}
struct Witness;
impl<T: ?Sized + Send> NotSend<Witness> for T {}

const _: () = {
    // The writer's mutex must be released by the thread that took it.
    let () = <WriteTxn as NotSend<_>>::OK;
    let () = <WriteTable<'static> as NotSend<_>>::OK;
};

#[test]
fn one_read_transaction_serves_many_threads() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", (0..1000u32).map(|n| (n.to_be_bytes(), n.to_le_bytes())));
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let table = &table;
            scope.spawn(move || {
                for n in (thread..1000).step_by(4) {
                    assert_eq!(table.get(n.to_be_bytes()).unwrap(), Some(&n.to_le_bytes()[..]));
                }
                let mut iter: Iter<'_> = table.iter();
                assert!(iter.next().is_some());
                let mut cursor: Cursor<'_> = table.cursor();
                assert!(cursor.last().unwrap().is_some());
            });
        }
        scope.spawn(|| put_all(&env, "t", (0..1000u32).map(|n| (n.to_be_bytes(), [0; 4]))));
    });
    assert_eq!(table.get(7u32.to_be_bytes()).unwrap(), Some(&7u32.to_le_bytes()[..]));
    // A transaction that began in one thread may end in another.
    std::thread::spawn(move || drop(read)).join().unwrap();
    assert!(env.readers().is_empty());
}

#[test]
fn an_owned_value_outlives_everything_it_came_from() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", [("small", vec![1; 50]), ("large", vec![2; 100_000])]);
    let read: Arc<ReadTxn> = env.read().unwrap().into_shared();
    let small = read.get_owned("t", "small").unwrap().unwrap();
    let large = read.get_owned("t", "large").unwrap().unwrap();
    assert!(read.get_owned("t", "none").unwrap().is_none());
    assert!(matches!(read.get_owned("none", "small"), Err(Error::NoSuchTable { .. })));
    drop(read);
    for round in 0..30 {
        put_all(&env, "t", [("small", vec![round; 50]), ("large", vec![round; 100_000])]);
    }
    assert_eq!(env.readers().len(), 1);
    env.close().unwrap();
    std::thread::spawn(move || {
        assert_eq!(*small, [1; 50]);
        assert!(large.iter().all(|b| *b == 2) && large.len() == 100_000);
        assert_eq!(large.txn().id(), small.txn().id());
    })
    .join()
    .unwrap();
}
