//! The picture as a page for a browser. It needs nothing but itself: cells are drawn as SVG, and show more
//! under the pointer without a script.

use std::fmt::Write;

use crate::encoding::escape;
use crate::output::{count, size};

use super::By;
use super::cells::{Cell, Kind, Map};
use super::screen::{KINDS, TABLES, colour, youth};

/// Side of a cell and the gap after it.
const SIDE: usize = 11;
const STEP: usize = 12;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem;\
background:#16181d;color:#e6e6e6}h1{font-size:1.3rem}svg{width:100%;height:auto}\
rect:hover{stroke:#fff;stroke-width:1.5}table{border-collapse:collapse;margin:1rem 0}\
td,th{text-align:right;padding:.15rem .9rem .15rem 0}td:first-child,th:first-child{text-align:left}\
i{display:inline-block;width:.9em;height:.9em;margin-right:.5em;vertical-align:-.1em}\
summary{cursor:pointer}code{font-size:.9em}p{max-width:50rem}";

/// Text that stands for itself in HTML.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

fn name_of(map: &Map, table: usize) -> String {
    match map.table(table) {
        [] => "table of tables".to_string(),
        name => plain(&escape(name)),
    }
}

/// What a cell shows under the pointer.
fn tooltip(map: &Map, cell: &Cell) -> String {
    let last = cell.first + cell.pages.saturating_sub(1);
    let mut text = match cell.pages {
        1 => format!("page {}", cell.first),
        _ => format!("pages {} to {last}", cell.first),
    };
    let at = cell.first * map.page_size;
    let _ = write!(text, ", at {}", size(at));
    for (kind, pages) in Kind::ALL.iter().zip(cell.kinds).filter(|(_, pages)| *pages > 0) {
        let _ = write!(text, "\n{}: {}", kind.name(), count(pages));
    }
    for (table, pages) in cell.tables.iter().take(6) {
        let _ = write!(text, "\n{}: {}", name_of(map, *table), count(*pages));
    }
    if cell.tables.len() > 6 {
        let _ = write!(text, "\nand {} more tables", cell.tables.len() - 6);
    }
    for (txn, pages) in cell.held.iter().take(6) {
        let _ = write!(text, "\nheld back for snapshot {txn}: {}", count(*pages));
    }
    if let Some(fill) = cell.fill(map.page_size) {
        let _ = write!(text, "\n{:.0} % full", 100.0 * fill);
    }
    let _ = write!(text, "\n{:.0} % in memory", 100.0 * cell.warmth());
    if cell.newest > 0 {
        let _ = write!(text, "\nnewest page of commit {}", cell.newest);
    }
    text
}

fn swatch((r, g, b): (u8, u8, u8)) -> String {
    format!("<i style=\"background:rgb({r},{g},{b})\"></i>")
}

/// The page.
pub(super) fn page(map: &Map, cells: &[Cell], width: usize, by: By, path: &str) -> String {
    let mut out = String::new();
    let title = plain(&escape(path.as_bytes()));
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n<p>{} in {} pages of {}, commit {}. \
         Each cell is {}, coloured {}. Point at a cell to see what is in it.</p>\n",
        size(map.pages() * map.page_size),
        count(map.pages()),
        size(map.page_size),
        map.newest,
        match cells.first().map_or(0, |cell| cell.pages) {
            1 => "1 page".to_string(),
            n => format!("{} pages", count(n)),
        },
        match by {
            By::Kind => "by what most of its used pages are",
            By::Table => "by the table that has most of it",
            By::Fill => "by how full its used pages are, dark to bright",
            By::Age => "by its newest page, dark to bright",
            By::Residency => "by how much of it is in memory, dark to bright",
        },
    );
    draw(&mut out, map, cells, width, by);
    totals(&mut out, map);
    tables(&mut out, map, by);
    list(&mut out, map, cells);
    out.push_str("</html>\n");
    out
}

fn draw(out: &mut String, map: &Map, cells: &[Cell], width: usize, by: By) {
    let lines = cells.len().div_ceil(width);
    let (wide, high) = (width * STEP, lines * STEP);
    let _ = writeln!(out, "<svg viewBox=\"0 0 {wide} {high}\" role=\"img\" aria-label=\"map\">");
    for (i, cell) in cells.iter().enumerate() {
        let (x, y) = (i % width * STEP, i / width * STEP);
        let (r, g, b) = colour(map, cell, by);
        // What is used in part only is paler.
        let opacity = match cell.kind().is_used() {
            true => 0.35 + 0.65 * cell.share(),
            false => 1.0,
        };
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"rgb({r},{g},{b})\" \
             fill-opacity=\"{opacity:.2}\"><title>{}</title></rect>",
            tooltip(map, cell)
        );
    }
    out.push_str("</svg>\n");
}

fn totals(out: &mut String, map: &Map) {
    out.push_str("<table><tr><th>pages<th>number<th>size<th>share</tr>\n");
    for ((kind, colour), pages) in Kind::ALL.iter().zip(KINDS).zip(map.totals()) {
        if pages > 0 {
            let _ = writeln!(
                out,
                "<tr><td>{}{}<td>{}<td>{}<td>{:.1} %</tr>",
                swatch(colour),
                kind.name(),
                count(pages),
                size(pages * map.page_size),
                100.0 * pages as f64 / map.pages().max(1) as f64
            );
        }
    }
    out.push_str("</table>\n");
}

fn tables(out: &mut String, map: &Map, by: By) {
    let whole = map.cells(1, 1);
    let Some(whole) = whole.first() else { return };
    out.push_str("<table><tr><th>table<th>pages<th>size</tr>\n");
    for (table, pages) in &whole.tables {
        let colour = TABLES.get(table % TABLES.len()).filter(|_| by == By::Table);
        let _ = writeln!(
            out,
            "<tr><td>{}{}<td>{}<td>{}</tr>",
            colour.map(|colour| swatch(*colour)).unwrap_or_default(),
            name_of(map, *table),
            count(*pages),
            size(pages * map.page_size)
        );
    }
    out.push_str("</table>\n");
}

/// The cells as text, for who does not see the picture.
fn list(out: &mut String, map: &Map, cells: &[Cell]) {
    out.push_str("<details><summary>The cells as text</summary>\n<table>");
    out.push_str(
        "<tr><th>first page<th>pages<th>mostly<th>table<th>used<th>full<th>age, 0 to 1</tr>\n",
    );
    for cell in cells {
        let table = cell.table().map(|table| name_of(map, table)).unwrap_or_default();
        let fill = cell.fill(map.page_size).map(|fill| format!("{:.0} %", 100.0 * fill));
        let age = (cell.newest > 0).then(|| format!("{:.2}", 1.0 - youth(cell, map.newest)));
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}<td>{table}<td>{:.0} %<td>{}<td>{}</tr>",
            cell.first,
            cell.pages,
            cell.kind().name(),
            100.0 * cell.share(),
            fill.unwrap_or_default(),
            age.unwrap_or_default(),
        );
    }
    out.push_str("</table></details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_no_markup() {
        assert_eq!(plain("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
