//! The report: plots and tables in one file.

use super::row::Row;
use super::scenario::{self, Scenario};
use super::svg::{self, Bar, Curve, Span, escape};
use super::table::{self, Table};

const STYLE: &str = "\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #1b1f24; }
h1, h2, h3 { line-height: 1.2; } h3 { margin: 1.6em 0 0.2em; }
p.about { margin: 0 0 0.4em; color: #57606a; }
svg { width: 100%; max-width: 760px; height: auto; font: 12px system-ui, sans-serif; }
svg .label { text-anchor: end; } svg .tick { text-anchor: middle; fill: #57606a; }
svg .grid { stroke: #d0d7de; } svg .curve { fill: none; stroke-width: 2; }
.ours { fill: #0a7f5a; stroke: #0a7f5a; } .ours-normal { fill: #7cc5a9; stroke: #7cc5a9; }
.duroxide { fill: #c2571a; stroke: #c2571a; } .durare { fill: #7a5cc0; stroke: #7a5cc0; }
.dbos { fill: #1a8f8a; stroke: #1a8f8a; }
.durare-full { fill: #b3a0e0; stroke: #b3a0e0; } .floor { fill: #9aa4af; stroke: #9aa4af; }
table { border-collapse: collapse; font-size: 13px; } td, th { border: 1px solid #d0d7de; padding: 3px 7px; text-align: left; }
.wide { overflow-x: auto; }
";

/// The whole report as one HTML file.
pub(super) fn report(rows: &[Row]) -> String {
    let mut body = String::from("<h1>Outlast, its peers and the floor</h1>\n");
    body.push_str(
        "<p>Medians of one run, all systems interleaved, each at its best setting. FULL and NORMAL are SQLite's \
         <code>synchronous</code>: at NORMAL, what was acknowledged can be lost when the power fails. PostgreSQL runs with \
         <code>fsync</code> and <code>synchronous_commit</code> on.</p>\n",
    );
    body.push_str("<h2>Throughput</h2>\n");
    for scenario in present(rows) {
        let bars: Vec<Bar> = of(rows, scenario, "throughput").map(bar).collect();
        section(&mut body, scenario, bars.is_empty(), || svg::bars(&bars));
    }
    let sweep: Vec<Bar> = sweep(rows);
    if !sweep.is_empty() {
        body.push_str("<h3>sweep</h3>\n<p class=\"about\">hellos per second by dispatchers</p>\n");
        body.push_str(&svg::bars(&sweep));
    }
    body.push_str("<h2>Latency: p50 to p99, ms</h2>\n");
    for scenario in present(rows) {
        let spans: Vec<Span> = of(rows, scenario, "p99").filter_map(|row| span(rows, row)).collect();
        section(&mut body, scenario, spans.is_empty(), || svg::spans(&spans));
    }
    let curves = steps(rows);
    if !curves.is_empty() {
        body.push_str("<h2>Cost per step over the length of the history</h2>\n");
        body.push_str("<p class=\"about\">one chain: ms per step, against the number of the step</p>\n");
        body.push_str(&svg::curves(&curves));
    }
    body.push_str("<h2>Targets</h2>\n");
    body.push_str(&html(&table::judged(rows)));
    for (title, table) in table::all_measured(rows) {
        body.push_str(&format!("<h2>All figures: {title}</h2>\n{}", html(&table)));
    }
    body.push_str("<h2>Counted, Outlast at FULL</h2>\n");
    body.push_str(&html(&table::counted(rows)));
    body.push_str("<h2>Settings</h2>\n");
    body.push_str(&html(&settings(rows)));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Outlast: bench compare</title>\n\
         <style>\n{STYLE}</style></head><body>\n{body}</body></html>\n"
    )
}

fn present(rows: &[Row]) -> impl Iterator<Item = &'static Scenario> {
    scenario::all().filter(|scenario| rows.iter().any(|row| scenario.has(row)))
}

fn of<'a>(rows: &'a [Row], scenario: &Scenario, metric: &str) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| scenario.has(row) && row.metric == metric)
}

/// Adds a plot with its title, unless the plot has no data.
fn section(body: &mut String, scenario: &Scenario, empty: bool, plot: impl Fn() -> String) {
    if !empty {
        let about = escape(scenario.about);
        body.push_str(&format!("<h3>{}</h3>\n<p class=\"about\">{about}</p>\n{}", scenario.title(), plot()));
    }
}

/// The colour of a system.
fn class(row: &Row) -> &'static str {
    match (row.system.as_str(), row.durability.as_str()) {
        ("outlast", "NORMAL") => "ours-normal",
        ("outlast" | "outlast-defaults", _) => "ours",
        ("duroxide" | "duroxide-defaults", _) => "duroxide",
        ("dbos", _) => "dbos",
        ("durare", "FULL") => "durare-full",
        ("durare", _) => "durare",
        _ => "floor",
    }
}

fn bar(row: &Row) -> Bar {
    Bar { label: row.label(), value: row.value, class: class(row) }
}

/// The bars of the sweep, by number of dispatchers.
fn sweep(rows: &[Row]) -> Vec<Bar> {
    let mut found: Vec<(u32, &Row)> =
        rows.iter().filter_map(|row| Some((place(row, "throughput_at_")?, row))).collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(at, row)| Bar { label: at.to_string(), ..bar(row) }).collect()
}

fn span(rows: &[Row], p99: &Row) -> Option<Span> {
    let same = |row: &&Row| row.scenario == p99.scenario && row.label() == p99.label() && row.metric == "p50";
    let p50 = rows.iter().find(same)?;
    Some(Span { label: p99.label(), p50: p50.value, p99: p99.value, class: class(p99) })
}

/// One curve per system, from the rows `step_at_N`.
fn steps(rows: &[Row]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows {
        let Some(at) = place(row, "step_at_") else { continue };
        let point = (f64::from(at), row.value);
        match curves.iter_mut().find(|curve| curve.label == row.label()) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { label: row.label(), points: vec![point], class: class(row) }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }
    curves
}

/// The number at the end of a metric that is a place of a curve.
fn place(row: &Row, prefix: &str) -> Option<u32> {
    row.metric.strip_prefix(prefix)?.parse().ok()
}

/// How each program was called.
fn settings(rows: &[Row]) -> Table {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for row in rows.iter().filter(|row| row.scenario != "sweep") {
        let line = vec![row.scenario.clone(), row.label(), row.setting.clone()];
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    Table { head: ["scenario", "system", "called with"].map(str::to_string).to_vec(), lines }
}

fn html(table: &Table) -> String {
    let line = |cells: &[String], tag: &str| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let lines: String = table.lines.iter().map(|cells| line(cells, "td")).collect();
    format!("<div class=\"wide\"><table>\n{}{lines}</table></div>\n", line(&table.head, "th"))
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_report_has_all_plots_and_no_external_files() {
        let mut rows = vec![
            row("hello", "outlast FULL", "throughput", 6000.0),
            row("hello", "duroxide NORMAL", "throughput", 200.0),
            row("hello-idle", "outlast FULL", "p50", 2.0),
            row("hello-idle", "outlast FULL", "p99", 3.0),
            row("sweep", "outlast FULL", "throughput_at_16", 6000.0),
        ];
        for (step, cost) in [("step_at_1000", 0.7), ("step_at_200", 0.6), ("step_at_400", 0.6)] {
            rows.push(row("long-chain", "outlast FULL", step, cost));
        }
        let html = report(&rows);
        assert_eq!(html.matches("<svg").count(), 4);
        for foreign in ["http:", "https:", "<script", "src=", "url("] {
            assert!(!html.contains(foreign), "{foreign}");
        }
        let curve = &steps(&rows)[0];
        assert_eq!(curve.points, [(200.0, 0.6), (400.0, 0.6), (1000.0, 0.7)]);
    }

    #[test]
    fn a_setting_is_listed_once() {
        let rows = [
            row("hello", "outlast FULL", "throughput", 1.0),
            row("hello", "outlast FULL", "syncs", 1.0),
            row("hello", "durare FULL", "throughput", 1.0),
        ];
        assert_eq!(settings(&rows).lines.len(), 2);
    }
}
