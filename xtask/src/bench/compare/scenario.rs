//! The scenarios: what runs, by whom, and with which settings.
//!
//! A store of another kind is another set of entries with its name in `store`; nothing else changes.

use super::contestant::Program;

/// What is measured together, and compared.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The scenario of the programs with its options: for a full run, and for a quick one.
    pub(super) full: &'static str,
    pub(super) quick: &'static str,
    /// The figure that says which setting is the best.
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
    /// The first round tries all of them; the best one is measured in the rounds that follow.
    Best(&'static [&'static str], &'static [&'static str]),
    /// Every round measures all of them: the curve is the figure.
    Every(&'static [&'static str]),
}

/// How often an entry is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    Always,
    /// It takes long and has no target, or is known not to end.
    Once,
    /// The same, in a full run only.
    OnceIfFull,
}

const THROUGHPUT: Metric = Metric { name: "throughput", more_is_better: true };
const P50: Metric = Metric { name: "p50", more_is_better: false };
const STEP: Metric = Metric { name: "step", more_is_better: false };

const NONE: &[&str] = &[""];
const PEER: Tries = Tries::Best(
    &[
        "--dispatchers 1",
        "--dispatchers 2",
        "--dispatchers 4",
        "--dispatchers 8",
        "--dispatchers 1 --poll-ms 1",
        "--dispatchers 2 --poll-ms 1",
        "--dispatchers 4 --poll-ms 1",
        "--dispatchers 8 --poll-ms 1",
    ],
    &["--dispatchers 1", "--dispatchers 2", "--dispatchers 8", "--dispatchers 8 --poll-ms 1"],
);
const PEER_POLLING: Tries = Tries::Best(
    &[
        "--dispatchers 1 --poll-ms 1",
        "--dispatchers 2 --poll-ms 1",
        "--dispatchers 4 --poll-ms 1",
        "--dispatchers 8 --poll-ms 1",
    ],
    &["--dispatchers 2 --poll-ms 1"],
);
const PEER_NOT_POLLING: Tries = Tries::Best(
    &["--dispatchers 1", "--dispatchers 2", "--dispatchers 4", "--dispatchers 8"],
    &["--dispatchers 2", "--dispatchers 8"],
);
const WIDE: Tries = Tries::Best(
    &["--dispatchers 8", "--dispatchers 16", "--dispatchers 32", "--dispatchers 64"],
    &["--dispatchers 32", "--dispatchers 64"],
);
const NARROW: Tries = Tries::Best(
    &["--dispatchers 1", "--dispatchers 2", "--dispatchers 4", "--dispatchers 8"],
    &["--dispatchers 1", "--dispatchers 2"],
);
const SWEEP: Tries = Tries::Every(&[
    "--dispatchers 1",
    "--dispatchers 2",
    "--dispatchers 4",
    "--dispatchers 8",
    "--dispatchers 16",
    "--dispatchers 32",
    "--dispatchers 64",
]);
const AS_IT_IS: Tries = Tries::Best(NONE, NONE);

const fn outlast(options: &'static str, tries: Tries) -> Entry {
    let effort = Effort::Always;
    Entry { system: "outlast", store: "sqlite", program: Program::Outlast, options, tries, effort }
}

const fn duroxide(options: &'static str, tries: Tries) -> Entry {
    let effort = Effort::Always;
    Entry { system: "duroxide", store: "sqlite", program: Program::Duroxide, options, tries, effort }
}

const fn durare(options: &'static str) -> Entry {
    let effort = Effort::Always;
    Entry { system: "durare", store: "sqlite", program: Program::Durare, options, tries: AS_IT_IS, effort }
}

const fn floor(system: &'static str, line: &'static str) -> Entry {
    let effort = Effort::Always;
    Entry { system, store: "sqlite", program: Program::Floor, options: line, tries: AS_IT_IS, effort }
}

const fn once(entry: Entry, effort: Effort) -> Entry {
    Entry { effort, ..entry }
}

const fn stored_in(entry: Entry, store: &'static str) -> Entry {
    Entry { store, ..entry }
}

