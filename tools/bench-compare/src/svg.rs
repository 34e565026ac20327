//! Plots, drawn by hand: a report must open without a script and without a network.

use std::fmt::Write as _;

use super::row::digits;

const WIDTH: f64 = 640.0;
const LABELS: f64 = 190.0;
const VALUES: f64 = 90.0;
const LINE: f64 = 22.0;

/// The places of values on an axis.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    /// From zero to the highest value.
    pub(super) fn linear(high: f64, from: f64, to: f64) -> Self {
        Self { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, from, to, logarithmic: false }
    }

    /// Whole powers of ten around all values.
    pub(super) fn logarithmic(values: &[f64], from: f64, to: f64) -> Self {
        let above = || values.iter().copied().filter(|value| *value > 0.0);
        let low = above().fold(f64::INFINITY, f64::min).log10().floor();
        let high = above().fold(f64::NEG_INFINITY, f64::max).log10().ceil();
        let (low, high) =
            if low.is_finite() && high.is_finite() { (low, high.max(low + 1.0)) } else { (0.0, 1.0) };
        Self { low, high, from, to, logarithmic: true }
    }

    /// Values outside of the scale go to its ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    /// The values that have a grid line.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            return (0..=4).map(|n| self.high * f64::from(n) / 4.0).collect();
        }
        let mut ticks = Vec::new();
        let mut power = self.low;
        while power <= self.high {
            ticks.push(10_f64.powf(power));
            power += 1.0;
        }
        ticks
    }
}

/// A bar with a name, from nothing or from a first value.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    pub(super) class: &'static str,
}

/// A plot of bars on one linear axis.
pub(super) fn bars(bars: &[Bar]) -> String {
    let high = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let scale = Scale::linear(high, LABELS, WIDTH - VALUES);
    let mut out = String::new();
    for (bar, top) in bars.iter().zip(tops()) {
        let (end, middle) = (scale.at(bar.value), top + 15.0);
        let _ = write!(
            out,
            "<text x=\"{:.0}\" y=\"{middle:.0}\" class=\"label\">{}</text>\
             <rect x=\"{LABELS}\" y=\"{:.0}\" width=\"{:.1}\" height=\"14\" class=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{middle:.0}\">{}</text>",
            LABELS - 8.0,
            escape(&bar.label),
            top + 4.0,
            (end - LABELS).max(1.0),
            bar.class,
            end + 6.0,
            digits(bar.value),
        );
    }
    frame(LINE * bars.len() as f64, &out)
}

/// From the median to the 99th percentile.
pub(super) struct Span {
    pub(super) label: String,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) class: &'static str,
}

/// A plot of spans on one logarithmic axis.
pub(super) fn spans(spans: &[Span]) -> String {
    let values: Vec<f64> = spans.iter().flat_map(|span| [span.p50, span.p99]).collect();
    let scale = Scale::logarithmic(&values, LABELS, WIDTH - VALUES);
    let bottom = LINE * spans.len() as f64;
    let mut out = String::new();
    for tick in scale.ticks() {
        let x = scale.at(tick);
        let _ = write!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{bottom:.0}\" class=\"grid\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" class=\"tick\">{tick} ms</text>",
            bottom + 14.0
        );
    }
    for (span, top) in spans.iter().zip(tops()) {
        let (from, to, middle) = (scale.at(span.p50), scale.at(span.p99), top + 11.0);
        let _ = write!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" class=\"label\">{}</text>\
             <rect x=\"{from:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"6\" class=\"{}\"/>\
             <circle cx=\"{from:.1}\" cy=\"{middle:.0}\" r=\"5\" class=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.0}\">{} / {}</text>",
            LABELS - 8.0,
            top + 15.0,
            escape(&span.label),
            top + 8.0,
            (to - from).max(1.0),
            span.class,
            span.class,
            to + 8.0,
            top + 15.0,
            digits(span.p50),
            digits(span.p99),
        );
    }
    frame(bottom + 20.0, &out)
}

/// A curve with a name.
pub(super) struct Curve {
    pub(super) label: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) class: &'static str,
}

