//! The picture in a terminal: a buffer of coloured characters, and that as text.

use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use crate::encoding::escape;
use crate::output::{count, size};

use super::By;
use super::cells::{Cell, Kind, Map};

/// Colours of kinds, in the order of [`Kind::ALL`]; chosen so that the colour-blind can distinguish them.
pub(super) const KINDS: [(u8, u8, u8); Kind::COUNT] = [
    (240, 228, 66),
    (213, 94, 0),
    (0, 114, 178),
    (86, 180, 233),
    (204, 121, 167),
    (0, 158, 115),
    (230, 159, 0),
    (90, 90, 90),
    (40, 40, 40),
    (255, 0, 0),
];

/// Colours of tables, by turns.
pub(super) const TABLES: [(u8, u8, u8); 8] = [
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (213, 94, 0),
    (240, 228, 66),
    (160, 160, 160),
];

/// Tables that the legend names.
const NAMED: usize = 8;

/// From a dark to a bright colour.
fn scale(share: f64) -> (u8, u8, u8) {
    let share = share.clamp(0.0, 1.0);
    let between = |from: f64, to: f64| (from + (to - from) * share) as u8;
    (between(40.0, 253.0), between(30.0, 231.0), between(80.0, 37.0))
}

/// How old the newest page of a cell is: 1 for the newest commit, by powers of two.
pub(super) fn youth(cell: &Cell, newest: u64) -> f64 {
    let age = newest.saturating_sub(cell.newest) as f64;
    let oldest = (newest as f64 + 1.0).log2().max(1.0);
    1.0 - (age + 1.0).log2() / oldest
}

/// A cell's colour; none where nothing is to be seen.
pub(super) fn colour(map: &Map, cell: &Cell, by: By) -> (u8, u8, u8) {
    let kind = cell.kind();
    let of_kind = Kind::ALL.iter().position(|k| *k == kind).and_then(|at| KINDS.get(at));
    let of_kind = of_kind.copied().unwrap_or((255, 0, 0));
    if !kind.is_used() {
        return of_kind;
    }
    match by {
        By::Kind => of_kind,
        By::Table => match cell.table() {
            Some(table) => TABLES.get(table % TABLES.len()).copied().unwrap_or(of_kind),
            None => of_kind,
        },
        By::Fill => scale(cell.fill(map.page_size).unwrap_or(0.0)),
        By::Age => scale(youth(cell, map.newest)),
        By::Residency => scale(cell.warmth()),
    }
}

/// How much of a cell is used.
fn symbol(cell: &Cell) -> char {
    let kind = cell.kind();
    match kind.is_used() {
        false if kind == Kind::Unknown => '?',
        false => '░',
        true => match cell.share() {
            share if share > 0.95 => '█',
            share if share > 0.5 => '▓',
            _ => '▒',
        },
    }
}

/// A digit for a part of a whole.
fn digit(share: f64) -> char {
    char::from(b'0' + (share.clamp(0.0, 0.99) * 10.0) as u8)
}

fn letter_of_table(table: usize) -> char {
    char::from(b'a' + (table % 26) as u8)
}

/// The letter of a cell where there are no colours.
fn letter(map: &Map, cell: &Cell, by: By) -> char {
    let kind = cell.kind();
    match (kind.is_used(), by) {
        (true, By::Fill) => digit(cell.fill(map.page_size).unwrap_or(0.0)),
        (true, By::Age) => digit(youth(cell, map.newest)),
        (true, By::Residency) => digit(cell.warmth()),
        (true, By::Table) => cell.table().map_or(kind.letter(), letter_of_table),
        _ => kind.letter(),
    }
}

/// The whole picture, with a head and a legend.
pub(super) fn render(map: &Map, cells: &[Cell], width: usize, by: By, path: &str) -> Buffer {
    let lines = cells.len().div_ceil(width);
    let legend = legend(map, by);
    let legend_lines = wrap(&legend, width.max(60));
    let height = 2 + lines + 1 + legend_lines.len();
    let each = cells.first().map_or(0, |cell| cell.pages);
    let plural = if each == 1 { "" } else { "s" };
    let head = format!(
        "{path}: {} in {} pages of {}; a cell is {} page{plural}",
        size(map.pages() * map.page_size),
        count(map.pages()),
        size(map.page_size),
        count(each),
    );
    let wide = width.max(64).max(head.chars().count()) as u16;
    let mut buffer = Buffer::empty(Rect::new(0, 0, wide, height as u16));
    buffer.set_stringn(0, 0, head, usize::from(wide), Style::new());
    for (i, cell) in cells.iter().enumerate() {
        let (x, y) = ((i % width) as u16, (2 + i / width) as u16);
        let (r, g, b) = colour(map, cell, by);
        let at = &mut buffer[(x, y)];
        at.set_char(symbol(cell)).set_fg(Color::Rgb(r, g, b));
        // For who has no colours: found again by `text`.
        at.set_bg(Color::Indexed(letter(map, cell, by) as u8));
    }
    for (i, line) in legend_lines.iter().enumerate() {
        let y = (2 + lines + 1 + i) as u16;
        let mut x = 0;
        for Entry { letter, colour: (r, g, b), text } in line {
            let at = &mut buffer[(x, y)];
            at.set_char('█').set_fg(Color::Rgb(*r, *g, *b)).set_bg(Color::Indexed(*letter as u8));
            (x, _) = buffer.set_stringn(x + 2, y, text, usize::from(wide), Style::new());
            x += 3;
        }
    }
    buffer
}

