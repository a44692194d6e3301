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
}

impl Scale {
    /// Under ten minutes for the whole field on two cores.
    pub(crate) const QUICK: Scale =
        Scale { records: 100_000, rounds: 3, seconds: 0.2, whole: false };
    /// A night.
    pub(crate) const FULL: Scale =
        Scale { records: 1_000_000, rounds: 5, seconds: 2.0, whole: true };
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
    if scale.whole {
        plan.other_data();
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
        self.stages.push(Stage { name, class, shape, fill: true, tasks: Vec::new(), rounds });
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
        let all = [(0, 2), (0, 4), (0, 8), (2, 1), (2, 2)];
        tasks.extend(self.mixes(if self.scale.whole { &all } else { &all[2..3] }));
        self.stage("transactions", Class::Sync, RANDOM).tasks = tasks;
    }

    fn lazy(&mut self) {
        for class in [Class::Lazy, Class::NoSync, Class::Volatile] {
            let mut tasks = self.changes();
            let all = [(0, 4), (1, 1), (2, 1), (1, 4), (4, 4)];
            match (self.scale.whole, class) {
                (true, _) => tasks.extend(self.mixes(&all)),
                (false, Class::NoSync) => tasks.extend(self.mixes(&all[2..3])),
                (false, _) => tasks.truncate(2),
            }
            self.stage("transactions", class, RANDOM).tasks = tasks;
        }
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
        let megabytes = vec![self.task("SET", Work::Set), self.task("ITERATE", Work::Iterate)];
        let stage =
            self.stage("values of 1 MiB", Class::Sync, (Kind::Random16, Values::Fixed(1 << 20)));
        (stage.tasks, stage.shape.records) = (megabytes, 320);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_reads_only_what_is_there() {
        for scale in [Scale::QUICK, Scale::FULL] {
            for stage in stages(scale) {
                let load = matches!(stage.tasks[0].work, Work::Load { .. });
                assert!(stage.fill || load, "{} is empty at first", stage.name);
                assert!(stage.rounds > 0 && stage.shape.records > 0);
            }
        }
    }

    #[test]
    fn quick_keeps_its_time() {
        // Fifteen engines, a round to warm up and one to count calls.
        let each = |stage: &Stage| {
            let turns = stage.rounds + 2;
            stage.tasks.iter().map(|t| t.bound.seconds * turns as f64 * 1.2).sum::<f64>()
        };
        let seconds: f64 = stages(Scale::QUICK).iter().map(each).sum::<f64>() * 15.0;
        assert!(seconds < 540.0, "{seconds} s");
    }
}
