//! The figures side by side, and the targets, as tables of text.

use std::fmt::Write as _;

use super::row::{Row, digits};
use super::scenario::{self, Backend, Scenario};
use super::target::{self, Target};

pub(super) struct Table {
    pub(super) head: Vec<String>,
    pub(super) lines: Vec<Vec<String>>,
}

const MEASURED: &[&str] =
    &["throughput", "p50", "p99", "step", "growth", "transaction", "memory", "memory_each", "idle_cpu"];
/// Further columns for scenarios with a server. The server counts them, so they exist for all systems.
const WITH_A_SERVER: &[&str] =
    &["round_trips", "client_cpu_us", "server_cpu_us", "transactions", "rollbacks", "deadlocks"];
/// The columns of scenarios on a store that bills requests.
const BILLED: &[&str] = &[
    "requests",
    "documents_read",
    "ru",
    "creates",
    "upserts",
    "replaces",
    "patches",
    "deletes",
    "reads",
    "queries",
    "feed_pages",
    "requests_above_idle",
    "idle_requests",
    "idle_documents_read",
    "idle_ru",
    "first_metrics_requests",
    "first_metrics_ru",
    "metrics_requests",
    "metrics_ru",
];
/// How the figures of a sweep begin.
const PLACE: &str = "throughput_at_";

const COUNTED: &[&str] = &["statements", "syncs", "rows_read", "bytes_written"];

/// A column, and its rows. Only a store in a file has a choice of durability.
type Column = (&'static str, fn(&Row) -> bool);

const EMBEDDED: &[Column] = &[
    ("floor-1", |row| row.label() == "floor-1 FULL"),
    ("floor-64", |row| row.label() == "floor-64 FULL"),
    ("floor-64-hellos", |row| row.label() == "floor-64-hellos FULL"),
    ("duroxide, NORMAL", |row| row.system == "duroxide"),
    ("duroxide, defaults", |row| row.system == "duroxide-defaults"),
    ("durare, NORMAL", |row| row.label() == "durare NORMAL"),
    ("durare, FULL", |row| row.label() == "durare FULL"),
    ("outlast, NORMAL", |row| row.label() == "outlast NORMAL"),
    ("outlast, FULL", |row| row.system == "outlast" && row.durability != "NORMAL"),
    ("outlast, defaults", |row| row.system == "outlast-defaults"),
];

const POSTGRES: &[Column] = &[
    ("floor-1", |row| row.system == "floor-1"),
    ("floor-64", |row| row.system == "floor-64"),
    ("duroxide-pg", |row| row.system == "duroxide"),
    ("duroxide-pg, defaults", |row| row.system == "duroxide-defaults"),
    ("durare", |row| row.system == "durare"),
    ("dbos", |row| row.system == "dbos"),
    ("outlast", |row| row.system == "outlast"),
    ("outlast, defaults", |row| row.system == "outlast-defaults"),
];

const COSMOS: &[Column] =
    &[("duroxide-cdb", |row| row.system == "duroxide"), ("outlast", |row| row.system == "outlast")];

/// A table with its title, for each kind of store that was measured.
pub(super) fn all_measured(rows: &[Row]) -> Vec<(&'static str, Table)> {
    let titles = [
        ("SQLite and stores in memory", Backend::Embedded),
        ("PostgreSQL", Backend::Postgres),
        ("Cosmos DB", Backend::Cosmos),
    ];
    let tables = titles.map(|(title, backend)| (title, measured(rows, backend)));
    tables.into_iter().filter(|(_, table)| !table.lines.is_empty()).collect()
}

/// Medians with their lowest and highest round. An exclamation mark shows incomplete work.
fn measured(rows: &[Row], backend: Backend) -> Table {
    let columns = match backend {
        Backend::Embedded => EMBEDDED,
        Backend::Postgres => POSTGRES,
        Backend::Cosmos => COSMOS,
    };
    let mut head = vec!["scenario".to_string(), "figure".to_string()];
    head.extend(columns.iter().map(|(name, _)| (*name).to_string()));
    let mut lines = Vec::new();
    for (scenario, metric) in pairs(rows, backend) {
        let of: Vec<&Row> = rows.iter().filter(|row| scenario.has(row) && row.metric == metric).collect();
        let mut stores: Vec<&str> = of.iter().map(|row| row.store.as_str()).collect();
        stores.dedup();
        for store in stores {
            let there: Vec<&Row> = of.iter().filter(|row| row.store == store).copied().collect();
            let unit = there.first().map_or("", |row| row.unit.as_str());
            let name = if ["sqlite", scenario::POSTGRES, scenario::COSMOS].contains(&store) {
                String::new()
            } else {
                format!(", {store}")
            };
            let mut line = vec![format!("{}{name}", scenario.name), format!("{metric}, {unit}")];
            let shown = |column: &Column| {
                there.iter().find(|row| column.1(row)).map_or(String::new(), |row| cell(row))
            };
            line.extend(columns.iter().map(shown));
            lines.push(line);
        }
    }
    Table { head, lines }
}

fn cell(row: &Row) -> String {
    let mark = if row.ok { "" } else { "!" };
    format!("{}{mark} ({}..{})", digits(row.value), digits(row.min), digits(row.max))
}

/// The counted operations of Outlast on its store.
pub(super) fn counted(rows: &[Row]) -> Table {
    let head = ["scenario", "per", "statements", "syncs", "rows read", "bytes written"];
    let mut lines = Vec::new();
    for scenario in scenario::all() {
        let find = |metric: &str| {
            let of = |row: &&Row| scenario.has(row) && row.metric == metric && row.label() == "outlast FULL";
            rows.iter().find(of)
        };
        let Some(first) = find("statements") else { continue };
        let mut line = vec![scenario.name.to_string(), first.unit.trim_start_matches("per ").to_string()];
        line.extend(COUNTED.iter().map(|metric| find(metric).map_or(String::new(), |row| digits(row.value))));
        lines.push(line);
    }
    Table { head: head.map(str::to_string).to_vec(), lines }
}

/// Every target of the scenarios that ran.
pub(super) fn judged(rows: &[Row]) -> Table {
    let head = ["scenario", "figure", "of", "over", "found", "target", "met", "by medians"];
    let line = |target: &&Target| {
        let shown = |found: Option<f64>, nothing: &str| {
            found.map_or(nothing.to_string(), |found| format!("{} {}", digits(found), target.unit))
        };
        vec![
            target.scenario.to_string(),
            target.of.metric.to_string(),
            target.of.show(rows, &target.of),
            target.over.as_ref().map_or(String::new(), |over| over.show(rows, &target.of)),
            shown(target.found(rows), "no figure"),
            target.wanted(),
            if target.is_met(rows) { "yes" } else { "NO" }.to_string(),
            shown(target.found_by_medians(rows), ""),
        ]
    };
    Table { head: head.map(str::to_string).to_vec(), lines: of_these(rows).iter().map(line).collect() }
}

/// The targets of the scenarios that have rows.
pub(super) fn of_these(rows: &[Row]) -> Vec<&'static Target> {
    target::all().filter(|target| rows.iter().any(|row| target.applies_to(row))).collect()
}

