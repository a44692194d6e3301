//! Small transactions: 2 inserts, 1 read, 1 update, 1 delete; every read is verified.

use std::sync::Mutex;

use super::{Housed, LAZY, NOSYNC, NOSYNC_MAP, SYNC, SYNC_MAP, Sink};
use crate::clock::{Cost, measure};
use crate::keys::{Chooser, KEY_MAX, Kind, stamp, stamp_of, value};
use crate::versus::Config;
use crate::versus::duel::{Target, from_samples};
use crate::versus::engine::lmdb::Lmdb;
use crate::versus::engine::zubilo::Zubilo;
use crate::versus::engine::{Engine, Settings, Writer};

/// Records before the first transaction.
const RECORDS: u64 = 1_000_000;

pub(crate) fn run(config: &Config, sink: Sink<'_>) {
    let records = config.records.min(RECORDS);
    let duel = |sink: Sink<'_>, name: &str, sides: Sides<'_>, wall: Target, cpu: Target| {
        compete(sink, name, config.rounds, sides, wall, cpu);
    };
    let zubilo = |label: &str, settings, threads, count| {
        label.contains(&config.side).then(|| {
            Side::of(label, true, Clients::<Zubilo>::new(config, settings, records, threads), count)
        })
    };
    let lmdb = |label: &str, settings, threads, count| {
        label.contains(&config.side).then(|| {
            Side::of(label, false, Clients::<Lmdb>::new(config, settings, records, threads), count)
        })
    };
    for (name, threads, ours, counts, factor) in [
        ("sync", 1, "zubilo Sync", (500, 500), 3.0),
        ("sync8", 8, "zubilo Sync, update", (200, 100), 8.0),
    ] {
        if config.wants(name) {
            let sides = [
                zubilo(ours, SYNC, threads, counts.0),
                lmdb("lmdb", SYNC, threads, counts.1),
                lmdb("lmdb WRITEMAP", SYNC_MAP, threads, counts.1),
            ];
            let name = format!("CRUD sync, {threads} thread{}", if threads > 1 { "s" } else { "" });
            let sides = sides.into_iter().flatten().collect();
            duel(sink, &name, sides, Target::Faster(factor), Target::None);
        }
    }
    for (name, own, own_map) in [("nosync", NOSYNC, Some(NOSYNC_MAP)), ("lazy", LAZY, None)] {
        if config.wants(name) {
            let sides = [
                zubilo(
                    if own_map.is_some() { "zubilo by calls" } else { "zubilo" },
                    own,
                    1,
                    20_000,
                ),
                own_map.and_then(|map| zubilo("zubilo", map, 1, 20_000)),
                lmdb("lmdb NOSYNC", NOSYNC, 1, 20_000),
                lmdb("lmdb NOSYNC|WRITEMAP", NOSYNC_MAP, 1, 20_000),
            ];
            let name = format!("CRUD {name}, 1 thread");
            duel(
                sink,
                &name,
                sides.into_iter().flatten().collect(),
                Target::None,
                Target::AtMostShare(0.5),
            );
        }
    }
}

type Sides<'s> = Vec<Side<'s>>;

struct Side<'s> {
    label: String,
    ours: bool,
    run: Box<dyn FnMut() -> Cost + 's>,
    /// Transactions a sample.
    count: f64,
}

impl<'s> Side<'s> {
    fn of<E: Engine + 's>(label: &str, ours: bool, clients: Clients<E>, count: u64) -> Side<'s> {
        let threads = clients.datasets.len() as u64;
        Side {
            label: label.into(),
            ours,
            run: Box::new(move || clients.run(count)),
            count: (count * threads) as f64,
        }
    }
}

fn compete(
    sink: Sink<'_>,
    name: &str,
    rounds: usize,
    mut sides: Sides<'_>,
    wall_target: Target,
    cpu_target: Target,
) {
    let mut wall = vec![Vec::new(); sides.len()];
    let mut cpu = wall.clone();
    let count = sides.len();
    for round in 0..rounds + 1 {
        for i in 0..count {
            let i = if round % 2 == 0 { i } else { count - 1 - i };
            let cost = (sides[i].run)();
            if round > 0 {
                wall[i].push(cost.wall * 1e6 / sides[i].count);
                cpu[i].push(cost.cpu * 1e6 / sides[i].count);
            }
        }
    }
    let labels = || sides.iter().map(|s| (s.label.clone(), s.ours));
    sink(from_samples(&format!("{name}: wall"), "us/txn", wall_target, labels(), &wall));
    sink(from_samples(&format!("{name}: CPU"), "us/txn", cpu_target, labels(), &cpu));
}