const FULL: &str = "--synchronous full";
const NORMAL: &str = "--synchronous normal";

// A floor is a program of its own: its line replaces that of the scenario.
const FLOOR_1: Entry = floor("floor-1", "hello --count 400 --per-transaction 1 --synchronous full");
const FLOOR_64: Entry = floor("floor-64", "hello --count 8000 --per-transaction 64 --synchronous full");

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "fsync",
        about: "8 kB written to a file and synced: what the disk takes",
        full: "",
        quick: "",
        judged_by: P50,
        entries: &[floor("floor-1", "fsync --count 500")],
    },
    Scenario {
        name: "hello",
        about: "a backlog of 2,000 orchestrations of one activity, started as fast as eight clients can",
        full: "hello --count 2000",
        quick: "hello --count 400",
        judged_by: THROUGHPUT,
        entries: &[
            FLOOR_1,
            FLOOR_64,
            floor("floor-1", "hello --count 1000 --per-transaction 1 --synchronous normal"),
            floor("floor-64", "hello --count 8000 --per-transaction 64 --synchronous normal"),
            duroxide("", PEER),
            durare(NORMAL),
            durare(FULL),
            outlast(FULL, WIDE),
            outlast(NORMAL, WIDE),
        ],
    },
    Scenario {
        name: "hello-closed",
        about: "16 clients that start one, wait for it with the client, and start the next, for up to 10 s",
        full: "hello-closed --in-flight 16 --count 8000 --seconds 10",
        quick: "hello-closed --in-flight 16 --count 1000 --seconds 2",
        judged_by: THROUGHPUT,
        entries: &[duroxide("", PEER), outlast(FULL, WIDE), outlast(NORMAL, WIDE)],
    },
    Scenario {
        name: "fan-out-5",
        about: "400 orchestrations that run five activities at once",
        full: "fan-outs --count 400 --steps 5",
        quick: "fan-outs --count 80 --steps 5",
        judged_by: THROUGHPUT,
        entries: &[duroxide("", PEER), outlast(FULL, WIDE), outlast(NORMAL, WIDE)],
    },
    Scenario {
        name: "chain-10",
        about: "200 orchestrations of ten activities, one after the other",
        full: "chains --count 200 --steps 10",
        quick: "chains --count 40 --steps 10",
        judged_by: THROUGHPUT,
        entries: &[
            duroxide("", PEER),
            durare(NORMAL),
            durare(FULL),
            outlast(FULL, WIDE),
            outlast(NORMAL, WIDE),
        ],
    },
    Scenario {
        name: "long-chain",
        about: "one orchestration of 2,000 activities, one after the other; duroxide polls every 1 ms",
        full: "long-chain --steps 2000",
        quick: "long-chain --steps 300",
        judged_by: STEP,
        entries: &[
            FLOOR_1,
            duroxide("", PEER_POLLING),
            durare(NORMAL),
            durare(FULL),
            outlast(FULL, NARROW),
            outlast(NORMAL, NARROW),
        ],
    },
    Scenario {
        name: "fan-out-1000",
        about: "one orchestration that runs 1,000 activities at once",
        full: "wide-fan-out --steps 1000 --limit-s 50",
        quick: "wide-fan-out --steps 500 --limit-s 20",
        judged_by: THROUGHPUT,
        entries: &[duroxide("", PEER_NOT_POLLING), outlast(FULL, WIDE), outlast(NORMAL, WIDE)],
    },
    Scenario {
        name: "fan-out-5000",
        about: "one orchestration that runs 5,000 activities at once; duroxide is stopped after 50 s",
        full: "wide-fan-out --steps 5000 --limit-s 50",
        quick: "wide-fan-out --steps 2500 --limit-s 8",
        judged_by: THROUGHPUT,
        entries: &[
            once(duroxide("--dispatchers 2", AS_IT_IS), Effort::Once),
            outlast(FULL, WIDE),
            outlast(NORMAL, WIDE),
        ],
    },
    Scenario {
        name: "hello-idle",
        about: "one hello at a time on an idle runtime, as the client sees it; polling as each has it",
        full: "hello-idle --count 50",
        quick: "hello-idle --count 15",
        judged_by: P50,
        entries: &[
            duroxide("", PEER_NOT_POLLING),
            durare(NORMAL),
            durare(FULL),
            outlast(FULL, NARROW),
            outlast(NORMAL, NARROW),
        ],
    },
    Scenario {
        name: "hello-idle-1ms",
        about: "the same while duroxide polls its store every 1 ms",
        full: "hello-idle --count 50",
        quick: "hello-idle --count 15",
        judged_by: P50,
        entries: &[duroxide("", PEER_POLLING), outlast(FULL, NARROW)],
    },
    Scenario {
        name: "asleep",
        about: "20,000 orchestrations that wait for a timer, hellos before and beside them",
        full: "asleep --count 20000 --samples 100 --seconds 10",
        quick: "asleep --count 2000 --samples 20 --seconds 2",
        judged_by: P50,
        entries: &[
            once(duroxide("--count 2000 --samples 20", AS_IT_IS), Effort::OnceIfFull),
            outlast(FULL, AS_IT_IS),
        ],
    },
    Scenario {
        name: "asleep-uncached",
        about: "the same, and nothing that sleeps is kept in memory",
        full: "asleep --count 20000 --samples 100 --seconds 10",
        quick: "asleep --count 2000 --samples 20 --seconds 1",
        judged_by: P50,
        entries: &[outlast("--synchronous full --cache off", AS_IT_IS)],
    },
    Scenario {
        name: "hello-memory",
        about: "a backlog of 20,000 hellos in memory: SQLite's, and the store `memory`; duroxide has 2,000",
        full: "hello --count 20000",
        quick: "hello --count 4000",
        judged_by: THROUGHPUT,
        entries: &[
            stored_in(duroxide("--count 2000 --store sqlite::memory:", PEER_MEMORY), "sqlite::memory:"),
            stored_in(outlast("--store sqlite::memory:", WIDE), "sqlite::memory:"),
            stored_in(outlast("--store memory", WIDE), "memory"),
        ],
    },
    Scenario {
        name: "sweep",
        about: "the backlog of hellos with 1 to 64 dispatchers",
        full: "sweep --count 2000",
        quick: "sweep --count 600",
        judged_by: THROUGHPUT,
        entries: &[outlast(FULL, SWEEP)],
    },
];

