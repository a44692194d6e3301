//! One page with everything: no scripts, nothing fetched, readable on paper. Bars and bands are
//! backgrounds of the fields that hold their numbers, so a page of a whole run stays small.

use std::fmt::Write;

use super::digest::{CellDigest, Digest, Figure, RowDigest, StageDigest};
use super::record::Ending;
use super::svg::{Curve, curves, escape};
use super::{rank, short, time};
use crate::spec::{Class, Shape, Values, Work};

const STYLE: &str = "\
body{font:14px/1.4 system-ui,sans-serif;max-width:1380px;margin:2em auto;padding:0 1.2em;color:#1a1a1a}\
h1{font-size:1.7em}h2{margin-top:2em;border-bottom:2px solid #0b5fa5}h3{margin:1.2em 0 .2em}\
table{border-collapse:collapse;font-size:.86em;margin:.4em 0}\
td,th{padding:.12em .5em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}\
th{white-space:normal;vertical-align:bottom;line-height:1.15}.o td,.o th{padding:.12em .3em}.o td:first-child{white-space:normal;min-width:17em}\
td:first-child,th:first-child,.l td,.l th{text-align:left}.l td{white-space:normal}\
td{print-color-adjust:exact;-webkit-print-color-adjust:exact}\
.r td:nth-child(2),.e td:nth-child(2){background:linear-gradient(90deg,#c3d4e3 calc(var(--w,0)*1%),transparent 0)}\
.r tr:nth-child(2) td:nth-child(2){background:linear-gradient(90deg,#6fa3d0 calc(var(--w,0)*1%),transparent 0)}\
.r td:nth-child(2){min-width:110px}.r td:nth-child(6){background:linear-gradient(90deg,#f3dcb8 calc(var(--w,0)*1%),transparent 0)}\
.r td:nth-child(4){min-width:130px;background:linear-gradient(90deg,transparent calc(var(--d)*1% - .6%),#222 0 calc(var(--d)*1%),transparent 0),\
linear-gradient(90deg,transparent calc(var(--a)*1%),#dfe8ef 0 calc(var(--b)*1%),#7a93a8 0 calc(var(--c)*1%),#dfe8ef 0 calc(var(--e)*1%),transparent 0)}\
.f{background:#fbe3c0}.s{background:#e7eff6}\
svg{width:560px;max-width:100%}svg text{font:11px system-ui,sans-serif}svg .t{font-weight:600;font-size:13px}\
svg .n{text-anchor:end}svg .a{text-anchor:middle;fill:#555}\
section{break-inside:avoid}.wide{overflow-x:auto}\
h2,h3{break-after:avoid}tr{break-inside:avoid}thead{display:table-header-group}\
@page{size:A4 landscape;margin:10mm}\
@media print{svg{width:400px}body{max-width:none;margin:0;padding:0;font-size:10px}.wide{overflow:visible}td,th{padding:.05em .3em}\
.r td:nth-child(2),.r td:nth-child(4){min-width:90px}}";

/// The page.
pub(crate) fn page(digest: &Digest) -> String {
    let mut page = String::new();
    let title = format!("Arena: {}", escape(&digest.plan));
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1>"
    );
    environment(&mut page, digest);
    overview(&mut page, digest);
    losses(&mut page, digest);
    for stage in &digest.stages {
        section(&mut page, digest, stage);
    }
    entrants(&mut page, digest);
    page.push_str("</html>\n");
    page
}

fn environment(page: &mut String, digest: &Digest) {
    page.push_str("<table class=l>");
    for (name, value) in &digest.environment {
        let _ = write!(page, "<tr><td>{}<td>{}", escape(name), escape(value));
    }
    page.push_str(
        "</table><p>Each figure is the median of interleaved rounds. Every read is verified. A bar ends at its value, \
         the longest is the greatest of its column. The band of latencies has a logarithmic scale: pale from the least to the most, \
         dark from 50 to 99 %, a stroke at 99.9 %. Costs are for each operation, work in the background included; the figures that are left out here (mean, root of the mean square, page faults and more) are in the JSON and the CSV. \
         Classes of durability: ",
    );
    for class in Class::ALL {
        let _ = write!(page, "<b>{}</b> {}. ", class.name(), escape(class.promise()));
    }
    page.push_str("An engine is entered only in the classes that its settings give.</p>");
}

