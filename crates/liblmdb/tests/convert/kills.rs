//! The opening program as a debugger runs it: killed before any of its system calls.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts a program that waits for [`run_until`].
pub(crate) fn traced(command: &mut Command) -> Child {
    // SAFETY: a call of the system is all that happens between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    command.spawn().expect("the program starts")
}

/// Waits for a stop; false when the program has ended.
fn stopped(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: the status lives during the call.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    assert_eq!(waited, pid, "{}", io::Error::last_os_error());
    libc::WIFSTOPPED(status)
}

/// Lets a program that has one thread run to its system call number `n` and kills it there; false if it
/// ended before.
pub(crate) fn run_until(child: &Child, n: u64) -> bool {
    let pid = child.id() as i32;
    // It stops where its own code begins.
    assert!(stopped(pid), "the program did not start");
    let mut stops = 0;
    loop {
        // SAFETY: the program is stopped, and traced by this thread.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, 0) }, 0);
        if !stopped(pid) {
            return false;
        }
        // One stop on the way in, one on the way out.
        stops += 1;
        if stops == 2 * n + 1 {
            // SAFETY: a program of this test's own, which has not been waited for.
            assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
            while stopped(pid) {}
            return true;
        }
    }
}
