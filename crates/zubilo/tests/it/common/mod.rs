//! What the tests share: seeds, the full check, contents of a store, files in memory, processes.

pub(crate) mod memory;
pub(crate) mod process;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

#[allow(unused_imports, reason = "other programs share this file and need less")]
pub(crate) use support::{Rng, any_seed, number, rng, seed};
use zubilo::{Env, Geometry, ReadTxn};

/// Key and value of each record of a table.
pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;
/// All tables by name.
pub(crate) type Model = BTreeMap<Vec<u8>, Records>;

/// A path in a fresh directory, which goes when the first of the pair is dropped.
pub(crate) fn fresh() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    (dir, path)
}

/// The default geometry with changes.
pub(crate) fn geometry(change: impl FnOnce(&mut Geometry)) -> Geometry {
    let mut geometry = Geometry::default();
    change(&mut geometry);
    geometry
}

/// The full check must find nothing.
#[track_caller]
pub(crate) fn check(env: &Env, what: &str) {
    let report = env.check(&mut |_, _| true).unwrap_or_else(|e| panic!("{what}: {e}"));
    let shown = &report.problems[..report.problems.len().min(5)];
    assert!(report.is_ok(), "{what}: {shown:?}");
}

/// Ends the test when it hangs.
pub(crate) fn within<T: Send + 'static>(
    seconds: u64,
    job: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (done, result) = channel();
    let thread = std::thread::spawn(move || {
        let _ = done.send(catch_unwind(AssertUnwindSafe(job)));
    });
    match result.recv_timeout(Duration::from_secs(seconds)) {
        Ok(Ok(value)) => {
            thread.join().unwrap();
            value
        }
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(_) => panic!("nothing after {seconds} seconds: a deadlock"),
    }
}

/// Runs what panics on purpose without its messages. Those of a test that fails meanwhile in another
/// thread are missing too; that it fails is reported.
pub(crate) fn without_panic_messages<T>(job: impl FnOnce() -> T) -> T {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = catch_unwind(AssertUnwindSafe(job));
    std::panic::set_hook(loud);
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// All that a snapshot holds, read once forwards and once backwards.
pub(crate) fn contents(txn: &ReadTxn) -> Model {
    let mut all = Model::new();
    for name in txn.tables().unwrap() {
        let table = txn.table(&name).unwrap();
        let own = |r: zubilo::Result<(&[u8], &[u8])>| r.map(|(k, v)| (k.to_vec(), v.to_vec()));
        let forward: Vec<_> = table.iter().map(|r| own(r).unwrap()).collect();
        let mut backward: Vec<_> = table.iter().rev().map(|r| own(r).unwrap()).collect();
        backward.reverse();
        assert!(forward == backward, "backwards is not forwards, reversed");
        assert_eq!(table.len(), forward.len() as u64);
        all.insert(name, forward.into_iter().collect());
    }
    all
}

/// Puts records into one table and commits.
pub(crate) fn put_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    env: &Env,
    table: &str,
    records: impl IntoIterator<Item = (K, V)>,
) -> zubilo::TxnId {
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create(table).unwrap();
    for (key, value) in records {
        table.put(key, value).unwrap();
    }
    txn.commit().unwrap()
}
