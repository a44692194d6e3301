//! What the C interface has beyond LMDB's: `zubilo.h`. Names and arguments are libmdbx's where it has
//! the function.

mod changes;
mod counters;
mod data;
mod env;
mod group;
mod log;
mod look;
mod options;
mod park;
mod prepared;
mod scan;
mod slow;
mod tables;
mod user_metadata;
mod warm;

use std::ffi::c_int;

use crate::errors::{Code, Result};

pub(crate) use self::log::show_anyway;
pub(crate) use self::options::Extra;
pub(crate) use self::slow::{Slow, make_room};

/// The answer yes.
const TRUE: c_int = -1;
/// A key has several values where one was meant.
const MANY: Code = Code(-30421);

/// The result of a question.
fn answer(code: c_int, found: bool) -> c_int {
    match code {
        0 if found => TRUE,
        code => code,
    }
}

/// Something of the program's behind a pointer that must not be null.
fn given<'p, T>(pointer: *const T) -> Result<&'p T> {
    // SAFETY: by the contract it points to such a value for the time of a call.
    unsafe { pointer.as_ref() }.ok_or(Code::EINVAL)
}
