//! What came out: `record` keeps all of it, `digest` the figures; of these `table` prints, `html`
//! draws with `svg`, `paper` writes markdown and CSV, and `rank` lists where Zubilo is not first.

pub(crate) mod digest;
pub(crate) mod html;
pub(crate) mod paper;
pub(crate) mod rank;
pub(crate) mod record;
mod svg;
pub(crate) mod table;

/// A number in three or four digits.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    match () {
        () if !value.is_finite() => "-".into(),
        () if size >= 1e10 => format!("{:.0} G", value / 1e9),
        () if size >= 1e9 => format!("{:.2} G", value / 1e9),
        () if size >= 1e7 => format!("{:.1} M", value / 1e6),
        () if size >= 1e6 => format!("{:.2} M", value / 1e6),
        () if size >= 1e4 => format!("{:.1} k", value / 1e3),
        () if size >= 1e3 => format!("{:.2} k", value / 1e3),
        () if size >= 100.0 => format!("{value:.0}"),
        () if size >= 10.0 => format!("{value:.1}"),
        () if value == 0.0 => "0".into(),
        () => format!("{value:.2}"),
    }
}

/// A time given in nanoseconds.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{:.2} s", ns / 1e9),
        ns if ns >= 1e7 => format!("{:.0} ms", ns / 1e6),
        ns if ns >= 1e6 => format!("{:.1} ms", ns / 1e6),
        ns if ns >= 1e4 => format!("{:.0} us", ns / 1e3),
        ns if ns >= 1e3 => format!("{:.1} us", ns / 1e3),
        ns => format!("{ns:.0} ns"),
    }
}
