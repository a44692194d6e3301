//! Changes as futures, and closures with errors of the program's own.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use zubilo::{Env, Error, Options, Update};

use crate::common::{fresh, without_panic_messages};

/// Wakes a thread, and counts.
struct Unpark(Thread, AtomicU32);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.unpark();
    }
}

/// Runs a future on this thread: polled again only when it was woken.
fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicU32::new(0)));
    let (mut future, waker) = (pin!(future), Waker::from(Arc::clone(&unpark)));
    let mut polled = 0;
    loop {
        if let Poll::Ready(end) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return end;
        }
        while unpark.1.load(Ordering::Relaxed) == polled {
            std::thread::park();
        }
        polled = unpark.1.load(Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum Failure {
    Store(Error),
    Own(u32),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Store(error)
    }
}

fn add(env: &Env, n: u32) -> Update<u64, Failure> {
    env.try_update_async(move |txn| {
        let mut table = txn.table_or_create("t")?;
        table.put(n.to_be_bytes(), "value")?;
        match n % 10 {
            3 => Err(Failure::Own(n)),
            7 => panic!("meant: {n}"),
            _ => Ok(table.len()),
        }
    })
}

#[test]
fn many_futures_share_commits_and_each_has_its_own_end() {
    without_panic_messages(many_futures);
}

fn many_futures() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let before = env.counters();
    let updates: Vec<_> = (0..400).map(|n| add(&env, n)).collect();
    for (n, update) in (0u32..).zip(updates) {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block_on(update)));
        match (n % 10, ended) {
            (3, Ok(Err(Failure::Own(m)))) => assert_eq!(n, m),
            (7, Err(panic)) => {
                assert_eq!(panic.downcast_ref::<String>().unwrap(), &format!("meant: {n}"));
            }
            (_, Ok(Ok(len))) => assert!(len > 0 && !matches!(n % 10, 3 | 7)),
            (_, ended) => panic!("{n}: {:?}", ended.map_err(drop)),
        }
    }
    let commits = env.counters().since(&before).commits;
    assert!((1..200).contains(&commits), "{commits}");
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    for n in 0..400u32 {
        let is_there = table.contains_key(n.to_be_bytes()).unwrap();
        assert_eq!(is_there, !matches!(n % 10, 3 | 7), "{n}");
    }
}

#[test]
fn dropping_a_future_takes_nothing_back_and_the_end_waits_for_it() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut last = None;
    for n in 0..100u8 {
        last = Some(env.update_async(move |txn| txn.table_or_create("t")?.put([n], "value")));
    }
    drop(env);
    block_on(last.unwrap()).unwrap();
    let env = Options::new().open(&path).unwrap();
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 100);
}

#[test]
fn a_closure_may_hold_the_last_handle() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let update = env.clone().update_async(move |txn| {
        let len = txn.tables()?.len();
        drop(env);
        Ok::<_, Error>(len)
    });
    assert_eq!(block_on(update).unwrap(), 0);
    Options::new().open(&path).unwrap();
}

#[test]
fn a_reader_refuses_and_waiting_threads_go_along() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2u8 {
            let env = &env;
            scope.spawn(move || {
                for n in 0..100u8 {
                    let put = move |txn: &mut zubilo::WriteTxn| {
                        txn.table_or_create("t")?.put([thread, n], "value")
                    };
                    match n % 2 {
                        0 => block_on(env.update_async(put)).unwrap(),
                        _ => env.update(put).unwrap(),
                    }
                }
            });
        }
    });
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 200);
    drop(env);
    let env = Options::new().read_only(true).open(&path).unwrap();
    let refused = block_on(env.update_async(|_| Ok(())));
    assert!(matches!(refused, Err(Error::ReadOnly)));
}

#[test]
fn closures_that_are_waited_for_have_errors_of_their_own() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let own = env.try_update(|txn| -> Result<(), Failure> {
        txn.table_or_create("t")?.put("key", "value")?;
        Err(Failure::Own(5))
    });
    assert!(matches!(own, Err(Failure::Own(5))));
    let store = env.try_update(|txn| -> Result<(), Failure> {
        txn.table("t")?;
        Ok(())
    });
    assert!(matches!(store, Err(Failure::Store(Error::NoSuchTable { .. }))));
}
