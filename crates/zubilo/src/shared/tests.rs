//! Readers, locks and opening, with other processes where the behaviour concerns them. The
//! interleavings of the core are the business of the model checker, in `model`.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::*;
use crate::platform::testing::{Program, apart, ended_well, fork, say, task, wait};

/// The data file that there is not.
const HOME: u64 = 77;

const PROGRAM: &str = "shared::tests::program";

fn root(txn: u64) -> RootWords {
    let mut words = [txn; ROOT_WORDS];
    words[ROOT_WORDS - 1] = txn + 1;
    words
}

fn open(path: &Path) -> (Shared, Role) {
    Shared::open(path, 0o600, 16, false, HOME).expect("open")
}

/// Opens as the first user, with transaction 1 published.
fn first(path: &Path) -> Shared {
    let (shared, role) = open(path);
    assert_eq!(role, Role::First);
    shared.publish(&root(1));
    shared.announce().expect("announce");
    shared
}

fn pins(shared: &Shared) -> Vec<u64> {
    let mut pins = vec![99];
    shared.pins(&mut pins);
    pins
}

fn lock_path() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store-lock");
    (dir, path)
}

fn start(what: &str, path: &Path) -> Program {
    Program::start(PROGRAM, format!("{what} {}", path.display()))
}

fn renew(shared: &Shared, id: &ReaderId) -> RootWords {
    let mut words = [0; ROOT_WORDS];
    assert!(shared.renew(id, IDLE, &mut words).expect("renew"));
    words
}

#[test]
fn a_parked_slot_pins_nothing_and_is_not_taken() {
    let (_dir, path) = lock_path();
    let shared = first(&path);
    let (parked, seen) = shared.begin_read().expect("begin");
    shared.park(&parked);
    assert!(pins(&shared).is_empty());
    assert!(shared.readers().is_empty());
    let (other, _) = shared.begin_read().expect("begin");
    assert_ne!(other, parked, "the slot of one who will come back");
    shared.end_read(other);
    let mut words = [0; ROOT_WORDS];
    assert!(!shared.renew(&parked, seen[0], &mut words).expect("renew"), "nothing new");
    assert_eq!(pins(&shared), [1]);
    shared.publish(&root(2));
    assert!(shared.renew(&parked, seen[0], &mut words).expect("renew"));
    assert_eq!(words, root(2));
}

/// What the children of these tests do: the task is a word and the path of the lock file.
#[test]
#[ignore = "run by the other tests"]
fn program() {
    let Some(task) = task() else { return };
    let (what, path) = task.to_str().and_then(|task| task.split_once(' ')).expect("task");
    let path = Path::new(path);
    match what {
        "race" => {
            say("ready");
            wait();
            let (shared, role) = open(path);
            if role == Role::First {
                shared.publish(&root(1));
                shared.announce().expect("announce");
            }
            assert!(shared.begin_read().expect("a slot").1 == root(1));
            say(if role == Role::First { "first" } else { "joined" });
            wait();
        }
        "come" => {
            let (shared, role) = open(path);
            if role == Role::First {
                shared.publish(&root(1));
                shared.announce().expect("announce");
            }
            say(if role == Role::First { "first" } else { "joined" });
            wait();
        }
        "read" => {
            let (shared, _) = open(path);
            let (_, seen) = shared.begin_read().expect("a slot");
            say(seen[0]);
            wait();
        }
        "fill" => {
            let (shared, _) = open(path);
            while shared.begin_read().is_ok() {}
            say("full");
            wait();
        }
        "write" => {
            let (shared, _) = open(path);
            assert!(!shared.lock_writer().expect("lock"));
            assert!(!shared.lock_meta().expect("lock"));
            say("locked");
            wait();
        }
        "exclusive" => {
            let (shared, role) = Shared::open(path, 0o600, 16, true, HOME).expect("alone");
            assert_eq!(role, Role::First);
            shared.publish(&root(1));
            shared.announce().expect("announce");
            say("open");
            wait();
        }
        other => program_for_a_kill(other, path),
    }
}

