//! The threads that an open store has. They are made by the C library and not by the standard one, which
//! notes each thread that begins and ends in a program of Rust, under a lock: a child that is forked at such a
//! moment has that lock for ever, and its first thread would wait for it.

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::fork_generation;

/// As many bytes of stack as the standard library gives.
const STACK: usize = 2 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that runs; detached when this is dropped.
pub(crate) struct Thread {
    id: libc::pthread_t,
    /// In a forked child there is no such thread.
    generation: u32,
}

extern "C" fn run(job: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn` made it from such a box for this thread alone.
    let job = unsafe { Box::from_raw(job.cast::<Job>()) };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(*job)) {
        // Its message is out. Dropped it could panic again.
        std::mem::forget(panic);
    }
    ptr::null_mut()
}

/// Starts a thread; the name has 15 bytes at most. A panic ends the thread only.
pub(crate) fn spawn(name: &CStr, job: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let outcome = |code| match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    };
    let job: *mut Job = Box::into_raw(Box::new(Box::new(job)));
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut id: libc::pthread_t = 0;
    // SAFETY: the attributes are initialised before they are used, and destroyed after; `run` gets the job, which
    // stays for it if the thread was made.
    let made = unsafe {
        outcome(libc::pthread_attr_init(attributes.as_mut_ptr())).and_then(|()| {
            // With a size of its own no lock of the C library is taken to learn the usual one.
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
            let made = libc::pthread_create(&raw mut id, attributes.as_ptr(), run, job.cast());
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            outcome(made)
        })
    };
    if let Err(error) = made {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(job) });
        return Err(error);
    }
    // SAFETY: the thread is neither joined nor detached yet; a name that is too long is refused.
    unsafe { libc::pthread_setname_np(id, name.as_ptr()) };
    Ok(Thread { id, generation: fork_generation() })
}

impl Thread {
    /// Waits for its end.
    pub(crate) fn join(self) {
        let this = std::mem::ManuallyDrop::new(self);
        if this.generation == fork_generation() {
            // SAFETY: it was not joined before, since that takes the value; nor detached.
            unsafe { libc::pthread_join(this.id, ptr::null_mut()) };
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.generation == fork_generation() {
            // SAFETY: as in `join`.
            unsafe { libc::pthread_detach(self.id) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_gets_its_name_and_is_waited_for() {
        let (sender, receiver) = mpsc::channel();
        let thread = spawn(c"zubilo-test", move || {
            // Named by who started it, perhaps a moment later.
            let named = || std::fs::read_to_string("/proc/thread-self/comm").expect("comm");
            while named() != "zubilo-test\n" {
                std::thread::yield_now();
            }
            sender.send(()).expect("send");
        });
        thread.expect("spawn").join();
        receiver.try_recv().expect("it has ended");
    }

    #[test]
    fn a_panic_ends_the_thread_only() {
        // Without the message of a panic, which would look like a failure of this test.
        let panics = || std::panic::resume_unwind(Box::new("meant"));
        spawn(c"zubilo-test", panics).expect("spawn").join();
    }
}
