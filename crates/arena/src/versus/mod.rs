//! Zubilo against LMDB in one process, figure by figure, with the targets that were set for it.
//!
//! `workload` holds one file for each workload, generic over `engine::Engine`; `duel` runs
//! contenders in interleaved rounds, `report` prints them.

mod duel;
pub(crate) mod engine;
mod report;
mod workload;

use std::path::PathBuf;

/// What the command line asks for.
#[derive(clap::Args)]
pub(crate) struct Config {
    /// Records of the stores that are read.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) records: u64,
    /// Interleaved rounds for each figure.
    #[arg(long, default_value_t = 7)]
    pub(crate) rounds: usize,
    /// Where stores are made.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub(crate) dir: PathBuf,
    /// Groups of figures, separated by commas; all of them if absent.
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(workload::NAMES))]
    only: Vec<String>,
    /// Part of the labels of the sides to be measured: for profiles.
    #[arg(long, default_value = "")]
    pub(crate) side: String,
    /// JSON instead of a table.
    #[arg(long)]
    json: bool,
}

impl Config {
    /// Whether the figure group `name` is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == name)
    }
}

/// Measures and prints.
pub(crate) fn run(mut config: Config) {
    config.dir = config.dir.join(format!("arena-{}", std::process::id()));
    std::fs::create_dir_all(&config.dir).expect("create the working directory");
    let environment = report::environment(&config);
    if !config.json {
        report::print_environment(&environment);
    }
    let mut figures = Vec::new();
    workload::run(&config, &mut |figure| {
        if !config.json {
            report::print_figure(&figure);
        }
        figures.push(figure);
    });
    if config.json {
        report::print_json(&environment, &figures);
    }
    let _ = std::fs::remove_dir_all(&config.dir);
}
