//! The figures as markdown, for a page of the documentation, and as CSV, for other tools.

use std::fmt::Write;

use super::digest::{Digest, Figure, RowDigest};
use super::{html, rank, short};

/// A summary: environment, rates, where Zubilo is not first, settings.
pub(crate) fn markdown(digest: &Digest, title: &str) -> String {
    let mut text = format!("# {title}\n\n{}\n\n| | |\n|---|---|\n", plain(&digest.plan));
    for (name, value) in &digest.environment {
        let _ = writeln!(text, "| {name} | {} |", plain(value));
    }
    text.push_str(
        "\nThroughput: operations a second of the first engine, for the others how many times as fast it \
         is; **best**.\n\n| row |",
    );
    let present: Vec<&str> = digest.present().collect();
    for name in &present {
        let _ = write!(text, " {name} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(present.len()));
    for stage in &digest.stages {
        for row in &stage.rows {
            let name = format!("{} {}: {}", stage.name, stage.class.name(), row.name);
            line(&mut text, row, &name, &present, (Figure::Rate, Figure::Ratio));
            if row.has(Figure::BesideRate) {
                let name = format!("{name}, {}", row.work.beside());
                line(&mut text, row, &name, &present, (Figure::BesideRate, Figure::BesideRatio));
            }
        }
    }
    let _ = write!(text, "\n## Ranks\n{}\n## Stores\n", rank::markdown(digest));
    for stage in &digest.stages {
        let name = format!("{} {}", stage.name, stage.class.name());
        let _ = writeln!(text, "* {name}: {}", html::shape_text(&stage.shape));
    }
    settings(&mut text, digest);
    text
}

fn line(
    text: &mut String,
    row: &RowDigest,
    name: &str,
    engines: &[&str],
    (rate, ratio): (Figure, Figure),
) {
    let _ = write!(text, "| {name} |");
    let base = row.base().map_or("", |cell| &cell.engine);
    let best = row.most(ratio);
    for engine in engines {
        let cell = row.cell(engine);
        let shown = match cell.and_then(|c| Some((c.get(ratio)?, c.get(rate)?))) {
            None => "-".into(),
            Some((shown_ratio, rate)) => {
                let number =
                    if *engine == base { short(rate) } else { format!("{shown_ratio:.2}") };
                if shown_ratio == best { format!("**{number}**") } else { number }
            }
        };
        let _ = write!(text, " {shown} |");
    }
    text.push('\n');
}

fn settings(text: &mut String, digest: &Digest) {
    text.push_str("\n## Engines and settings\n\n| engine | version | class | settings | why |\n|---|---|---|---|---|\n");
    for entrant in &digest.entrants {
        if let Some(missing) = &entrant.missing {
            let _ = writeln!(text, "| {} | MISSING | | | {} |", entrant.name, plain(missing));
        }
        let version = plain(entrant.version.as_deref().unwrap_or_default());
        for standing in &entrant.standings {
            let settings = standing.settings.as_deref().map_or("absent".into(), plain);
            let (class, why) = (standing.class.name(), plain(&standing.why));
            let _ =
                writeln!(text, "| {} | {version} | {class} | {settings} | {why} |", entrant.name);
        }
    }
}

/// Text that does not end a field of a table.
fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A line for each engine in each row, with all figures, or why there are none.
pub(crate) fn csv(digest: &Digest) -> String {
    let mut text = String::from("stage,class,row,engine");
    for figure in &digest.figures {
        let _ = write!(text, ",{}", quoted(figure));
    }
    text.push_str(",remark\n");
    for stage in &digest.stages {
        for row in &stage.rows {
            for cell in &row.cells {
                let names = [stage.name.as_str(), stage.class.name(), &row.name, &cell.engine];
                text.push_str(&names.map(quoted).join(","));
                for figure in Figure::ALL {
                    let shown = cell.get(*figure).map_or(String::new(), |value| value.to_string());
                    let _ = write!(text, ",{shown}");
                }
                let said: Vec<&str> = cell.trouble.iter().chain(&cell.note).map(|s| &**s).collect();
                let _ = writeln!(text, ",{}", quoted(&said.join("; ")));
            }
        }
    }
    text
}

/// A line for each store: what it was when it was closed, and how long it took to open again.
pub(crate) fn stores_csv(digest: &Digest) -> String {
    let mut text = String::from(
        "stage,class,engine,records,allocated B,apparent B,s to open,s to open after a kill,remark\n",
    );
    for stage in &digest.stages {
        for end in &stage.endings {
            let names = [stage.name.as_str(), stage.class.name(), &end.engine];
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{}",
                names.map(quoted).join(","),
                end.records,
                end.disk_bytes,
                end.apparent_bytes,
                end.reopen_s,
                end.killed_open_s.map_or(String::new(), |s| s.to_string()),
                quoted(end.trouble.as_deref().unwrap_or_default())
            );
        }
    }
    text
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::two_engines;

    #[test]
    fn a_line_of_csv_has_all_figures() {
        let mut report = two_engines();
        report.stages[0].rows[0].name = "a \"row\", named".into();
        let text = csv(&Digest::of(&report));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let start = "transactions,SYNC,\"a \"\"row\"\", named\",lmdb,2000,2000,2000,2,";
        assert!(lines[2].starts_with(start), "{text}");
        // The quoted name has a comma of its own.
        assert_eq!(lines[2].split(',').count(), 6 + Figure::ALL.len());
    }

    #[test]
    fn who_has_no_figures_has_a_reason() {
        let mut report = two_engines();
        let cell = &mut report.stages[0].rows[0].cells[1];
        (cell.samples, cell.trouble) = (Vec::new(), Some("failed: so, and so".into()));
        report.stages[0].endings[1].trouble = Some("9 of 10 records".into());
        let digest = Digest::of(&report);
        let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
        assert!(last(&csv(&digest)).ends_with(",,,\"failed: so, and so\""), "{}", csv(&digest));
        let stores = stores_csv(&digest);
        assert_eq!(last(&stores), "transactions,SYNC,lmdb,10,8192,8192,0.001,,9 of 10 records");
        assert!(stores.lines().all(|line| line.split(',').count() == 9), "{stores}");
        assert_eq!(report.failures().len(), 2, "{:?}", report.failures());
    }

    #[test]
    fn the_summary_shows_the_best() {
        let text = markdown(&Digest::of(&two_engines()), "A run");
        assert!(text.starts_with("# A run\n\ntest\n"));
        assert!(text.contains("| transactions SYNC: SET | 1.00 k | **2.00** |"), "{text}");
        assert!(text.contains("| commit | abc |") && text.contains("first in 0 of 1"));
    }
}
