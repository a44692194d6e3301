//! What a run found, as it is kept in JSON, and the figures that are drawn from it.

use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::spec::{Bound, Class, Costs, Part, Sample, Shape, Work};
use crate::stats::{Summary, summary};

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) plan: String,
    /// What the figures depend on besides the code.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) entrants: Vec<Entrant>,
    pub(crate) stages: Vec<StageReport>,
}

/// An engine and where it could take part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entrant {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) version: Option<String>,
    /// Why it could take part nowhere.
    pub(crate) missing: Option<String>,
    pub(crate) standings: Vec<Standing>,
}

/// How an engine was opened for a class, or why it was not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) class: Class,
    pub(crate) settings: Option<String>,
    pub(crate) why: String,
}

/// Rows measured on the same stores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StageReport {
    pub(crate) name: String,
    pub(crate) class: Class,
    pub(crate) shape: Shape,
    pub(crate) rows: Vec<Row>,
    pub(crate) endings: Vec<Ending>,
}

/// One work, all engines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) work: Work,
    pub(crate) bound: Bound,
    pub(crate) cells: Vec<Cell>,
}

/// One engine's measurements in a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) engine: String,
    /// One for each round; their latencies are in `latency`.
    pub(crate) samples: Vec<Sample>,
    /// Nanoseconds and how often, of all rounds together.
    pub(crate) latency: Vec<(u64, u64)>,
    pub(crate) readers_latency: Vec<(u64, u64)>,
    /// The pass in which system calls were counted.
    pub(crate) audit: Option<Sample>,
    /// Most space that the store took while it was measured.
    pub(crate) disk_peak: u64,
    /// Why there are no more samples.
    pub(crate) trouble: Option<String>,
}

/// What became of an engine's store at the end of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub(crate) engine: String,
    pub(crate) records: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) apparent_bytes: u64,
    pub(crate) reopen_s: f64,
    /// Time to open after the process was killed, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) killed_open_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

/// Begins the reason of what failed, as opposed to what an engine cannot do.
pub(crate) const FAILED: &str = "failed";

impl Report {
    /// What an earlier run has written; none if it has written nothing.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Report>> {
        match fs::read(path) {
            Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the place of the file at once: who is stopped meanwhile still has the earlier one.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(&new, path)
    }

    /// An entry of the environment.
    pub(crate) fn fact(&self, name: &str) -> &str {
        self.environment.iter().find(|fact| fact.0 == name).map_or("", |fact| &fact.1)
    }

    /// What went wrong: not what an engine cannot do, which has its reason in its place.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut all = Vec::new();
        for entrant in &self.entrants {
            let failed = entrant.standings.iter().filter(|s| s.why.starts_with(FAILED));
            all.extend(failed.map(|s| format!("{} {}: {}", entrant.name, s.class.name(), s.why)));
        }
        for stage in &self.stages {
            let name = format!("{} {}", stage.name, stage.class.name());
            for (row, cell) in stage.rows.iter().flat_map(|r| r.cells.iter().map(move |c| (r, c))) {
                let why = match &cell.trouble {
                    Some(trouble) if trouble.starts_with(FAILED) => trouble,
                    None if cell.samples.is_empty() => "failed: neither a figure nor a reason",
                    _ => continue,
                };
                all.push(format!("{name}, {}, {}: {why}", row.name, cell.engine));
            }
            for end in &stage.endings {
                let trouble = end.trouble.iter();
                all.extend(trouble.map(|why| format!("{name}, at the end, {}: {why}", end.engine)));
            }
        }
        all
    }
}

impl Row {
    /// The engine that others are compared with: the first one that has samples.
    pub(crate) fn base(&self) -> Option<&Cell> {
        self.cells.iter().find(|cell| !cell.samples.is_empty())
    }

    /// Rate over the base's rate, by rounds.
    pub(crate) fn ratio(&self, cell: &Cell, of: fn(&Sample) -> f64) -> Option<Summary> {
        let base = self.base()?;
        let pairs = cell.samples.iter().zip(&base.samples);
        let ratios: Vec<f64> = pairs.map(|(own, base)| of(own) / of(base)).collect();
        (!ratios.is_empty() && ratios.iter().all(|r| r.is_finite())).then(|| summary(&ratios))
    }
}

