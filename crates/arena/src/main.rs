//! The arena: measures Zubilo against its peers.
//!
//! `field` runs the whole field: a process for each engine (`worker`, which drives one of `peers`),
//! in interleaved rounds, as `field::plan` says; `report` shows what came out. `versus` measures
//! against LMDB in one process; `floor` measures what the disk asks of all. `data` and `keys` make the records, `spec` is the language between
//! driver and workers.

mod clock;
mod data;
mod disk;
mod field;
mod floor;
mod keys;
mod peers;
mod report;
mod spec;
mod stats;
mod versus;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use field::plan::{Scale, stages};
use peers::ENTRIES;
use report::record::Report;
use spec::Class;

/// Benchmarks of embedded ordered key-value stores.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The whole field, the most telling rows: under ten minutes.
    Quick(Choice),
    /// The whole field, everything: a night.
    Full(Choice),
    /// Draws the page of a report in JSON again, beside it.
    Report {
        /// Written by an earlier run.
        json: PathBuf,
    },
    /// Zubilo against LMDB in one process, with the targets that were set.
    VersusLmdb(versus::Config),
    /// What bare durable writes cost here: the floor under every commit.
    Floor(floor::Config),
    /// Serves one engine on standard input and output; the driver starts it.
    #[command(hide = true)]
    Worker { engine: String },
}

/// What of a plan is measured.
#[derive(Args)]
struct Choice {
    /// Engines, separated by commas; all of them if absent.
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(ENTRIES.iter().map(|e| e.name)))]
    engines: Vec<String>,
    /// Classes of durability, separated by commas.
    #[arg(long, value_delimiter = ',', value_parser = class_of)]
    classes: Vec<Class>,
    /// Only stages whose names contain this.
    #[arg(long, default_value = "")]
    stage: String,
    /// Only rows whose names contain this.
    #[arg(long, default_value = "")]
    row: String,
    /// Records of a store.
    #[arg(long)]
    records: Option<u64>,
    /// Rounds that count.
    #[arg(long)]
    rounds: Option<usize>,
    /// Time of one measurement.
    #[arg(long)]
    seconds: Option<f64>,
    #[arg(long, default_value_t = keys::SEED)]
    seed: u64,
    /// Where stores are made: the file system that is measured.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// Where the report goes: this name with .json and with .html.
    #[arg(long, default_value = "arena-report")]
    out: PathBuf,
}

fn class_of(name: &str) -> Result<Class, String> {
    let found = Class::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name));
    found.ok_or_else(|| format!("one of {}", Class::ALL.map(Class::name).join(", ")))
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Quick(choice) => measure("quick", Scale::QUICK, choice),
        Command::Full(choice) => measure("full", Scale::FULL, choice),
        Command::Report { json } => draw(&json),
        Command::VersusLmdb(config) => {
            versus::run(config);
            Ok(())
        }
        Command::Floor(config) => floor::run(&config),
        Command::Worker { engine } => {
            worker::run(&engine);
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("arena: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(plan: &str, mut scale: Scale, choice: Choice) -> std::io::Result<()> {
    scale.records = choice.records.unwrap_or(scale.records);
    scale.rounds = choice.rounds.unwrap_or(scale.rounds).max(1);
    scale.seconds = choice.seconds.unwrap_or(scale.seconds);
    let mut stages = stages(scale);
    stages.retain(|s| choice.classes.is_empty() || choice.classes.contains(&s.class));
    stages.retain(|s| s.name.contains(&choice.stage));
    for stage in &mut stages {
        // A row that fills its store is needed by the rows after it.
        let load = |work| matches!(work, spec::Work::Load { .. });
        let fills = !stage.fill;
        stage.tasks.retain(|t| t.name.contains(&choice.row) || fills && load(t.work));
    }
    stages.retain(|s| !s.tasks.is_empty());
    let mut engines = choice.engines;
    if engines.is_empty() {
        engines = ENTRIES.iter().map(|e| e.name.to_owned()).collect();
    }
    let dir = choice.dir.join(format!("arena-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let settings = field::Settings {
        plan: format!("{plan}, {} records, {} rounds", scale.records, scale.rounds),
        stages,
        engines,
        dir,
        seed: choice.seed,
        print: true,
    };
    let report = field::run(&settings);
    let _ = std::fs::remove_dir_all(&settings.dir);
    let report = report?;
    report::table::print_entrants(&report);
    report::table::print_environment(&report);
    std::fs::write(with_extension(&choice.out, "json"), serde_json::to_vec(&report)?)?;
    write_page(&report, &with_extension(&choice.out, "html"))
}

/// The path with `.extension` behind it, whatever dots it has.
fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

fn draw(json: &Path) -> std::io::Result<()> {
    let report: Report = serde_json::from_slice(&std::fs::read(json)?)?;
    write_page(&report, &json.with_extension("html"))
}

fn write_page(report: &Report, path: &Path) -> std::io::Result<()> {
    std::fs::write(path, report::html::page(report))?;
    println!("{}", path.display());
    Ok(())
}
