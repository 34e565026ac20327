//! The scenarios on a PostgreSQL with fsync and synchronous_commit on. Each run has a new database.

use super::{
    AS_IT_IS, Backend, DUROXIDE_DEFAULTS, Effort, Entry, NARROW, OUTLAST_DEFAULTS, P50, POSTGRES, STEP,
    Scenario, THROUGHPUT, Tries, WIDE,
};
use crate::contestant::Program;

const PEER: Tries = Tries::Best(
    &[
        "--dispatchers 1",
        "--dispatchers 2",
        "--dispatchers 4",
        "--dispatchers 8",
        "--dispatchers 2 --poll-ms 1",
        "--dispatchers 4 --poll-ms 1",
        "--dispatchers 8 --poll-ms 1",
    ],
    &["--dispatchers 2", "--dispatchers 4", "--dispatchers 4 --poll-ms 1"],
);
const PEER_POLLING: Tries = Tries::Best(
    &["--dispatchers 1 --poll-ms 1", "--dispatchers 2 --poll-ms 1", "--dispatchers 4 --poll-ms 1"],
    &["--dispatchers 2 --poll-ms 1"],
);
const PEER_NOT_POLLING: Tries = Tries::Best(
    &["--dispatchers 1", "--dispatchers 2", "--dispatchers 8"],
    &["--dispatchers 2", "--dispatchers 8"],
);
/// With one step per transaction, transactions that wait for the disk at the same time share a sync.
const MANY_CONNECTIONS: Tries = Tries::Best(
    &["--connections 8", "--connections 16", "--connections 32", "--connections 64"],
    &["--connections 32"],
);
const FEW_CONNECTIONS: Tries = Tries::Best(
    &["--connections 1", "--connections 2", "--connections 4", "--connections 8"],
    &["--connections 2", "--connections 4", "--connections 8"],
);

const fn entry(system: &'static str, program: Program, tries: Tries) -> Entry {
    let effort = Effort::Always;
    Entry { system, store: POSTGRES, program, options: "--store postgres", tries, effort }
}

const fn outlast(tries: Tries) -> Entry {
    entry("outlast", Program::Outlast, tries)
}

const fn duroxide(tries: Tries) -> Entry {
    entry("duroxide", Program::DuroxidePg, tries)
}

const DURARE: Entry = entry("durare", Program::Durare, AS_IT_IS);

/// The options of dbos that bear on its speed: the size of its pool, and the pause before it reads a notified change.
const DBOS: Entry = entry(
    "dbos",
    Program::Dbos,
    Tries::Best(&["", "--connections 4", "--connections 20", "--coalesce-ms 1"], &["", "--connections 20"]),
);

/// The defaults of the runtime: two turns and two activities at the same time.
const DEFAULTS: Entry = entry(OUTLAST_DEFAULTS, Program::Outlast, AS_IT_IS);

/// The entry of a floor, whose command line replaces the command line of the scenario.
const fn floor(system: &'static str, line: &'static str, tries: Tries) -> Entry {
    Entry { options: line, ..entry(system, Program::Floor, tries) }
}

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "hello",
        backend: Backend::Postgres,
        about: "a backlog of 2,000 orchestrations of one activity, started as fast as eight clients can",
        full: "hello --count 2000",
        quick: "hello --count 400",
        judged_by: THROUGHPUT,
        entries: &[
            floor("floor-1", "hello-postgres --count 2000 --per-transaction 1", MANY_CONNECTIONS),
            floor("floor-64", "hello-postgres --count 8000 --per-transaction 64", FEW_CONNECTIONS),
            duroxide(PEER),
            entry(DUROXIDE_DEFAULTS, Program::DuroxidePg, AS_IT_IS),
            DURARE,
            DBOS,
            outlast(WIDE),
            DEFAULTS,
        ],
    },
    Scenario {
        name: "fan-out-5",
        backend: Backend::Postgres,
        about: "250 orchestrations that run five activities at once",
        full: "fan-outs --count 250 --steps 5",
        quick: "fan-outs --count 80 --steps 5",
        judged_by: THROUGHPUT,
        entries: &[duroxide(PEER), outlast(WIDE), DEFAULTS],
    },
    Scenario {
        name: "chain-10",
        backend: Backend::Postgres,
        about: "200 orchestrations of ten activities, one after the other",
        full: "chains --count 200 --steps 10",
        quick: "chains --count 40 --steps 10",
        judged_by: THROUGHPUT,
        entries: &[duroxide(PEER), DURARE, DBOS, outlast(WIDE), DEFAULTS],
    },
    Scenario {
        name: "long-chain",
        backend: Backend::Postgres,
        about: "one orchestration of 1,000 activities, one after the other; duroxide polls every 1 ms",
        full: "long-chain --steps 1000",
        quick: "long-chain --steps 300",
        judged_by: STEP,
        entries: &[duroxide(PEER_POLLING), DURARE, DBOS, outlast(NARROW)],
    },
    Scenario {
        name: "hello-idle",
        backend: Backend::Postgres,
        about: "one hello at a time on an idle runtime, as the client sees it; polling as each has it",
        full: "hello-idle --count 50",
        quick: "hello-idle --count 15",
        judged_by: P50,
        entries: &[duroxide(PEER_NOT_POLLING), DURARE, DBOS, outlast(NARROW)],
    },
    Scenario {
        name: "processes-1",
        backend: Backend::Postgres,
        about: "the backlog of hellos, with one process that works; the store is asked for their ends",
        full: "processes --count 2000 --processes 1",
        quick: "processes --count 400 --processes 1",
        judged_by: THROUGHPUT,
        entries: &[outlast(WIDE)],
    },
    Scenario {
        name: "processes-2",
        backend: Backend::Postgres,
        about: "the same with two",
        full: "processes --count 2000 --processes 2",
        quick: "processes --count 400 --processes 2",
        judged_by: THROUGHPUT,
        entries: &[outlast(WIDE)],
    },
];
