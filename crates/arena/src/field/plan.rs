//! What `quick` and `full` measure.

use crate::keys::Kind;
use crate::spec::{Bound, Class, Pick, Shape, Values, Work};

/// Work on one store of each engine, in this order.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    pub(crate) shape: Shape,
    /// Whether the store is filled before the first work, which is not measured then.
    pub(crate) fill: bool,
    pub(crate) tasks: Vec<Task>,
    /// Rounds that count.
    pub(crate) rounds: usize,
    /// Bytes of memory that each engine may take, after the store was filled.
    pub(crate) memory: Option<u64>,
    /// Whether the processes are killed in the end, to see what that leaves.
    pub(crate) kill: bool,
}

impl Stage {
    /// Bytes of disk that an engine may need.
    pub(super) fn space(&self) -> u64 {
        2 * self.shape.records * self.record() + self.growth() + (64 << 20)
    }

    /// Those of them that the work on a filled store may add.
    pub(super) fn growth(&self) -> u64 {
        let grows = |task: &Task| match task.work {
            Work::Set => task.bound.ops,
            Work::Insert { batch, .. } => task.bound.ops.saturating_mul(batch),
            _ => 0,
        };
        // What only the clock bounds adds little to a store.
        let bounded = |records: &u64| *records < u64::from(u32::MAX);
        let added: u64 = self.tasks.iter().map(grows).filter(bounded).sum();
        added * (self.rounds as u64 + 2) * self.record()
    }

    /// Bytes of a record, at most or about.
    fn record(&self) -> u64 {
        match self.shape.values {
            Values::Fixed(bytes) => u64::from(bytes) + 64,
            Values::Mixed => 1024 + 64,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) work: Work,
    pub(crate) bound: Bound,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) records: u64,
    pub(crate) rounds: usize,
    /// A measurement's time.
    pub(crate) seconds: f64,
    /// All shapes of data and of threads instead of the most telling ones.
    pub(crate) whole: bool,
    /// Share of what stages fix by themselves.
    pub(crate) share: f64,
}

impl Scale {
    /// Under ten minutes for the whole field on two cores.
    pub(crate) const QUICK: Scale =
        Scale { records: 100_000, rounds: 3, seconds: 0.12, whole: false, share: 1.0 };
    /// A night.
    pub(crate) const FULL: Scale =
        Scale { records: 1_000_000, rounds: 5, seconds: 2.0, whole: true, share: 1.0 };

    /// A share of it, to see whether everything works.
    pub(crate) fn shrunk(self, share: f64) -> Scale {
        let rounds = ((self.rounds as f64 * share).ceil() as usize).max(1);
        let scale = Scale { share, rounds, seconds: self.seconds * share, ..self };
        Scale { records: scale.part(self.records, 1000), ..scale }
    }

    /// The share of a number, `least` of it in any case.
    fn part(self, number: u64, least: u64) -> u64 {
        ((number as f64 * self.share) as u64).max(least.min(number))
    }

    pub(crate) fn describe(self, plan: &str) -> String {
        let Scale { records, rounds, seconds, .. } = self;
        let share = match self.share {
            1.0 => String::new(),
            share => format!(" at a scale of {share}, which is no measurement"),
        };
        format!("{plan}{share}, {records} records, {rounds} rounds, {seconds} s each")
    }
}

const RANDOM: (Kind, Values) = (Kind::Random16, Values::Fixed(100));

struct Plan {
    scale: Scale,
    stages: Vec<Stage>,
}

/// All stages of a scale.
pub(crate) fn stages(scale: Scale) -> Vec<Stage> {
    let mut plan = Plan { scale, stages: Vec::new() };
    plan.durable();
    plan.reads();
    plan.lazy();
    plan.loads();
    plan.identifiers();
    plan.sleeper();
    if scale.whole {
        plan.chain();
    }
    plan.published();
    plan.tables();
    plan.backup();
    if scale.whole {
        plan.other_data();
        plan.larger_than_memory();
    }
    plan.stages
}

