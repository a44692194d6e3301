//! Readers that hold pages back: parked ones that others expire, bounds by which they expire, and the
//! function that is asked when a writer finds no room.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use zubilo::{Env, Error, Geometry, Options, ParkedRead, ReadTxn, SlowReader, SlowReaderAction};

use crate::common::memory::MemoryFile;
use crate::common::{fresh, put_all};

pub(crate) const ROWS: u32 = 400;

pub(crate) fn rows(round: u32) -> impl Iterator<Item = ([u8; 4], [u8; 400])> {
    (0..ROWS).map(move |n| (n.to_be_bytes(), [round as u8; 400]))
}

pub(crate) fn assert_round(read: &ReadTxn, round: u32) {
    let table = read.table("t").unwrap();
    assert_eq!(table.len(), u64::from(ROWS));
    for record in table.iter() {
        assert!(record.unwrap().1.iter().all(|byte| *byte == round as u8), "a reused page");
    }
}

fn look(parked: &mut ParkedRead, round: u32) -> zubilo::Result<()> {
    parked.with(|read| {
        assert_round(read, round);
        Ok(())
    })
}

/// Room for about so many times the rows.
pub(crate) fn bounded(options: Options, times: u64) -> (tempfile::TempDir, Env) {
    let (dir, path) = fresh();
    let mut geometry = Geometry::default();
    geometry.upper = (times * u64::from(ROWS) * 460).next_multiple_of(4096);
    let env = options.geometry(geometry).open(&path).unwrap();
    put_all(&env, "t", rows(0));
    (dir, env)
}

pub(crate) fn try_put(env: &Env, round: u32) -> zubilo::Result<()> {
    let mut write = env.write()?;
    let mut table = write.table("t")?;
    rows(round).try_for_each(|(key, value)| table.put(key, value))?;
    write.commit().map(drop)
}

#[test]
fn a_parked_reader_goes_on_where_it_was() {
    let (_dir, env) = bounded(Options::new(), 100);
    let mut parked = env.read().unwrap().park();
    for round in 1..10 {
        try_put(&env, round).unwrap();
        look(&mut parked, 0).unwrap();
    }
    assert!(!parked.is_expired());
    assert_eq!(parked.lag(), 9);
    let read = parked.resume().unwrap();
    assert_round(&read, 0);
    drop(read);
    assert!(env.readers().is_empty());
}

#[test]
fn an_expired_reader_finds_out_before_it_reads() {
    let (_dir, env) = bounded(Options::new(), 100);
    let mut parked = env.read().unwrap().park();
    let mut second = env.read().unwrap().park();
    try_put(&env, 1).unwrap();
    let readers = env.readers();
    assert_eq!(readers.len(), 2);
    assert!(readers.iter().all(|reader| reader.is_parked && reader.lag == 1));
    for reader in &readers {
        assert!(env.expire_reader(reader).unwrap());
        assert!(!env.expire_reader(reader).unwrap(), "it has ended");
    }
    assert!(env.readers().is_empty());
    // Their pages are reused.
    (2..6).for_each(|round| try_put(&env, round).unwrap());
    assert!(parked.is_expired());
    for _ in 0..2 {
        let looked = parked.with(|_| -> Result<(), Error> { unreachable!("the pin is gone") });
        assert!(matches!(looked, Err(Error::Expired)));
    }
    assert!(matches!(parked.resume(), Err(Error::Expired)));
    let looked = second.with(|_| Ok(()));
    assert!(matches!(looked, Err(Error::Expired)));
    let read = second.resume_or_refresh().unwrap();
    assert_round(&read, 5);
    assert_eq!(read.lag(), 0);
}

#[test]
fn a_reader_at_work_cannot_be_expired() {
    let (_dir, env) = bounded(Options::new(), 100);
    let read = env.read().unwrap();
    let mut parked = env.read().unwrap().park();
    try_put(&env, 1).unwrap();
    parked
        .with(|inside| {
            for reader in env.readers() {
                assert!(!reader.is_parked);
                assert!(!env.expire_reader(&reader)?);
            }
            // A copy of it is a reader of its own.
            let copy = inside.try_clone()?;
            assert_round(&copy, 0);
            Ok(())
        })
        .unwrap();
    assert_round(&read, 0);
    // A panic in between leaves it parked.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = parked.with(|_| -> Result<(), Error> { panic!("in the middle of a look") });
    }));
    assert!(panicked.is_err());
    assert_eq!(env.readers().iter().filter(|reader| reader.is_parked).count(), 1);
    look(&mut parked, 0).unwrap();
}

