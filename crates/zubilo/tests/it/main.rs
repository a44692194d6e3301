//! The store as its users see it, one module a behaviour.

mod common;

mod failures;
mod flusher;
mod full;
mod group;
mod histories;
mod hostile;
mod opening;
mod processes;
mod regressions;
mod space;
mod types;
mod values;
mod verify;
