//! The workloads: what sessions do, and on which kind of store.

use std::time::Duration;

use zubilo::{Durability, Geometry, Options, VerifyReads};

/// What commits promise in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every commit is durable.
    Sync,
    /// Commits are weak until `sync`. Stands for `Lazy` too, whose thread calls the same checkpoint
    /// at moments of its own.
    NoSync,
    /// Commits go to a redo log, which `sync` flushes, as the thread of `Lazy` does at moments of its own.
    Lazy,
}

/// What happens in a session besides transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    /// Nothing.
    Plain,
    /// The store is closed and opened again, with another durability, cleanly or not.
    Reopens,
    /// One of several processes is killed inside a call; the others go on.
    Kills,
    /// Commits come in the middle of checkpoints, checkpoints in the middle of commits.
    Interleaved,
    /// Both of these.
    Hostile,
    /// Two processes, one with durable commits, one with weak ones, that come in between each
    /// other's calls and are killed.
    Processes,
    /// Calls fail.
    Faults,
    /// One of two processes is killed between two stores to the lock file; the other goes on, and a new
    /// one comes.
    #[cfg(feature = "planted")]
    Stores,
}

impl Twist {
    /// Two processes have the store open at a time.
    pub fn two_processes(self) -> bool {
        #[cfg(feature = "planted")]
        if self == Twist::Stores {
            return true;
        }
        self == Twist::Processes
    }
}

/// Sizes and chances of transactions.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Tables there may be.
    pub tables: u64,
    /// Keys a table may have.
    pub keys: u64,
    /// Changes a transaction makes at most.
    pub changes: u64,
    /// Longest common value.
    pub value: u64,
    /// One in so many values is large; 0 for none.
    pub large_one_in: u64,
    /// Longest large value.
    pub large: u64,
    /// One in so many changes creates, drops, renames or clears a table; 0 for none.
    pub tables_one_in: u64,
    /// One in so many changes is a nested transaction; 0 for none.
    pub nested_one_in: u64,
    /// One in so many changes deletes a range; 0 for none.
    pub ranges_one_in: u64,
    /// One in so many new tables may have many values under a key, or another order; 0 for none.
    pub many_one_in: u64,
    /// Most values that come or go at once.
    pub burst: u64,
}

/// A workload.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How it is called on the command line.
    pub name: &'static str,
    /// What the first session promises.
    pub mode: Mode,
    /// What happens besides.
    pub twist: Twist,
    /// Pages go through a writable map.
    pub writable: bool,
    /// There is a real lock file, which outlives those who have the store open.
    pub lock_file: bool,
    /// The number of the system's run is hidden, as in some sandboxes.
    pub boot_hidden: bool,
    /// Bytes of a page.
    pub page_size: u32,
    /// Memory before a transaction spills.
    pub dirty_limit: u64,
    /// Bytes that the redo log may have, if there is to be one.
    pub redo: u64,
    /// Each open chooses anew whether there is to be a log, and how long it may be.
    pub switches: bool,
    /// Bounds of the file, if not the default.
    pub geometry: Option<Geometry>,
    /// Transactions.
    pub shape: Shape,
    /// Steps of a session.
    pub steps: u64,
    /// Steps before the first state is looked at: the store must have aged.
    pub warm: u64,
    /// One in so many steps is a `sync`; 0 for none.
    pub sync_one_in: u64,
    /// One in so many steps compacts the store in place; 0 for none.
    pub compact_one_in: u64,
    /// States of a session.
    pub states: u64,
    /// All subsets of the writes at each moment, where they are few.
    pub exhaustive: bool,
}

const SMALL: Shape = Shape {
    tables: 3,
    keys: 120,
    changes: 12,
    value: 120,
    large_one_in: 0,
    large: 0,
    tables_one_in: 0,
    nested_one_in: 12,
    ranges_one_in: 40,
    many_one_in: 0,
    burst: 0,
};

/// Few keys with many values: alone, in small sets, in trees of their own.
const MANY: Shape = Shape {
    keys: 9,
    changes: 14,
    value: 90,
    ranges_one_in: 25,
    many_one_in: 1,
    burst: 160,
    ..SMALL
};