#[test]
fn who_is_parked_while_others_write_and_expire_never_reads_reused_pages() {
    let (_dir, env) = bounded(Options::new(), 60);
    let (expired, whole) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    while expired.load(Ordering::Relaxed) < 50 {
                        let mut parked = env.read().unwrap().park();
                        let round = parked.with(|read| {
                            let first = read.table("t")?.first()?.map_or(0, |(_, value)| value[0]);
                            Ok::<_, Error>(u32::from(first))
                        });
                        let Ok(round) = round else { continue };
                        for _ in 0..20 {
                            match look(&mut parked, round) {
                                Ok(()) => whole.fetch_add(1, Ordering::Relaxed),
                                Err(Error::Expired) => {
                                    expired.fetch_add(1, Ordering::Relaxed);
                                    break;
                                }
                                Err(error) => panic!("{error}"),
                            };
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut round = 0;
        while readers.iter().any(|reader| !reader.is_finished()) {
            round = (round + 1) % 250;
            try_put(&env, round).unwrap();
            for reader in env.readers() {
                env.expire_reader(&reader).unwrap();
            }
        }
    });
    assert!(whole.load(Ordering::Relaxed) > 0);
}

#[test]
fn bounds_of_time_and_of_bytes_expire_parked_readers_only() {
    let behind = Options::new().expire_behind(Duration::from_millis(30));
    let held = Options::new().expire_held(u64::from(ROWS) * 400 * 2);
    for (options, by_time) in [(behind, true), (held, false)] {
        let (_dir, env) = bounded(options, 100);
        let read = env.read().unwrap();
        let mut parked: Vec<_> = Vec::new();
        for round in 1..8 {
            parked.push(env.read().unwrap().park());
            try_put(&env, round).unwrap();
        }
        if by_time {
            // The newest snapshot is nobody's lag, however long it takes.
            parked.push(env.read().unwrap().park());
            std::thread::sleep(Duration::from_millis(60));
        }
        drop(env.write().unwrap());
        let expired = parked.iter().filter(|parked| parked.is_expired()).count();
        assert!(expired > 0 && expired < parked.len(), "{expired}");
        if by_time {
            assert_eq!(expired, 7);
        }
        assert_round(&read, 0);
        assert!(env.readers().iter().any(|reader| reader.txn == read.id()));
    }
}

/// A store that is full while a reader is on the first commit, and what the function was heard.
fn asked(
    action: impl Fn(&SlowReader) -> SlowReaderAction + Send + Sync + 'static,
    park: bool,
) -> (zubilo::Result<()>, Vec<SlowReader>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&heard);
    let options = Options::new().on_slow_reader(move |slow| {
        note.lock().unwrap().push(slow.clone());
        action(slow)
    });
    // The rows twice, and not three times.
    let (_dir, env) = bounded(options, 3);
    let read = env.read().unwrap();
    let (read, parked) = if park { (None, Some(read.park())) } else { (Some(read), None) };
    let mut done = Ok(());
    for round in 1..4 {
        done = try_put(&env, round);
        if done.is_err() {
            break;
        }
    }
    if let Some(read) = read {
        assert_round(&read, 0);
    }
    assert!(parked.is_none_or(|parked| parked.is_expired() == done.is_ok()));
    // Nothing is lost either way.
    env.check(&mut |_, _| true).unwrap().into_result().unwrap();
    let heard = heard.lock().unwrap().clone();
    (done, heard)
}

#[test]
fn the_function_learns_who_holds_back_how_much() {
    let (done, heard) = asked(
        |slow| if slow.tries < 2 { SlowReaderAction::Retry } else { SlowReaderAction::GiveUp },
        false,
    );
    assert!(matches!(done, Err(Error::MapFull { .. })), "{done:?}");
    assert_eq!(heard.iter().map(|slow| slow.tries).collect::<Vec<_>>(), [0, 1, 2]);
    for slow in &heard {
        assert_eq!(slow.reader.pid, std::process::id());
        assert!(slow.reader.thread > 0 && slow.reader.lag >= 1 && !slow.reader.is_parked);
        assert!(slow.held_bytes >= u64::from(ROWS) * 400, "{slow:?}");
        assert!(slow.reader.age >= slow.reader.behind);
    }
}

