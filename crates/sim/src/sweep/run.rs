//! One story with one fault.

use super::aim::{Aim, Moments, Target};
use super::scripts::Script;
use crate::check::Snapshot;
use crate::plan::{NEVER_POISON, Plan, StoreKind};
use crate::world::{self, Settings};
use outlast_model::{Event, EventKind};
use outlast_runtime::RuntimeOptions;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Short enough that a lost one is soon over, long enough that slow activities are not renewed all the time.
pub(super) const LEASE_MS: u64 = 3_000;

/// What became of a story.
pub(super) struct Told {
    pub(super) moments: Moments,
    pub(super) failures: Vec<String>,
    /// The end of its trace.
    pub(super) lines: Vec<String>,
}

pub(super) fn tell(
    script: &Script,
    seed: u64,
    store: StoreKind,
    target: Option<Target>,
    settings: &Settings,
) -> Told {
    let aim = Aim::new(target);
    let plan = Plan {
        seed,
        store,
        nodes: 2,
        rates: BTreeMap::new(),
        latency_ms: 0,
        statement_faults: 0,
        every_ms: BTreeMap::new(),
        downtime_ms: 1,
        loses_wake_ups: false,
        skewed: false,
        old_builds: false,
        // It is healed from the beginning: the one fault is not of the world's.
        safety_ms: 0,
        lease_ms: LEASE_MS,
        max_attempts: NEVER_POISON,
        strays: Vec::new(),
        roots: vec![script.root.clone()],
        aim: Some(Arc::clone(&aim)),
    };
    let outcome = world::run_plan(plan, settings);
    let moments = aim.moments();
    let mut failures = outcome.failures;
    if failures.is_empty() {
        failures.extend(wrong_ending(script, &moments.endings));
    }
    let lines = if failures.is_empty() { Vec::new() } else { outcome.lines };
    Told { moments, failures, lines }
}

/// What ended otherwise than it must.
fn wrong_ending(script: &Script, endings: &BTreeMap<String, String>) -> Option<String> {
    let wanted: BTreeMap<String, String> = script.endings.iter().cloned().collect();
    (wanted != *endings).then(|| format!("it must end as {wanted:?}, not as {endings:?}"))
}

/// How nodes run in all stories: few fetches while nothing happens, and nothing drawn.
pub(crate) fn settled(options: RuntimeOptions) -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_long_poll_timeout: Duration::from_secs(30),
        orchestration_concurrency: 1,
        worker_concurrency: 2,
        activity_cancellation_grace_period: Duration::from_millis(500),
        session_cleanup_interval: Duration::from_secs(15),
        max_sessions_per_runtime: 10,
        warm_executions: 100,
        ..options
    }
}

/// Tells an aim how everything ended that somebody outside can see: children with ids of their parent's are not.
pub(crate) fn endings(aim: &Aim, snapshot: &Snapshot) {
    for (instance, current) in snapshot.instances.iter().filter(|(instance, _)| !instance.contains("::")) {
        let ended = snapshot.history(instance, *current).iter().find(|event| event.is_terminal());
        let how = match ended.map(|Event { kind, .. }| kind) {
            Some(EventKind::OrchestrationCompleted { output }) => format!("={}", without_data(output)),
            Some(EventKind::OrchestrationFailed { details }) => format!("!{}", details.display_message()),
            _ => "it has not ended".to_string(),
        };
        aim.ended(instance, how);
    }
}

/// The data of a message says how often its client has tried.
fn without_data(output: &str) -> String {
    let words = crate::program::plain(output);
    let words = words
        .split(' ')
        .map(|word| word.split_once(':').filter(|(read, _)| *read == "read").map_or(word, |read| read.0));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_no_part_of_an_ending() {
        assert_eq!(without_data("t1 read:i0.3 its:1 read:x"), "t1 read its:1 read");
        assert_eq!(without_data("\"t1 read:i0.3\""), "t1 read");
    }
}
