//! The targets on PostgreSQL.

use super::{Bound, Round, Target, at_defaults, faster, figure, median, more, not_above};

const OUTLAST: &str = "outlast postgres";
const DUROXIDE: &str = "duroxide postgres";
const DURARE: &str = "durare postgres";
const DBOS: &str = "dbos postgres";
const DEFAULTS: &str = "outlast-defaults postgres";
const FLOOR_64: &str = "floor-64 postgres";

/// In none of the rounds.
const fn no_deadlocks(scenario: &'static str) -> Target {
    Target {
        scenario,
        of: figure(scenario, OUTLAST, "deadlocks", Round::Most),
        over: None,
        unit: "in a run",
        bound: Bound::AtMost(0.0),
    }
}

pub(super) const TARGETS: &[Target] = &[
    more("hello", DEFAULTS, "duroxide-defaults postgres", 15.0),
    more("hello", OUTLAST, DUROXIDE, 15.0),
    at_defaults("hello", DEFAULTS, OUTLAST),
    Target {
        scenario: "hello",
        of: median("hello", OUTLAST, "throughput"),
        over: Some(median("hello", FLOOR_64, "throughput")),
        unit: "x",
        bound: Bound::AtLeast(0.4),
    },
    more("hello", OUTLAST, DURARE, 1.0),
    more("hello", OUTLAST, DBOS, 1.0),
    no_deadlocks("hello"),
    more("fan-out-5", OUTLAST, DUROXIDE, 12.0),
    at_defaults("fan-out-5", DEFAULTS, OUTLAST),
    no_deadlocks("fan-out-5"),
    more("chain-10", OUTLAST, DUROXIDE, 10.0),
    at_defaults("chain-10", DEFAULTS, OUTLAST),
    more("chain-10", OUTLAST, DURARE, 1.0),
    more("chain-10", OUTLAST, DBOS, 1.0),
    no_deadlocks("chain-10"),
    faster("long-chain", "step", OUTLAST, DUROXIDE, 10.0),
    not_above("long-chain", OUTLAST, "growth", "x", 1.2),
    faster("long-chain", "step", OUTLAST, DURARE, 1.1),
    faster("long-chain", "step", OUTLAST, DBOS, 1.1),
    faster("hello-idle", "p50", OUTLAST, DUROXIDE, 40.0),
    faster("hello-idle", "p50", OUTLAST, DURARE, 1.15),
    faster("hello-idle", "p50", OUTLAST, DBOS, 1.15),
    Target {
        scenario: "processes-2",
        of: median("processes-2", OUTLAST, "throughput"),
        over: Some(median("processes-1", OUTLAST, "throughput")),
        unit: "x",
        bound: Bound::AtLeast(0.9),
    },
    no_deadlocks("processes-2"),
];
