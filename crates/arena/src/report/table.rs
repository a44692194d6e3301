//! Tables on the terminal.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell as Field, CellAlignment, Table};

use super::record::{Cell, Report, Row, StageReport, latencies, rate, readers_rate};
use super::{short, time};
use crate::spec::Class;

fn new(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(head);
    table
}

fn align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), short)
}

/// The columns of a row's table, for the terminal and for paper.
pub(crate) const HEAD: [&str; 15] = [
    "engine",
    "ops/s",
    "quartiles",
    "x base",
    "p50",
    "p99",
    "p99.9",
    "max",
    "CPU us/op",
    "sys %",
    "B written/op",
    "calls/op",
    "writes/op",
    "flushes/op",
    "disk MB",
];

/// The fields of one engine under `HEAD`; its trouble instead if it has no samples.
pub(crate) fn fields(row: &Row, cell: &Cell) -> Vec<String> {
    let Some(rates) = cell.of(rate) else {
        let why = cell.trouble.clone().unwrap_or_default();
        return vec![cell.engine.clone(), why];
    };
    let latency = latencies(&cell.latency).unwrap_or_default();
    let system =
        cell.of(|s| 100.0 * s.settled.system_s / (s.settled.user_s + s.settled.system_s).max(1e-9));
    vec![
        cell.engine.clone(),
        short(rates.median),
        format!("{} - {}", short(rates.low), short(rates.high)),
        row.ratio(cell, rate).map_or("-".into(), |r| format!("{:.2}", r.median)),
        time(latency.p50),
        time(latency.p99),
        time(latency.p999),
        time(latency.max),
        number(cell.cpu_us()),
        number(system.map(|s| s.median)),
        number(cell.per_op(|c| c.dirtied_bytes as f64)),
        number(cell.audited(|a| a.calls)),
        number(cell.audited(|a| a.writes)),
        number(cell.audited(|a| a.flushes)),
        number(cell.of(|s| s.disk_bytes as f64 / 1e6).map(|s| s.median)),
    ]
}

/// Prints one row as soon as it is measured.
pub(crate) fn print_row(stage: &str, class: Class, row: &Row) {
    println!("\n{stage} / {} / {}", class.name(), row.name);
    let mut table = new(&HEAD);
    for cell in row.cells.iter().filter(|cell| !cell.samples.is_empty()) {
        table.add_row(fields(row, cell));
    }
    align(&mut table, 1);
    println!("{table}");
    let readers: Vec<&Cell> = row.cells.iter().filter(|c| c.of(readers_rate).is_some()).collect();
    if !readers.is_empty() {
        let mut table = new(&["readers of", "ops/s", "x base", "p50", "p99", "p99.9", "max"]);
        for cell in readers {
            let rates = cell.of(readers_rate).map(|s| s.median);
            let ratio = row.ratio(cell, readers_rate).map(|r| r.median);
            let latency = latencies(&cell.readers_latency).unwrap_or_default();
            let [p50, p99, p999, max] =
                [latency.p50, latency.p99, latency.p999, latency.max].map(time);
            table.add_row([cell.engine.clone(), number(rates), number(ratio), p50, p99, p999, max]);
        }
        align(&mut table, 1);
        println!("{table}");
    }
    for cell in &row.cells {
        if let Some(trouble) = &cell.trouble {
            println!("{}: {trouble}", cell.engine);
        }
        if let Some(note) = cell.note() {
            let megabytes = |at: Option<&(u64, u64)>| at.map_or(f64::NAN, |g| g.1 as f64 / 1e6);
            let growth = cell.growth();
            let sizes: Vec<String> = (0..4)
                .map(|phase| short(megabytes(growth.get(phase * (growth.len() - 1) / 3))))
                .collect();
            println!("{}: {note}; MB at the ends of phases {}", cell.engine, sizes.join(", "));
        }
    }
}

/// Prints what the stores came to.
pub(crate) fn print_endings(stage: &StageReport) {
    let mut table = new(&[
        "engine",
        "records",
        "disk MB",
        "apparent MB",
        "B/record",
        "open ms",
        "open after kill ms",
    ]);
    for end in &stage.endings {
        if let Some(trouble) = &end.trouble {
            println!("{}: {trouble}", end.engine);
            continue;
        }
        let size = end.disk_bytes as f64;
        table.add_row([
            Field::new(&end.engine),
            Field::new(end.records),
            Field::new(short(size / 1e6)),
            Field::new(short(end.apparent_bytes as f64 / 1e6)),
            Field::new(short(size / end.records.max(1) as f64)),
            Field::new(short(end.reopen_s * 1e3)),
            Field::new(number(end.killed_open_s.map(|s| s * 1e3))),
        ]);
    }
    align(&mut table, 1);
    println!("\n{} / {}, closed and opened again", stage.name, stage.class.name());
    println!("{table}");
}

/// Prints who took part, how, and who did not.
pub(crate) fn print_entrants(report: &Report) {
    let mut table = new(&["engine", "version", "class", "settings, or why not"]);
    for entrant in &report.entrants {
        let version = entrant.version.clone().unwrap_or_default();
        if let Some(missing) = &entrant.missing {
            table.add_row([entrant.name.as_str(), "MISSING", "", missing]);
        }
        for standing in &entrant.standings {
            let how = match &standing.settings {
                Some(settings) => format!("{settings} ({})", standing.why),
                None => format!("absent: {}", standing.why),
            };
            table.add_row([entrant.name.as_str(), &version, standing.class.name(), &how]);
        }
    }
    println!("{table}");
}

/// Prints the environment.
pub(crate) fn print_environment(report: &Report) {
    for (name, value) in &report.environment {
        println!("{name:12} {value}");
    }
}