#[test]
fn the_function_may_expire_a_parked_reader() {
    let (done, heard) = asked(|_| SlowReaderAction::Expire, true);
    done.unwrap();
    assert!(heard[0].reader.is_parked);
    // One at work cannot be, and there is no other.
    let (done, heard) = asked(|_| SlowReaderAction::Expire, false);
    assert!(matches!(done, Err(Error::MapFull { .. })), "{done:?}");
    assert_eq!(heard.len(), 1);
}

#[test]
fn the_function_may_wait_for_the_reader() {
    let reader: Arc<Mutex<Option<ReadTxn>>> = Arc::default();
    let ends = Arc::clone(&reader);
    let options = Options::new().on_slow_reader(move |slow| {
        if slow.tries == 3 {
            drop(ends.lock().unwrap().take());
        }
        SlowReaderAction::Retry
    });
    let (_dir, env) = bounded(options, 3);
    *reader.lock().unwrap() = Some(env.read().unwrap());
    (1..6).for_each(|round| try_put(&env, round).unwrap());
    assert!(reader.lock().unwrap().is_none());
    assert_round(&env.read().unwrap(), 5);
}

#[test]
fn the_list_of_readers_tells_since_when_each_is_behind() {
    let (_dir, env) = bounded(Options::new(), 100);
    std::thread::sleep(Duration::from_millis(30));
    let read = env.read().unwrap();
    let [reader] = &env.readers()[..] else { panic!("one reader") };
    assert!(reader.age >= Duration::from_millis(25) && reader.behind.is_zero(), "{reader:?}");
    try_put(&env, 1).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let copy = read.try_clone().unwrap();
    for round in 2..6 {
        try_put(&env, round).unwrap();
    }
    for reader in env.readers() {
        assert!(reader.behind >= Duration::from_millis(25), "{reader:?}");
        assert!(reader.age >= reader.behind + Duration::from_millis(25), "{reader:?}");
        assert_eq!(reader.lag, 5);
    }
    drop((read, copy));
}

/// Small commits while a reader holds back all that they replace, in stores that are full after some of them: in some
/// the pages of a commit fit to the last one, and it is the free-space log that finds no room.
#[test]
fn the_function_is_asked_whoever_finds_no_room() {
    let (mut stores_asked, mut tried) = (0, 0);
    for (before, extra) in (90..150).flat_map(|before| [4, 5, 7, 10].map(|extra| (before, extra))) {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let reader: Arc<Mutex<Option<ReadTxn>>> = Arc::default();
        let ends = Arc::clone(&reader);
        let options = Options::new().on_slow_reader(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            drop(ends.lock().unwrap().take());
            SlowReaderAction::Retry
        });
        let env = MemoryFile::new(&[]).open(options).unwrap();
        let put = |n: u32| -> zubilo::Result<()> {
            let mut write = env.write()?;
            let mut table = write.table_or_create("t")?;
            // Two records a page.
            table.put((n % 60).to_be_bytes(), vec![n as u8; 1500])?;
            write.commit().map(drop)
        };
        (0..before).for_each(|n| put(n).unwrap());
        let mut write = env.write().unwrap();
        let mut geometry = Geometry::default();
        geometry.upper = env.info().unwrap().used_len + extra * 4096;
        write.set_geometry(geometry).unwrap();
        write.commit().unwrap();
        *reader.lock().unwrap() = Some(env.read().unwrap());
        for n in before..before + 40 {
            match put(n) {
                Ok(()) => {}
                Err(Error::MapFull { .. }) => {
                    let is_held = reader.lock().unwrap().is_some();
                    assert!(
                        !is_held,
                        "{before} commits, {extra} pages: full, and nobody was asked"
                    );
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        stores_asked += u32::from(asked.load(Ordering::Relaxed) > 0);
        tried += 1;
        env.check(&mut |_, _| true).unwrap().into_result().unwrap();
    }
    assert!(stores_asked > tried / 2, "{stores_asked} of {tried}");
}