fn plain(name: &'static str, mode: Mode, shape: Shape) -> Plan {
    Plan {
        name,
        mode,
        twist: Twist::Plain,
        writable: false,
        lock_file: false,
        boot_hidden: false,
        page_size: 4096,
        dirty_limit: 64 << 20,
        redo: 0,
        switches: false,
        geometry: None,
        shape,
        steps: 40,
        warm: 0,
        sync_one_in: 0,
        compact_one_in: 0,
        states: 120,
        exhaustive: false,
    }
}

fn tight() -> Geometry {
    let mut geometry = Geometry::default();
    geometry.growth = 64 << 10;
    geometry.shrink = 64 << 10;
    geometry
}

/// All workloads.
pub fn all() -> Vec<Plan> {
    let mut plans = sync_plans();
    plans.extend(weak_plans());
    plans.extend(hostile_plans());
    plans.extend(hidden_plans());
    plans.extend(many_plans());
    plans.extend(map_plans());
    plans.extend(compact_plans());
    plans.extend(log_plans());
    #[cfg(feature = "planted")]
    plans.extend(store_plans());
    plans
}

fn sync_plans() -> Vec<Plan> {
    let wide = Shape { keys: 1500, changes: 45, value: 300, tables: 1, ..SMALL };
    let large = Shape { large_one_in: 5, large: 40_000, keys: 60, ranges_one_in: 12, ..SMALL };
    let big = Shape { changes: 1100, keys: 4000, value: 1900, tables: 2, ..SMALL };
    let drops = Shape { changes: 900, keys: 3000, value: 1900, tables_one_in: 300, ..SMALL };
    vec![
        Plan {
            steps: 2,
            states: 400,
            exhaustive: true,
            ..plain("creation", Mode::Sync, Shape { changes: 3, ..SMALL })
        },
        Plan {
            steps: 6,
            states: 1500,
            exhaustive: true,
            ..plain("sync-exhaustive", Mode::Sync, Shape { changes: 4, ..SMALL })
        },
        plain("sync-small", Mode::Sync, SMALL),
        plain(
            "sync-tables",
            Mode::Sync,
            Shape { tables: 8, tables_one_in: 6, nested_one_in: 4, ..SMALL },
        ),
        Plan { steps: 420, warm: 60, states: 200, ..plain("sync-wide", Mode::Sync, wide) },
        Plan { geometry: Some(tight()), ..plain("sync-large", Mode::Sync, large) },
        Plan { steps: 8, states: 60, ..plain("sync-big", Mode::Sync, big) },
        Plan { steps: 12, states: 60, ..plain("sync-drops", Mode::Sync, drops) },
        Plan {
            dirty_limit: 24 << 10,
            ..plain(
                "sync-spill",
                Mode::Sync,
                Shape { changes: 60, nested_one_in: 30, value: 400, ..large },
            )
        },
        Plan { writable: true, ..plain("sync-map", Mode::Sync, large) },
        Plan { page_size: 16 << 10, ..plain("sync-16k", Mode::Sync, large) },
    ]
}

fn weak_plans() -> Vec<Plan> {
    let wide = Shape { keys: 1200, changes: 40, value: 300, tables: 1, ..SMALL };
    let large = Shape { large_one_in: 6, large: 30_000, keys: 80, ranges_one_in: 12, ..SMALL };
    let weak = |name, shape| Plan { sync_one_in: 5, ..plain(name, Mode::NoSync, shape) };
    vec![
        weak("nosync", SMALL),
        Plan { sync_one_in: 25, steps: 80, ..weak("nosync-rare", SMALL) },
        Plan { geometry: Some(tight()), ..weak("nosync-large", large) },
        Plan { steps: 300, warm: 60, states: 200, ..weak("nosync-wide", wide) },
        Plan { writable: true, ..weak("nosync-map", large) },
        Plan {
            dirty_limit: 24 << 10,
            ..weak("nosync-spill", Shape { changes: 60, value: 400, ..large })
        },
        Plan { twist: Twist::Reopens, steps: 60, ..weak("mixed", SMALL) },
        Plan { twist: Twist::Reopens, steps: 60, writable: true, ..weak("mixed-map", large) },
    ]
}

