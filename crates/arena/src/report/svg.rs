//! Charts as inline SVG: bars, bands of latencies, curves. Text is real text, colours hold on paper.

use std::fmt::Write;

use super::record::Latencies;
use super::{short, time};

/// Width of a chart, and of the names at its left.
const WIDTH: f64 = 430.0;
const LEFT: f64 = 92.0;
const LINE: f64 = 20.0;
const TOP: f64 = 26.0;

/// Distinct also in grey, by their order in the legend.
const COLOURS: [&str; 16] = [
    "#0b5fa5", "#d1495b", "#2e8b57", "#e3a008", "#6b4c9a", "#00868b", "#a0522d", "#7f7f7f",
    "#c71585", "#4b6043", "#1f3a5f", "#ff7f50", "#556b2f", "#8b0000", "#4682b4", "#000000",
];

/// One bar: name, value, what else is said about it.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: f64,
    /// Quartiles, where there are any.
    pub(super) spread: Option<(f64, f64)>,
    pub(super) note: String,
}

/// Text that may stand in markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn open(title: &str, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{title}\">\
         <text class=\"t\" x=\"0\" y=\"14\">{title}</text>"
    )
}

fn name(svg: &mut String, text: &str, y: f64, base: bool) {
    let class = if base { "n b" } else { "n" };
    let _ = write!(
        svg,
        "<text class=\"{class}\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
        LEFT - 6.0,
        y + 13.0,
        escape(text)
    );
}

