//! Curves as inline SVG. Text is real text, colours hold on paper.

use std::fmt::Write;

use super::short;

/// Width of a chart.
const WIDTH: f64 = 480.0;
const TOP: f64 = 26.0;

/// Distinct also in grey, by their order in the legend.
const COLOURS: [&str; 16] = [
    "#0b5fa5", "#d1495b", "#2e8b57", "#e3a008", "#6b4c9a", "#00868b", "#a0522d", "#7f7f7f",
    "#c71585", "#4b6043", "#1f3a5f", "#ff7f50", "#556b2f", "#8b0000", "#4682b4", "#000000",
];

/// Text escaped for markup.
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

/// A number on an axis.
fn tick(value: f64) -> String {
    if value.fract() == 0.0 && value < 1000.0 { format!("{value:.0}") } else { short(value) }
}

/// A named curve.
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Curves over linear axes from zero, with a legend at the right.
pub(super) fn curves(title: &str, across: &str, curves: &[Curve]) -> String {
    const HEIGHT: f64 = 230.0;
    let (left, bottom, right) = (52.0, HEIGHT - 32.0, WIDTH - 124.0);
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
            tick(most_y * share),
            x(most_x * share),
            bottom + 14.0,
            tick(most_x * share)
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
        let points: Vec<String> = points.map(|p| format!("{:.0},{:.0}", x(p.0), y(p.1))).collect();
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
        let curve = Curve { name: "<x>".into(), points: vec![(1.0, 1.0)] };
        let svg = curves("a<b & \"c\"", "x", &[curve]);
        assert!(svg.contains("a&lt;b &amp; &quot;c&quot;") && svg.contains("&lt;x&gt;"));
        assert!(!svg.contains("<x>"));
    }

    #[test]
    fn empty_charts_are_well_formed() {
        let svg = curves("t", "x", &[]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"));
        assert!(!svg.contains("inf"), "{svg}");
    }

    #[test]
    fn a_curve_goes_from_corner_to_corner() {
        let curve = Curve { name: "c".into(), points: vec![(0.0, 0.0), (8.0, 5.0)] };
        let svg = curves("t", "threads", &[curve]);
        assert!(svg.contains("points=\"52,198 356,26\""), "{svg}");
    }
}