impl Plan {
    fn bound(&self) -> Bound {
        Bound { ops: u64::MAX, seconds: self.scale.seconds }
    }

    fn task(&self, name: impl Into<String>, work: Work) -> Task {
        Task { name: name.into(), work, bound: self.bound() }
    }

    fn stage(
        &mut self,
        name: &'static str,
        class: Class,
        (keys, values): (Kind, Values),
    ) -> &mut Stage {
        let Scale { records, rounds, .. } = self.scale;
        let shape = Shape { keys, values, records };
        let (tasks, fill, memory, kill) = (Vec::new(), true, None, false);
        self.stages.push(Stage { name, class, shape, fill, tasks, rounds, memory, kill });
        let last = self.stages.len() - 1;
        &mut self.stages[last]
    }

    /// Transactions of the benchmarks that were always shown: one record, CRUD, batches.
    fn changes(&self) -> Vec<Task> {
        vec![
            self.task("SET", Work::Set),
            self.task("CRUD", Work::Crud),
            self.task("BATCH of 500", Work::Batch { quads: 500 }),
            self.task("DELETE", Work::Delete),
        ]
    }

    fn mixes(&self, mixes: &[(u64, u64)]) -> Vec<Task> {
        let name = |readers, writers| match (readers, writers) {
            (0, w) => format!("{w}W"),
            (r, 0) => format!("{r}R"),
            (r, w) => format!("{r}R+{w}W"),
        };
        let task = |&(readers, writers): &(u64, u64)| {
            self.task(name(readers, writers), Work::Mix { readers, writers })
        };
        mixes.iter().map(task).collect()
    }

    fn durable(&mut self) {
        let mut tasks = self.changes();
        let all = [(0, 2), (0, 4), (0, 8), (2, 1), (2, 2), (4, 4), (1, 4)];
        tasks.extend(self.mixes(if self.scale.whole { &all } else { &all[2..3] }));
        if self.scale.whole {
            let set = |batch| Work::Insert { batch, fresh: false };
            tasks.extend([10, 100].map(|n| self.task(format!("SET of {n}"), set(n))));
            tasks.push(self.task("CRUD, 500 a second", Work::Paced { rate: 500 }));
        }
        let stage = self.stage("transactions", Class::Sync, RANDOM);
        (stage.tasks, stage.kill) = (tasks, true);
    }

    fn lazy(&mut self) {
        for class in [Class::Lazy, Class::NoSync, Class::Volatile] {
            let mut tasks = self.changes();
            let all = [(0, 2), (0, 4), (0, 8), (2, 1), (2, 2), (4, 4), (1, 4)];
            match (self.scale.whole, class) {
                (true, Class::NoSync) => {
                    tasks.extend(self.mixes(&all));
                    tasks.push(self.task("CRUD, 5,000 a second", Work::Paced { rate: 5000 }));
                }
                (true, _) => tasks.extend(self.mixes(&all)),
                (false, Class::NoSync) => tasks.extend(self.mixes(&all[3..4])),
                (false, _) => tasks.truncate(2),
            }
            let stage = self.stage("transactions", class, RANDOM);
            (stage.tasks, stage.kill) = (tasks, class != Class::Volatile);
        }
    }

    /// 10,000 identifiers of 16 random bytes in 100 transactions: into an empty store, and into one
    /// that has been in use.
    fn identifiers(&mut self) {
        let whole = self.scale.whole;
        let seconds = 200.0 * self.scale.seconds;
        let task =
            |name: &str, work, ops| Task { name: name.into(), work, bound: Bound { ops, seconds } };
        let batch = 100;
        let kind = (Kind::Random16, Values::Fixed(8));
        let fresh = task("100 x 100 identifiers", Work::Insert { batch, fresh: true }, 100);
        let stage = self.stage("identifiers, new store", Class::Sync, kind);
        (stage.tasks, stage.shape.records) = (vec![fresh], 64);
        let ageing = if whole { self.scale.part(200, 2) } else { 8 };
        let tasks = vec![
            task("ageing: BATCH of 500", Work::Batch { quads: 500 }, ageing),
            task("100 x 100 identifiers", Work::Insert { batch, fresh: false }, 100),
        ];
        self.stage("identifiers, aged store", Class::Sync, kind).tasks = tasks;
    }