/// Those that are killed in the middle of something.
fn program_for_a_kill(what: &str, path: &Path) {
    match what {
        "poison" => {
            let shared = first(path);
            shared.word(Word::MetaSlot2).store(7 << 2 | STEADY, Ordering::SeqCst);
            shared.word(Word::Poisoned).store(1, Ordering::SeqCst);
            say("poisoned");
            wait();
        }
        "half-open" => {
            let (_shared, role) = open(path);
            assert_eq!(role, Role::First);
            say("not announced");
            wait();
        }
        "busy" => {
            let (shared, _) = open(path);
            say("busy");
            loop {
                let (one, seen) = shared.begin_read().expect("a slot");
                assert_eq!(seen, root(seen[0]));
                let (two, _) = shared.begin_read().expect("a slot");
                shared.end_read(one);
                assert_eq!(renew(&shared, &two)[0], shared.reader_txn(&two));
                shared.end_read(two);
                shared.lock_writer().expect("lock");
                shared.publish(&root(shared.newest() + 1));
                shared.unlock_writer();
            }
        }
        "with-child" => {
            let (shared, _) = open(path);
            let (_, seen) = shared.begin_read().expect("a slot");
            let pid = fork(|| std::thread::sleep(Duration::from_secs(60)));
            say(format!("{pid} {}", seen[0]));
            wait();
        }
        "other-namespace" => program_in_a_namespace(path),
        other => panic!("no such task: {other}"),
    }
}

#[test]
fn a_reader_pins_what_was_newest() {
    let shared = Shared::private(8);
    assert!(!shared.is_shared());
    shared.publish(&root(1));
    let (one, seen) = shared.begin_read().expect("a slot");
    assert_eq!(seen, root(1));
    shared.publish(&root(2));
    let (two, seen) = shared.begin_read().expect("a slot");
    assert_eq!(seen, root(2));
    assert_eq!(shared.newest_root(), root(2));
    shared.publish(&root(3));
    assert_eq!((shared.reader_txn(&one), shared.reader_txn(&two)), (1, 2));
    assert_eq!(pins(&shared), [1, 2]);
    assert_eq!(renew(&shared, &one), root(3));
    assert_eq!(pins(&shared), [2, 3]);
    assert_eq!(shared.readers().len(), 2);
    let this = std::process::id();
    assert!(shared.readers().iter().all(|reader| reader.pid == this && reader.thread != 0));
    shared.end_read(one);
    shared.end_read(two);
    assert!(pins(&shared).is_empty());
    assert_eq!(shared.readers(), []);
}

#[test]
fn all_slots_can_be_used_and_are_used_again() {
    let shared = Shared::private(20);
    shared.publish(&root(1));
    for _ in 0..3 {
        let ids: Vec<ReaderId> = (0..20).map(|_| shared.begin_read().expect("a slot").0).collect();
        assert!(matches!(shared.begin_read(), Err(Error::ReadersFull { slots: 20, .. })));
        ids.into_iter().for_each(|id| shared.end_read(id));
    }
    // Any thread may end a read, and find the slot again.
    let (id, _) = shared.begin_read().expect("a slot");
    std::thread::scope(|scope| {
        scope.spawn(|| shared.end_read(id));
    });
    assert!(pins(&shared).is_empty());
}

#[test]
fn readers_see_whole_roots_whatever_the_writer_does() {
    let shared = Shared::private(64);
    shared.publish(&root(1));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let (id, seen) = shared.begin_read().expect("a slot");
                    assert_eq!(seen, root(seen[0]));
                    assert!(seen[0] >= last);
                    assert_eq!(shared.reader_txn(&id), seen[0]);
                    let renewed = renew(&shared, &id);
                    assert_eq!(renewed, root(renewed[0]));
                    last = renewed[0];
                    shared.end_read(id);
                }
            });
        }
        for txn in 2..100_000 {
            shared.publish(&root(txn));
            assert!(pins(&shared).iter().all(|&pin| pin <= txn));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(pins(&shared).is_empty());
}