/// Rates of all engines in all rows, as multiples of the base's.
fn overview(page: &mut String, digest: &Digest) {
    page.push_str(
        "<h2>Overview</h2><p>Throughput as a multiple of the first engine's, which is in operations a \
         second; <span class=f>faster</span>, <span class=s>slower</span>, <b>best</b>.</p>\
         <div class=wide><table class=o><thead><tr><th>row",
    );
    let present: Vec<&str> = digest.present().collect();
    for name in &present {
        let _ = write!(page, "<th>{}", escape(name));
    }
    page.push_str("<tbody>");
    for stage in &digest.stages {
        for row in &stage.rows {
            let of = |name: &str| format!("{} {}: {name}", stage.name, stage.class.name());
            line(page, row, &of(&row.name), &present, (Figure::Rate, Figure::Ratio));
            if row.has(Figure::BesideRate) {
                let name = of(&format!("{}, {}", row.name, row.work.beside()));
                line(page, row, &name, &present, (Figure::BesideRate, Figure::BesideRatio));
            }
        }
    }
    page.push_str("</table></div>");
}

fn line(
    page: &mut String,
    row: &RowDigest,
    name: &str,
    engines: &[&str],
    (rate, ratio): (Figure, Figure),
) {
    let _ = write!(page, "<tr><td>{}", escape(name));
    let base = row.base().map_or("", |cell| &cell.engine);
    let of = |engine: &str| row.cell(engine).and_then(|c| c.get(ratio));
    let best = row.most(ratio);
    for engine in engines {
        let Some(ratio) = of(engine) else {
            page.push_str("<td>-");
            continue;
        };
        let number = if *engine == base {
            page.push_str("<td>");
            short(row.cell(engine).and_then(|c| c.get(rate)).unwrap_or(f64::NAN))
        } else {
            page.push_str(if ratio > 1.0 { "<td class=f>" } else { "<td class=s>" });
            format!("{ratio:.2}")
        };
        let _ = match ratio == best {
            true => write!(page, "<b>{number}</b>"),
            false => write!(page, "{number}"),
        };
    }
}

/// The comparisons in which Zubilo is not first.
fn losses(page: &mut String, digest: &Digest) {
    let all = rank::places(digest);
    let lost: Vec<_> = all.iter().filter(|place| place.rank > 1).collect();
    let _ = write!(
        page,
        "<h2>Where Zubilo is not first</h2><p>It is first in {} of {} comparisons.</p>\
         <table><thead><tr><th>row<th>figure<th>Zubilo<th>rank<th>leader<th>its figure<th>behind<tbody>",
        all.len() - lost.len(),
        all.len()
    );
    for place in lost {
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{} of {}<td>{}<td>{}<td>{:.2}",
            escape(&place.row),
            place.figure,
            short(place.ours),
            place.rank,
            place.field,
            escape(&place.leader),
            short(place.theirs),
            place.behind
        );
    }
    page.push_str("</table>");
}

pub(super) fn shape_text(shape: &Shape) -> String {
    let values = match shape.values {
        Values::Fixed(len) => format!("{len}-byte values"),
        Values::Mixed => "values of 8 to 4,096 bytes".into(),
    };
    format!("{} records, {:?} keys, {values}", shape.records, shape.keys)
}

/// Engines that no row of a stage has, and why.
fn absences(page: &mut String, digest: &Digest, stage: &StageDigest) {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for entrant in &digest.entrants {
        if stage.rows.iter().any(|row| row.cell(&entrant.name).is_some()) {
            continue;
        }
        let standings = entrant.standings.iter();
        let absent = standings.filter(|s| s.class == stage.class && s.settings.is_none());
        let why = absent.map(|s| s.why.as_str()).next_back().or(entrant.missing.as_deref());
        let why = why.unwrap_or("not asked");
        match all.iter_mut().find(|(text, _)| *text == why) {
            Some((_, names)) => names.push(&entrant.name),
            None => all.push((why, vec![&entrant.name])),
        }
    }
    for (why, names) in all {
        let _ = write!(page, "<p>Not here: {}: {}</p>", escape(&names.join(", ")), escape(why));
    }
}

fn section(page: &mut String, digest: &Digest, stage: &StageDigest) {
    let _ = write!(
        page,
        "<h2>{}, {}</h2><p>{}</p>",
        escape(&stage.name),
        stage.class.name(),
        escape(&shape_text(&stage.shape))
    );
    absences(page, digest, stage);
    scaling(page, stage);
    for row in &stage.rows {
        row_section(page, row);
    }
    endings(page, &stage.endings);
}

/// A field with a bar that ends at its share of the greatest.
fn bar(page: &mut String, value: Option<f64>, most: f64) {
    let Some(value) = value else { return page.push_str("<td>-") };
    let share = if most > 0.0 { (100.0 * value / most).clamp(0.0, 100.0) } else { 0.0 };
    let _ = match share {
        share if share < 0.5 => write!(page, "<td>{}", short(value)),
        share => write!(page, "<td style=--w:{share:.0}>{}", short(value)),
    };
}

