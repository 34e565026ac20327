//! The scenarios on an emulated Cosmos DB account, which counts requests. No time is measured, because the speed of the emulator
//! differs from the speed of Azure.

use super::{AS_IT_IS, Backend, COSMOS, Effort, Entry, REQUESTS, Scenario};
use crate::contestant::Program;

const fn entry(system: &'static str, program: Program) -> Entry {
    let (options, effort) = ("--store cosmos", Effort::Always);
    Entry { system, store: COSMOS, program, options, tries: AS_IT_IS, effort }
}

const ENTRIES: &[Entry] =
    &[entry("duroxide", Program::DuroxideCdb), entry("outlast", Program::OutlastCosmos)];

/// Among 1,000 waiting instances, queries of the peer read 1,000 documents each, and the emulator does not end the run in minutes.
const OURS: &[Entry] = &[entry("outlast", Program::OutlastCosmos)];

const fn scenario(
    name: &'static str,
    about: &'static str,
    full: &'static str,
    quick: &'static str,
) -> Scenario {
    Scenario { name, backend: Backend::Cosmos, about, full, quick, judged_by: REQUESTS, entries: ENTRIES }
}

pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "hello-together",
        "hellos; client, turns and activities in one process",
        "billed-hello --count 60",
        "billed-hello --count 20",
    ),
    scenario(
        "hello-client-apart",
        "hellos; the client in another process",
        "billed-hello --count 60 --apart client",
        "billed-hello --count 20 --apart client",
    ),
    scenario(
        "hello-all-apart",
        "hellos; client, turns and activities in three processes",
        "billed-hello --count 60 --apart client-and-work",
        "billed-hello --count 20 --apart client-and-work",
    ),
    scenario(
        "chain-together",
        "one chain of activities; all in one process",
        "billed-chain --steps 60",
        "billed-chain --steps 20",
    ),
    scenario(
        "chain-client-apart",
        "the same; the client in another process",
        "billed-chain --steps 60 --apart client",
        "billed-chain --steps 20 --apart client",
    ),
    scenario(
        "chain-all-apart",
        "the same; client, turns and activities in three processes",
        "billed-chain --steps 60 --apart client-and-work",
        "billed-chain --steps 20 --apart client-and-work",
    ),
    scenario(
        "among-100",
        "hellos and three idle minutes among 100 instances that wait for a timer",
        "billed-among --count 100 --seconds 180",
        "billed-among --count 100 --seconds 180",
    ),
    Scenario {
        entries: OURS,
        ..scenario(
            "among-10000",
            "the same among 10,000",
            "billed-among --count 100 --copies 99 --seconds 180 --limit-s 600",
            "billed-among --count 100 --copies 99 --seconds 180 --limit-s 600",
        )
    },
];
