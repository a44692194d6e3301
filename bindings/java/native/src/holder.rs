//! The thread that holds write transactions for Java.
//!
//! A [`WriteTxn`] must be begun and ended by one thread of the system, because the writer lock belongs to
//! a thread. A Java thread cannot promise that: a virtual one moves between threads of the system, a
//! transaction that was lost is ended by the collector's thread, and callers hand transactions on. So one
//! thread for each open store begins and ends them, and lends them in between. One at a time is out;
//! who wants the next one waits in line.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

use zubilo::{Env, WriteTxn};

use crate::error::Failure;

/// A write transaction away from the thread that began it.
pub(crate) struct Lent(Box<WriteTxn>);

// SAFETY: what binds a `WriteTxn` to its thread is the writer lock, which only begin, commit and drop
// touch. They run on the holder's thread: a `Lent` gives out `&mut WriteTxn` for changes and reads, and
// is consumed by the holder alone (`Borrowed::drop` sends it there). What else it owns are memory and
// handles that any thread may use, one at a time.
unsafe impl Send for Lent {}

enum Command {
    Begin { env: Env, wait: bool, reply: SyncSender<Result<Option<Lent>, Failure>> },
    End { txn: Lent, commit: bool, reply: Option<SyncSender<Result<u64, Failure>>> },
}

/// The line to the thread of a store; it is started with the first transaction and ends with the store.
#[derive(Default)]
pub(crate) struct Holder {
    line: Mutex<Option<Sender<Command>>>,
}

/// A write transaction in the hands of Java. Dropped, it is aborted where it was begun.
pub(crate) struct Borrowed {
    txn: Option<Lent>,
    line: Sender<Command>,
}

const GONE: &str = "the thread that holds write transactions has ended";

impl Holder {
    fn line(&self) -> Result<Sender<Command>, Failure> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = &*line {
            return Ok(line.clone());
        }
        let (send, receive) = channel();
        std::thread::Builder::new()
            .name("zubilo-writes".into())
            .spawn(move || serve(&receive))
            .map_err(|source| {
                Failure::Engine(zubilo::Error::Io {
                    op: "start the thread that holds write transactions",
                    path: None,
                    source,
                })
            })?;
        *line = Some(send.clone());
        Ok(send)
    }

    /// Begins a write transaction; none if somebody else has it and `wait` is false.
    pub(crate) fn begin(&self, env: &Env, wait: bool) -> Result<Option<Borrowed>, Failure> {
        let line = self.line()?;
        let (reply, answer) = sync_channel(1);
        line.send(Command::Begin { env: env.clone(), wait, reply })
            .map_err(|_| Failure::Panic(GONE.into()))?;
        let txn = answer.recv().map_err(|_| Failure::Panic(GONE.into()))??;
        Ok(txn.map(|txn| Borrowed { txn: Some(txn), line }))
    }
}

impl Borrowed {
    pub(crate) fn get(&mut self) -> Result<&mut WriteTxn, Failure> {
        self.txn.as_mut().map(|lent| &mut *lent.0).ok_or(Failure::Closed)
    }

    /// Commits or aborts; gives the number of the commit, 0 for an abort.
    pub(crate) fn end(mut self, commit: bool) -> Result<u64, Failure> {
        let txn = self.txn.take().ok_or(Failure::Closed)?;
        let (reply, answer) = sync_channel(1);
        self.line
            .send(Command::End { txn, commit, reply: Some(reply) })
            .map_err(|_| Failure::Panic(GONE.into()))?;
        answer.recv().map_err(|_| Failure::Panic(GONE.into()))?
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(txn) = self.txn.take()
            && let Err(lost) = self.line.send(Command::End { txn, commit: false, reply: None })
        {
            // Never dropped on another thread: rather is the lock held until the process ends.
            std::mem::forget(lost);
        }
    }
}

fn serve(receive: &Receiver<Command>) {
    let mut out = false;
    let mut waiting = VecDeque::new();
    loop {
        let next = if out { None } else { waiting.pop_front() };
        let command = match next {
            Some(command) => command,
            None => match receive.recv() {
                Ok(command) => command,
                Err(_) => return,
            },
        };
        match command {
            Command::Begin { wait: false, reply, .. } if out => {
                let _ = reply.send(Ok(None));
            }
            command @ Command::Begin { .. } if out => waiting.push_back(command),
            Command::Begin { env, wait, reply } => {
                let begun = caught(|| {
                    let txn = if wait { env.write().map(Some) } else { env.try_write() };
                    Ok(txn?.map(|txn| Lent(Box::new(txn))))
                });
                out = matches!(begun, Ok(Some(_)));
                if reply.send(begun).is_err() {
                    // Nobody waits for it any more; it was dropped here.
                    out = false;
                }
            }
            Command::End { txn, commit, reply } => {
                out = false;
                let ended = caught(|| if commit { Ok(txn.0.commit()?.0) } else { Ok(0) });
                if let Some(reply) = reply {
                    let _ = reply.send(ended);
                }
            }
        }
    }
}

/// What `work` gives, or its panic as a failure.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Failure::Panic(text.unwrap_or_else(|| "a panic without a text".into())))
    })
}