/// Bars from zero; the first is the base.
pub(super) fn bars(title: &str, bars: &[Bar]) -> String {
    let mut svg = open(title, TOP + LINE * bars.len() as f64 + 4.0);
    let most = bars.iter().map(|b| b.spread.map_or(b.value, |s| s.1.max(b.value)));
    let most = most.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let room = WIDTH - LEFT - 118.0;
    for (i, bar) in bars.iter().enumerate() {
        let y = TOP + LINE * i as f64;
        name(&mut svg, &bar.name, y, i == 0);
        let width = (bar.value / most * room).max(0.5);
        let colour = if i == 0 { COLOURS[0] } else { "#9db2c4" };
        let _ = write!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"14\" fill=\"{colour}\"/>",
            y + 2.0
        );
        if let Some((low, high)) = bar.spread {
            let (low, high) = (LEFT + low / most * room, LEFT + high / most * room);
            let _ = write!(
                svg,
                "<path d=\"M{low:.1} {0:.1}H{high:.1}\" stroke=\"#222\" stroke-width=\"2\"/>",
                y + 9.0
            );
        }
        let _ = write!(
            svg,
            "<text class=\"v\" x=\"{:.1}\" y=\"{:.1}\">{} {}</text>",
            LEFT + width + 5.0,
            y + 13.0,
            short(bar.value),
            escape(&bar.note)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Latencies on a logarithmic scale: least to most thin, half to 99 % thick, 99.9 % a stroke.
pub(super) fn bands(title: &str, bands: &[(String, Latencies)]) -> String {
    let height = TOP + LINE * bands.len() as f64 + 20.0;
    let mut svg = open(title, height);
    let least = bands.iter().map(|b| b.1.min).fold(f64::INFINITY, f64::min).max(1.0);
    let most = bands.iter().map(|b| b.1.max).fold(10.0, f64::max);
    let (low, high) = (least.log10().floor(), most.log10().ceil());
    let room = WIDTH - LEFT - 12.0;
    let at = |ns: f64| LEFT + (ns.max(1.0).log10() - low) / (high - low).max(1.0) * room;
    let bottom = TOP + LINE * bands.len() as f64;
    for decade in low as i32..=high as i32 {
        let x = at(10f64.powi(decade));
        let _ = write!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{bottom:.1}\" stroke=\"#ddd\"/>\
             <text class=\"a\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 13.0,
            time(10f64.powi(decade))
        );
    }
    for (i, (label, l)) in bands.iter().enumerate() {
        let y = TOP + LINE * i as f64;
        name(&mut svg, label, y, i == 0);
        let colour = if i == 0 { COLOURS[0] } else { "#7a93a8" };
        let mid = y + 9.0;
        let _ = write!(
            svg,
            "<path d=\"M{:.1} {mid:.1}H{:.1}\" stroke=\"{colour}\"/>\
             <rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"10\" fill=\"{colour}\"/>\
             <path d=\"M{:.1} {:.1}v12\" stroke=\"#222\" stroke-width=\"2\"/>",
            at(l.min),
            at(l.max),
            at(l.p50),
            y + 4.0,
            (at(l.p99) - at(l.p50)).max(1.5),
            at(l.p999),
            y + 3.0
        );
    }
    svg.push_str("</svg>");
    svg
}

/// A named curve.
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Curves over linear axes from zero, with a legend at the right.
pub(super) fn curves(title: &str, across: &str, curves: &[Curve]) -> String {
    const HEIGHT: f64 = 230.0;
    let (left, bottom, right) = (52.0, HEIGHT - 32.0, WIDTH - 112.0);
    let mut svg = open(title, HEIGHT.max(TOP + 15.0 * curves.len() as f64));
    let all = || curves.iter().flat_map(|c| &c.points);
    let most_x = all().map(|p| p.0).fold(f64::MIN_POSITIVE, f64::max);
    let most_y = all().map(|p| p.1).filter(|y| y.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
    let x = |v: f64| left + v / most_x * (right - left);
    let y = |v: f64| bottom - v / most_y * (bottom - TOP);
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let _ = write!(
            svg,
            "<path d=\"M{left} {0:.1}H{right}\" stroke=\"#e4e4e4\"/>\
             <text class=\"n\" x=\"{1:.1}\" y=\"{2:.1}\">{3}</text>\
             <text class=\"a\" x=\"{4:.1}\" y=\"{5:.1}\">{6}</text>",
            y(most_y * share),
            left - 4.0,
            y(most_y * share) + 4.0,
            short(most_y * share),
            x(most_x * share),
            bottom + 14.0,
            short(most_x * share)
        );
    }
    let _ = write!(
        svg,
        "<text class=\"a\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
        (left + right) / 2.0,
        bottom + 27.0,
        escape(across)
    );
    for (i, curve) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let points = curve.points.iter().filter(|p| p.1.is_finite());
        let points: Vec<String> = points.map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1))).collect();
        let (width, dash) = (if i == 0 { 3 } else { 2 }, ["", "5 2", "2 2"][i / 6 % 3]);
        let legend = TOP + 15.0 * i as f64 + 4.0;
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dash}\"/>\
             <path d=\"M{:.0} {legend:.0}h16\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dash}\"/><text class=\"v\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            points.join(" "),
            right + 8.0,
            right + 28.0,
            legend + 4.0,
            escape(&curve.name)
        );
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_markup() {
        let bar =
            |name: &str, value| Bar { name: name.into(), value, spread: None, note: "".into() };
        let svg = bars("a<b & \"c\"", &[bar("<x>", 1.0), bar("y", 2.0)]);
        assert!(svg.contains("a&lt;b &amp; &quot;c&quot;") && svg.contains("&lt;x&gt;"));
        assert!(!svg.contains("<x>"));
    }

    #[test]
    fn the_longest_bar_fills_its_room() {
        let bar = |value| Bar { name: "n".into(), value, spread: None, note: String::new() };
        let svg = bars("t", &[bar(1.0), bar(4.0)]);
        assert!(svg.contains("width=\"55.0\"") && svg.contains("width=\"220.0\""), "{svg}");
    }

    #[test]
    fn empty_charts_are_well_formed() {
        for svg in [bars("t", &[]), bands("t", &[]), curves("t", "x", &[])] {
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"));
            assert!(!svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn a_curve_goes_from_corner_to_corner() {
        let curve = Curve { name: "c".into(), points: vec![(0.0, 0.0), (8.0, 5.0)] };
        let svg = curves("t", "threads", &[curve]);
        assert!(svg.contains("points=\"52.0,198.0 318.0,26.0\""), "{svg}");
    }
}