#[test]
fn two_handles_of_one_process_share_the_region() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let one = first(&path);
    one.word(Word::MetaSlot2).store(5, Ordering::SeqCst);
    let (two, role) = open(&path);
    assert_eq!(role, Role::Joined);
    assert!(two.is_shared());
    assert_eq!(two.word(Word::MetaSlot2).load(Ordering::SeqCst), 5);
    let (id, seen) = two.begin_read().expect("a slot");
    assert_eq!(seen, root(1));
    one.publish(&root(2));
    assert_eq!(pins(&one), [1]);
    assert_eq!(one.clean_dead(), 0);
    // The thread, not the handle, holds the lock.
    assert!(!one.lock_writer().expect("lock"));
    assert!(matches!(two.lock_writer(), Err(Error::Busy(_))));
    assert!(matches!(one.lock_writer(), Err(Error::Busy(_))));
    assert!(two.try_lock_writer().expect("try").is_none());
    one.unlock_writer();
    assert_eq!(two.try_lock_writer().expect("try"), Some(false));
    two.unlock_writer();
    two.end_read(id);
    // What a handle leaves behind goes with it.
    let _forgotten = two.begin_read().expect("a slot");
    drop(two);
    assert!(pins(&one).is_empty());
}

#[test]
fn the_slot_of_a_killed_reader_is_freed() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    let mut child = start("read", &path);
    assert_eq!(child.hear(), "1");
    shared.publish(&root(2));
    assert_eq!(pins(&shared), [1]);
    assert_eq!(shared.clean_dead(), 0);
    assert_eq!(shared.readers().len(), 1);
    child.kill();
    std::thread::sleep(Duration::from_millis(CHECK_PERIOD_MS + 20));
    assert!(pins(&shared).is_empty());
    let mut child = start("read", &path);
    assert_eq!(child.hear(), "2");
    child.kill();
    // The newest snapshot holds nothing back, so nobody asked.
    assert_eq!(pins(&shared), [2]);
    assert_eq!(shared.clean_dead(), 1);
    assert!(pins(&shared).is_empty());
}

#[test]
fn a_full_table_is_cleared_of_dead_readers() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    let mut child = start("fill", &path);
    child.hear();
    assert!(matches!(shared.begin_read(), Err(Error::ReadersFull { slots: 16, .. })));
    child.kill();
    shared.begin_read().expect("a slot of the dead");
}

#[test]
fn a_killed_writer_gives_its_locks_up() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    for _ in 0..3 {
        let mut child = start("write", &path);
        child.hear();
        assert_eq!(shared.try_lock_writer().expect("try"), None);
        child.kill();
        assert!(shared.lock_writer().expect("lock"), "the owner died");
        assert!(shared.lock_meta().expect("lock"), "the owner died");
        shared.unlock_meta();
        shared.unlock_writer();
        assert!(!shared.lock_writer().expect("lock"));
        shared.unlock_writer();
    }
}

#[test]
fn a_thread_that_ends_in_the_lock_gives_it_up() {
    let shared = Shared::private(4);
    std::thread::scope(|scope| {
        scope.spawn(|| shared.lock_writer().expect("lock"));
    });
    assert!(shared.lock_writer().expect("lock"), "the owner died");
    shared.unlock_writer();
    // The memory of a mutex that is still held stays, or the next lock would write to it.
    let other = Shared::private(4);
    other.lock_writer().expect("lock");
    drop(other);
    shared.lock_writer().expect("lock");
    shared.unlock_writer();
}

#[test]
fn of_eight_that_start_at_once_one_is_first() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    for round in 0..6 {
        let mut children: Vec<Program> = (0..8).map(|_| start("race", &path)).collect();
        children.iter_mut().for_each(|child| assert_eq!(child.hear(), "ready"));
        children.iter_mut().for_each(Program::go);
        let firsts =
            children.iter_mut().filter_map(|child| (child.hear() == "first").then_some(()));
        assert_eq!(firsts.count(), 1, "round {round}");
        // Killed or ended: the next round finds the file and nobody in it.
        for child in children {
            if round % 2 == 0 { child.kill() } else { child.finish() }
        }
    }
}

#[test]
fn an_opener_killed_before_the_announcement_is_replaced() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let mut half = start("half-open", &path);
    half.hear();
    let mut waiting = start("race", &path);
    waiting.hear();
    waiting.go();
    std::thread::sleep(Duration::from_millis(100));
    half.kill();
    assert_eq!(waiting.hear(), "first");
    waiting.finish();
}