const PEER_MEMORY: Tries = Tries::Best(
    &["--dispatchers 1", "--dispatchers 2", "--dispatchers 4", "--dispatchers 8"],
    &["--dispatchers 4 --count 400", "--dispatchers 8 --count 400"],
);

impl Scenario {
    /// The words that one process gets.
    pub(super) fn line(&self, entry: &Entry, setting: &str, quick: bool) -> String {
        let scenario = if quick { self.quick } else { self.full };
        let words = match entry.program {
            Program::Floor => [entry.options, "", ""],
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
    pub(super) fn takes_part(&self, round: usize, quick: bool) -> bool {
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
        SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap()
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
    fn a_floor_has_a_line_of_its_own() {
        let line = "hello --count 400 --per-transaction 1 --synchronous full";
        assert_eq!(lines("long-chain", "floor-1", true), [line]);
        assert_eq!(lines("long-chain", "floor-1", false), [line]);
    }

    #[test]
    fn no_two_entries_would_write_the_same_row() {
        for scenario in SCENARIOS {
            let normal = |entry: &Entry| entry.options.contains("normal");
            let mut keys: Vec<_> =
                scenario.entries.iter().map(|entry| (entry.system, entry.store, normal(entry))).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), scenario.entries.len(), "{}", scenario.name);
        }
    }

    #[test]
    fn what_does_not_end_is_tried_once() {
        let entry = &scenario("fan-out-5000").entries[0];
        assert!(entry.takes_part(1, true) && entry.takes_part(1, false) && !entry.takes_part(2, false));
        let entry = &scenario("asleep").entries[0];
        assert!(!entry.takes_part(1, true) && entry.takes_part(1, false));
    }
}
