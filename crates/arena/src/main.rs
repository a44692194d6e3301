//! The arena: measures Zubilo against its peers.
//!
//! `workload` holds one file for each workload, generic over `engine::Engine`; `duel` runs
//! contenders in interleaved rounds, `stats` turns samples into medians, `report` prints them.
//!
//! `arena versus-lmdb [--only get,scan,...] [--records N] [--rounds N] [--dir DIR] [--side LABEL] [--json]`

mod clock;
mod duel;
mod engine;
mod keys;
mod report;
mod stats;
mod workload;

use std::path::PathBuf;

/// What the command line asks for.
pub(crate) struct Config {
    /// Records of the stores that are read.
    pub(crate) records: u64,
    /// Interleaved rounds for each figure.
    pub(crate) rounds: usize,
    /// Where stores are made.
    pub(crate) dir: PathBuf,
    only: Vec<String>,
    /// Part of the labels of the sides to be measured: for profiles.
    pub(crate) side: String,
    json: bool,
}

impl Config {
    /// Whether the figure group `name` is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == name)
    }
}

fn usage() -> ! {
    eprintln!(
        "arena versus-lmdb [--only {}] [--records N] [--rounds N] [--dir DIR] [--side LABEL] [--json]",
        workload::NAMES.join(",")
    );
    std::process::exit(2);
}

fn parse() -> Config {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() != Some("versus-lmdb") {
        usage();
    }
    let mut config = Config {
        records: 1_000_000,
        rounds: 7,
        dir: std::env::temp_dir(),
        only: Vec::new(),
        side: String::new(),
        json: false,
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| usage());
        let number = |text: String| text.replace('_', "").parse().unwrap_or_else(|_| usage());
        match arg.as_str() {
            "--records" => config.records = number(value()),
            "--rounds" => config.rounds = number(value()) as usize,
            "--dir" => config.dir = value().into(),
            "--only" => config.only = value().split(',').map(str::to_owned).collect(),
            "--side" => config.side = value(),
            "--json" => config.json = true,
            _ => usage(),
        }
    }
    if config.only.iter().any(|o| !workload::NAMES.contains(&o.as_str())) {
        usage();
    }
    config.dir = config.dir.join(format!("arena-{}", std::process::id()));
    config
}

fn main() {
    let config = parse();
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
