//! The scenarios on stores in this process: SQLite at two settings, and in memory.

use super::{
    AS_IT_IS, Backend, DUROXIDE_DEFAULTS, Effort, Entry, NARROW, OUTLAST_DEFAULTS, P50, STEP, Scenario,
    THROUGHPUT, Tries, WIDE,
};
use crate::contestant::Program;

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
const SWEEP: Tries = Tries::Every(&[
    "--dispatchers 1",
    "--dispatchers 2",
    "--dispatchers 4",
    "--dispatchers 8",
    "--dispatchers 16",
    "--dispatchers 32",
    "--dispatchers 64",
]);

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

/// The defaults of the runtime: two turns and two activities at the same time.
const DEFAULTS: Entry = Entry { system: OUTLAST_DEFAULTS, ..outlast(FULL, AS_IT_IS) };

const fn once(entry: Entry, effort: Effort) -> Entry {
    Entry { effort, ..entry }
}

const fn stored_in(entry: Entry, store: &'static str) -> Entry {
    Entry { store, ..entry }
}

const FULL: &str = "--synchronous full";
const NORMAL: &str = "--synchronous normal";

// A floor is a separate program: its command line replaces the command line of the scenario.
const FLOOR_1: Entry = floor("floor-1", "hello --count 400 --per-transaction 1 --synchronous full");
const FLOOR_64: Entry = floor("floor-64", "hello --count 8000 --per-transaction 64 --synchronous full");

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "fsync",
        backend: Backend::Embedded,
        about: "8 kB written to a file and synced: what the disk takes",
        full: "",
        quick: "",
        judged_by: P50,
        entries: &[floor("floor-1", "fsync --count 500")],
    },
    Scenario {
        name: "hello",
        backend: Backend::Embedded,
        about: "a backlog of 2,000 orchestrations of one activity, started as fast as eight clients can",
        full: "hello --count 2000",
        quick: "hello --count 400",
        judged_by: THROUGHPUT,
        entries: &[
            FLOOR_1,
            FLOOR_64,
            floor("floor-64-hellos", "hello --count 8000 --hellos-per-transaction 64 --synchronous full"),
            floor("floor-1", "hello --count 1000 --per-transaction 1 --synchronous normal"),
            floor("floor-64", "hello --count 8000 --per-transaction 64 --synchronous normal"),
            duroxide("", PEER),
            Entry { system: DUROXIDE_DEFAULTS, ..duroxide("", AS_IT_IS) },
            durare(NORMAL),
            durare(FULL),
            outlast(FULL, WIDE),
            outlast(NORMAL, WIDE),
            DEFAULTS,
        ],
    },
    Scenario {
        name: "hello-closed",
        backend: Backend::Embedded,
        about: "16 clients that start one, wait for it with the client, and start the next, for up to 10 s",
        full: "hello-closed --in-flight 16 --count 8000 --seconds 10",
        quick: "hello-closed --in-flight 16 --count 1000 --seconds 2",
        judged_by: THROUGHPUT,
        entries: &[duroxide("", PEER), outlast(FULL, WIDE), outlast(NORMAL, WIDE), DEFAULTS],
    },
    Scenario {
        name: "fan-out-5",
        backend: Backend::Embedded,
        about: "400 orchestrations that run five activities at once",
        full: "fan-outs --count 400 --steps 5",
        quick: "fan-outs --count 80 --steps 5",
        judged_by: THROUGHPUT,
        entries: &[duroxide("", PEER), outlast(FULL, WIDE), outlast(NORMAL, WIDE), DEFAULTS],
    },
    Scenario {
        name: "chain-10",
        backend: Backend::Embedded,
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
            DEFAULTS,
        ],
    },
    Scenario {
        name: "long-chain",
        backend: Backend::Embedded,
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
        backend: Backend::Embedded,
        about: "one orchestration that runs 1,000 activities at once",
        full: "wide-fan-out --steps 1000 --limit-s 50",
        quick: "wide-fan-out --steps 500 --limit-s 20",
        judged_by: THROUGHPUT,
        entries: &[duroxide("", PEER_NOT_POLLING), outlast(FULL, WIDE), outlast(NORMAL, WIDE), DEFAULTS],
    },
    Scenario {
        name: "fan-out-5000",
        backend: Backend::Embedded,
        about: "one orchestration that runs 5,000 activities at once; duroxide is stopped after 50 s",
        full: "wide-fan-out --steps 5000 --limit-s 50",
        quick: "wide-fan-out --steps 2500 --limit-s 8",
        judged_by: THROUGHPUT,
        entries: &[
            once(duroxide("--dispatchers 2", AS_IT_IS), Effort::Once),
            outlast(FULL, WIDE),
            outlast(NORMAL, WIDE),
            DEFAULTS,
        ],
    },
    Scenario {
        name: "hello-idle",
        backend: Backend::Embedded,
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
        backend: Backend::Embedded,
        about: "the same while duroxide polls its store every 1 ms",
        full: "hello-idle --count 50",
        quick: "hello-idle --count 15",
        judged_by: P50,
        entries: &[duroxide("", PEER_POLLING), outlast(FULL, NARROW)],
    },
    Scenario {
        name: "asleep",
        backend: Backend::Embedded,
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
        backend: Backend::Embedded,
        about: "the same, and nothing that sleeps is kept in memory",
        full: "asleep --count 20000 --samples 100 --seconds 10",
        quick: "asleep --count 2000 --samples 20 --seconds 1",
        judged_by: P50,
        entries: &[outlast("--synchronous full --cache off", AS_IT_IS)],
    },
    Scenario {
        name: "hello-memory",
        backend: Backend::Embedded,
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
        backend: Backend::Embedded,
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
