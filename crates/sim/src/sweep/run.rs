//! One run of a script with at most one fault.

use super::probe::{Moments, SweepProbe, Target};
use super::scripts::Script;
use crate::check::Snapshot;
use crate::plan::{NEVER_POISON, Plan, StoreKind};
use crate::world::{self, Settings};
use outlast_model::{Event, EventKind};
use outlast_runtime::RuntimeOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Short enough that a lost lease ends soon, and long enough that slow activities need few renewals.
pub(super) const LEASE_MS: u64 = 3_000;

/// The result of one run of a script.
pub(super) struct ScriptRun {
    pub(super) moments: Moments,
    pub(super) failures: Vec<String>,
    /// The last lines of the trace.
    pub(super) lines: Vec<String>,
}

pub(super) fn run_script(
    script: &Script,
    seed: u64,
    store: StoreKind,
    target: Option<Target>,
    settings: &Settings,
) -> ScriptRun {
    let probe = SweepProbe::new(target);
    let plan = Plan {
        seed,
        store,
        nodes: 2,
        call_fault_rates: BTreeMap::new(),
        foreign_poll: Duration::from_millis(100),
        mirror_waits: false,
        latency_ms: 0,
        statement_faults: 0,
        link_fault_rates: BTreeMap::new(),
        process_fault_means_ms: BTreeMap::new(),
        waits_for_lock: false,
        downtime_ms: 1,
        loses_wake_ups: false,
        skewed: false,
        old_builds: false,
        misfits: BTreeSet::new(),
        takes_over: false,
        // The plan of the world has no faults: the probe injects the only fault.
        safety_ms: 0,
        lease_ms: LEASE_MS,
        max_attempts: NEVER_POISON,
        stray_times_ms: Vec::new(),
        has_local_clients: false,
        has_quick_work: false,
        roots: vec![script.root.clone()],
        pause: script.pause,
        probe: Some(Arc::clone(&probe)),
    };
    let outcome = world::run_plan(plan, settings);
    let moments = probe.moments();
    let mut failures = outcome.failures;
    if failures.is_empty() {
        failures.extend(wrong_ending(script, &moments.endings));
        // After a lost answer the client repeats a reset or fork, and the repetition may be refused.
        if target.is_none() {
            failures.extend(missing_copy(script, outcome.tally.resets));
        }
    }
    let lines = if failures.is_empty() { Vec::new() } else { outcome.lines };
    ScriptRun { moments, failures, lines }
}

/// Describes endings that differ from the expected ones.
fn wrong_ending(script: &Script, endings: &BTreeMap<String, String>) -> Option<String> {
    let wanted: BTreeMap<String, String> = script.endings.iter().cloned().collect();
    (wanted != *endings).then(|| format!("the endings must be {wanted:?}, and are {endings:?}"))
}

/// The options of nodes in all scripts: few fetches while the nodes are idle, and no random choices.
pub(crate) fn fixed_options(options: RuntimeOptions) -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_long_poll_timeout: Duration::from_secs(30),
        orchestration_concurrency: 1,
        worker_concurrency: 2,
        activity_cancellation_grace_period: Duration::from_millis(500),
        session_cleanup_interval: Duration::from_secs(15),
        max_sessions_per_runtime: 10,
        warm_executions: 100,
        // A sweep injects a fault at every call. Reports of nodes affect no instance, and would multiply the runs.
        node_heartbeat: None,
        ..options
    }
}

/// Records the endings of all instances that are visible to clients. Children with ids of their parent are not.
pub(crate) fn record_endings(probe: &SweepProbe, snapshot: &Snapshot) {
    for (instance, current) in snapshot.instances.iter().filter(|(instance, _)| !instance.contains("::")) {
        let ended = snapshot.history(instance, *current).iter().find(|event| event.is_terminal());
        let how = match ended.map(|Event { kind, .. }| kind) {
            Some(EventKind::OrchestrationCompleted { output }) => format!("={}", without_data(output)),
            Some(EventKind::OrchestrationFailed { details }) => format!("!{}", details.display_message()),
            _ => "the instance has not ended".to_string(),
        };
        probe.instance_ended(instance, how);
    }
}

/// Removes the data of messages, which contains the number of tries of the client.
fn without_data(output: &str) -> String {
    let words = crate::program::plain(output);
    let words = words
        .split(' ')
        .map(|word| word.split_once(':').filter(|(read, _)| *read == "read").map_or(word, |read| read.0));
    words.collect::<Vec<_>>().join(" ")
}

/// Describes resets and forks that were refused: without them the endings are the same.
fn missing_copy(script: &Script, done: u64) -> Option<String> {
    let copies = script.root.actions.iter().filter(|(_, action)| action.branches(&script.root).is_some());
    let wanted = copies.count() as u64;
    (wanted != done).then(|| format!("{wanted} resets and forks must be done, and {done} are"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_leave_out_the_data_of_messages() {
        assert_eq!(without_data("t1 read:i0.3 its:1 read:x"), "t1 read its:1 read");
        assert_eq!(without_data("\"t1 read:i0.3\""), "t1 read");
    }
}