/// The lines of the table: each scenario with its figures, and with the places of its curve in their order.
fn pairs(rows: &[Row], backend: Backend) -> Vec<(&'static Scenario, String)> {
    let mut pairs = Vec::new();
    let more = match backend {
        Backend::Embedded => &[],
        Backend::Postgres => WITH_A_SERVER,
        Backend::Cosmos => BILLED,
    };
    for scenario in scenario::all().filter(|scenario| scenario.backend == backend) {
        // An operation that no side uses has no line.
        let counts = |row: &Row| backend != Backend::Cosmos || row.max > 0.0;
        let has =
            |metric: &str| rows.iter().any(|row| scenario.has(row) && row.metric == metric && counts(row));
        let plain =
            MEASURED.iter().chain(more).filter(|metric| has(metric)).map(|metric| (*metric).to_string());
        pairs.extend(plain.map(|metric| (scenario, metric)));
        let mut places: Vec<u32> = rows
            .iter()
            .filter(|row| scenario.has(row))
            .filter_map(|row| row.metric.strip_prefix(PLACE)?.parse().ok())
            .collect();
        places.sort_unstable();
        pairs.extend(places.into_iter().map(|place| (scenario, format!("{PLACE}{place}"))));
    }
    pairs
}

impl Table {
    pub(super) fn text(&self) -> String {
        let all = || std::iter::once(&self.head).chain(&self.lines);
        let width = |column: usize| all().map(|line| line[column].len()).max().unwrap_or(0);
        let mut out = String::new();
        for line in all() {
            let cells = line.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        out
    }

    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut out = line(&self.head);
        out.push_str(&"|---".repeat(self.head.len()));
        out.push_str("|\n");
        self.lines.iter().for_each(|cells| out.push_str(&line(cells)));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    fn rows() -> Vec<Row> {
        vec![
            row("hello", "outlast FULL", "throughput", 6000.0),
            row("hello", "outlast FULL", "statements", 12.0),
            row("hello", "outlast FULL", "syncs", 0.5),
            Row { ok: false, ..row("hello", "duroxide NORMAL", "throughput", 100.0) },
        ]
    }

    #[test]
    fn a_line_has_all_systems() {
        let table = measured(&rows(), Backend::Embedded);
        assert_eq!(table.lines.len(), 1);
        let line = table.lines[0].join("|");
        assert_eq!(line, "hello|throughput, ms||||100! (50.0..150)|||||6000 (3000..9000)|");
    }

    #[test]
    fn a_sweep_has_a_line_for_each_place_in_order() {
        let at = |metric: &str| row("sweep", "outlast FULL", metric, 1.0);
        let table = measured(
            &[at("throughput_at_16"), at("throughput_at_2"), at("lowest_median")],
            Backend::Embedded,
        );
        let figures: Vec<&str> = table.lines.iter().map(|line| line[1].as_str()).collect();
        assert_eq!(figures, ["throughput_at_2, ms", "throughput_at_16, ms"]);
    }

    #[test]
    fn a_store_in_memory_has_its_own_line() {
        let stored =
            |store: &str, row: Row| Row { store: store.to_string(), durability: "none".to_string(), ..row };
        let rows = [
            stored("sqlite::memory:", row("hello-memory", "duroxide NORMAL", "throughput", 100.0)),
            stored("sqlite::memory:", row("hello-memory", "outlast FULL", "throughput", 6000.0)),
            stored("memory", row("hello-memory", "outlast FULL", "throughput", 8000.0)),
        ];
        let lines: Vec<String> =
            measured(&rows, Backend::Embedded).lines.iter().map(|line| line.join("|")).collect();
        let first = "hello-memory, sqlite::memory:|throughput, ms||||100 (50.0..150)|||||6000 (3000..9000)|";
        let second = "hello-memory, memory|throughput, ms|||||||||8000 (4000..12000)|";
        assert_eq!(lines, [first, second]);
    }

    #[test]
    fn a_server_has_its_own_table() {
        let mut rows = rows();
        for (label, metric, value) in [
            ("outlast FULL", "throughput", 2000.0),
            ("durare FULL", "throughput", 1000.0),
            ("durare FULL", "round_trips", 6.0),
        ] {
            rows.push(Row { store: "postgres".to_string(), ..row("hello", label, metric, value) });
        }
        let tables = all_measured(&rows);
        let titles: Vec<&str> = tables.iter().map(|(title, _)| *title).collect();
        assert_eq!(titles, ["SQLite and stores in memory", "PostgreSQL"]);
        assert_eq!(tables[0].1.lines.len(), 1);
        let lines: Vec<String> = tables[1].1.lines.iter().map(|line| line.join("|")).collect();
        let first = "hello|throughput, ms|||||1000 (500..1500)||2000 (1000..3000)|";
        assert_eq!(lines, [first, "hello|round_trips, ms|||||6.00 (3.00..9.00)|||"]);
        assert_eq!(all_measured(&rows[..1]).len(), 1);
    }

    #[test]
    fn only_targets_of_the_stores_that_ran_are_judged() {
        let about = |rows: &[Row]| of_these(rows).iter().map(|target| target.of.label).collect::<Vec<_>>();
        let embedded = rows();
        assert!(about(&embedded).iter().all(|label| !label.ends_with("postgres")));
        let served = embedded.into_iter().map(|row| Row { store: "postgres".to_string(), ..row });
        let served: Vec<Row> = served.collect();
        assert!(!about(&served).is_empty() && about(&served).iter().all(|label| label.ends_with("postgres")));
    }

    #[test]
    fn counted_operations_are_a_separate_table() {
        assert_eq!(counted(&rows()).lines, [["hello", "ms", "12.0", "0.500", "", ""].map(str::to_string)]);
    }

    #[test]
    fn targets_show_the_measured_value() {
        let table = judged(&rows());
        let line = table.lines.iter().find(|line| line[3].starts_with("150")).unwrap().join("|");
        let expected = "hello|throughput|6000 (outlast FULL)|150 (duroxide NORMAL, best round)|40.0 x|at least 30 x|yes|60.0 x";
        assert_eq!(line, expected);
        let missing = table.lines.iter().find(|line| line[2].contains("floor-1")).unwrap();
        assert_eq!((missing[4].as_str(), missing[6].as_str()), ("no figure", "NO"));
    }

    #[test]
    fn a_table_is_text_and_markdown() {
        let cells = |words: [&str; 2]| words.map(str::to_string).to_vec();
        let table = Table { head: cells(["a", "b"]), lines: vec![cells(["long", "x"])] };
        assert_eq!(table.text(), "a     b\nlong  x\n");
        assert_eq!(table.markdown(), "| a | b |\n|---|---|\n| long | x |\n");
    }
}