fn hostile_plans() -> Vec<Plan> {
    let weak = |name, twist| Plan {
        twist,
        steps: 70,
        sync_one_in: 4,
        ..plain(name, Mode::NoSync, Shape { keys: 60, ..SMALL })
    };
    let large = Shape { large_one_in: 6, large: 30_000, keys: 80, ..SMALL };
    vec![
        Plan { twist: Twist::Kills, ..plain("kills-sync", Mode::Sync, SMALL) },
        weak("kills-nosync", Twist::Kills),
        Plan {
            twist: Twist::Kills,
            dirty_limit: 24 << 10,
            ..plain("kills-spill", Mode::Sync, Shape { changes: 60, value: 400, ..large })
        },
        weak("interleaved", Twist::Interleaved),
        weak("hostile", Twist::Hostile),
        Plan { lock_file: true, ..weak("processes", Twist::Processes) },
        Plan { lock_file: true, shape: large, ..weak("processes-large", Twist::Processes) },
        Plan { twist: Twist::Faults, lock_file: true, ..plain("faults-sync", Mode::Sync, large) },
        Plan { lock_file: true, ..weak("faults-nosync", Twist::Faults) },
        Plan { dirty_limit: 24 << 10, shape: large, ..weak("faults-spill", Twist::Faults) },
        Plan {
            lock_file: true,
            sync_one_in: 2,
            shape: Shape { keys: 20, changes: 3, tables: 1, ..SMALL },
            ..weak("faults-syncs", Twist::Faults)
        },
    ]
}

/// Nobody knows whether the power was cut: weak commits are judged by their pages.
fn hidden_plans() -> Vec<Plan> {
    let names = ["nosync-wide", "nosync-spill", "mixed", "hostile", "processes", "faults-nosync"];
    let hidden = [
        "hidden-wide",
        "hidden-spill",
        "hidden-mixed",
        "hidden-hostile",
        "hidden-processes",
        "hidden-faults",
    ];
    let others = || weak_plans().into_iter().chain(hostile_plans());
    let hide = |(name, hidden)| {
        let plan = others().find(|plan| plan.name == name);
        plan.map(|plan| Plan { name: hidden, boot_hidden: true, ..plan })
    };
    names.into_iter().zip(hidden).filter_map(hide).collect()
}

/// Tables with many values under a key, and with keys in another order.
fn many_plans() -> Vec<Plan> {
    let mixed = Shape { many_one_in: 2, tables: 6, tables_one_in: 10, nested_one_in: 5, ..MANY };
    let spill = Shape { changes: 40, burst: 400, ..MANY };
    let weak = |name| Plan { sync_one_in: 5, ..plain(name, Mode::NoSync, MANY) };
    vec![
        plain("many-sync", Mode::Sync, MANY),
        plain("many-tables", Mode::Sync, mixed),
        Plan { dirty_limit: 24 << 10, ..plain("many-spill", Mode::Sync, spill) },
        weak("many-nosync"),
        Plan { twist: Twist::Hostile, steps: 70, ..weak("many-hostile") },
        Plan { twist: Twist::Processes, lock_file: true, steps: 70, ..weak("many-processes") },
        Plan { twist: Twist::Faults, ..plain("many-faults", Mode::Sync, MANY) },
    ]
}

/// Stores written through a map, whose pages the kernel writes back when it likes.
fn map_plans() -> Vec<Plan> {
    let large = Shape { large_one_in: 6, large: 30_000, keys: 80, ranges_one_in: 12, ..SMALL };
    let map = |name, mode, twist| Plan {
        writable: true,
        twist,
        steps: 60,
        sync_one_in: if mode == Mode::Sync { 0 } else { 5 },
        ..plain(name, mode, large)
    };
    vec![
        map("map-kills-sync", Mode::Sync, Twist::Kills),
        map("map-kills", Mode::NoSync, Twist::Kills),
        map("map-interleaved", Mode::NoSync, Twist::Interleaved),
        map("map-faults", Mode::NoSync, Twist::Faults),
        Plan { lock_file: true, ..map("map-processes", Mode::NoSync, Twist::Processes) },
        Plan {
            dirty_limit: 24 << 10,
            shape: Shape { changes: 60, value: 400, ..large },
            ..map("map-spill", Mode::NoSync, Twist::Plain)
        },
        Plan { shape: MANY, ..map("map-many", Mode::NoSync, Twist::Plain) },
    ]
}

