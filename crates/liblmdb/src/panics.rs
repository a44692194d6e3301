//! Panics in the small build: a line on the standard error output, then the unwinding to `guard`.
//!
//! The standard library's own handlers can print a backtrace with names and lines, and bring along a
//! reader of debugging information for it: a fifth of the whole library, of no use in one that is
//! stripped. `cargo xtask dropin` has the linker put these in their place, where the linker can;
//! nothing refers to that reader then, and it is left out.

use core::panic::PanicInfo;
use std::fmt::Arguments;
use std::io::Write;

fn unwind(what: Arguments<'_>) -> ! {
    // A closed standard error output has no readers: the handler itself must not panic.
    let _ = writeln!(std::io::stderr(), "liblmdb on Zubilo: {what}");
    if std::thread::panicking() {
        // While values are dropped because of a panic: there is no way out of that.
        std::process::abort();
    }
    // Without memory of its own: there may be none left.
    std::panic::resume_unwind(Box::new(()))
}

/// The panic handler as the compiler calls it.
fn panicked(info: &PanicInfo<'_>) -> ! {
    unwind(format_args!("{info}"))
}

/// The handler of failed allocations as the compiler calls it.
fn out_of_memory(size: usize, _align: usize) -> ! {
    unwind(format_args!("no memory for {size} bytes"))
}

// Names for the linker that the library does not export.
std::arch::global_asm!(
    ".globl zubilo_panicked",
    ".hidden zubilo_panicked",
    ".type zubilo_panicked, @function",
    "zubilo_panicked:",
    "jmp {panicked}",
    ".globl zubilo_out_of_memory",
    ".hidden zubilo_out_of_memory",
    ".type zubilo_out_of_memory, @function",
    "zubilo_out_of_memory:",
    "jmp {out_of_memory}",
    panicked = sym panicked,
    out_of_memory = sym out_of_memory,
);
