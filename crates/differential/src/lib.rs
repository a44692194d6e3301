//! Zubilo against LMDB: random programs of puts, deletes, cursor moves and nested transactions on
//! every combination of table flags, run on both, each answer compared, failures shrunk.
//!
//! `program` makes programs, `lmdb` (through the table of functions of `support`) and `ours` run their steps,
//! `compare` runs both side by side, and the C interface of Zubilo as a third if it is given, and knows which of LMDB's answers its contract leaves open, `isolate` keeps crashes of LMDB away,
//! `shrink` makes failing programs small, `seeds` runs many. `bulk` is LMDB for the figures of `examples/figures.rs`.

// LMDB 0.9.70, whose functions `support` has for the program.
use lmdb_master_sys as _;

pub mod bulk;
pub mod compare;
pub mod isolate;
pub mod lmdb;
pub mod ours;
pub mod program;
pub mod seeds;
pub mod shrink;

/// What a step gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done and there is nothing to compare.
    Done,
    /// A record.
    Pair(Vec<u8>, Vec<u8>),
    /// A value alone.
    Value(Vec<u8>),
    /// A number.
    Count(u64),
    /// Many values.
    Many(Vec<Vec<u8>>),
    /// There is none.
    NotFound,
    /// It is there already, or not after what is.
    Exists,
    /// Not possible where the cursor stands, or not with these arguments.
    Invalid,
    /// Not possible in this kind of table.
    Incompatible,
    /// Anything else: its name.
    Other(String),
}

/// What both engines do.
pub trait Engine {
    /// Runs a step of a program.
    fn step(&mut self, step: &program::Step) -> Answer;
    /// All records of the table.
    fn records(&mut self) -> Vec<(Vec<u8>, Vec<u8>)>;
    /// The number of records that the table says it has.
    fn entries(&mut self) -> u64;
}