/// A heading, and what stands below it.
type Column = (&'static str, fn(&Ending) -> Option<f64>);

fn endings(page: &mut String, endings: &[Ending]) {
    let well = || endings.iter().filter(|end| end.trouble.is_none());
    let of: [Column; 3] = [
        ("B on disk a record", |e| Some(e.disk_bytes as f64 / e.records.max(1) as f64)),
        ("ms to open, clean", |e| Some(e.reopen_s * 1e3)),
        ("ms to open after a kill", |e| e.killed_open_s.map(|s| s * 1e3)),
    ];
    page.push_str("<section><h3>At the end</h3><table class=e><tr><th>engine");
    let columns: Vec<_> = of.iter().filter(|(_, of)| well().any(|e| of(e).is_some())).collect();
    for (name, _) in &columns {
        let _ = write!(page, "<th>{name}");
    }
    for end in well() {
        let _ = write!(page, "<tr><td>{}", escape(&end.engine));
        for (i, (_, of)) in columns.iter().enumerate() {
            let most = well().filter_map(*of).fold(0.0, f64::max);
            bar(page, of(end), if i == 0 { most } else { 0.0 });
        }
    }
    page.push_str("</table>");
    for end in endings {
        if let Some(trouble) = &end.trouble {
            let _ = write!(page, "<p>{}: {}</p>", escape(&end.engine), escape(trouble));
        }
    }
    page.push_str("</section>");
}

/// The space that stores took over their transactions, beyond what they had at first: some have taken
/// far more than they need by then.
fn growth(row: &RowDigest) -> String {
    let curve = |cell: &CellDigest| {
        // Each second look is enough for a curve, with the last.
        let looks = cell.growth.iter().rev().step_by(2).rev();
        let first = cell.growth.first().map_or(0, |g| g.1);
        let more = |bytes: u64| bytes.saturating_sub(first) as f64 / 1e6;
        let points = looks.map(|g| (g.0 as f64, more(g.1))).collect();
        Curve { name: cell.engine.clone(), points }
    };
    let all: Vec<Curve> =
        row.cells.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
    if all.is_empty() {
        String::new()
    } else {
        curves("MB more on disk than at first", "transactions", &all)
    }
}

/// Curves over the number of threads, where rows differ in nothing else.
fn scaling(page: &mut String, stage: &StageDigest) {
    let only = |readers: bool| {
        let mut rows: Vec<(f64, &RowDigest)> = stage
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
        if rows.len() < 2 {
            continue;
        }
        let names = rows[0].1.cells.iter().map(|c| &c.engine);
        let all: Vec<Curve> = names
            .map(|name| Curve {
                name: name.clone(),
                points: rows
                    .iter()
                    .filter_map(|(n, row)| Some((*n, row.cell(name)?.get(Figure::Rate)?)))
                    .collect(),
            })
            .filter(|curve| !curve.points.is_empty())
            .collect();
        page.push_str(&curves(title, "threads", &all));
    }
}

/// What an operation cost: a heading, the figure, whether it says anything beside readers only. The
/// figures that are left out here are in the JSON.
type Cost = (&'static str, fn(&CellDigest) -> Option<f64>, bool);
const COSTS: [Cost; 13] = [
    ("CPU us", CellDigest::cpu, true),
    ("of it system", |c| c.get(Figure::System), true),
    ("B written", |c| c.get(Figure::Written), false),
    ("per B put", |c| c.get(Figure::WriteAmplification), false),
    ("B fetched per B read", |c| c.get(Figure::ReadAmplification), true),
    ("device writes", |c| c.get(Figure::DeviceWrites), false),
    ("calls", |c| c.get(Figure::Calls), true),
    ("write calls", |c| c.get(Figure::Writes), false),
    ("flushes", |c| c.get(Figure::Flushes), false),
    ("memory MB", |c| c.get(Figure::Memory), true),
    ("disk MB", |c| c.get(Figure::Disk), false),
    ("at its peak", |c| c.get(Figure::DiskPeak), false),
    ("", |c| c.get(Figure::BesideRate), true),
];

/// The widths of a band of latencies over decades.
fn band(cell: &CellDigest, low: f64, high: f64) -> Option<String> {
    let at = |figure| {
        let ns: f64 = cell.get(figure)?;
        Some((100.0 * (ns.max(1.0).log10() - low) / (high - low).max(1.0)).clamp(0.0, 100.0))
    };
    let (a, b, c) = (at(Figure::Min)?, at(Figure::P50)?, at(Figure::P99)?);
    let (d, e) = (at(Figure::P999)?, at(Figure::Max)?);
    let (c, e) = (c.max(b + 1.0), e.max(b + 1.0));
    // Numbers without a unit: a page of a whole run has hundreds of bands.
    Some(format!("--a:{a:.0};--b:{b:.0};--c:{c:.0};--d:{d:.0};--e:{e:.0}"))
}

fn row_section(page: &mut String, row: &RowDigest) {
    let _ = write!(
        page,
        "<section><h3>{}</h3><div class=wide><table class=r><tr><th>engine<th>operations a second<th>x base\
         <th>latency<th>50, 99, 99.9, 99.99 %, most",
        escape(&row.name)
    );
    let shown = |cost: &&Cost| {
        let any = row.cells.iter().any(|cell| cost.1(cell).is_some_and(|value| value > 0.0));
        any && (cost.2 || row.work.writes())
    };
    let costs: Vec<&Cost> = COSTS.iter().filter(shown).collect();
    for (name, ..) in &costs {
        let _ = write!(page, "<th>{}", if name.is_empty() { row.work.beside() } else { name });
    }
    let all = || row.cells.iter().filter(|cell| cell.is_measured());
    let least = all().filter_map(|c| c.get(Figure::Min)).fold(f64::INFINITY, f64::min);
    let low = if least.is_finite() { least.max(1.0).log10().floor() } else { 0.0 };
    let high = row.most(Figure::Max).max(10.0).log10().ceil();
    let most = row.most(Figure::Rate);
    for cell in all() {
        let _ = write!(page, "<tr><td>{}", escape(&cell.engine));
        bar(page, cell.get(Figure::Rate), most);
        let ratio = cell.get(Figure::Ratio).map_or("-".into(), |r| format!("{r:.2}"));
        let _ = write!(page, "<td>{ratio}");
        let times = [Figure::P50, Figure::P99, Figure::P999, Figure::P9999, Figure::Max]
            .map(|f| cell.get(f).map_or("-".into(), time));
        let _ = match band(cell, low, high) {
            Some(band) => write!(page, "<td style={band}><td>{}", times.join(", ")),
            None => write!(page, "<td><td>"),
        };
        for (i, (_, of, _)) in costs.iter().enumerate() {
            // The first has a bar.
            let most = all().filter_map(*of).fold(0.0, f64::max);
            bar(page, of(cell), if i == 0 { most } else { 0.0 });
        }
    }
    let _ = write!(page, "</table></div>{}", growth(row));
    for (said, names) in remarks(row) {
        let _ = write!(page, "<p>{}: {}</p>", escape(&names.join(", ")), escape(said));
    }
    page.push_str("</section>");
}

/// What is said of engines, and of which ones: many have the same to say.
fn remarks(row: &RowDigest) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for cell in &row.cells {
        for said in cell.trouble.iter().chain(&cell.note) {
            match all.iter_mut().find(|(text, _)| text == said) {
                Some((_, names)) => names.push(&cell.engine),
                None => all.push((said, vec![&cell.engine])),
            }
        }
    }
    all
}

fn entrants(page: &mut String, digest: &Digest) {
    page.push_str("<h2>Engines and settings</h2><table class=l><tr><th>engine<th>version<th>class<th>settings<th>why");
    for entrant in &digest.entrants {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::two_engines;

    #[test]
    fn the_longest_bar_is_the_greatest() {
        let page = page(&Digest::of(&two_engines()));
        assert!(page.contains("<td>zubilo<td style=--w:50>1.00 k<td>1.00"), "{page}");
        assert!(page.contains("<td>lmdb<td style=--w:100>2.00 k<td>2.00"), "{page}");
        assert!(!page.contains("NaN") && !page.contains("inf%"));
    }

    #[test]
    fn the_same_remark_is_made_once() {
        let mut report = two_engines();
        for cell in &mut report.stages[0].rows[0].cells {
            cell.trouble = Some("a reason".into());
        }
        let page = page(&Digest::of(&report));
        assert!(page.contains("<p>zubilo, lmdb: a reason</p>"), "{page}");
    }

    #[test]
    fn names_cannot_break_the_markup() {
        let mut report = two_engines();
        report.stages[0].rows[0].name = "<b>&\"".into();
        report.stages[0].rows[0].cells[0].trouble = Some("<i>".into());
        let page = page(&Digest::of(&report));
        assert!(page.contains("&lt;b&gt;&amp;&quot;") && page.contains("&lt;i&gt;"));
        assert!(!page.contains("<i>"));
    }
}
