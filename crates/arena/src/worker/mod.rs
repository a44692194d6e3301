//! The process of one engine: reads commands from its input, one line of JSON each, and answers
//! each with one line. It holds one store at a time and does one thing at a time.

mod audit;
mod backup;
mod chain;
mod dataset;
mod fence;
mod meter;
mod mix;
mod reads;
mod sleeper;
mod tables;
mod timing;
mod writes;

use std::io::{BufRead, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::data::{Data, is_whole};
use crate::peers::{
    self, About, ENTRIES, Engine, Fault, Outcome, Reader, Session, Variant, with_engine,
};
use crate::spec::{
    Audit, Bound, Class, Command, Costs, Drift, Part, Pick, Reply, Sample, Shape, Values, Work,
};
use dataset::{DATASETS, Dataset};
use fence::Fence;
pub(crate) use fence::release;
use meter::Meter;

/// Records a transaction when a store is filled for later measurements.
const FILL: u64 = 10_000;
/// Bytes of such a transaction at most.
const FILL_BYTES: u64 = 64 << 20;

/// Values from here on are few.
const HUGE: u32 = 1 << 20;

/// Serves until the input ends.
pub(crate) fn run(name: &str) {
    if with_engine!(name, serve()).is_none() {
        let reason = match ENTRIES.iter().any(|entry| entry.name == name) {
            true => format!("this build has no {name}: build with its feature"),
            false => format!("there is no engine called {name}"),
        };
        answer(&Reply::Missing { reason });
    }
}

fn answer(reply: &Reply) {
    let mut line = serde_json::to_string(reply).expect("replies have no odd keys");
    line.push('\n');
    let mut out = std::io::stdout().lock();
    // A driver that is gone reads nothing more; the input ends next.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

fn serve<E: Engine>(variant: Variant) {
    let mut yard: Option<Yard<E>> = None;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let reply = match serde_json::from_str(&line) {
            Ok(command) => obey(&mut yard, variant, command).unwrap_or_else(|fault| match fault {
                Fault::Absent(reason) => Reply::Absent { reason },
                Fault::Missing(reason) => Reply::Missing { reason },
                Fault::Failed(reason) => Reply::Failed { reason },
            }),
            Err(error) => Reply::Failed { reason: format!("{line}: {error}") },
        };
        answer(&reply);
    }
}

fn obey<E: Engine>(
    yard: &mut Option<Yard<E>>,
    variant: Variant,
    command: Command,
) -> Outcome<Reply> {
    match command {
        Command::Open { dir, class, shape, seed, fill, memory } => {
            *yard = None;
            let data = data_of(shape, seed);
            let bytes = data.shape.records * data.bytes(0);
            // Filled without a limit: that is not what is measured.
            peers::share_memory(None, bytes);
            let (mut opened, mut about) = Yard::<E>::open(dir.into(), class, variant, data)?;
            if fill {
                opened.fill()?;
            }
            if let Some(limit) = memory {
                peers::share_memory(memory, bytes);
                about = opened.confine(limit)?;
            }
            *yard = Some(opened);
            let About { version, settings, why } = about;
            Ok(Reply::Open { version, settings, why })
        }
        Command::Run { work, bound, audit } => {
            let yard = yard.as_mut().ok_or_else(not_open)?;
            let sample = yard.run(work, bound, audit)?;
            Ok(Reply::Ran { sample: Box::new(sample) })
        }
        Command::Close => yard.take().ok_or_else(not_open)?.close(),
        Command::Churn { seconds } => {
            let yard = yard.as_mut().ok_or_else(not_open)?;
            yard.work(Work::Crud, Bound { ops: u64::MAX, seconds })?;
            Ok(Reply::Churned { records: yard.records() })
        }
        Command::Recover { dir, class, shape, seed, records } => {
            *yard = None;
            let data = data_of(shape, seed);
            peers::share_memory(None, data.shape.records * data.bytes(0));
            let began = Instant::now();
            let (opened, _) = Yard::<E>::open(dir.into(), class, variant, data)?;
            let killed_open_s = began.elapsed().as_secs_f64();
            // Without a log nothing is promised but that what is there is whole.
            let least = if class == Class::Volatile { 0 } else { records };
            opened.leave(least..=records, Some(killed_open_s))
        }
    }
}

/// The records of a shape, which the engine learns. Datasets are equally large, and of a few records, unless these are as large as stores.
fn data_of(mut shape: Shape, seed: u64) -> Data {
    peers::expect_values(shape.values);
    if !matches!(shape.values, Values::Fixed(HUGE..)) {
        shape.records = shape.records.div_ceil(DATASETS).max(4) * DATASETS;
    }
    Data::new(shape, seed)
}

fn not_open() -> Fault {
    Fault::Failed("no store is open".into())
}

/// What a measurement found, before the store has settled.
struct Done {
    main: Part,
    readers: Option<Part>,
    during: Costs,
    user_bytes: u64,
    read_bytes: u64,
    growth: Vec<(u64, u64)>,
    drift: Vec<Drift>,
    note: Option<String>,
}

impl Done {
    fn of(main: Part, during: Costs) -> Done {
        Done {
            main,
            readers: None,
            during,
            user_bytes: 0,
            read_bytes: 0,
            growth: Vec::new(),
            drift: Vec::new(),
            note: None,
        }
    }
}

thread_local! {
    /// The device whose writes are counted.
    static DEVICE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Runs the part of a measurement that counts.
fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Costs)> {
    let meter = Meter::start(DEVICE.get());
    let result = work()?;
    Ok((result, meter.stop()))
}

/// A store and what is known about it.
struct Yard<E> {
    /// None only while the store is made anew.
    engine: Option<E>,
    dir: PathBuf,
    class: Class,
    variant: Variant,
    data: Data,
    /// Of the records that are there; none in an empty store.
    datasets: Vec<Dataset>,
    /// Measurements so far: each chooses other keys.
    runs: u64,
    /// What is in the tables beside the records, where the work is on several.
    index: Option<tables::Index>,
    /// The state of a chain, where that is what the store holds.
    chain: Option<chain::Chain>,
    /// Around this process, where memory is limited.
    fence: Option<Fence>,
}

impl<E: Engine> Yard<E> {
    fn open(dir: PathBuf, class: Class, variant: Variant, data: Data) -> Outcome<(Yard<E>, About)> {
        std::fs::create_dir_all(&dir).map_err(Fault::of("create the directory"))?;
        DEVICE.set(meter::device_of(&dir));
        let (engine, about) = E::open(&dir, class, variant)?;
        let engine = Some(engine);
        let (datasets, index, chain, fence) = (Vec::new(), None, None, None);
        let yard =
            Yard { engine, dir, class, variant, data, datasets, runs: 0, index, chain, fence };
        Ok((yard, about))
    }

    /// Opens the filled store anew with as little memory as `bytes`, nothing of it cached.
    fn confine(&mut self, bytes: u64) -> Outcome<About> {
        if let Some(engine) = self.engine.take() {
            engine.close()?;
        }
        fence::forget_files(&self.dir)?;
        fence::give_memory_back();
        self.fence = Some(Fence::around(bytes)?);
        let (engine, about) = E::open(&self.dir, self.class, self.variant)?;
        self.engine = Some(engine);
        Ok(about)
    }

    /// Records that there must be.
    fn records(&self) -> u64 {
        let chain = self.chain.as_ref().map_or(0, chain::Chain::records);
        self.datasets.iter().map(Dataset::len).sum::<u64>() + chain
    }

    fn engine(&self) -> Outcome<&E> {
        self.engine.as_ref().ok_or_else(not_open)
    }

    /// A new, empty store in the place of the old one.
    fn renew(&mut self) -> Outcome<()> {
        if let Some(engine) = self.engine.take() {
            engine.close()?;
        }
        std::fs::remove_dir_all(&self.dir).map_err(Fault::of("remove the old store"))?;
        std::fs::create_dir_all(&self.dir).map_err(Fault::of("create the directory"))?;
        (self.datasets, self.index, self.chain) = (Vec::new(), None, None);
        self.engine = Some(E::open(&self.dir, self.class, self.variant)?.0);
        Ok(())
    }

    fn fill(&mut self) -> Outcome<()> {
        let batch = FILL_BYTES / self.data.bytes(0);
        self.load(false, batch.clamp(1, FILL))?;
        self.settle().map(drop)
    }

    fn load(&mut self, sorted: bool, batch: u64) -> Outcome<Done> {
        let engine = self.engine.as_ref().ok_or_else(not_open)?;
        let batch = batch.min(engine.largest_transaction());
        let done = writes::load(&mut engine.session()?, &self.data, sorted, batch)?;
        self.datasets = Dataset::all(self.data.shape.records);
        Ok(done)
    }

    fn load_tables(&mut self, rows: bool, batch: u64) -> Outcome<Done> {
        let engine = self.engine.as_mut().ok_or_else(not_open)?;
        engine.open_tables()?;
        let mut index = tables::Index::new(self.data.shape.records, rows);
        let done = tables::load(&mut engine.session()?, &self.data, &mut index, batch)?;
        self.datasets = Dataset::all(self.data.shape.records);
        self.index = Some(index);
        Ok(done)
    }

    /// What a flusher, a compactor or the kernel still has to do must not fall into the turn of
    /// another engine, and belongs to the cost of the work that caused it.
    fn settle(&self) -> Outcome<Costs> {
        let engine = self.engine()?;
        let ((), costs) = timed(|| {
            engine.flush()?;
            engine.settle()
        })?;
        Ok(costs)
    }

    fn run(&mut self, work: Work, bound: Bound, audit: bool) -> Outcome<Sample> {
        if work.is_load() || matches!(work, Work::Insert { fresh: true, .. }) {
            self.renew()?;
            if matches!(work, Work::Insert { .. } | Work::Sleeper { .. }) {
                self.fill()?;
            }
        } else if self.datasets.is_empty() {
            return Err(Fault::Failed("the store is empty".into()));
        }
        self.runs += 1;
        meter::forget_peak();
        let counters = audit.then(audit::Counters::start);
        let done = self.work(work, bound)?;
        let counted = counters.map(|counters| counters.map(audit::Counters::stop));
        let settled = meter::sum(self.settle()?, &done.during);
        let (audit, audit_missing): (Option<Audit>, _) = match counted {
            Some(Ok(audit)) => (Some(audit), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let (disk_bytes, apparent_bytes) = crate::disk::usage(&self.dir);
        Ok(Sample {
            main: done.main,
            readers: done.readers,
            during: done.during,
            settled,
            user_bytes: done.user_bytes,
            read_bytes: done.read_bytes,
            peak_memory: meter::peak_memory(),
            disk_bytes,
            apparent_bytes,
            growth: done.growth,
            drift: done.drift,
            note: done.note,
            audit,
            audit_missing,
        })
    }

    fn work(&mut self, work: Work, bound: Bound) -> Outcome<Done> {
        match work {
            Work::Load { sorted, batch } => return self.load(sorted, batch),
            Work::LoadTables { rows, batch } => return self.load_tables(rows, batch),
            Work::Compact => return self.compact(),
            _ => {}
        }
        let engine = self.engine.as_ref().ok_or_else(not_open)?;
        let (data, datasets) = (&self.data, &mut self.datasets);
        match work {
            Work::Sleeper { quads } => {
                sleeper::run(engine, data, datasets, &self.dir, quads, bound)
            }
            Work::Chain { accounts, changes } => {
                let chain = self.chain.insert(chain::Chain::new(accounts, changes));
                chain::run(engine, chain, &self.dir, bound)
            }
            Work::Mix { readers, writers } => {
                mix::run(engine, data, datasets, (readers, writers.min(DATASETS)), bound)
            }
            Work::Backup => {
                let (class, variant) = (self.class, self.variant);
                let look = |dir: &Path| inspect(&E::open(dir, class, variant)?.0);
                backup::run(engine, data, datasets, &self.dir, bound, look)
            }
            _ => self.in_session(work, bound),
        }
    }

    fn compact(&mut self) -> Outcome<Done> {
        let engine = self.engine.as_mut().ok_or_else(not_open)?;
        let ((), during) = timed(|| engine.compact())?;
        let part = Part { ops: 1, seconds: during.wall_s, latency: Vec::new() };
        Ok(Done::of(part, during))
    }

    /// Work of this thread alone.
    fn in_session(&mut self, work: Work, bound: Bound) -> Outcome<Done> {
        let engine = self.engine.as_ref().ok_or_else(not_open)?;
        let (data, datasets) = (&self.data, &mut self.datasets);
        let session = &mut engine.session()?;
        let seed = self.runs;
        let index = self.index.as_mut();
        let index = index.ok_or_else(|| Fault::Failed("the store has no further tables".into()));
        let keys =
            |datasets: &[Dataset], pick| reads::Keys::new(data, datasets, pick, bound.ops, seed);
        match work {
            Work::Set => writes::insert(session, data, datasets, 1, bound),
            Work::Get { pick, long } => {
                reads::get(session, data, &keys(datasets, pick), long, bound)
            }
            Work::GetMany { count } => {
                let keys = keys(datasets, Pick::Uniform);
                reads::get_many(session, data, &keys, count as usize, bound)
            }
            Work::Begin => engine.begins_snapshots().and_then(|()| reads::begin(session, bound)),
            Work::Iterate => {
                let records = datasets.iter().map(Dataset::len).sum();
                reads::iterate(session, records, bound)
            }
            Work::Range { count } => {
                reads::range::<E>(session, &keys(datasets, Pick::Uniform), count, bound)
            }
            Work::Crud => writes::crud(session, data, datasets, (1, None), bound),
            Work::Batch { quads } => writes::crud(session, data, datasets, (quads, None), bound),
            Work::Paced { rate } => writes::crud(session, data, datasets, (1, Some(rate)), bound),
            Work::Delete => writes::remove(session, data, datasets, (1, 1), bound),
            Work::Insert { batch, .. } => writes::insert(session, data, datasets, batch, bound),
            Work::Remove { batch } => {
                let most = engine.largest_removal();
                writes::remove(session, data, datasets, (batch, most), bound)
            }
            Work::ChangeTables => tables::change(session, data, datasets, index?, bound),
            Work::Find { most } => tables::find(session, data, index?, most, (seed, bound)),
            Work::Load { .. }
            | Work::LoadTables { .. }
            | Work::Mix { .. }
            | Work::Sleeper { .. }
            | Work::Chain { .. }
            | Work::Backup
            | Work::Compact => Err(Fault::Failed("not the work of one session".into())),
        }
    }

    fn close(self) -> Outcome<Reply> {
        let expected = self.records();
        self.leave(expected..=expected, None)
    }

    /// Closes the store, opens it again, walks over it: so many records must be there, all whole.
    fn leave(
        mut self,
        expected: RangeInclusive<u64>,
        killed_open_s: Option<f64>,
    ) -> Outcome<Reply> {
        if let Some(engine) = self.engine.take() {
            engine.flush()?;
            engine.settle()?;
            engine.close()?;
        }
        // Who locks each page that a walk sees (Berkeley DB) needs more memory for it than the limit leaves.
        self.fence = None;
        let (disk_bytes, apparent_bytes) = crate::disk::usage(&self.dir);
        let began = Instant::now();
        let (mut engine, _) = E::open(&self.dir, self.class, self.variant)?;
        let reopen_s = began.elapsed().as_secs_f64();
        let (records, damaged) = match &self.index {
            None => inspect(&engine)?,
            Some(index) => {
                engine.open_tables()?;
                tables::inspect(&mut engine.session()?, &self.data, index)?
            }
        };
        engine.close()?;
        if !expected.contains(&records) || damaged > 0 {
            let killed = if killed_open_s.is_some() { " after the process was killed" } else { "" };
            let text = format!(
                "{records} of {} records after reopening{killed}, {damaged} damaged",
                expected.end()
            );
            return Err(Fault::Failed(text));
        }
        Ok(Reply::Closed { records, disk_bytes, apparent_bytes, reopen_s, killed_open_s })
    }
}

/// Records that there are, and how many of them are damaged or not in their place.
fn inspect(engine: &impl Engine) -> Outcome<(u64, u64)> {
    let (mut damaged, mut before) = (0, Vec::new());
    let records = engine.session()?.read(|reader| {
        reader.walk(None, u64::MAX, |key, value| {
            damaged += u64::from(!is_whole(value) || before.as_slice() >= key);
            before.clear();
            before.extend_from_slice(key);
        })
    })?;
    Ok((records, damaged))
}
