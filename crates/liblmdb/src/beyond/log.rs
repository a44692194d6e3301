//! Messages: what the store reports goes to a function of the program, up to a level.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Arguments;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use zubilo::Level;

use crate::guard::entry_or;

/// As the C library's `vprintf` takes its arguments: a pointer on all machines this runs on, be it
/// the list itself or what stands for a copy of it.
type ArgumentList = *mut c_void;
type Logger = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, ArgumentList);

/// Levels, as libmdbx numbers them.
const WARN: c_int = 2;
const ERROR: c_int = 1;
const NOTICE: c_int = 3;
const DEBUG: c_int = 5;
/// Leaves a number as it is.
const KEEP: c_int = -1;
/// Check the whole store after each commit.
const AUDIT: c_int = 2;

static LEVEL: AtomicI32 = AtomicI32::new(WARN);
static FLAGS: AtomicI32 = AtomicI32::new(0);
/// The program's function, or null. No lock: a child may be forked while another thread holds it.
static LOGGER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

fn logger() -> Option<Logger> {
    let function = LOGGER.load(Ordering::Acquire);
    // SAFETY: a function is an address, and the option of one is null where there is none; only such
    // options are stored.
    unsafe { std::mem::transmute::<*mut c_void, Option<Logger>>(function) }
}

/// Whether stores opened now are to be checked after each commit.
pub(crate) fn audits() -> bool {
    FLAGS.load(Ordering::Relaxed) & AUDIT != 0
}

fn number_of(level: Level) -> c_int {
    match level {
        Level::Error => ERROR,
        Level::Warn => WARN,
        Level::Info => NOTICE,
        _ => DEBUG,
    }
}

/// Hands a message to the program's function, if there is one that wants it.
pub(crate) fn pass_on(level: Level, message: Arguments<'_>) {
    let number = number_of(level);
    if number <= LEVEL.load(Ordering::Relaxed)
        && let Some(logger) = logger()
    {
        call(logger, number, message);
    }
}

/// The same, be it that the function wants less; without one to the standard error output.
pub(crate) fn show_anyway(level: Level, message: Arguments<'_>) {
    match logger() {
        Some(logger) => call(logger, number_of(level), message),
        None => eprintln!("liblmdb on Zubilo: {message}"),
    }
}

fn call(logger: Logger, number: c_int, message: Arguments<'_>) {
    // The text is the format, and has no use for arguments.
    let format = CString::new(message.to_string().replace('%', "%%")).unwrap_or_default();
    const FROM: &CStr = c"zubilo";
    let mut none = [0u64; 4];
    let none: ArgumentList = none.as_mut_ptr().cast();
    // SAFETY: the program gave the function for this; the list of arguments is as large as the
    // largest there is, empty, and not looked at, since the format names none.
    unsafe { logger(number, FROM.as_ptr(), 0, format.as_ptr(), none) };
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_setup_debug(
    level: c_int,
    flags: c_int,
    function: Option<Logger>,
) -> c_int {
    entry_or((), -1, || {
        let before = LEVEL.load(Ordering::Relaxed) << 16 | FLAGS.load(Ordering::Relaxed) & 0xffff;
        if level != KEEP {
            LEVEL.store(level.clamp(0, 7), Ordering::Relaxed);
        }
        if flags != KEEP {
            FLAGS.store(flags & AUDIT, Ordering::Relaxed);
        }
        // All bits set: the function stays.
        if function.is_none_or(|function| function as usize != usize::MAX) {
            let function = function.map_or(std::ptr::null_mut(), |f| f as *mut c_void);
            LOGGER.store(function, Ordering::Release);
        }
        before
    })
}