/// Stores that are compacted now and then: much comes and goes, so that there is something to do.
fn compact_plans() -> Vec<Plan> {
    let loose = Shape { keys: 900, changes: 60, value: 500, ranges_one_in: 20, ..SMALL };
    let large = Shape { large_one_in: 6, large: 30_000, keys: 80, ranges_one_in: 8, ..SMALL };
    let many = Shape { keys: 30, burst: 300, ..MANY };
    let base = |name, mode, shape| Plan {
        compact_one_in: 4,
        sync_one_in: if mode == Mode::Sync { 0 } else { 6 },
        geometry: Some(tight()),
        ..plain(name, mode, shape)
    };
    let twist = |name, mode, shape, twist| Plan { twist, steps: 60, ..base(name, mode, shape) };
    vec![
        base("compact-sync", Mode::Sync, loose),
        base("compact-large", Mode::Sync, large),
        base("compact-many", Mode::Sync, many),
        base("compact-nosync", Mode::NoSync, loose),
        Plan { writable: true, ..base("compact-map", Mode::NoSync, large) },
        twist("compact-kills", Mode::Sync, large, Twist::Kills),
        twist("compact-hostile", Mode::NoSync, loose, Twist::Hostile),
        Plan {
            lock_file: true,
            ..twist("compact-processes", Mode::NoSync, large, Twist::Processes)
        },
        Plan { lock_file: true, ..twist("compact-faults", Mode::Sync, large, Twist::Faults) },
        Plan { lock_file: true, ..twist("compact-weak-faults", Mode::NoSync, many, Twist::Faults) },
    ]
}

/// Durable commits are records in a log, which is short: it goes round and is full now and then.
fn log_plans() -> Vec<Plan> {
    let large = Shape { large_one_in: 6, large: 9000, keys: 80, ranges_one_in: 30, ..SMALL };
    // All of it can be logged: only a full ring makes a commit steady.
    let wide = Shape { keys: 1500, changes: 24, value: 300, tables: 1, ranges_one_in: 0, ..SMALL };
    let base = |name, shape| Plan {
        redo: 64 << 10,
        sync_one_in: 12,
        steps: 60,
        ..plain(name, Mode::Sync, shape)
    };
    let twist = |name, twist| Plan { twist, ..base(name, Shape { keys: 60, ..SMALL }) };
    let exhaustive = Shape { changes: 4, ..SMALL };
    vec![
        base("log-small", SMALL),
        Plan {
            sync_one_in: 3,
            // The first commits are made in pages, until no meta is left from before the log.
            steps: 12,
            warm: 6,
            states: 1500,
            exhaustive: true,
            ..base("log-exhaustive", exhaustive)
        },
        Plan { steps: 240, warm: 40, states: 200, sync_one_in: 0, ..base("log-laps", wide) },
        base("log-large", large),
        Plan { page_size: 16 << 10, ..base("log-16k", large) },
        base("log-many", MANY),
        base("log-tables", Shape { tables: 8, tables_one_in: 12, nested_one_in: 4, ..SMALL }),
        Plan {
            dirty_limit: 24 << 10,
            ..base("log-spill", Shape { changes: 40, value: 400, ..large })
        },
        Plan { writable: true, ..base("log-map", large) },
        Plan { writable: true, ..twist("log-map-kills", Twist::Kills) },
        twist("log-mixed", Twist::Reopens),
        twist("log-kills", Twist::Kills),
        twist("log-interleaved", Twist::Interleaved),
        twist("log-hostile", Twist::Hostile),
        Plan { boot_hidden: true, ..twist("log-hidden", Twist::Hostile) },
        Plan { lock_file: true, mode: Mode::NoSync, ..twist("log-processes", Twist::Processes) },
        Plan { lock_file: true, ..twist("log-two", Twist::Processes) },
        Plan { lock_file: true, ..twist("log-faults", Twist::Faults) },
        Plan { compact_one_in: 8, geometry: Some(tight()), ..base("log-compact", large) },
    ]
    .into_iter()
    .chain(ring_plans())
    .chain(lazy_plans())
    .collect()
}

