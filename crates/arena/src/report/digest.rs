//! A report in short: for each engine in each row one number for each figure, medians over the
//! rounds. It is what is drawn, ranked and kept; the samples that it comes from are ten times as
//! large.

use std::io;

use serde::{Deserialize, Serialize};

use super::record::{Cell, Ending, Entrant, Report, Row, latencies, rate, readers_rate};
use crate::peers::writes_through_a_map;
use crate::spec::{Audit, Class, Costs, Sample, Shape, Work};

macro_rules! figures {
    ($($figure:ident $name:literal)*) => {
        /// What is known about an engine in a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Figure {
            $($figure),*
        }

        impl Figure {
            /// All of them, in the order in which they are kept.
            pub(crate) const ALL: &[Figure] = &[$(Figure::$figure),*];

            /// As it is called in tables.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Figure::$figure => $name),*
                }
            }
        }
    };
}

figures! {
    Rate "ops/s"
    RateLow "lower quartile"
    RateHigh "upper quartile"
    Ratio "x base"
    Min "min ns"
    Mean "mean ns"
    Rms "rms ns"
    P50 "p50 ns"
    P99 "p99 ns"
    P999 "p99.9 ns"
    P9999 "p99.99 ns"
    Max "max ns"
    User "user us/op"
    System "system us/op"
    Written "B written/op"
    WriteAmplification "B written/B put"
    Fetched "B fetched/op"
    ReadAmplification "B fetched/B read"
    DeviceWrites "device writes/op"
    DeviceBytes "device B/op"
    DeviceFlushes "device flushes/op"
    Calls "calls/op"
    Writes "write calls/op"
    Flushes "flush calls/op"
    Faults "page faults/op"
    Memory "peak memory MB"
    Disk "disk MB"
    DiskPeak "peak disk MB"
    BesideRate "beside: ops/s"
    BesideRatio "beside: x base"
    BesideP50 "beside: p50 ns"
    BesideP99 "beside: p99 ns"
    BesideP999 "beside: p99.9 ns"
    BesideMax "beside: max ns"
}

