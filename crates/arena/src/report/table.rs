//! Tables on the terminal.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell as Field, CellAlignment, Table};

use super::digest::{CellDigest, Figure, RowDigest};
use super::record::{Report, StageReport};
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

fn duration(ns: Option<f64>) -> String {
    ns.map_or("-".into(), time)
}

const HEAD: [&str; 19] = [
    "engine",
    "ops/s",
    "quartiles",
    "x base",
    "mean",
    "rms",
    "p50",
    "p99",
    "p99.9",
    "p99.99",
    "max",
    "CPU us/op",
    "B written/op",
    "dev writes/op",
    "calls/op",
    "writes/op",
    "flushes/op",
    "mem MB",
    "disk MB",
];

/// The fields of one engine under `HEAD`.
fn fields(cell: &CellDigest) -> Vec<String> {
    let get = |figure| cell.get(figure);
    let quartiles = [Figure::RateLow, Figure::RateHigh].map(|figure| number(get(figure)));
    vec![
        cell.engine.clone(),
        number(get(Figure::Rate)),
        quartiles.join(" - "),
        get(Figure::Ratio).map_or("-".into(), |r| format!("{r:.2}")),
        duration(get(Figure::Mean)),
        duration(get(Figure::Rms)),
        duration(get(Figure::P50)),
        duration(get(Figure::P99)),
        duration(get(Figure::P999)),
        duration(get(Figure::P9999)),
        duration(get(Figure::Max)),
        number(cell.cpu()),
        number(get(Figure::Written)),
        number(get(Figure::DeviceWrites)),
        number(get(Figure::Calls)),
        number(get(Figure::Writes)),
        number(get(Figure::Flushes)),
        number(get(Figure::Memory)),
        number(get(Figure::Disk)),
    ]
}

/// Prints one row as soon as it is measured.
pub(crate) fn print_row(stage: &str, class: Class, row: &RowDigest) {
    println!("\n{stage} / {} / {}", class.name(), row.name);
    let mut table = new(&HEAD);
    for cell in row.cells.iter().filter(|cell| cell.is_measured()) {
        table.add_row(fields(cell));
    }
    align(&mut table, 1);
    println!("{table}");
    if row.has(Figure::BesideRate) {
        let mut table = new(&[row.work.beside(), "ops/s", "x base", "p50", "p99", "p99.9", "max"]);
        for cell in row.cells.iter().filter(|c| c.get(Figure::BesideRate).is_some()) {
            let mut fields = vec![cell.engine.clone()];
            fields.extend([Figure::BesideRate, Figure::BesideRatio].map(|f| number(cell.get(f))));
            let times =
                [Figure::BesideP50, Figure::BesideP99, Figure::BesideP999, Figure::BesideMax];
            fields.extend(times.map(|f| duration(cell.get(f))));
            table.add_row(fields);
        }
        align(&mut table, 1);
        println!("{table}");
    }
    for cell in &row.cells {
        if let Some(trouble) = &cell.trouble {
            println!("{}: {trouble}", cell.engine);
        }
        if let Some(note) = &cell.note {
            println!("{}: {note}{}", cell.engine, phases(&cell.growth));
        }
    }
}

/// The space that a store took at the ends of three phases.
fn phases(growth: &[(u64, u64)]) -> String {
    let Some(last) = growth.len().checked_sub(1) else { return String::new() };
    let sizes: Vec<String> =
        (0..4).map(|phase| short(growth[phase * last / 3].1 as f64 / 1e6)).collect();
    format!("; MB at the ends of phases {}", sizes.join(", "))
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
