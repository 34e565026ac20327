//! I13: the figures of the store add up and agree with its rows.

use super::Snapshot;
use crate::shared::Shared;
use outlast_model::{Event, ExecutionStatus};

pub(super) async fn check(shared: &Shared, snapshot: &Snapshot) -> Result<(), String> {
    let Some(admin) = shared.store().as_management_capability() else { return Ok(()) };
    let metrics = admin.get_system_metrics().await.map_err(|error| format!("I13: no figures: {error}"))?;
    let status = |instance: &String, current: &u64| snapshot.executions.get(&(instance.clone(), *current));
    let count = |wanted: ExecutionStatus| {
        let all = snapshot.instances.iter();
        all.filter(|(id, current)| status(id, current).is_some_and(|status| status == wanted.as_str()))
            .count() as u64
    };
    let events: u64 = snapshot.histories.values().map(|history| history.len() as u64).sum();
    let found = [
        ("instances", metrics.total_instances, snapshot.instances.len() as u64),
        ("executions", metrics.total_executions, snapshot.executions.len() as u64),
        ("running", metrics.running_instances, count(ExecutionStatus::Running)),
        ("completed", metrics.completed_instances, count(ExecutionStatus::Completed)),
        ("failed", metrics.failed_instances, count(ExecutionStatus::Failed)),
        ("events", metrics.total_events, events),
    ];
    for (what, said, counted) in found {
        if said != counted {
            return Err(format!("I13: the store reports {said} {what}, and its rows have {counted}"));
        }
    }
    let ended = |history: &[Event]| history.iter().any(Event::is_terminal);
    let finished = snapshot.instances.iter().filter(|(id, current)| ended(snapshot.history(id, **current)));
    let continued = count(ExecutionStatus::ContinuedAsNew);
    let said = metrics.completed_instances + metrics.failed_instances + continued;
    match finished.count() as u64 {
        counted if counted == said => Ok(()),
        counted => Err(format!("I13: {counted} executions have ended, and the store reports {said}")),
    }
}
