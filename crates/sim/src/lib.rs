//! Zubilo on a simulated disk: the same engine that ships, on a file whose every state after a
//! crash can be made.
//!
//! `disk` logs what the store does to its file, `image` makes crash states from the log, `model`
//! knows what the store should hold, `session` runs workloads (`plan`) beside the model, and `run`
//! crashes them. `cursors` walks through tables that change, `branches` looks for records of the redo
//! log that no commit has. `hunt` plants bugs, those of `mistake` at the
//! disk and others in the engine, to see that they are found. Everything follows from a workload's name
//! and a seed. See `docs/reliability.md`.

pub mod branches;
pub mod cursors;
pub mod decay;
pub mod disk;
#[cfg(feature = "planted")]
pub mod hunt;
pub mod image;
pub mod mistake;
pub mod model;
pub mod plan;
pub mod prepared;
pub mod run;
pub mod session;
pub mod watch;
