//! Zubilo on a simulated disk: the same engine that ships, on a file whose every state after a
//! crash can be made.
//!
//! `disk` logs what the store does to its file, `image` makes crash states from the log, `model`
//! knows what the store should hold, `life` runs workloads (`plan`) beside the model, and `run`
//! crashes them. Everything follows from a workload's name and a seed. See `docs/reliability.md`.

pub mod disk;
pub mod image;
pub mod life;
pub mod model;
pub mod plan;
pub mod rng;
pub mod run;
pub mod watch;
