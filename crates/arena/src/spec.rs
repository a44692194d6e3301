//! What is measured, in the words that the driver and the engines' processes exchange: classes of
//! durability, shapes of data, workloads, commands, replies. One line of JSON each.

use serde::{Deserialize, Serialize};

use crate::keys::Kind;

/// What a commit promises. An engine is entered in a class only with settings that give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    /// D3: nothing acknowledged is lost in a power cut.
    Sync,
    /// D2: nothing acknowledged is lost when the process ends; a power cut takes the store back
    /// to a consistent earlier commit.
    Lazy,
    /// D1: nothing acknowledged is lost when the process ends.
    NoSync,
    /// D0: nothing promised; write-ahead logs are off.
    Volatile,
}

impl Class {
    pub(crate) const ALL: [Class; 4] = [Class::Sync, Class::Lazy, Class::NoSync, Class::Volatile];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Sync => "SYNC",
            Class::Lazy => "LAZY",
            Class::NoSync => "NOSYNC",
            Class::Volatile => "VOLATILE",
        }
    }

    pub(crate) fn promise(self) -> &'static str {
        match self {
            Class::Sync => "D3: nothing acknowledged is lost in a power cut",
            Class::Lazy => "D2: a power cut takes the store back to a consistent earlier commit",
            Class::NoSync => "D1: nothing acknowledged is lost when the process ends",
            Class::Volatile => "D0: nothing promised, write-ahead logs off",
        }
    }
}

/// Lengths of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Values {
    Fixed(u32),
    /// 8 to 4,096 bytes, their logarithm uniform.
    Mixed,
}

/// The records of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    pub(crate) keys: Kind,
    pub(crate) values: Values,
    pub(crate) records: u64,
}

/// Where look-ups fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pick {
    Uniform,
    /// Zipf with exponent 0.99, the popular ones scattered over the key space.
    Zipf,
    /// Zipf from the newest record backwards.
    Latest,
    /// Keys that are not there.
    Missing,
}

/// What one measurement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
    /// A new store filled in transactions of this many records, keys in their random order or sorted.
    Load { sorted: bool, batch: u64 },
    /// One new record a transaction.
    Set,
    /// Look-ups in one long read transaction or one transaction each.
    Get { pick: Pick, long: bool },
    /// Look-ups of this many keys at once, in one long read transaction.
    GetMany { count: u64 },
    /// Begin and end of a read transaction.
    Begin,
    /// A walk over all records in their order.
    Iterate,
    /// A seek and this many records from there.
    Range { count: u64 },
    /// 2 inserts, 1 read, 1 update, 1 delete a transaction.
    Crud,
    /// This many times CRUD in one transaction.
    Batch { quads: u64 },
    /// One record removed a transaction.
    Delete,
    /// So many new records a transaction, in the store as it is or in one made anew.
    Insert { batch: u64, fresh: bool },
    /// So many records removed a transaction.
    Remove { batch: u64 },
    /// CRUD begun at a fixed rate: latencies count from when each was due, also if the store was
    /// still busy with an earlier one.
    Paced { rate: u64 },
    /// A new store in three phases of equal work, this many times CRUD a transaction: alone, beside
    /// a reader that holds its snapshot, alone again.
    Sleeper { quads: u64 },
    /// A new store shaped like the state of a chain's node with so many accounts, then transactions of
    /// so many changes; in three phases, as `Sleeper`.
    Chain { accounts: u64, changes: u64 },
    /// The store made as small as the engine can make it.
    Compact,
    /// A new store filled with pairs in this many at a time: with rows, records and their entries in
    /// two indexes; without, many values under each key of one table.
    LoadTables { rows: bool, batch: u64 },
    /// 2 inserts, 1 update, 1 delete of what the tables hold, in one transaction.
    ChangeTables,
    /// Values under random keys, so many of each at most, with the records that they name.
    Find { most: u64 },
    /// The store copied while a thread does CRUD.
    Backup,
    /// Threads that look up (one transaction each) beside threads that do CRUD.
    Mix { readers: u64, writers: u64 },
}

impl Work {
    /// Whether it makes its store anew and must not be repeated to warm up.
    pub(crate) fn is_load(self) -> bool {
        matches!(self, Work::Load { .. } | Work::LoadTables { .. }) || self.has_phases()
    }

    /// Whether it has three phases, of which a reader sleeps through the second.
    pub(crate) fn has_phases(self) -> bool {
        matches!(self, Work::Sleeper { .. } | Work::Chain { .. })
    }

    /// Whether it can be done once to a store: a second time it would find another one.
    pub(crate) fn is_done_once(self) -> bool {
        matches!(self, Work::Remove { .. } | Work::Compact)
    }

    /// Whether the calls that it makes to the system are of interest, and can be counted in a round of
    /// their own.
    pub(crate) fn has_calls(self) -> bool {
        !matches!(
            self,
            Work::Get { long: true, .. }
                | Work::GetMany { .. }
                | Work::Iterate
                | Work::Range { .. }
                | Work::Find { .. }
                | Work::Chain { .. }
        ) && !self.is_done_once()
    }

