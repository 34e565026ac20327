//! The targets on Cosmos DB: requests, as shares of those of the peer.

use super::{Round, Target, figure, median, within};

const OUTLAST: &str = "outlast cosmos";
const DUROXIDE: &str = "duroxide cosmos";

/// At most this share of the requests of the peer in its best round.
const fn share(scenario: &'static str, share: f64) -> Target {
    within(
        scenario,
        median(scenario, OUTLAST, "requests"),
        figure(scenario, DUROXIDE, "requests", Round::Least),
        share,
    )
}

/// As many of them among 10,000 instances as among 100, and a little for chance.
const fn flat(metric: &'static str) -> Target {
    within("among-10000", median("among-10000", OUTLAST, metric), median("among-100", OUTLAST, metric), 1.2)
}

pub(super) const TARGETS: &[Target] = &[
    share("hello-together", 0.25),
    share("hello-client-apart", 0.6),
    share("hello-all-apart", 0.6),
    share("chain-together", 0.25),
    share("chain-client-apart", 0.6),
    share("chain-all-apart", 0.6),
    flat("requests_above_idle"),
    flat("idle_requests"),
    flat("idle_ru"),
];