/// Live, but of a system that has stopped since: the file may hold less than it says.
#[test]
fn a_region_of_another_boot_is_not_joined() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let mut user = start("come", &path);
    assert_eq!(user.hear(), "first");
    user.kill();
    let file = std::fs::File::options().write(true).open(&path).expect("the lock file");
    file.write_all_at(&[0x55; 16], 8 * W_BOOT as u64).expect("another boot");
    // Somebody who is about to initialise it, and is killed.
    let half = LockFile::open(&path, 0o600).expect("the lock file");
    assert!(half.try_lock(ALIVE_BYTE, false).expect("lock"));
    let mut waiting = start("come", &path);
    std::thread::sleep(Duration::from_millis(100));
    drop(half);
    assert_eq!(waiting.hear(), "first");
    waiting.kill();
}

#[test]
fn exclusive_use_admits_nobody_and_needs_nobody() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let mut child = start("exclusive", &path);
    child.hear();
    let started = Instant::now();
    assert!(matches!(Shared::open(&path, 0o600, 16, false, HOME), Err(Error::Busy(_))));
    assert!(matches!(Shared::open(&path, 0o600, 16, true, HOME), Err(Error::Busy(_))));
    assert!(started.elapsed() < Duration::from_secs(2));
    child.kill();
    let shared = first(&path);
    assert!(matches!(Shared::open(&path, 0o600, 16, true, HOME), Err(Error::Busy(_))));
    drop(shared);
    let (shared, role) = Shared::open(&path, 0o600, 16, true, HOME).expect("alone");
    assert_eq!(role, Role::First);
    shared.announce().expect("announce");
    assert!(matches!(Shared::open(&path, 0o600, 16, false, HOME), Err(Error::Busy(_))));
}

#[test]
fn poison_is_inherited_until_somebody_has_dealt_with_it() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    assert_eq!(open(&path).0.was_poisoned_on_this_boot(), None);
    let mut child = start("poison", &path);
    child.hear();
    child.kill();
    for _ in 0..3 {
        let (shared, role) = open(&path);
        assert_eq!(role, Role::First);
        assert_eq!(shared.was_poisoned_on_this_boot(), Some(7));
        // Gone before it announced.
    }
    let shared = first(&path);
    assert_eq!(shared.was_poisoned_on_this_boot(), Some(7));
    drop(shared);
    let shared = first(&path);
    assert_eq!(shared.was_poisoned_on_this_boot(), Some(7));
    shared.forget_poison();
    drop(shared);
    assert_eq!(first(&path).was_poisoned_on_this_boot(), None);
}

#[test]
fn poison_of_another_boot_is_forgotten() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    shared.word(Word::Poisoned).store(1, Ordering::SeqCst);
    shared.region.words()[W_BOOT].fetch_add(1, Ordering::SeqCst);
    drop(shared);
    assert_eq!(open(&path).0.was_poisoned_on_this_boot(), None);
}

/// Nobody knows whether the system was restarted: then nothing that may be lost counts as kept.
#[test]
fn in_doubt_about_the_boot_poison_is_kept_and_steadiness_is_not() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    shared.word(Word::MetaSlot2).store(7 << 2 | STEADY, Ordering::SeqCst);
    shared.region.words()[W_BOOT].store(0, Ordering::SeqCst);
    shared.region.words()[W_BOOT + 1].store(0, Ordering::SeqCst);
    drop(shared);
    let (shared, _) = open(&path);
    assert_eq!((shared.was_poisoned_on_this_boot(), shared.is_stranger()), (None, true));
    drop(shared);
    let shared = first(&path);
    shared.word(Word::MetaSlot2).store(7 << 2 | STEADY, Ordering::SeqCst);
    shared.word(Word::Poisoned).store(1, Ordering::SeqCst);
    shared.region.words()[W_BOOT].store(0, Ordering::SeqCst);
    shared.region.words()[W_BOOT + 1].store(0, Ordering::SeqCst);
    drop(shared);
    assert_eq!(open(&path).0.was_poisoned_on_this_boot(), Some(7));
    assert_eq!(open(&path).0.was_poisoned_on_this_boot(), Some(7));
}

/// What is known of one data file says nothing of another.
#[test]
fn a_region_belongs_to_one_data_file() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    shared.word(Word::MetaSlot2).store(7 << 2 | STEADY, Ordering::SeqCst);
    shared.word(Word::Poisoned).store(1, Ordering::SeqCst);
    let other = || Shared::open(&path, 0o600, 16, false, HOME + 1);
    assert!(matches!(other(), Err(Error::Busy(_))));
    drop(shared);
    let (shared, role) = other().expect("nobody uses it");
    assert_eq!((role, shared.was_poisoned_on_this_boot()), (Role::First, None));
    assert!(shared.is_stranger());
    shared.publish(&root(1));
    shared.announce().expect("announce");
    assert!(matches!(Shared::open(&path, 0o600, 16, false, HOME), Err(Error::Busy(_))));
}