/// The records that one thread owns: serials `number + i * step` for `i` in [tail, head).
pub(crate) struct Dataset {
    number: u64,
    step: u64,
    tail: u64,
    head: u64,
    /// Changes of each record since it was put.
    ages: Vec<u32>,
    chooser: Chooser,
}

impl Dataset {
    pub(crate) fn new(number: u64, step: u64, records: u64) -> Dataset {
        let ages = vec![0; records as usize];
        Dataset { number, step, tail: 0, head: records, ages, chooser: Chooser::new(number + 7) }
    }

    fn serial(&self, i: u64) -> u64 {
        self.number + i * self.step
    }

    /// What the next transaction does; the state is that after it.
    pub(crate) fn plan(&mut self) -> Plan {
        let alive = |dataset: &mut Dataset| {
            dataset.tail + 1 + dataset.chooser.below(dataset.head - dataset.tail - 1)
        };
        let read = alive(self);
        let update = alive(self);
        let plan = Plan {
            insert: [self.serial(self.head), self.serial(self.head + 1)],
            read: (self.serial(read), self.ages[read as usize]),
            update: (self.serial(update), self.ages[update as usize] + 1),
            delete: self.serial(self.tail),
        };
        self.ages[update as usize] += 1;
        self.ages.extend([0, 0]);
        self.head += 2;
        self.tail += 1;
        plan
    }
}

/// One transaction.
pub(crate) struct Plan {
    insert: [u64; 2],
    read: (u64, u32),
    update: (u64, u32),
    delete: u64,
}

impl Plan {
    pub(crate) fn apply(&self, writer: &mut impl Writer) {
        let mut buffer = [0; KEY_MAX];
        let kind = Kind::Random16;
        for serial in self.insert {
            writer.put(kind.key(serial, &mut buffer), &value(serial, 0));
        }
        let (serial, age) = self.read;
        let found = writer.get(kind.key(serial, &mut buffer)).map(stamp_of);
        assert_eq!(found, Some(stamp(serial, age)), "a read gave another value");
        let (serial, age) = self.update;
        writer.put(kind.key(serial, &mut buffer), &value(serial, age));
        assert!(writer.delete(kind.key(self.delete, &mut buffer)), "nothing to delete");
    }
}

/// A loaded engine and the datasets of its threads.
struct Clients<E> {
    housed: Housed<E>,
    datasets: Vec<Mutex<Dataset>>,
}

impl<E: Engine> Clients<E> {
    fn new(config: &Config, settings: Settings, records: u64, threads: u64) -> Clients<E> {
        let housed = Housed::<E>::loaded(config, settings, Kind::Random16, 0);
        super::load::fill(&housed.engine, Kind::Random16, 0..records, records / 20);
        housed.engine.sync();
        let datasets =
            (0..threads).map(|t| Mutex::new(Dataset::new(t, threads, records / threads)));
        Clients { housed, datasets: datasets.collect() }
    }

    /// Runs `count` transactions in each thread.
    fn run(&self, count: u64) -> Cost {
        let engine = &self.housed.engine;
        let cost = match &self.datasets[..] {
            [only] => measure(|| {
                let mut dataset = only.lock().expect("no panic");
                for _ in 0..count {
                    let plan = dataset.plan();
                    engine.write(|writer| plan.apply(writer));
                }
            }),
            many => measure(|| {
                std::thread::scope(|scope| {
                    for dataset in many {
                        scope.spawn(move || {
                            let mut dataset = dataset.lock().expect("no panic");
                            for _ in 0..count {
                                let plan = dataset.plan();
                                engine.write_shared(|writer| plan.apply(writer));
                            }
                        });
                    }
                });
            }),
        };
        // What a flusher or the kernel still has to do must not fall into another side's turn.
        engine.sync();
        cost
    }
}
