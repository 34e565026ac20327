//! The report: one plot for each figure over time, in one page without scripts.

use super::sample::Sample;
use crate::verdict::Verdict;
use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 150.0;
const MARGIN: f64 = 64.0;

type Figure = (&'static str, fn(&Sample) -> f64);

const FIGURES: &[Figure] = &[
    ("orchestrations per second", |sample| sample.throughput),
    ("p50, ms", |sample| sample.p50),
    ("p99, ms", |sample| sample.p99),
    ("p99.9, ms", |sample| sample.p999),
    ("memory of the process, MiB", |sample| sample.memory),
    ("store, MiB", |sample| sample.store),
    ("write-ahead log, MiB", |sample| sample.log),
    ("checkpoints", |sample| sample.checkpoints),
    ("runs of autovacuum", |sample| sample.vacuums),
];

pub(super) fn page(store: &str, loads: &[(&str, &[Sample])], verdicts: &[Verdict]) -> String {
    let mut page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Soak of {store}</title>\
         <style>body{{font:14px system-ui;margin:2em;color-scheme:light dark}}svg{{display:block;margin:0 0 1em}}\
         text{{font:11px system-ui;fill:currentColor}}polyline{{fill:none;stroke:#2a78d6;stroke-width:1.2}}\
         line{{stroke:#8886;stroke-width:1}}</style><h1>Soak of {store}</h1><ul>"
    );
    for verdict in verdicts {
        let word = if verdict.holds { "Holds" } else { "Missed" };
        let _ = write!(page, "<li><b>{word}</b>: {}</li>", verdict.text);
    }
    page.push_str("</ul>");
    for (title, samples) in loads {
        let _ = write!(page, "<h2>{title}</h2>");
        for (name, figure) in FIGURES {
            page.push_str(&plot(name, samples, figure));
        }
    }
    page
}

fn plot(name: &str, samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> String {
    let shown: Vec<(f64, f64)> = samples
        .iter()
        .map(|sample| (sample.second as f64, figure(sample)))
        .filter(|(_, value)| value.is_finite())
        .collect();
    let most = shown.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let (high, last) = (if most > 0.0 { most } else { 1.0 }, samples.len().max(1) as f64);
    let mut points = String::new();
    for (second, value) in &shown {
        let (x, y) = (MARGIN + second / last * (WIDTH - MARGIN), HEIGHT * (1.0 - value / high));
        let _ = write!(points, "{x:.1},{:.1} ", y + 20.0);
    }
    let (foot, bottom) = (HEIGHT + 20.0, HEIGHT + 36.0);
    format!(
        "<svg width=\"{WIDTH}\" height=\"{}\" role=\"img\" aria-label=\"{name}\"><text x=\"0\" y=\"12\">{name}</text>\
         <line x1=\"{MARGIN}\" y1=\"20\" x2=\"{WIDTH}\" y2=\"20\"/><line x1=\"{MARGIN}\" y1=\"{foot}\" x2=\"{WIDTH}\" y2=\"{foot}\"/>\
         <text x=\"0\" y=\"32\">{high:.2}</text><text x=\"0\" y=\"{foot}\">0</text>\
         <text x=\"{MARGIN}\" y=\"{bottom}\">0 s</text><text x=\"{}\" y=\"{bottom}\">{last:.0} s</text>\
         <polyline points=\"{points}\"/></svg>",
        HEIGHT + 44.0,
        WIDTH - 48.0
    )
}