    fn sleeper(&mut self) {
        let commits = if self.scale.whole { self.scale.part(600, 24) } else { 96 };
        let bound = Bound { ops: commits, seconds: 400.0 * self.scale.seconds };
        let name = "a reader sleeps through the second third".to_owned();
        let task = Task { name, work: Work::Sleeper { quads: 100 }, bound };
        let records = self.scale.records / 4;
        let stage = self.stage("sleeping reader", Class::Sync, RANDOM);
        (stage.tasks, stage.fill, stage.rounds, stage.shape.records) =
            (vec![task], true, 1, records);
    }

    /// The state of a chain's node, aged: 480 changes a transaction.
    fn chain(&mut self) {
        let (accounts, changes) = (self.scale.part(600_000, 6000), self.scale.part(480, 48));
        let bound = Bound { ops: self.scale.part(15_000, 90), seconds: 100.0 * self.scale.seconds };
        for class in [Class::Sync, Class::Lazy] {
            let name = "blocks, a reader sleeps through the second third".to_owned();
            let task = Task { name, work: Work::Chain { accounts, changes }, bound };
            let kind = (Kind::Random16, Values::Fixed(100));
            let stage = self.stage("chain state", class, kind);
            (stage.tasks, stage.fill, stage.rounds) = (vec![task], false, 1);
            // Accounts and slots; two thirds more slots than accounts.
            stage.shape.records = accounts * 8 / 3;
        }
    }

    /// Records with two secondary indexes, and many values under a key.
    fn tables(&mut self) {
        let records = self.scale.records / if self.scale.whole { 2 } else { 4 };
        for (name, rows, most) in
            [("two indexes", true, 10), ("many values under a key", false, u64::MAX)]
        {
            let tasks = vec![
                self.task("LOAD random", Work::LoadTables { rows, batch: 1000 }),
                self.task(
                    if rows { "10 records by an index" } else { "all values of a key" },
                    Work::Find { most },
                ),
                self.task("2 inserts, 1 update, 1 delete", Work::ChangeTables),
            ];
            let stage = self.stage(name, Class::NoSync, (Kind::Dense, Values::Fixed(100)));
            (stage.tasks, stage.fill, stage.shape.records) = (tasks, false, records);
        }
    }

    /// Copies of a store in use.
    fn backup(&mut self) {
        let tasks =
            vec![self.task("CRUD", Work::Crud), self.task("copies beside CRUD", Work::Backup)];
        self.stage("hot backup", Class::NoSync, RANDOM).tasks = tasks;
    }

    /// The workload that redb's README publishes; its figures are for 5 million records.
    fn published(&mut self) {
        let whole = self.scale.whole;
        let (records, part) = match whole {
            true => (self.scale.part(5_000_000, 1000), (1.0 / self.scale.share) as u64),
            false => (self.scale.records, 20),
        };
        let seconds = 400.0 * self.scale.seconds;
        let task = |name: &str, work, ops: u64| Task {
            name: name.into(),
            work,
            bound: Bound { ops, seconds },
        };
        let pick = Pick::Uniform;
        let mut tasks = vec![
            task("bulk load", Work::Load { sorted: false, batch: records }, u64::MAX),
            task("individual writes", Work::Set, (1000 / part).max(1)),
            task(
                "batches of 1,000",
                Work::Insert { batch: 1000, fresh: false },
                (100 / part).max(1),
            ),
            task("random reads", Work::Get { pick, long: true }, (1_000_000 / part).max(1)),
            task("ranges of 10", Work::Range { count: 10 }, (500_000 / part).max(1)),
        ];
        if whole {
            tasks.extend(self.mixes(&[(4, 0), (8, 0), (16, 0), (32, 0)]));
        }
        tasks.push(task("removals", Work::Remove { batch: records / 2 }, 1));
        tasks.push(task("compaction", Work::Compact, 1));
        let kind = (Kind::Random24, Values::Fixed(150));
        let stage = self.stage("redb's benchmark", Class::Sync, kind);
        (stage.tasks, stage.fill, stage.rounds, stage.shape.records) = (tasks, false, 1, records);
    }

