//! What the demonstration shows: plain lines and tables for people, one JSON object for programs.

use std::io::{self, Write};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value};

/// Collects the summary, and shows the steps as they are done unless only JSON is wanted.
pub(crate) struct Report {
    people: bool,
    summary: Map<String, Value>,
}

impl Report {
    pub(crate) fn new(json: bool) -> Report {
        Report { people: !json, summary: Map::new() }
    }

    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        if self.people { writeln!(io::stdout().lock(), "{}", text.as_ref()) } else { Ok(()) }
    }

    pub(crate) fn heading(&self, text: &str) -> io::Result<()> {
        self.line(format!("\n{}", console::style(text).bold()))
    }

    /// Columns are aligned to the right, but for the first one and those after `right`.
    pub(crate) fn table<const N: usize>(
        &self,
        head: [&str; N],
        rows: &[[String; N]],
        right: usize,
    ) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(head).add_rows(rows);
        for (at, column) in table.column_iter_mut().enumerate() {
            let to_right = (1..=right).contains(&at);
            column.set_cell_alignment(if to_right {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            });
        }
        table.lines().try_for_each(|line| self.line(format!("  {}", line.trim_end())))
    }

    pub(crate) fn record(&mut self, step: &str, value: Value) {
        self.summary.insert(step.to_owned(), value);
    }

    /// The summary as JSON, where it is wanted.
    pub(crate) fn finish(mut self, failed: Option<&anyhow::Error>) -> io::Result<()> {
        if self.people {
            return Ok(());
        }
        self.record("ok", failed.is_none().into());
        if let Some(error) = failed {
            self.record("error", format!("{error:#}").into());
        }
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &Value::Object(self.summary))?;
        writeln!(out)
    }
}

/// `154,248`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `12.3 MiB`
pub(crate) fn bytes(number: u64) -> String {
    match number {
        0..1024 => format!("{number} B"),
        1024..1_048_576 => format!("{:.1} KiB", number as f64 / 1024.0),
        _ => format!("{:.1} MiB", number as f64 / 1_048_576.0),
    }
}

/// `1.23 ms`
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        1.0.. => (seconds, "s"),
        1e-3.. => (seconds * 1e3, "ms"),
        1e-6.. => (seconds * 1e6, "µs"),
        _ => (seconds * 1e9, "ns"),
    };
    let places = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.places$} {unit}")
}

/// Things a second.
pub(crate) fn rate(number: u64, time: Duration) -> f64 {
    number as f64 / time.as_secs_f64().max(1e-9)
}

/// A rate for people.
pub(crate) fn per_second(number: u64, time: Duration) -> String {
    format!("{} a second", count(rate(number, time).round() as u64))
}

/// Milliseconds, for the summary.
pub(crate) fn millis(time: Duration) -> Value {
    Value::from((time.as_secs_f64() * 1e6).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1000, 2048, 5 << 20].map(bytes), ["1000 B", "2.0 KiB", "5.0 MiB"]);
        let times = [150, 15_000, 1_500_000, 150_000_000, 12_300_000_000];
        let shown = times.map(|nanos| time(Duration::from_nanos(nanos)));
        assert_eq!(shown, ["150 ns", "15.0 µs", "1.50 ms", "150 ms", "12.3 s"]);
    }
}
