//! The store as its users see it, one module a behaviour.

mod common;

mod failures;
mod full;
mod histories;
mod hostile;
mod regressions;
mod space;
mod types;
mod verify;