/// Operations a second.
pub(crate) fn rate(sample: &Sample) -> f64 {
    rate_of(&sample.main)
}

/// Operations a second of the readers beside writers; not a number without readers.
pub(crate) fn readers_rate(sample: &Sample) -> f64 {
    sample.readers.as_ref().map_or(f64::NAN, rate_of)
}

fn rate_of(part: &Part) -> f64 {
    part.ops as f64 / part.seconds.max(1e-9)
}

impl Cell {
    /// The space that a store took over its transactions, in the last round that has it.
    pub(crate) fn growth(&self) -> &[(u64, u64)] {
        let sample = self.samples.iter().rev().find(|s| !s.growth.is_empty());
        sample.map_or(&[], |sample| &sample.growth)
    }

    /// What must be known besides the figures.
    pub(crate) fn note(&self) -> Option<&str> {
        self.samples.iter().rev().find_map(|s| s.note.as_deref())
    }

    /// Takes a sample in, its latencies to those of the others.
    pub(crate) fn take(&mut self, mut sample: Sample) {
        merge(&mut self.latency, std::mem::take(&mut sample.main.latency));
        if let Some(readers) = &mut sample.readers {
            merge(&mut self.readers_latency, std::mem::take(&mut readers.latency));
        }
        self.disk_peak = self.disk_peak.max(sample.disk_bytes);
        self.samples.push(sample);
    }

    /// Median and quartiles of a figure over the rounds; none if it is not there in each.
    pub(crate) fn of(&self, figure: impl Fn(&Sample) -> f64) -> Option<Summary> {
        let samples: Vec<f64> = self.samples.iter().map(figure).collect();
        (!samples.is_empty() && samples.iter().all(|s| s.is_finite())).then(|| summary(&samples))
    }

    /// A cost for each operation, background work included.
    pub(crate) fn per_op(&self, cost: impl Fn(&Costs) -> f64) -> Option<f64> {
        let each = |s: &Sample| {
            let ops = s.main.ops + s.readers.as_ref().map_or(0, |r| r.ops);
            cost(&s.settled) / ops.max(1) as f64
        };
        Some(self.of(each)?.median)
    }

    /// A count of the audit for each operation.
    pub(crate) fn audited(&self, count: impl Fn(&crate::spec::Audit) -> u64) -> Option<f64> {
        let sample = self.audit.as_ref()?;
        let ops = sample.main.ops + sample.readers.as_ref().map_or(0, |r| r.ops);
        Some(count(&sample.audit?) as f64 / ops.max(1) as f64)
    }
}

fn merge(into: &mut Vec<(u64, u64)>, mut more: Vec<(u64, u64)>) {
    into.append(&mut more);
    into.sort_unstable();
    into.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
}

/// Latencies in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Latencies {
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) rms: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) p9999: f64,
    pub(crate) max: f64,
}

