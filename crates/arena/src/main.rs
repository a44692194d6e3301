//! The arena: measures Zubilo against its peers.
//!
//! `field` runs the whole field: a process for each engine (`worker`, which drives one of `peers`),
//! in interleaved rounds, as `field::plan` says; `report` shows what came out. `versus` measures
//! against LMDB in one process; `reuse` simulates a device's cache, `floor` measures what the disk
//! asks of all. `data` and `keys` make the records, `spec` is the language between
//! driver and workers.

mod clock;
mod data;
mod disk;
mod field;
mod floor;
mod keys;
mod peers;
mod report;
mod reuse;
mod spec;
mod stats;
mod versus;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use field::plan::{Scale, stages};
use peers::ENTRIES;
use report::digest::Digest;
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
    /// Keeps a report in short: figures as JSON, a page, and a summary in markdown.
    Record {
        /// Written by an earlier run.
        json: PathBuf,
        /// Where it goes: this name with .json, .html and .md.
        out: PathBuf,
    },
    /// Lists in markdown where Zubilo is not first.
    Rank {
        /// Written by an earlier run or by `record`.
        json: PathBuf,
    },
    /// Zubilo against LMDB in one process, with the targets that were set.
    VersusLmdb(versus::Config),
    /// The order in which free pages are reused, through a simulated write-back cache.
    Reuse(reuse::Config),
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
    /// Time for all of it: what comes late has one round. 8 for `quick`, no limit for `full`.
    #[arg(long)]
    minutes: Option<f64>,
    #[arg(long, default_value_t = keys::SEED)]
    seed: u64,
    /// This share of the plan: fewer records, shorter measurements, fewer rounds. `full --scale 0.01`
    /// shows within half an hour whether everything works; its figures mean nothing.
    #[arg(long, default_value_t = 1.0, value_parser = share_of)]
    scale: f64,
    /// Goes on with a run that was interrupted: stages that the report has stay as they are.
    #[arg(long)]
    resume: bool,
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

fn share_of(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "a number above 0, at most 1".into())
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Quick(choice) => measure("quick", Scale::QUICK, choice),
        Command::Full(choice) => measure("full", Scale::FULL, choice),
        Command::Report { json } => draw(&json),
        Command::Record { json, out } => record(&json, &out),
        Command::Rank { json } => read(&json).map(|d| print!("{}", report::rank::markdown(&d))),
        Command::VersusLmdb(config) => {
            versus::run(config);
            Ok(())
        }
        Command::Reuse(config) => reuse::run(&config).map_err(std::io::Error::other),
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

fn measure(plan: &str, scale: Scale, choice: Choice) -> std::io::Result<()> {
    let mut scale = scale.shrunk(choice.scale);
    scale.records = choice.records.unwrap_or(scale.records);
    scale.rounds = choice.rounds.unwrap_or(scale.rounds).max(1);
    scale.seconds = choice.seconds.unwrap_or(scale.seconds);
    let limit = choice.minutes.or((!scale.whole).then_some(8.0));
    let mut stages = stages(scale);
    stages.retain(|s| choice.classes.is_empty() || choice.classes.contains(&s.class));
    stages.retain(|s| s.name.contains(&choice.stage));
    for stage in &mut stages {
        // A row that fills its store is needed by the rows after it.
        let load = |work| matches!(work, spec::Work::Load { .. } | spec::Work::LoadTables { .. });
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
        plan: scale.describe(plan),
        stages,
        engines,
        dir,
        seed: choice.seed,
        limit: limit.and_then(|minutes| Duration::try_from_secs_f64(minutes * 60.0).ok()),
        out: with_extension(&choice.out, "json"),
    };
    let report = field::run(&settings, choice.resume);
    let _ = std::fs::remove_dir_all(&settings.dir);
    let report = report?;
    report::table::print_entrants(&report);
    report::table::print_environment(&report);
    let digest = Digest::of(&report);
    println!("\n{}", report::rank::markdown(&digest));
    write(&choice.out, "csv", &report::paper::csv(&digest))?;
    write(&choice.out, "stores.csv", &report::paper::stores_csv(&digest))?;
    write(&choice.out, "html", &report::html::page(&digest))?;
    let failures = report.failures();
    if failures.is_empty() {
        return Ok(());
    }
    let text = format!("{} failures:\n{}", failures.len(), failures.join("\n"));
    Err(std::io::Error::other(text))
}

/// The path with `.extension` after it, whatever dots it has.
fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

fn read(json: &Path) -> std::io::Result<Digest> {
    Digest::from_json(&std::fs::read(json)?)
}

fn draw(json: &Path) -> std::io::Result<()> {
    write(&json.with_extension(""), "html", &report::html::page(&read(json)?))
}

fn record(json: &Path, out: &Path) -> std::io::Result<()> {
    let digest = read(json)?;
    let date = digest.environment.iter().find(|(name, _)| name == "date");
    let title = format!("Arena, {}", date.map_or("no date", |(_, date)| date));
    write(out, "json", &serde_json::to_string(&digest)?)?;
    write(out, "md", &report::paper::markdown(&digest, &title))?;
    write(out, "html", &report::html::page(&digest))
}

fn write(out: &Path, extension: &str, text: &str) -> std::io::Result<()> {
    let path = with_extension(out, extension);
    std::fs::write(&path, text)?;
    println!("{}", path.display());
    Ok(())
}