/// Lazy commits are records in a log that is flushed now and then, beside durable ones.
fn lazy_plans() -> Vec<Plan> {
    let small = Shape { keys: 60, ranges_one_in: 0, ..SMALL };
    let wide = Shape { keys: 900, changes: 24, value: 300, tables: 1, ranges_one_in: 0, ..SMALL };
    let base = |name, shape| Plan {
        redo: 64 << 10,
        sync_one_in: 6,
        steps: 80,
        ..plain(name, Mode::Lazy, shape)
    };
    let twist = |name, twist| Plan { twist, ..base(name, small) };
    vec![
        base("lazy-small", small),
        Plan {
            sync_one_in: 3,
            steps: 14,
            warm: 8,
            states: 1500,
            exhaustive: true,
            ..base("lazy-exhaustive", Shape { changes: 4, ..small })
        },
        Plan { steps: 240, warm: 40, states: 200, ..base("lazy-laps", wide) },
        Plan { writable: true, ..base("lazy-map", small) },
        twist("lazy-mixed", Twist::Reopens),
        twist("lazy-kills", Twist::Kills),
        twist("lazy-interleaved", Twist::Interleaved),
        twist("lazy-hostile", Twist::Hostile),
        Plan { boot_hidden: true, ..twist("lazy-hidden", Twist::Hostile) },
        Plan { lock_file: true, ..twist("lazy-processes", Twist::Processes) },
        Plan { lock_file: true, ..twist("lazy-faults", Twist::Faults) },
        Plan { redo: 512 << 10, sync_one_in: 15, ..base("lazy-grows", wide) },
        Plan { switches: true, redo: 512 << 10, ..twist("lazy-switched", Twist::Reopens) },
        Plan {
            switches: true,
            lock_file: true,
            redo: 512 << 10,
            ..twist("lazy-apart", Twist::Processes)
        },
    ]
}

/// The ring is exchanged for a longer one, given back and taken anew.
fn ring_plans() -> Vec<Plan> {
    let wide = Shape { keys: 900, changes: 24, value: 300, tables: 1, ranges_one_in: 0, ..SMALL };
    let large = Shape { large_one_in: 6, large: 20_000, keys: 80, ranges_one_in: 30, ..SMALL };
    let base = |name, shape| Plan {
        redo: 512 << 10,
        sync_one_in: 40,
        steps: 90,
        states: 200,
        ..plain(name, Mode::Sync, shape)
    };
    let switching = |name, twist| Plan {
        twist,
        switches: true,
        sync_one_in: 12,
        ..base(name, Shape { keys: 200, value: 300, ranges_one_in: 0, ..SMALL })
    };
    vec![
        base("ring-grows", wide),
        base("ring-large", large),
        Plan { writable: true, ..base("ring-map", wide) },
        Plan { twist: Twist::Kills, ..base("ring-kills", wide) },
        Plan { twist: Twist::Hostile, ..base("ring-hostile", wide) },
        Plan { twist: Twist::Faults, lock_file: true, ..base("ring-faults", wide) },
        Plan { twist: Twist::Processes, lock_file: true, ..base("ring-two", wide) },
        Plan { geometry: Some(tight()), compact_one_in: 12, ..base("ring-compact", wide) },
        switching("ring-switched", Twist::Reopens),
        Plan { writable: true, ..switching("ring-switched-map", Twist::Reopens) },
        Plan { lock_file: true, ..switching("ring-apart", Twist::Processes) },
    ]
}

/// Kills between stores to the lock file.
#[cfg(feature = "planted")]
fn store_plans() -> Vec<Plan> {
    let large = Shape { large_one_in: 6, large: 30_000, keys: 80, ..SMALL };
    let weak = |name, shape| Plan {
        twist: Twist::Stores,
        lock_file: true,
        steps: 70,
        sync_one_in: 3,
        ..plain(name, Mode::NoSync, shape)
    };
    vec![
        weak("stores", Shape { keys: 60, ..SMALL }),
        Plan { compact_one_in: 6, ..weak("stores-large", large) },
        Plan { writable: true, ..weak("stores-map", large) },
        Plan {
            mode: Mode::Sync,
            redo: 64 << 10,
            sync_one_in: 12,
            ..weak("stores-log", Shape { keys: 60, ..SMALL })
        },
        Plan {
            mode: Mode::Lazy,
            redo: 64 << 10,
            ..weak("stores-lazy", Shape { keys: 60, ..SMALL })
        },
    ]
}

impl Plan {
    /// The options to open the store with.
    pub fn options(&self, mode: Mode) -> Options {
        let durability = match mode {
            Mode::Sync => Durability::Sync,
            Mode::NoSync => Durability::NoSync,
            // The thread never comes to act.
            Mode::Lazy => {
                Durability::Lazy { sync_bytes: u64::MAX, sync_period: Duration::from_secs(1 << 20) }
            }
        };
        let options = Options::new()
            .page_size(self.page_size)
            .durability(durability)
            .dirty_limit(self.dirty_limit)
            .max_readers(16)
            .redo_log(self.redo)
            .verify_reads(VerifyReads::Always);
        match self.geometry {
            Some(geometry) => options.geometry(geometry),
            None => options,
        }
    }
}
