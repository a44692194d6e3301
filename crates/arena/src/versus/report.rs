//! The table on the terminal, and JSON.

use crate::versus::Config;
use crate::versus::duel::{Figure, Target};
use crate::versus::engine::lmdb;

/// What the figures depend on besides the code.
pub(crate) fn environment(config: &Config) -> Vec<(&'static str, String)> {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = file("/proc/cpuinfo");
    let cpu = cpu.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("");
    let commit = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let commit = commit.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    vec![
        ("zubilo", format!("{} at {}", env!("CARGO_PKG_VERSION"), commit.unwrap_or_default())),
        ("lmdb", format!("{}, cc -O3 -DNDEBUG", lmdb::version())),
        ("cpu", cpu.trim_start_matches([' ', '\t', ':']).to_owned()),
        ("cores", std::thread::available_parallelism().map_or(0, |n| n.get()).to_string()),
        ("kernel", file("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("records", config.records.to_string()),
        ("rounds", config.rounds.to_string()),
        ("seed", format!("{:#x}", crate::keys::SEED)),
        ("flags", "release, lto thin, codegen-units 1, no target-cpu".to_owned()),
    ]
}

pub(crate) fn print_environment(environment: &[(&str, String)]) {
    for (name, value) in environment {
        println!("{name:10} {value}");
    }
    println!(
        "\n{:28} {:>8}  {:34} {:>10} {:>23}  {:>7} {:>15}  {:>8}",
        "figure", "unit", "side", "median", "quartiles", "ratio", "quartiles", "target"
    );
}

fn target_text(figure: &Figure) -> String {
    let mark = match figure.reached() {
        Some(true) => " ok",
        Some(false) => " MISSED",
        None => "",
    };
    match figure.target {
        Target::Faster(times) => format!(">={times}x{mark}"),
        Target::AtMostShare(share) => format!("<={share} of it{mark}"),
        Target::AtMost(most) => format!("<={most}{mark}"),
        Target::None => String::new(),
    }
}

fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

pub(crate) fn print_figure(figure: &Figure) {
    for (i, (label, _, s)) in figure.sides.iter().enumerate() {
        let (name, unit) = if i == 0 { (figure.name.as_str(), figure.unit) } else { ("", "") };
        let spread = format!("{} - {}", short(s.low), short(s.high));
        print!("{name:28} {unit:>8}  {label:34} {:>10} {spread:>23}", short(s.median));
        if i == 0 {
            let (ratio, spread) = match figure.ratio {
                Some(r) => (format!("{:.2}", r.median), format!("{:.2} - {:.2}", r.low, r.high)),
                None => (String::new(), String::new()),
            };
            print!("  {ratio:>7} {spread:>15}  {}", target_text(figure));
        }
        println!();
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

pub(crate) fn print_json(environment: &[(&str, String)], figures: &[Figure]) {
    let environment: Vec<String> =
        environment.iter().map(|(k, v)| format!("{}: {}", quoted(k), quoted(v))).collect();
    println!("{{\n  \"environment\": {{{}}},\n  \"figures\": [", environment.join(", "));
    for (i, figure) in figures.iter().enumerate() {
        let sides: Vec<String> = figure
            .sides
            .iter()
            .map(|(label, _, s)| {
                format!(
                    "{{\"side\": {}, \"median\": {}, \"low\": {}, \"high\": {}}}",
                    quoted(label),
                    s.median,
                    s.low,
                    s.high
                )
            })
            .collect();
        let ratio = figure.ratio.map_or("null".into(), |r| r.median.to_string());
        let reached = figure.reached().map_or("null".into(), |r| r.to_string());
        let comma = if i + 1 < figures.len() { "," } else { "" };
        println!(
            "    {{\"name\": {}, \"unit\": {}, \"ratio\": {ratio}, \"target\": {}, \
             \"reached\": {reached}, \"sides\": [{}]}}{comma}",
            quoted(&figure.name),
            quoted(figure.unit),
            quoted(&target_text(figure)),
            sides.join(", ")
        );
    }
    println!("  ]\n}}");
}
