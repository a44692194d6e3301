//! Zubilo: an embedded, transactional, ordered key-value store.

mod error;
mod num;
#[doc(hidden)]
pub mod page;
#[doc(hidden)]
pub mod platform;
mod shared;
mod space;
mod sync;

pub use error::{Error, Result};
pub use num::{PageNo, TxnId};
