//! Helpers of the tests that need other processes. A child is either the test binary run again
//! with one ignored test as its program, or a real fork. What only the tests of the lock file use
//! is left out under the model checker, as they are.
//!
//! A fork, and for a moment the start of a program, copies every descriptor, so that a lock file
//! which another test has just closed seems in use: tests that look at such locks run [`apart`].

#[cfg(not(loom))]
use std::io::Write;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by a test that starts or forks processes, or looks at locks of other processes.
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

const VARIABLE: &str = "ZUBILO_TEST_CHILD";

impl Program {
    /// Runs the ignored test `program`, which finds `task` by [`task`].
    pub(crate) fn start(program: &str, task: &str) -> Program {
        let mut child = Command::new(std::env::current_exe().expect("own path"))
            .args([program, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the test binary");
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        Program { input: child.stdin.take(), output, child }
    }

    /// The next line that the program [`say`]s.
    pub(crate) fn hear(&mut self) -> String {
        for line in self.output.by_ref() {
            let line = line.expect("output of the child");
            if let Some(said) = line.split("SAID ").nth(1) {
                return said.to_string();
            }
        }
        panic!("the child ended without a word: {:?}", self.child.wait());
    }

    #[cfg(not(loom))]
    /// Lets a program that [`wait`]s go on.
    pub(crate) fn go(&mut self) {
        let input = self.input.as_mut().expect("not ended");
        input.write_all(b"go\n").expect("child listens");
    }

    #[cfg(not(loom))]
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// Ends its input and checks that it ends well.
    pub(crate) fn finish(mut self) {
        self.input = None;
        for _ in self.output.by_ref() {}
        assert!(self.child.wait().expect("wait").success());
    }
}

/// In the child: what to do, if it is one.
pub(crate) fn task() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

/// In the child: a line for [`Program::hear`].
pub(crate) fn say(line: &str) {
    println!("SAID {line}");
}

#[cfg(not(loom))]
/// In the child: waits for [`Program::go`], or for the end of the input.
pub(crate) fn wait() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("input");
}

#[cfg(not(loom))]
/// Forks; the child runs `job` and ends with status 0 if it returned true. Returns its id.
pub(crate) fn fork(job: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the tests run on a C library whose allocator works in a forked child; the child
    // ends by _exit and so runs nothing of the test harness.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let well =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_ok_and(|well| well);
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    pid
}

#[cfg(not(loom))]
/// Waits for a forked child; true if it ended with status 0.
pub(crate) fn ended_well(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: waits for a child of ours and writes one integer.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    waited == pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}