/// A registered user proves that the region is of this boot, whatever it says.
#[test]
fn a_region_in_use_is_joined_whatever_boot_it_names() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    for word in [0, 5] {
        shared.region.words()[W_BOOT].store(word, Ordering::SeqCst);
        shared.region.words()[W_BOOT + 1].store(word, Ordering::SeqCst);
        assert_eq!(open(&path).1, Role::Joined);
    }
}

#[test]
fn another_layout_is_refused_in_use_and_replaced_otherwise() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    shared.region.words()[W_FINGERPRINT].fetch_add(1, Ordering::SeqCst);
    assert!(matches!(Shared::open(&path, 0o600, 16, false, HOME), Err(Error::Incompatible { .. })));
    drop(shared);
    let (shared, role) = Shared::open(&path, 0o600, 500, false, HOME).expect("nobody uses it");
    assert_eq!(role, Role::First);
    shared.publish(&root(1));
    shared.announce().expect("announce");
    // The sizes are those of the first, whatever the others ask for.
    let (joined, _) = Shared::open(&path, 0o600, 7, false, HOME).expect("join");
    assert_eq!(joined.sizes, Sizes::for_readers(500));
    shared.region.words()[W_READERS].store(1 << 40, Ordering::SeqCst);
    assert!(matches!(Shared::open(&path, 0o600, 16, false, HOME), Err(Error::Incompatible { .. })));
}

#[test]
fn a_file_of_another_kind_is_left_alone() {
    let _apart = apart();
    let (dir, path) = lock_path();
    std::fs::write(&path, "a letter to my aunt").expect("write");
    assert!(matches!(Shared::open(&path, 0o600, 16, false, HOME), Err(Error::NotAStore { .. })));
    assert_eq!(std::fs::read(&path).expect("read"), b"a letter to my aunt");
    assert!(matches!(
        Shared::open(dir.path(), 0o600, 16, false, HOME),
        Err(Error::NotAStore { .. })
    ));
}

#[test]
fn a_forked_child_is_refused_and_harms_nothing() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    let (id, _) = shared.begin_read().expect("a slot");
    shared.lock_writer().expect("lock");
    let mut inherited = Some(shared);
    let child = fork(|| {
        let shared = inherited.take().expect("inherited");
        let refused = matches!(shared.begin_read(), Err(Error::Forked))
            && matches!(shared.lock_writer(), Err(Error::Forked))
            && matches!(shared.try_lock_writer(), Err(Error::Forked))
            && matches!(shared.lock_meta(), Err(Error::Forked))
            && matches!(shared.announce(), Err(Error::Forked));
        shared.end_read(id);
        shared.unlock_writer();
        let renewed = shared.renew(&id, IDLE, &mut [0; ROOT_WORDS]);
        let refused = refused && matches!(renewed, Err(Error::Forked));
        drop(shared);
        // Opened anew the store is the child's own, with slots and locks of its own.
        let (own, role) = open(&path);
        let (own_id, _) = own.begin_read().expect("a slot");
        let held = own.try_lock_writer().expect("try").is_none();
        let alive = own.clean_dead() == 0 && own.readers().len() == 2;
        own.end_read(own_id);
        assert!(refused && held && alive && role == Role::Joined);
    });
    assert!(ended_well(child));
    let shared = inherited.expect("the parent's");
    shared.publish(&root(2));
    assert_eq!(shared.reader_txn(&id), 1);
    assert_eq!(pins(&shared), [1]);
    shared.unlock_writer();
    assert!(!shared.lock_writer().expect("lock"));
    shared.unlock_writer();
    let (other, role) = open(&path);
    assert_eq!(role, Role::Joined);
    assert_eq!(other.clean_dead(), 0);
    shared.end_read(id);
}

