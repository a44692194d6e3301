//! The store as its users see it, one module a behaviour.

mod common;

mod balance;
mod compaction;
mod compaction_others;
mod copied;
mod counted;
mod cursors;
mod duplicates;
mod failures;
mod flusher;
mod full;
mod group;
mod histories;
mod hostile;
mod limits;
mod marks;
mod metas;
mod opening;
mod orders;
mod parked;
mod processes;
mod reentry;
mod regressions;
mod requests;
mod salvage;
mod scale;
mod sharing;
mod space;
mod telling;
mod threads;
mod types;
mod users;
mod values;
mod verify;
