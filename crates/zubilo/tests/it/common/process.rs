//! Other processes: the test binary run again with one ignored test as its program, or a real fork.
//!
//! A fork, and for a moment the start of a program, copies every descriptor, so that a lock which
//! another test has just given up seems to be held: tests that look at such locks run [`apart`].

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

const VARIABLE: &str = "ZUBILO_TEST_CHILD";

/// Held by a test that starts or forks processes, or that needs a lock to be free at once.
pub(crate) fn apart() -> MutexGuard<'static, ()> {
    static APART: Mutex<()> = Mutex::new(());
    APART.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another run of the test binary.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Runs the ignored test `program`, which finds `task` by [`task`]: a path to work on, or what else it
    /// is to be told.
    pub(crate) fn start(program: &str, task: impl AsRef<OsStr>) -> Program {
        Program::start_as(program, task, |command| command)
    }

    /// As `start`, with changes to the command.
    pub(crate) fn start_as(
        program: &str,
        task: impl AsRef<OsStr>,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Program {
        Program::run(change(&mut of_this_binary(&[], program, task.as_ref())))
    }

    /// As `start`, run by another program: the words before its name, which is a file.
    pub(crate) fn start_by(by: &[&str], program: &str, task: impl AsRef<OsStr>) -> Program {
        Program::run(&mut of_this_binary(by, program, task.as_ref()))
    }

    fn run(command: &mut Command) -> Program {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Program { input: child.stdin.take(), output, child }
    }

    /// The next line that the program [`say`]s.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> String {
        for line in self.output.by_ref() {
            if let Some(said) = line.unwrap().split("SAID ").nth(1) {
                return said.strip_suffix('.').unwrap_or(said).to_string();
            }
        }
        panic!("the child ended without a word: {:?}", self.child.wait());
    }

    /// Lets a program that [`wait`]s go on.
    pub(crate) fn go(&mut self) {
        self.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it with SIGKILL; what it had said before and nobody had heard.
    pub(crate) fn kill_and_hear(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // A line that was cut off is none: it has no mark at its end.
        let said = self.output.map_while(std::result::Result::ok);
        said.filter_map(|line| Some(line.split("SAID ").nth(1)?.strip_suffix('.')?.to_string()))
            .collect()
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends its input and waits; it must end well.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        self.input = None;
        for _ in self.output.by_ref() {}
        assert!(self.child.wait().unwrap().success());
    }
}

fn of_this_binary(by: &[&str], program: &str, task: &OsStr) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = match by {
        [] => Command::new(this),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(this);
            command
        }
    };
    command.args([program, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(VARIABLE, task);
    command
}

/// Whether this test may make namespaces and mounts. Where it may not, that it was left out is said on
/// the terminal itself, whatever the harness keeps back.
pub(crate) fn may_mount(test: &str) -> bool {
    let may = Command::new("unshare")
        .args(["-m", "--pid", "--fork", "-T", "--boottime", "1", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !may {
        let _ = writeln!(
            std::io::stderr(),
            "LEFT OUT: {test}: needs root and namespaces of mounts, processes and time"
        );
    }
    may
}

/// In the child: the path, or what else it was told, if this is a child.
pub(crate) fn task() -> Option<std::path::PathBuf> {
    std::env::var_os(VARIABLE).map(Into::into)
}

/// In the child: a line for [`Program::hear`].
pub(crate) fn say(line: impl std::fmt::Display) {
    println!("SAID {line}.");
}

/// In the child: waits for [`Program::go`] (true), or for the end of the input.
pub(crate) fn wait() -> bool {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap() > 0
}

/// Forks; the child runs `job` and ends with status 0 if it returned. Gives its id.
pub(crate) fn fork(job: impl FnOnce()) -> i32 {
    // SAFETY: the allocator of the C library works in a forked child; the child ends by _exit and
    // so runs nothing of the test harness.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_ok();
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    pid
}

/// Waits for a forked child; true if it ended with status 0.
pub(crate) fn ended_well(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: waits for a child of this process and writes one integer.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    waited == pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}
