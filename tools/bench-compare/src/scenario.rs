//! The scenarios: their work, their systems and their settings.
//!
//! Each group of stores has a file of scenarios. Scenarios with the same name in two files run the same work.

mod cosmos;
mod postgres;
mod sqlite;

use super::contestant::Program;
use super::row::Row;

/// All scenarios, store by store.
pub(super) fn all() -> impl Iterator<Item = &'static Scenario> {
    sqlite::SCENARIOS.iter().chain(postgres::SCENARIOS).chain(cosmos::SCENARIOS)
}

/// A group of stores whose figures are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Backend {
    /// In this process: SQLite, in a file and in memory, and the store `memory`.
    #[value(name = "sqlite")]
    Embedded,
    /// A PostgreSQL server.
    Postgres,
    /// An emulated Cosmos DB account that counts requests.
    Cosmos,
}

impl Backend {
    /// The group of stores to which the store of a row belongs.
    pub(super) fn of(store: &str) -> Self {
        match store {
            POSTGRES => Self::Postgres,
            COSMOS => Self::Cosmos,
            _ => Self::Embedded,
        }
    }
}

/// The store of the rows from PostgreSQL.
pub(super) const POSTGRES: &str = "postgres";
/// The store of the rows from Cosmos DB.
pub(super) const COSMOS: &str = "cosmos";

/// A piece of work that several systems run and whose figures are compared.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) backend: Backend,
    pub(super) about: &'static str,
    /// The scenario of the programs with its options: for a full run, and for a quick one.
    pub(super) full: &'static str,
    pub(super) quick: &'static str,
    /// The figure that decides which setting is the best.
    pub(super) judged_by: Metric,
    pub(super) entries: &'static [Entry],
}

#[derive(Clone, Copy)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) more_is_better: bool,
}

/// One system on one store.
pub(super) struct Entry {
    pub(super) system: &'static str,
    pub(super) store: &'static str,
    pub(super) program: Program,
    /// Options beside those of the scenario. A later one wins.
    pub(super) options: &'static str,
    pub(super) tries: Tries,
    pub(super) effort: Effort,
}

/// The settings of an entry: for a full run, and for a quick one.
#[derive(Clone, Copy)]
pub(super) enum Tries {
    /// The first round tries all settings; the following rounds measure the best setting.
    Best(&'static [&'static str], &'static [&'static str]),
    /// Every round measures all settings: the figures are a curve.
    Every(&'static [&'static str]),
}

/// How often an entry is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    Always,
    /// In one round: the entry takes long and has no target, or is known not to end.
    Once,
    /// In one round of a full run.
    OnceIfFull,
}

const THROUGHPUT: Metric = Metric { name: "throughput", more_is_better: true };
const P50: Metric = Metric { name: "p50", more_is_better: false };
const REQUESTS: Metric = Metric { name: "requests", more_is_better: false };
const STEP: Metric = Metric { name: "step", more_is_better: false };

/// The system of the rows of Outlast, and of duroxide, with the defaults of its runtime.
const OUTLAST_DEFAULTS: &str = "outlast-defaults";
const DUROXIDE_DEFAULTS: &str = "duroxide-defaults";

const NONE: &[&str] = &[""];
const AS_IT_IS: Tries = Tries::Best(NONE, NONE);

/// The dispatchers of Outlast: for many instances, and for one instance at a time.
const WIDE: Tries = Tries::Best(
    &["--dispatchers 8", "--dispatchers 16", "--dispatchers 32", "--dispatchers 64"],
    &["--dispatchers 32", "--dispatchers 64"],
);
const NARROW: Tries = Tries::Best(
    &["--dispatchers 1", "--dispatchers 2", "--dispatchers 4", "--dispatchers 8"],
    &["--dispatchers 1", "--dispatchers 2"],
);

impl Scenario {
    /// The name, with the store if it is a server.
    pub(super) fn title(&self) -> String {
        match self.backend {
            Backend::Embedded => self.name.to_string(),
            Backend::Postgres => format!("{}, {POSTGRES}", self.name),
            Backend::Cosmos => format!("{}, {COSMOS}", self.name),
        }
    }

    /// Whether a row is about this scenario.
    pub(super) fn has(&self, row: &Row) -> bool {
        row.scenario == self.name && Backend::of(&row.store) == self.backend
    }

    /// The words that one process gets.
    pub(super) fn line(&self, entry: &Entry, setting: &str, quick: bool) -> String {
        let scenario = if quick { self.quick } else { self.full };
        let words = match entry.program {
            Program::Floor => [entry.options, setting, ""],
            _ => [scenario, entry.options, setting],
        };
        words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Entry {
    pub(super) fn settings(&self, quick: bool) -> &'static [&'static str] {
        match self.tries {
            Tries::Best(_, settings) if quick => settings,
            Tries::Best(settings, _) | Tries::Every(settings) => settings,
        }
    }

    /// Whether this round, from 1 on, measures the entry.
    pub(super) fn takes_part(&self, round: u32, quick: bool) -> bool {
        match self.effort {
            Effort::Always => true,
            Effort::Once => round == 1,
            Effort::OnceIfFull => round == 1 && !quick,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str) -> &'static Scenario {
        all().find(|scenario| scenario.name == name).unwrap()
    }

    fn lines(name: &str, system: &str, quick: bool) -> Vec<String> {
        let scenario = scenario(name);
        let entry = scenario.entries.iter().find(|entry| entry.system == system).unwrap();
        entry.settings(quick).iter().map(|setting| scenario.line(entry, setting, quick)).collect()
    }

    #[test]
    fn a_line_is_the_scenario_the_entry_and_the_setting() {
        let quick = lines("long-chain", "duroxide", true);
        assert_eq!(quick[0], "long-chain --steps 300 --dispatchers 2 --poll-ms 1");
        let full = lines("hello", "outlast", false);
        assert_eq!(full[0], "hello --count 2000 --synchronous full --dispatchers 8");
        assert_eq!(lines("hello", "durare", true), ["hello --count 400 --synchronous normal"]);
    }

    #[test]
    fn a_floor_has_its_own_line() {
        let line = "hello --count 400 --per-transaction 1 --synchronous full";
        assert_eq!(lines("long-chain", "floor-1", true), [line]);
        assert_eq!(lines("long-chain", "floor-1", false), [line]);
    }

    #[test]
    fn no_two_entries_would_write_the_same_row() {
        for scenario in all() {
            let normal = |entry: &Entry| entry.options.contains("normal");
            let mut keys: Vec<_> =
                scenario.entries.iter().map(|entry| (entry.system, entry.store, normal(entry))).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), scenario.entries.len(), "{}", scenario.name);
        }
    }

    #[test]
    fn a_scenario_has_the_stores_of_its_backend() {
        for scenario in all() {
            let same = |entry: &Entry| Backend::of(entry.store) == scenario.backend;
            assert!(scenario.entries.iter().all(same), "{}", scenario.name);
        }
    }

    #[test]
    fn a_run_that_does_not_end_is_tried_once() {
        let entry = &scenario("fan-out-5000").entries[0];
        assert!(entry.takes_part(1, true) && entry.takes_part(1, false) && !entry.takes_part(2, false));
        let entry = &scenario("asleep").entries[0];
        assert!(!entry.takes_part(1, true) && entry.takes_part(1, false));
    }
}