/// What buckets of a histogram say; none if they are empty.
pub(crate) fn latencies(buckets: &[(u64, u64)]) -> Option<Latencies> {
    let total: u64 = buckets.iter().map(|b| b.1).sum();
    let (first, last) = (buckets.first()?, buckets.last()?);
    let quantile = |q: f64| {
        let rank = (q * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = buckets.iter().find(|bucket| {
            seen += bucket.1;
            seen >= rank
        });
        bucket.unwrap_or(last).0 as f64
    };
    let sum = |f: &dyn Fn(f64) -> f64| {
        buckets.iter().map(|b| f(b.0 as f64) * b.1 as f64).sum::<f64>() / total as f64
    };
    Some(Latencies {
        min: first.0 as f64,
        mean: sum(&|v| v),
        rms: sum(&|v| v * v).sqrt(),
        p50: quantile(0.5),
        p99: quantile(0.99),
        p999: quantile(0.999),
        p9999: quantile(0.9999),
        max: last.0 as f64,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::keys::Kind;
    use crate::spec::Values;

    fn sample(ops: u64, seconds: f64) -> Sample {
        let latency = vec![(100, ops / 2), (200, ops - ops / 2)];
        // Memory is dirtied by folios of many pages.
        let (written_bytes, dirtied_bytes) = (ops * 400, ops * 6400);
        let user_s = ops as f64 * 3e-6;
        let settled = Costs { written_bytes, dirtied_bytes, user_s, ..Costs::default() };
        let main = Part { ops, seconds, latency };
        Sample { main, settled, user_bytes: ops * 100, ..Sample::default() }
    }

    fn cell(engine: &str, rates: &[u64]) -> Cell {
        let mut cell = Cell { engine: engine.into(), ..Cell::default() };
        rates.iter().for_each(|&ops| cell.take(sample(ops, 1.0)));
        cell
    }

    /// A stage with one row, in which the second engine is twice as fast as the first.
    pub(crate) fn two_engines() -> Report {
        let entrant = |name: &str| Entrant {
            name: name.into(),
            what: name.into(),
            version: Some("1".into()),
            missing: None,
            standings: vec![Standing {
                class: Class::Sync,
                settings: Some("all".into()),
                why: "so".into(),
            }],
        };
        let cells = vec![cell("zubilo", &[1000, 1000]), cell("lmdb", &[2000, 2000])];
        let bound = Bound { ops: 1, seconds: 1.0 };
        let ending = |engine: &str, disk_bytes| Ending {
            engine: engine.into(),
            records: 10,
            disk_bytes,
            apparent_bytes: disk_bytes,
            reopen_s: 0.001,
            killed_open_s: None,
            trouble: None,
        };
        Report {
            plan: "test".into(),
            environment: vec![("seed".into(), "7".into()), ("commit".into(), "abc".into())],
            entrants: vec![entrant("zubilo"), entrant("lmdb")],
            stages: vec![StageReport {
                name: "transactions".into(),
                class: Class::Sync,
                shape: Shape { keys: Kind::Dense, values: Values::Fixed(8), records: 10 },
                rows: vec![Row { name: "SET".into(), work: Work::Set, bound, cells }],
                endings: vec![ending("zubilo", 4096), ending("lmdb", 8192)],
            }],
        }
    }

    #[test]
    fn ratios_are_taken_by_rounds() {
        let cells =
            vec![cell("none", &[]), cell("a", &[100, 1000, 200]), cell("b", &[50, 500, 300])];
        let bound = Bound { ops: 1, seconds: 1.0 };
        let row = Row { name: "x".into(), work: Work::Set, bound, cells };
        assert_eq!(row.base().unwrap().engine, "a");
        assert_eq!(row.ratio(&row.cells[2], rate).unwrap().median, 0.5);
        assert!(row.ratio(&row.cells[0], rate).is_none());
        assert!(row.ratio(&row.cells[1], readers_rate).is_none());
    }

    #[test]
    fn costs_are_by_operation() {
        let cell = cell("a", &[100, 300]);
        let cpu = cell.per_op(|c| c.user_s * 1e6).unwrap();
        assert!((cpu - 3.0).abs() < 1e-9);
        assert_eq!(cell.audited(|a| a.calls), None);
    }

    #[test]
    fn latencies_follow_from_the_buckets() {
        let got = latencies(&[(10, 1), (20, 97), (30, 1), (4000, 1)]).unwrap();
        assert_eq!((got.min, got.p50, got.p99, got.max), (10.0, 20.0, 30.0, 4000.0));
        assert_eq!(got.p999, 4000.0);
        assert!((got.mean - (10.0 + 97.0 * 20.0 + 30.0 + 4000.0) / 100.0).abs() < 1e-9);
        assert!(got.rms > got.mean, "the root of the mean square is never below the mean");
        assert_eq!(latencies(&[]), None);
    }

    #[test]
    fn histograms_of_rounds_add_up() {
        let cell = cell("a", &[10, 20]);
        assert_eq!(cell.latency, [(100, 15), (200, 15)]);
    }
}