    /// The same look-ups with a quarter of the memory that the records take.
    fn larger_than_memory(&mut self) {
        let tasks = vec![
            self.task("GET, one snapshot", Work::Get { pick: Pick::Uniform, long: true }),
            self.task("GET, Zipf", Work::Get { pick: Pick::Zipf, long: true }),
            self.task("RANGE of 100", Work::Range { count: 100 }),
            self.task("CRUD", Work::Crud),
        ];
        // No engine works in less than 64 MiB.
        let (record, least) = (116, 64u64 << 20);
        let records = (5 * self.scale.records).max((4 * least).div_ceil(record));
        let stage =
            self.stage("larger than memory", Class::NoSync, (Kind::Random16, Values::Fixed(100)));
        stage.shape.records = records;
        stage.memory = Some((records * record / 4).max(least));
        stage.tasks = tasks;
    }

    /// What does not depend on durability, in the class that all but a few engines have.
    fn reads(&mut self) {
        let get = |pick, long| Work::Get { pick, long };
        let mut tasks = vec![
            self.task("GET, one snapshot", get(Pick::Uniform, true)),
            self.task("GET, a transaction each", get(Pick::Uniform, false)),
            self.task("GET, 32 at once", Work::GetMany { count: 32 }),
            self.task("GET, Zipf", get(Pick::Zipf, true)),
            self.task("GET, missing", get(Pick::Missing, true)),
            self.task("ITERATE", Work::Iterate),
            self.task("RANGE of 100", Work::Range { count: 100 }),
            self.task("begin and end of a read", Work::Begin),
        ];
        if self.scale.whole {
            tasks.push(self.task("GET, latest", get(Pick::Latest, true)));
            tasks.push(self.task("GET, 8 at once", Work::GetMany { count: 8 }));
            tasks.push(self.task("RANGE of 10", Work::Range { count: 10 }));
        }
        let readers = [(1, 0), (2, 0), (4, 0), (8, 0)];
        tasks.extend(self.mixes(if self.scale.whole { &readers } else { &readers[1..2] }));
        self.stage("reads", Class::Sync, RANDOM).tasks = tasks;
    }

    fn loads(&mut self) {
        let rounds = self.scale.rounds;
        for class in [Class::NoSync, Class::Volatile] {
            let tasks = vec![
                self.task("LOAD sorted", Work::Load { sorted: true, batch: 1000 }),
                self.task("LOAD random", Work::Load { sorted: false, batch: 1000 }),
            ];
            let stage = self.stage("load", class, RANDOM);
            (stage.tasks, stage.fill, stage.rounds) = (tasks, false, rounds);
        }
    }

