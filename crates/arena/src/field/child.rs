//! One engine's process, as the driver sees it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child as Process, ChildStdin, Command as Start, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::disk;
use crate::spec::{Command, Reply};

/// Time from one look at the disk to the next while a command runs.
const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Child {
    process: Process,
    input: Option<ChildStdin>,
    replies: Receiver<String>,
    /// What it said on its error output, once that has ended.
    errors: Receiver<String>,
}

impl Child {
    /// Starts this program again to serve one engine.
    pub(super) fn start(program: &Path, engine: &str) -> io::Result<Child> {
        let mut process = Start::new(program)
            .args(["worker", engine])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (send, replies) = channel();
        if let Some(output) = process.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let (send, errors) = channel();
        if let Some(output) = process.stderr.take() {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = BufReader::new(output).read_to_end(&mut text);
                let _ = send.send(String::from_utf8_lossy(&text).into_owned());
            });
        }
        let input = process.stdin.take();
        Ok(Child { process, input, replies, errors })
    }

    /// The answer to a command, and the most space that `dir` took meanwhile.
    pub(super) fn ask(&mut self, command: &Command, dir: &Path, limit: Duration) -> (Reply, u64) {
        let mut peak = 0;
        if let Err(error) = self.send(command) {
            return (self.failed(&format!("the process takes no commands: {error}")), peak);
        }
        let began = Instant::now();
        loop {
            match self.replies.recv_timeout(LOOK) {
                Ok(line) => {
                    let unclear = |e| Reply::Failed { reason: format!("unclear answer: {e}") };
                    return (serde_json::from_str(&line).unwrap_or_else(unclear), peak);
                }
                Err(RecvTimeoutError::Timeout) => peak = peak.max(disk::usage(dir).0),
                Err(RecvTimeoutError::Disconnected) => {
                    return (self.failed("the process has ended"), peak);
                }
            }
            if began.elapsed() > limit {
                let _ = self.process.kill();
                return (self.failed(&format!("no answer for {limit:?}")), peak);
            }
        }
    }

    /// Ends the process as a crash would: it gets no chance to write anything.
    pub(super) fn kill(mut self) {
        // It may have ended by itself; what it left is looked at in any case.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn send(&mut self, command: &Command) -> io::Result<()> {
        let mut line = serde_json::to_string(command)?;
        line.push('\n');
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(line.as_bytes())?;
        input.flush()
    }

    /// A failure, with how the process ended and the end of what it said.
    fn failed(&mut self, what: &str) -> Reply {
        self.input = None;
        let errors = self.errors.recv_timeout(Duration::from_secs(5)).unwrap_or_default();
        let lines: Vec<&str> = errors.lines().filter(|l| !l.starts_with("note: ")).collect();
        let last = lines[lines.len().saturating_sub(4)..].join(" ");
        let ended = match self.process.try_wait() {
            Ok(Some(status)) => format!(" ({status})"),
            _ => String::new(),
        };
        Reply::Failed { reason: format!("{what}{ended}: {last}") }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The end of its input ends it; if it does not listen it is killed.
        self.input = None;
        let listens = (0..100).any(|_| {
            let ended = matches!(self.process.try_wait(), Ok(Some(_)));
            if !ended {
                std::thread::sleep(Duration::from_millis(20));
            }
            ended
        });
        if !listens {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        crate::worker::release(self.process.id());
    }
}
