//! The store as its users see it, one module a behaviour.

mod common;

mod full;
mod histories;
mod hostile;
mod regressions;
mod space;