/// Curves over one linear axis, costs on a logarithmic one.
pub(super) fn curves(curves: &[Curve]) -> String {
    const HEIGHT: f64 = 260.0;
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (left, right) = (60.0, WIDTH - LABELS + 20.0);
    let across = Scale::linear(points().map(|(x, _)| *x).fold(0.0, f64::max), left, right);
    let costs: Vec<f64> = points().map(|(_, y)| *y).collect();
    let up = Scale::logarithmic(&costs, HEIGHT, 10.0);
    let mut out = String::new();
    for tick in up.ticks() {
        let y = up.at(tick);
        let _ = write!(
            out,
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" class=\"label\">{tick} ms</text>",
            left - 6.0,
            y + 4.0
        );
    }
    for tick in across.ticks() {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.0}\" class=\"tick\">{tick:.0}</text>",
            across.at(tick),
            HEIGHT + 16.0
        );
    }
    // Names stand at the ends of their curves, and move down where two of them would meet.
    let mut named: Vec<(f64, &Curve)> =
        curves.iter().filter_map(|curve| Some((up.at(curve.points.last()?.1), curve))).collect();
    named.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut free = 0.0_f64;
    for (end, curve) in named {
        let path: Vec<String> =
            curve.points.iter().map(|(x, y)| format!("{:.1},{:.1}", across.at(*x), up.at(*y))).collect();
        let y = end.max(free);
        free = y + 15.0;
        let _ = write!(
            out,
            "<polyline points=\"{}\" class=\"curve {}\"/><text x=\"{:.0}\" y=\"{:.1}\">{}</text>",
            path.join(" "),
            curve.class,
            right + 8.0,
            y + 4.0,
            escape(&curve.label)
        );
    }
    frame(HEIGHT + 24.0, &out)
}

fn tops() -> impl Iterator<Item = f64> {
    (0..).map(|n| LINE * f64::from(n))
}

fn frame(height: f64, inside: &str) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\">{inside}</svg>\n")
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_scale_starts_at_zero() {
        let scale = Scale::linear(200.0, 100.0, 300.0);
        for (value, place) in [(0.0, 100.0), (50.0, 150.0), (200.0, 300.0), (900.0, 300.0), (-1.0, 100.0)] {
            assert_eq!(scale.at(value), place, "{value}");
        }
        assert_eq!(scale.ticks(), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(Scale::linear(0.0, 0.0, 10.0).at(0.0), 0.0);
    }

    #[test]
    fn a_logarithmic_scale_covers_whole_powers_of_ten() {
        let scale = Scale::logarithmic(&[0.3, 45.0], 0.0, 300.0);
        for (value, place) in [(0.1, 0.0), (1.0, 100.0), (10.0, 200.0), (100.0, 300.0), (0.0, 0.0)] {
            assert!((scale.at(value) - place).abs() < 1e-9, "{value}");
        }
        assert_eq!(scale.ticks().len(), 4);
        // A single power of ten, and an empty range, still give a scale.
        assert_eq!(Scale::logarithmic(&[10.0], 0.0, 1.0).ticks(), [10.0, 100.0]);
        assert_eq!(Scale::logarithmic(&[], 0.0, 1.0).ticks(), [1.0, 10.0]);
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let bar = |value| Bar { label: "<a>".to_string(), value, class: "ours" };
        let svg = bars(&[bar(10.0), bar(5.0)]);
        assert!(svg.contains("width=\"360.0\"") && svg.contains("width=\"180.0\""), "{svg}");
        assert!(svg.contains("&lt;a&gt;") && !svg.contains("<a>"), "{svg}");
    }

    #[test]
    fn labels_of_two_curves_do_not_overlap() {
        let curve = |label: &str| Curve {
            label: label.to_string(),
            points: vec![(1.0, 2.0), (2.0, 2.0)],
            class: "ours",
        };
        let svg = curves(&[curve("a"), curve("b")]);
        let heights: Vec<f64> = svg
            .split("<text x=\"478\" y=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(heights.len(), 2, "{svg}");
        assert!((heights[1] - heights[0]).abs() >= 15.0, "{heights:?}");
    }
}