/// A whole run in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Digest {
    pub(crate) plan: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) entrants: Vec<Entrant>,
    /// Names of the figures, in the order that each cell has them.
    pub(crate) figures: Vec<String>,
    pub(crate) stages: Vec<StageDigest>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StageDigest {
    pub(crate) name: String,
    pub(crate) class: Class,
    pub(crate) shape: Shape,
    pub(crate) rows: Vec<RowDigest>,
    pub(crate) endings: Vec<Ending>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RowDigest {
    pub(crate) name: String,
    pub(crate) work: Work,
    pub(crate) cells: Vec<CellDigest>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CellDigest {
    pub(crate) engine: String,
    /// As `Figure::ALL`, up to the last that is there; empty without a measurement.
    pub(crate) figures: Vec<Option<f64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) growth: Vec<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// With three digits: more would say nothing, and take space.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(2 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

impl Digest {
    pub(crate) fn of(report: &Report) -> Digest {
        let stages = report.stages.iter().map(|stage| StageDigest {
            name: stage.name.clone(),
            class: stage.class,
            shape: stage.shape,
            rows: stage.rows.iter().map(|row| RowDigest::of(stage.class, row)).collect(),
            endings: stage.endings.iter().map(short_ending).collect(),
        });
        Digest {
            plan: report.plan.clone(),
            environment: report.environment.clone(),
            entrants: report.entrants.clone(),
            figures: Figure::ALL.iter().map(|f| f.name().to_owned()).collect(),
            stages: stages.collect(),
        }
    }

    /// From JSON: of a whole report, or of a digest.
    pub(crate) fn from_json(json: &[u8]) -> io::Result<Digest> {
        let digest: Digest = match serde_json::from_slice(json) {
            Ok(digest) => digest,
            Err(_) => Digest::of(&serde_json::from_slice(json)?),
        };
        if digest.figures.iter().ne(Figure::ALL.iter().map(|f| f.name())) {
            let text = "the report has other figures: it was made by another version of the arena";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(digest)
    }

    /// Entrants that were measured at all.
    pub(crate) fn present(&self) -> impl Iterator<Item = &str> {
        let there =
            self.entrants.iter().filter(|e| e.standings.iter().any(|s| s.settings.is_some()));
        there.map(|e| e.name.as_str())
    }
}

fn short_ending(end: &Ending) -> Ending {
    let reopen_s = rounded(end.reopen_s);
    Ending { reopen_s, killed_open_s: end.killed_open_s.map(rounded), ..end.clone() }
}

impl RowDigest {
    pub(crate) fn of(class: Class, row: &Row) -> RowDigest {
        let cells = row.cells.iter().map(|cell| CellDigest::of(class, row, cell)).collect();
        RowDigest { name: row.name.clone(), work: row.work, cells }
    }

    pub(crate) fn cell(&self, engine: &str) -> Option<&CellDigest> {
        self.cells.iter().find(|cell| cell.engine == engine)
    }

    /// The engine that others are compared with: the first one that was measured.
    pub(crate) fn base(&self) -> Option<&CellDigest> {
        self.cells.iter().find(|cell| cell.is_measured())
    }

    /// The greatest of a figure in the row.
    pub(crate) fn most(&self, figure: Figure) -> f64 {
        self.cells.iter().filter_map(|cell| cell.get(figure)).fold(0.0, f64::max)
    }

    /// Whether any engine has the figure, and not only as zero.
    pub(crate) fn has(&self, figure: Figure) -> bool {
        self.most(figure) > 0.0
    }
}

impl CellDigest {
    fn of(class: Class, row: &Row, cell: &Cell) -> CellDigest {
        let measured = !cell.samples.is_empty();
        let figures = if measured { figures_of(class, row, cell) } else { Vec::new() };
        let shown = |value: Option<f64>| value.filter(|v| v.is_finite()).map(rounded);
        let mut figures: Vec<_> = figures.into_iter().map(shown).collect();
        // Most rows have nothing beside.
        figures.truncate(figures.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
        CellDigest {
            engine: cell.engine.clone(),
            figures,
            growth: cell.growth().to_vec(),
            trouble: cell.trouble.clone(),
            note: cell.note().map(str::to_owned),
        }
    }

    pub(crate) fn is_measured(&self) -> bool {
        !self.figures.is_empty()
    }

    pub(crate) fn get(&self, figure: Figure) -> Option<f64> {
        self.figures.get(figure as usize).copied().flatten()
    }

    /// Microseconds of CPU for each operation.
    pub(crate) fn cpu(&self) -> Option<f64> {
        Some(self.get(Figure::User)? + self.get(Figure::System)?)
    }
}

/// All figures of a cell that has samples.
fn figures_of(class: Class, row: &Row, cell: &Cell) -> Vec<Option<f64>> {
    let rates = cell.of(rate);
    let (own, beside) = (latencies(&cell.latency), latencies(&cell.readers_latency));
    let ratio = |of| row.ratio(cell, of).map(|r| r.median);
    let each = |cost: &dyn Fn(&Costs) -> f64| cell.per_op(cost);
    let share = |of: &dyn Fn(&Sample) -> f64, by: fn(&Sample) -> u64| {
        cell.of(|s| if by(s) > 0 { of(s) / by(s) as f64 } else { f64::NAN }).map(|s| s.median)
    };
    let mapped = writes_through_a_map(&cell.engine, class);
    let written = |c: &Costs| match mapped {
        true => c.dirtied_bytes.max(c.written_bytes) as f64,
        false => c.written_bytes as f64,
    };
    // What is dirtied goes to the disk once, however often it is written before; but the kernel counts
    // it by folios, which may be many pages.
    let to_disk = |c: &Costs| match mapped {
        true => c.dirtied_bytes as f64,
        false => c.dirtied_bytes.min(c.written_bytes) as f64,
    };
    let audit = |count: &dyn Fn(&Audit) -> u64| cell.audited(count);
    let median = |of: &dyn Fn(&Sample) -> f64| cell.of(of).map(|s| s.median);
    let figure = |figure: &Figure| match figure {
        Figure::Rate => rates.map(|r| r.median),
        Figure::RateLow => rates.map(|r| r.low),
        Figure::RateHigh => rates.map(|r| r.high),
        Figure::Ratio => ratio(rate),
        Figure::Min => own.map(|l| l.min),
        Figure::Mean => own.map(|l| l.mean),
        Figure::Rms => own.map(|l| l.rms),
        Figure::P50 => own.map(|l| l.p50),
        Figure::P99 => own.map(|l| l.p99),
        Figure::P999 => own.map(|l| l.p999),
        Figure::P9999 => own.map(|l| l.p9999),
        Figure::Max => own.map(|l| l.max),
        Figure::User => each(&|c| c.user_s * 1e6),
        Figure::System => each(&|c| c.system_s * 1e6),
        Figure::Written => each(&written),
        Figure::WriteAmplification => share(&|s| to_disk(&s.settled), |s| s.user_bytes),
        Figure::Fetched => each(&|c| c.fetched_bytes as f64),
        Figure::ReadAmplification => share(&|s| s.during.fetched_bytes as f64, |s| s.read_bytes),
        Figure::DeviceWrites => each(&|c| c.device_writes as f64),
        Figure::DeviceBytes => each(&|c| c.device_bytes as f64),
        Figure::DeviceFlushes => each(&|c| c.device_flushes as f64),
        Figure::Calls => audit(&|a| a.calls),
        Figure::Writes => audit(&|a| a.writes),
        Figure::Flushes => audit(&|a| a.flushes),
        Figure::Faults => each(&|c| c.faults as f64),
        Figure::Memory => median(&|s| s.peak_memory as f64 / 1e6),
        Figure::Disk => median(&|s| s.disk_bytes as f64 / 1e6),
        Figure::DiskPeak => Some(cell.disk_peak as f64 / 1e6),
        Figure::BesideRate => median(&readers_rate),
        Figure::BesideRatio => ratio(readers_rate),
        Figure::BesideP50 => beside.map(|l| l.p50),
        Figure::BesideP99 => beside.map(|l| l.p99),
        Figure::BesideP999 => beside.map(|l| l.p999),
        Figure::BesideMax => beside.map(|l| l.max),
    };
    Figure::ALL.iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::two_engines;

    #[test]
    fn figures_survive_json() {
        let digest = Digest::of(&two_engines());
        let json = serde_json::to_vec(&digest).unwrap();
        let again = Digest::from_json(&json).unwrap();
        let cell = |d: &Digest, engine| d.stages[0].rows[0].cell(engine).unwrap().clone();
        for engine in ["zubilo", "lmdb"] {
            let (a, b) = (cell(&digest, engine), cell(&again, engine));
            assert_eq!(a.figures, b.figures);
            assert_eq!(a.figures.len(), Figure::DiskPeak as usize + 1);
        }
        assert_eq!(cell(&again, "zubilo").get(Figure::Rate), Some(1000.0));
        assert_eq!(cell(&again, "lmdb").get(Figure::Ratio), Some(2.0));
        assert_eq!(cell(&again, "lmdb").get(Figure::WriteAmplification), Some(4.0));
        assert!((cell(&again, "lmdb").cpu().unwrap() - 3.0).abs() < 1e-2);
        assert_eq!(again.present().collect::<Vec<_>>(), ["zubilo", "lmdb"]);
    }

    #[test]
    fn what_a_map_takes_is_what_is_dirtied() {
        let mut report = two_engines();
        report.stages[0].rows[0].cells[1].engine = "lmdb-map".into();
        let digest = Digest::of(&report);
        let written = |engine| digest.stages[0].rows[0].cell(engine)?.get(Figure::Written);
        assert_eq!((written("zubilo"), written("lmdb-map")), (Some(400.0), Some(6400.0)));
    }

    #[test]
    fn a_whole_report_is_read_as_well() {
        let json = serde_json::to_vec(&two_engines()).unwrap();
        assert_eq!(Digest::from_json(&json).unwrap().stages.len(), 1);
    }

    #[test]
    fn other_figures_are_refused() {
        let mut digest = Digest::of(&two_engines());
        digest.figures.pop();
        let json = serde_json::to_vec(&digest).unwrap();
        let error = Digest::from_json(&json).unwrap_err();
        assert!(error.to_string().contains("another version"), "{error}");
        assert!(Digest::from_json(b"{}").is_err());
        assert!(Digest::from_json(b"\xff").is_err());
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(rounded(123_456.0), 123_000.0);
        assert_eq!(rounded(0.001_234_56), 0.001_23);
        assert_eq!(rounded(-9.999_96), -10.0);
        assert_eq!(rounded(0.0), 0.0);
        assert_eq!(rounded(5e-324), 5e-324);
        assert!(rounded(f64::NAN).is_nan());
    }
}