    /// What the second list of figures is about, where there is one.
    pub(crate) fn beside(self) -> &'static str {
        match self {
            Work::Backup => "CRUD beside",
            _ => "readers of",
        }
    }

    /// Whether it changes records.
    pub(crate) fn writes(self) -> bool {
        !matches!(
            self,
            Work::Get { .. }
                | Work::GetMany { .. }
                | Work::Begin
                | Work::Iterate
                | Work::Range { .. }
                | Work::Find { .. }
                | Work::Mix { writers: 0, .. }
        )
    }
}

/// How long a measurement goes on: until either bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) ops: u64,
    pub(crate) seconds: f64,
}

/// What the driver asks of an engine's process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub(crate) enum Command {
    /// Opens a new store in `dir`, empty or with the records of the shape.
    Open {
        dir: String,
        class: Class,
        shape: Shape,
        seed: u64,
        fill: bool,
        /// Bytes of memory that the process may take once the store is filled.
        memory: Option<u64>,
    },
    Run {
        work: Work,
        bound: Bound,
        audit: bool,
    },
    /// Opens the store that is there again and counts its records.
    Close,
    /// Does CRUD for so long and returns how many records there are; the process is killed next.
    Churn {
        seconds: f64,
    },
    /// Opens what a killed process has left, and counts its records.
    Recover {
        dir: String,
        class: Class,
        shape: Shape,
        seed: u64,
        /// Records that were acknowledged.
        records: u64,
    },
}

/// Calls to the system, as the kernel counts them; none where it does not let us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Audit {
    pub(crate) calls: u64,
    /// `fsync`, `fdatasync`, `msync`, `sync_file_range`.
    pub(crate) flushes: u64,
    /// Calls that write to files.
    pub(crate) writes: u64,
}

/// What a measurement cost the process and the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Costs {
    pub(crate) wall_s: f64,
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    /// Calls of the read and write families and their bytes, from `/proc/self/io`.
    pub(crate) read_calls: u64,
    pub(crate) write_calls: u64,
    pub(crate) written_bytes: u64,
    /// Bytes of pages dirtied, and of pages fetched from the device.
    pub(crate) dirtied_bytes: u64,
    pub(crate) fetched_bytes: u64,
    /// Of the whole device, from `/proc/diskstats`.
    pub(crate) device_writes: u64,
    pub(crate) device_bytes: u64,
    pub(crate) device_flushes: u64,
    pub(crate) faults: u64,
}

/// What the threads of one kind did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) ops: u64,
    pub(crate) seconds: f64,
    /// Nanoseconds and how often, for each bucket of the histogram that is not empty.
    pub(crate) latency: Vec<(u64, u64)>,
}

/// Transactions that followed each other: how long they took, what they called, what they left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Drift {
    /// Transactions up to then.
    pub(crate) done: u64,
    pub(crate) median_ns: u64,
    /// A transaction.
    pub(crate) write_calls: f64,
    /// Allocated by the store then.
    pub(crate) bytes: u64,
    /// A reader held its snapshot meanwhile.
    pub(crate) sleeper: bool,
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// What the row is about; the writers where there are readers and writers.
    pub(crate) main: Part,
    /// The readers beside writers.
    pub(crate) readers: Option<Part>,
    /// While the clock ran.
    pub(crate) during: Costs,
    /// Until everything was flushed and background work was done.
    pub(crate) settled: Costs,
    /// Bytes of keys and values that the measurement put.
    pub(crate) user_bytes: u64,
    /// Bytes of keys and values that it was given back.
    pub(crate) read_bytes: u64,
    pub(crate) peak_memory: u64,
    /// Allocated and apparent, after settling.
    pub(crate) disk_bytes: u64,
    pub(crate) apparent_bytes: u64,
    /// Transactions done and the space that the store took then, where that is the matter.
    pub(crate) growth: Vec<(u64, u64)>,
    /// The same with times and calls, by the hundred transactions.
    #[serde(default)]
    pub(crate) drift: Vec<Drift>,
    /// What else must be known.
    pub(crate) note: Option<String>,
    pub(crate) audit: Option<Audit>,
    /// Why there is no audit though one was asked for.
    pub(crate) audit_missing: Option<String>,
}

/// What an engine's process answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub(crate) enum Reply {
    Open {
        version: String,
        settings: String,
        why: String,
    },
    /// The engine cannot give the class, or has no such work.
    Absent {
        reason: String,
    },
    /// The engine is not on this machine or not in this build.
    Missing {
        reason: String,
    },
    Failed {
        reason: String,
    },
    Ran {
        sample: Box<Sample>,
    },
    Churned {
        records: u64,
    },
    Closed {
        records: u64,
        disk_bytes: u64,
        apparent_bytes: u64,
        reopen_s: f64,
        /// The same after the process was killed.
        killed_open_s: Option<f64>,
    },
}
