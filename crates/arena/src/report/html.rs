//! One page with everything: no scripts, nothing fetched, readable on paper.

use std::fmt::Write;

use super::record::{Cell, Ending, Report, Row, StageReport, latencies, rate, readers_rate};
use super::svg::{Bar, Curve, bands, bars, curves, escape};
use super::{short, table};
use crate::spec::{Class, Values, Work};

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;max-width:1380px;margin:2em auto;padding:0 1.2em;color:#1a1a1a}\
h1{font-size:1.7em}h2{margin-top:2em;border-bottom:2px solid #0b5fa5}h3{margin:1.4em 0 .3em}\
table{border-collapse:collapse;font-size:.85em;margin:.6em 0}\
td,th{padding:.18em .55em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}\
td:first-child,th:first-child,.l td,.l th{text-align:left}.l td{white-space:normal}\
.charts{display:flex;flex-wrap:wrap;gap:.6em 1.4em}.charts svg{width:430px;max-width:100%}\
svg text{font:11.5px system-ui,sans-serif}svg .t{font-weight:600;font-size:13px}\
svg .n{text-anchor:end}svg .a{text-anchor:middle;fill:#555}svg .b{font-weight:700}\
.fast{background:#fbe3c0}.slow{background:#e7eff6}.best{font-weight:700}.off{color:#777}\
details{margin:.3em 0}.wide{overflow-x:auto}\
@media print{body{max-width:none;margin:0;font-size:10px}details{display:block}\
.charts svg{width:31%}section{break-inside:avoid}.wide{overflow:visible}}";

/// The page.
pub(crate) fn page(report: &Report) -> String {
    let mut page = String::new();
    let title = format!("Arena: {}", escape(&report.plan));
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1>"
    );
    environment(&mut page, report);
    overview(&mut page, report);
    for stage in &report.stages {
        section(&mut page, stage);
    }
    entrants(&mut page, report);
    page.push_str("</html>\n");
    page
}

fn environment(page: &mut String, report: &Report) {
    page.push_str("<table class=\"l\">");
    for (name, value) in &report.environment {
        let _ = write!(page, "<tr><td>{}<td>{}", escape(name), escape(value));
    }
    page.push_str("</table><p>Each figure is the median of interleaved rounds; the black line in a bar spans the quartiles. ");
    page.push_str("Every read is verified. Classes of durability: ");
    for class in Class::ALL {
        let _ = write!(page, "<b>{}</b> {}. ", class.name(), escape(class.promise()));
    }
    page.push_str("An engine is entered only in the classes that its settings give.</p>");
}

/// Rates of all engines in all rows, as multiples of the base's.
fn overview(page: &mut String, report: &Report) {
    page.push_str(
        "<h2>Overview</h2><p>Throughput as a multiple of the first engine's, which is in operations a \
         second; <span class=\"fast\">faster</span>, <span class=\"slow\">slower</span>, <b>best</b>.</p>\
         <div class=\"wide\"><table><tr><th>row",
    );
    let present: Vec<&str> = report
        .entrants
        .iter()
        .filter(|e| e.standings.iter().any(|s| s.settings.is_some()))
        .map(|e| e.name.as_str())
        .collect();
    for name in &present {
        let _ = write!(page, "<th>{}", escape(name));
    }
    for stage in &report.stages {
        for row in &stage.rows {
            line(page, stage, row, &row.name, &present, rate);
            if row.cells.iter().any(|c| c.of(readers_rate).is_some()) {
                let name = format!("{}, its readers", row.name);
                line(page, stage, row, &name, &present, readers_rate);
            }
        }
    }
    page.push_str("</table></div>");
}

fn line(
    page: &mut String,
    stage: &StageReport,
    row: &Row,
    name: &str,
    engines: &[&str],
    of: fn(&crate::spec::Sample) -> f64,
) {
    let (class, name) = (stage.class.name(), escape(name));
    let _ = write!(page, "<tr><td>{} {class}: {name}", escape(&stage.name));
    let base = row.base().map_or("", |cell| &cell.engine);
    let ratio = |engine: &str| row.ratio(row.cell(engine)?, of).map(|r| r.median);
    let best = engines.iter().filter_map(|e| ratio(e)).fold(0.0, f64::max);
    for engine in engines {
        let Some(ratio) = ratio(engine) else {
            page.push_str("<td class=\"off\">-");
            continue;
        };
        let mark = if ratio == best { " best" } else { "" };
        if *engine == base {
            let rate = row.cell(engine).and_then(|c| c.of(of)).map_or(f64::NAN, |s| s.median);
            let _ = write!(page, "<td class=\"{mark}\">{}", short(rate));
        } else {
            let class = if ratio > 1.0 { "fast" } else { "slow" };
            let _ = write!(page, "<td class=\"{class}{mark}\">{ratio:.2}");
        }
    }
}

fn shape_text(stage: &StageReport) -> String {
    let values = match stage.shape.values {
        Values::Fixed(len) => format!("{len}-byte values"),
        Values::Mixed => "values of 8 to 4,096 bytes".into(),
    };
    format!("{} records, {:?} keys, {values}", stage.shape.records, stage.shape.keys)
}

fn section(page: &mut String, stage: &StageReport) {
    let _ = write!(
        page,
        "<h2>{}, {}</h2><p>{}</p>",
        escape(&stage.name),
        stage.class.name(),
        escape(&shape_text(stage))
    );
    scaling(page, stage);
    for row in &stage.rows {
        row_section(page, row);
    }
    let sizes: Vec<Bar> = stage
        .endings
        .iter()
        .filter(|e| e.trouble.is_none())
        .map(|e| Bar {
            name: e.engine.clone(),
            value: e.disk_bytes as f64 / e.records.max(1) as f64,
            spread: None,
            note: format!("B, {} MB", short(e.disk_bytes as f64 / 1e6)),
        })
        .collect();
    let opens = stage.endings.iter().filter(|e| e.trouble.is_none()).map(|e| {
        let note = "ms".to_owned();
        Bar { name: e.engine.clone(), value: e.reopen_s * 1e3, spread: None, note }
    });
    let opens: Vec<Bar> = opens.collect();
    let _ = write!(
        page,
        "<section><h3>At the end</h3><div class=\"charts\">{}{}</div>",
        bars("bytes on disk for each record", &sizes),
        bars("time to open, clean", &opens) + &killed(stage)
    );
    for end in &stage.endings {
        if let Some(trouble) = &end.trouble {
            let _ = write!(page, "<p>{}: {}</p>", escape(&end.engine), escape(trouble));
        }
    }
    page.push_str("</section>");
}

/// Times to open where the processes were killed before.
fn killed(stage: &StageReport) -> String {
    let bar = |end: &Ending| {
        let (name, note) = (end.engine.clone(), "ms".to_owned());
        Some(Bar { name, value: end.killed_open_s? * 1e3, spread: None, note })
    };
    let all: Vec<Bar> = stage.endings.iter().filter_map(bar).collect();
    if all.is_empty() { String::new() } else { bars("time to open after a kill", &all) }
}

/// The space that stores took over their transactions.
fn growth(row: &Row) -> String {
    let curve = |cell: &Cell| {
        let points = cell.growth().iter().map(|g| (g.0 as f64, g.1 as f64 / 1e6)).collect();
        Curve { name: cell.engine.clone(), points }
    };
    let all: Vec<Curve> =
        row.cells.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
    if all.is_empty() { String::new() } else { curves("MB on disk", "transactions", &all) }
}

/// Curves over the number of threads, where rows differ in nothing else.
fn scaling(page: &mut String, stage: &StageReport) {
    let only = |readers: bool| {
        let mut rows: Vec<(f64, &Row)> = stage
            .rows
            .iter()
            .filter_map(|row| match row.work {
                Work::Mix { readers: n, writers: 0 } if readers => Some((n as f64, row)),
                Work::Mix { readers: 0, writers: n } if !readers => Some((n as f64, row)),
                Work::Crud if !readers => Some((1.0, row)),
                _ => None,
            })
            .collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows
    };
    for (rows, title) in
        [(only(true), "look-ups a second"), (only(false), "CRUD transactions a second")]
    {
        if rows.len() < 3 {
            continue;
        }
        let names = rows[0].1.cells.iter().map(|c| &c.engine);
        let all: Vec<Curve> = names
            .map(|name| Curve {
                name: name.clone(),
                points: rows
                    .iter()
                    .filter_map(|(n, row)| Some((*n, row.cell(name)?.of(rate)?.median)))
                    .collect(),
            })
            .filter(|curve| !curve.points.is_empty())
            .collect();
        let chart = curves(title, "threads", &all);
        let _ = write!(page, "<section><div class=\"charts\">{chart}</div></section>");
    }
}

fn rates(row: &Row, title: &str, of: fn(&crate::spec::Sample) -> f64) -> String {
    let all: Vec<Bar> = row
        .cells
        .iter()
        .filter_map(|cell| {
            let rate = cell.of(of)?;
            let note = row.ratio(cell, of).map_or(String::new(), |r| format!("({:.2}x)", r.median));
            let spread = Some((rate.low, rate.high));
            Some(Bar { name: cell.engine.clone(), value: rate.median, spread, note })
        })
        .collect();
    bars(title, &all)
}

fn costs(row: &Row, title: &str, note: &str, of: impl Fn(&Cell) -> Option<f64>) -> String {
    let bar = |cell: &Cell| {
        let value = of(cell).filter(|v| v.is_finite())?;
        Some(Bar { name: cell.engine.clone(), value, spread: None, note: note.into() })
    };
    let all: Vec<Bar> = row.cells.iter().filter_map(bar).collect();
    if all.iter().all(|bar| bar.value == 0.0) { String::new() } else { bars(title, &all) }
}

fn row_section(page: &mut String, row: &Row) {
    let writes = row.work.writes();
    let mut charts = rates(row, "operations a second (x base)", rate);
    let band = |of: fn(&Cell) -> &[(u64, u64)]| -> Vec<_> {
        let all = row.cells.iter();
        all.filter_map(|c| Some((c.engine.clone(), latencies(of(c))?))).collect()
    };
    charts += &bands("latency: least - 50 % to 99 % | 99.9 % - most", &band(|c| &c.latency));
    charts += &costs(row, "CPU for each operation", "us", Cell::cpu_us);
    if row.cells.iter().any(|c| c.of(readers_rate).is_some()) {
        charts += &rates(row, "readers: look-ups a second (x base)", readers_rate);
        charts += &bands("readers: latency", &band(|c| &c.readers_latency));
    }
    if writes {
        let dirtied = |c: &Cell| c.per_op(|c| c.dirtied_bytes as f64);
        charts += &costs(row, "bytes written for each operation", "B", dirtied);
        charts += &costs(row, "bytes written for each byte put", "x", Cell::write_amplification);
        let flushes = |c: &Cell| c.audited(|a| a.flushes);
        charts += &costs(row, "flush calls for each operation", "", flushes);
        charts += &costs(row, "most space taken", "MB", |c| Some(c.disk_peak as f64 / 1e6));
    }
    charts += &growth(row);
    let memory = |c: &Cell| Some(c.of(|s| s.peak_memory as f64 / 1e6)?.median);
    charts += &costs(row, "most memory resident, maps included", "MB", memory);
    let name = escape(&row.name);
    let _ = write!(page, "<section><h3>{name}</h3><div class=\"charts\">{charts}");
    page.push_str("</div>");
    for cell in &row.cells {
        for said in cell.trouble.as_deref().into_iter().chain(cell.note()) {
            let _ = write!(page, "<p>{}: {}</p>", escape(&cell.engine), escape(said));
        }
    }
    page.push_str("<details><summary>figures</summary><div class=\"wide\"><table><tr>");
    for head in table::HEAD {
        let _ = write!(page, "<th>{}", escape(head));
    }
    for cell in &row.cells {
        page.push_str("<tr>");
        for field in table::fields(row, cell) {
            let _ = write!(page, "<td>{}", escape(&field));
        }
    }
    page.push_str("</table></div></details></section>");
}

fn entrants(page: &mut String, report: &Report) {
    page.push_str("<h2>Engines and settings</h2><table class=\"l\"><tr><th>engine<th>version<th>class<th>settings<th>why");
    for entrant in &report.entrants {
        let (name, what) = (escape(&entrant.name), escape(&entrant.what));
        if let Some(missing) = &entrant.missing {
            let _ = write!(page, "<tr><td>{name}<td>{what}<td>MISSING<td><td>{}", escape(missing));
        }
        let version = escape(entrant.version.as_deref().unwrap_or(&what));
        for standing in &entrant.standings {
            let settings = standing.settings.as_deref().map_or("absent".into(), escape);
            let (class, why) = (standing.class.name(), escape(&standing.why));
            let _ = write!(page, "<tr><td>{name}<td>{version}<td>{class}<td>{settings}<td>{why}");
        }
    }
    page.push_str("</table>");
}