/// A colour and what it means.
#[derive(Clone)]
struct Entry {
    letter: char,
    colour: (u8, u8, u8),
    text: String,
}

impl Entry {
    fn width(&self) -> usize {
        2 + self.text.chars().count() + 3
    }
}

fn legend(map: &Map, by: By) -> Vec<Entry> {
    let totals = map.totals();
    let kinds = Kind::ALL.iter().zip(KINDS).zip(totals).filter(|(_, pages)| *pages > 0);
    let kinds = kinds.map(|((kind, colour), pages)| {
        let text = format!("{} {}", kind.name(), size(pages * map.page_size));
        (*kind, Entry { letter: kind.letter(), colour, text })
    });
    let share = |share: f64, text: &str| Entry {
        letter: digit(share),
        colour: scale(share),
        text: text.into(),
    };
    let mut entries: Vec<Entry> = match by {
        By::Kind => return kinds.map(|(_, entry)| entry).collect(),
        By::Fill => vec![share(0.0, "empty"), share(0.5, "half full"), share(1.0, "full")],
        By::Age => vec![share(0.0, "oldest"), share(0.5, "older"), share(1.0, "newest commit")],
        By::Residency => {
            vec![share(0.0, "on disk"), share(0.5, "half in memory"), share(1.0, "in memory")]
        }
        By::Table => {
            let name = |name: &[u8]| match name {
                [] => "table of tables".to_string(),
                name => escape(name).into_owned(),
            };
            let named = map.tables().iter().zip(TABLES.iter().cycle()).take(NAMED).enumerate();
            let mut entries = Vec::new();
            for (at, (n, colour)) in named {
                let letter = letter_of_table(at);
                entries.push(Entry { letter, colour: *colour, text: name(n) });
            }
            entries
        }
    };
    entries.extend(kinds.filter(|(kind, _)| !kind.is_used()).map(|(_, entry)| entry));
    entries
}

/// Entries by lines that are not too long.
fn wrap(entries: &[Entry], width: usize) -> Vec<Vec<Entry>> {
    let mut lines: Vec<Vec<Entry>> = vec![Vec::new()];
    let mut used = 0;
    for entry in entries {
        if used > 0 && used + entry.width() > width + 3 {
            lines.push(Vec::new());
            used = 0;
        }
        used += entry.width();
        if let Some(line) = lines.last_mut() {
            line.push(entry.clone());
        }
    }
    lines
}

/// A picture as lines of text, with colours or with letters in their place.
pub(super) fn text(buffer: &Buffer, colours: bool) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut last = None;
        for x in 0..buffer.area.width {
            let at = &buffer[(x, y)];
            let rgb = match at.fg {
                Color::Rgb(r, g, b) => Some((r, g, b)),
                _ => None,
            };
            if colours && rgb != last {
                // Writing to a string cannot fail.
                let _ = match rgb {
                    Some((r, g, b)) => write!(line, "\x1b[38;2;{r};{g};{b}m"),
                    None => write!(line, "\x1b[0m"),
                };
                last = rgb;
            }
            match at.bg {
                Color::Indexed(letter) if !colours => line.push(char::from(letter)),
                _ => line.push_str(at.symbol()),
            }
        }
        if last.is_some() {
            line.push_str("\x1b[0m");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::cells::tests::map;
    use super::*;

    fn drawn(by: By, colours: bool) -> String {
        let map = map();
        let cells = map.cells(12, 3);
        text(&render(&map, &cells, 12, by, "shop.zubilo"), colours)
    }

    #[test]
    fn pictures_in_letters() {
        insta::assert_snapshot!("by kind", drawn(By::Kind, false));
        insta::assert_snapshot!("by table", drawn(By::Table, false));
        insta::assert_snapshot!("by fill", drawn(By::Fill, false));
        insta::assert_snapshot!("by age", drawn(By::Age, false));
        insta::assert_snapshot!("by residency", drawn(By::Residency, false));
    }

    #[test]
    fn pictures_in_colours() {
        insta::assert_snapshot!("in colours", drawn(By::Kind, true).replace('\u{1b}', "ESC"));
    }
}
