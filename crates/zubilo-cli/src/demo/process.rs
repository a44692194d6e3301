//! Other processes: this program, started again with a role. They talk in lines over their standard
//! output and end when their standard input does, so none outlives the demonstration.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

/// A process that is silent for this long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a process is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Takes snapshots and verifies them.
    Reader,
    /// Commits durably until it is killed.
    Writer,
}

/// A started process.
pub(crate) struct Worker {
    child: Child,
    /// Open as long as the process shall run.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Worker {
    /// Starts this program in a role, for the store with this many places of the data set.
    pub(crate) fn start(role: Role, store: &Path, places: u32, seed: u64) -> Result<Worker> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let role = role.to_possible_value().context("a role without a name")?;
        let mut child = Command::new(program)
            .args(["demo", "--role", role.get_name(), "--seed", &seed.to_string()])
            .args(["--records", &places.to_string(), "--store"])
            .arg(store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a second process")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the process has no output")?;
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            let all = BufReader::new(output).lines();
            all.map_while(io::Result::ok).all(|line| send.send(line).is_ok())
        });
        Ok(Worker { child, input, lines })
    }

    /// The next line; none when the process has closed its output.
    pub(crate) fn line(&self) -> Result<Option<String>> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("a process is silent for {PATIENCE:?}"),
        }
    }

    /// Waits for this line.
    pub(crate) fn expect(&self, wanted: &str) -> Result<()> {
        match self.line()? {
            Some(line) if line == wanted => Ok(()),
            Some(line) => bail!("a process says {line:?}, not {wanted:?}"),
            None => bail!("a process ended before it said {wanted:?}; its error is above"),
        }
    }

    /// Whether it has said something that was not read yet; takes that line.
    pub(crate) fn has_spoken(&self) -> Result<bool> {
        match self.lines.try_recv() {
            Ok(_) => Ok(true),
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => bail!("a process ended early; its error is above"),
        }
    }

    /// Asks it to end.
    pub(crate) fn stop(&mut self) {
        self.input = None;
    }

    /// SIGKILL: no destructor, no flush, no farewell.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("cannot kill the process")
    }

    /// How it ended.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > end {
                bail!("a process does not end within {PATIENCE:?}");
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In a started process: becomes true when the demonstration wants it to end, or has ended itself.
pub(crate) fn asked_to_end() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&flag);
    thread::spawn(move || {
        let mut rest = Vec::new();
        // An error ends it as well as the end of the input.
        let _ = io::stdin().lock().read_to_end(&mut rest);
        ended.store(true, Ordering::Relaxed);
    });
    flag
}

/// In a started process: sends the demonstration a line, in one write.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush().context("the demonstration does not listen any more")
}