    /// The same few works on other keys and values.
    fn other_data(&mut self) {
        for (name, keys, values) in [
            ("dense integers", Kind::Dense, Values::Fixed(8)),
            ("ordered keys", Kind::Ordered16, Values::Fixed(100)),
            ("URLs", Kind::Url, Values::Fixed(100)),
            ("tiny values", Kind::Random16, Values::Fixed(8)),
            ("mixed values", Kind::Random16, Values::Mixed),
            ("values of 1,000 bytes", Kind::Random16, Values::Fixed(1000)),
            ("values of 4,096 bytes", Kind::Random16, Values::Fixed(4096)),
        ] {
            let large = matches!(values, Values::Fixed(1000..) | Values::Mixed);
            let tasks = vec![
                self.task("LOAD random", Work::Load { sorted: false, batch: 1000 }),
                self.task("GET, one snapshot", Work::Get { pick: Pick::Uniform, long: true }),
                self.task("GET, 32 at once", Work::GetMany { count: 32 }),
                self.task("ITERATE", Work::Iterate),
                self.task("RANGE of 100", Work::Range { count: 100 }),
                self.task("CRUD", Work::Crud),
            ];
            let stage = self.stage(name, Class::NoSync, (keys, values));
            (stage.tasks, stage.fill) = (tasks, false);
            if large {
                stage.shape.records /= 5;
            }
        }
        for (name, bytes, records, rounds) in [
            ("values of 1 MiB", 1 << 20, self.scale.part(320, 32), self.scale.rounds),
            ("values of 8 MiB", 8 << 20, self.scale.part(64, 8), self.scale.rounds),
            ("values of 64 MiB", 64 << 20, 4, self.scale.rounds.min(2)),
        ] {
            let mut tasks = vec![self.task("SET", Work::Set), self.task("ITERATE", Work::Iterate)];
            // Every engine's store is on the disk at the same time.
            tasks[0].bound.ops = self.scale.part((1 << 28) / u64::from(bytes), 1);
            let stage = self.stage(name, Class::Sync, (Kind::Random16, Values::Fixed(bytes)));
            (stage.tasks, stage.shape.records, stage.rounds) = (tasks, records, rounds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_reads_only_what_is_there() {
        for scale in [Scale::QUICK, Scale::FULL] {
            for stage in stages(scale) {
                let first = stage.tasks[0].work;
                let load = first.is_load();
                assert!(stage.fill || load, "{} is empty at first", stage.name);
                assert!(stage.rounds > 0 && stage.shape.records > 0);
            }
        }
    }

    #[test]
    fn a_run_can_tell_its_stages_apart() {
        let stages = stages(Scale::FULL);
        for (i, stage) in stages.iter().enumerate() {
            let same = |other: &Stage| other.name == stage.name && other.class == stage.class;
            assert!(!stages[..i].iter().any(same), "{} {}", stage.name, stage.class.name());
        }
    }

    #[test]
    fn a_share_has_all_rows() {
        let names = |scale: Scale| -> Vec<String> {
            stages(scale).iter().flat_map(|s| s.tasks.iter().map(|t| t.name.clone())).collect()
        };
        for share in [1e-6, 0.01, 0.5] {
            let shrunk = Scale::FULL.shrunk(share);
            assert_eq!(names(shrunk), names(Scale::FULL));
            for stage in stages(shrunk) {
                assert!(stage.rounds > 0 && stage.tasks.iter().all(|t| t.bound.ops > 0));
                let records = stage.shape.records;
                assert!(stage.memory.is_none_or(|bytes| records * 116 >= 4 * bytes), "{records}");
            }
        }
    }

    #[test]
    fn what_rounds_add_is_counted() {
        let stages = stages(Scale::FULL);
        let of = |name| stages.iter().find(|s| s.name == name).unwrap();
        let large = of("values of 64 MiB");
        // Four of them in each of two rounds, before them to warm up, behind them to count calls.
        assert_eq!(large.growth(), 4 * 4 * ((64 << 20) + 64));
        assert_eq!(large.space(), large.growth() + 8 * ((64 << 20) + 64) + (64 << 20));
        // Bounded by the clock alone.
        assert_eq!(of("transactions").growth(), 0);
    }

    #[test]
    fn half_of_the_records_is_removed_once() {
        for scale in [Scale::QUICK, Scale::FULL] {
            let stages = stages(scale);
            let stage = stages.iter().find(|s| s.name == "redb's benchmark").unwrap();
            let task = stage.tasks.iter().find(|t| t.name == "removals").unwrap();
            assert_eq!(crate::field::turns(stage, task), 1);
        }
    }

    #[test]
    fn quick_keeps_its_time() {
        // Seventeen entries; a short round to warm up and one to count calls. What is bounded by
        // its operations takes less time than others are given.
        let each = |stage: &Stage| {
            let rounds = stage.rounds as f64 + 0.5;
            let bounds = stage.tasks.iter().map(|t| t.bound.seconds.min(Scale::QUICK.seconds));
            bounds.map(|seconds| seconds * rounds * 1.2).sum::<f64>()
        };
        let seconds: f64 = stages(Scale::QUICK).iter().map(each).sum::<f64>() * 17.0;
        assert!(seconds < 450.0, "{seconds} s");
    }
}