#[test]
fn a_child_that_outlives_its_parent_keeps_no_slot() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    let mut child = start("with-child", &path);
    let said = child.hear();
    let grandchild: i32 =
        said.split_once(' ').and_then(|(pid, _)| pid.parse().ok()).expect("a process id");
    assert_eq!(shared.clean_dead(), 0);
    child.kill();
    // The grandchild still holds the descriptor and with it the lock; the pid decides.
    assert_eq!(shared.clean_dead(), 1);
    // SAFETY: a process that this test caused to be started.
    unsafe { libc::kill(grandchild, libc::SIGKILL) };
}

#[test]
fn killed_at_random_nothing_is_left() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    for round in 0..15u64 {
        let mut children: Vec<Program> = (0..3).map(|_| start("busy", &path)).collect();
        children.iter_mut().for_each(|child| assert_eq!(child.hear(), "busy"));
        std::thread::sleep(Duration::from_millis(3 + round * 7 % 11));
        children.into_iter().for_each(Program::kill);
        shared.lock_writer().expect("lock");
        shared.unlock_writer();
        shared.clean_dead();
        assert!(pins(&shared).is_empty());
        let slots = shared.slots();
        for slot in 0..slots.count() {
            assert_eq!((slots.owner(slot), slots.txn(slot)), (0, IDLE));
        }
        assert_eq!(shared.newest_root(), root(shared.newest()));
    }
    assert!(shared.newest() > 100);
}

/// The first process of a new pid namespace has the number 1, as in a container.
fn program_in_a_namespace(path: &Path) {
    // SAFETY: concerns only children of this process that are started from now on.
    if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
        return say("not permitted");
    }
    let child = fork(|| {
        let (shared, _) = open(path);
        shared.begin_read().expect("a slot");
        shared.lock_writer().expect("lock");
        say(format!("inside as {}", std::process::id()));
        wait();
    });
    say(format!("outside {child}"));
    assert!(ended_well(child));
}

#[test]
fn another_pid_namespace_is_judged_by_its_lock() {
    let _apart = apart();
    let (_dir, path) = lock_path();
    let shared = first(&path);
    let mut one = start("other-namespace", &path);
    let said = [one.hear(), one.hear()];
    if said.contains(&"not permitted".to_string()) {
        return;
    }
    assert!(said.contains(&"inside as 1".to_string()), "{said:?}");
    assert_eq!(shared.clean_dead(), 0);
    assert_eq!(shared.readers().len(), 1);
    // A second one, whose main thread has the same number, waits for the lock of the first.
    let mut two = start("other-namespace", &path);
    assert!(two.hear().starts_with("outside"));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(shared.try_lock_writer().expect("try"), None);
    one.finish();
    assert_eq!(two.hear(), "inside as 1");
    two.finish();
    assert_eq!(shared.clean_dead(), 0);
    assert!(pins(&shared).is_empty());
}

/// Figures: `cargo test --release -p zubilo --lib -- --ignored --nocapture figures`
#[test]
#[ignore = "prints figures"]
fn figures() {
    let (_dir, path) = lock_path();
    let shared = first(&path);
    let time = |what: &str, run: &mut dyn FnMut()| {
        let mut best = f64::MAX;
        for _ in 0..20 {
            let started = Instant::now();
            (0..100_000).for_each(|_| run());
            best = best.min(started.elapsed().as_nanos() as f64 / 1e5);
        }
        println!("{what}: {best:.1} ns");
    };
    time("begin_read + end_read", &mut || {
        let (id, seen) = shared.begin_read().expect("a slot");
        std::hint::black_box(&seen);
        shared.end_read(id);
    });
    let mut seen = [0; ROOT_WORDS];
    time("begin_read_into + end_read", &mut || {
        let id = shared.begin_read_into(&mut seen).expect("a slot");
        std::hint::black_box(&seen);
        shared.end_read(id);
    });
    let (id, _) = shared.begin_read().expect("a slot");
    time("renew", &mut || {
        std::hint::black_box(renew(&shared, &id));
    });
    shared.end_read(id);
    time("lock_writer + unlock_writer", &mut || {
        shared.lock_writer().expect("lock");
        shared.unlock_writer();
    });
    time("publish", &mut || shared.publish(&root(shared.newest() + 1)));
    let mut out = Vec::new();
    time("pins, no reader", &mut || _ = shared.pins(&mut out));
    let _readers: Vec<_> = (0..12).map(|_| shared.begin_read().expect("a slot")).collect();
    time("pins, 12 readers", &mut || _ = shared.pins(&mut out));
}
