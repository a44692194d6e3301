//! What is done to a whole store: check, copies, compaction in place, the check in the background, what of
//! it is in memory, and what can be brought out of a damaged file.
//!
//! Nothing below knows of it. It uses transactions, walks the trees by the same readers as they do, and
//! is reached through `handle`; only [`salvage`] has its own way in, as what it works on cannot be opened.

mod audit;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod copy;
pub(crate) mod memory;
pub(crate) mod salvage;
mod scrub;

pub use scrub::ScrubReport;
pub(crate) use scrub::Scrubber;

use crate::env::Checks;

/// What the layers below ask for without knowing of this one.
pub(crate) static CHECKS: Checks =
    Checks { is_whole: check::is_whole, audit: audit::audit, replay: crate::txn::redo::replay };
