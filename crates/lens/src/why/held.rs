//! Rules about an instance that is paused or parked.

use super::diagnosis::{Finding, Rule};
use super::evidence::Evidence;
use super::words::{argument, quoted};
use crate::count::counted;
use crate::time::moment;
use crate::wait::is_future_timer;
use outlast_model::{HeldInstance, Hold, HoldKind, PendingWork, QueuedItem};

pub(super) fn diagnose(evidence: &Evidence<'_>, held: &HeldInstance) -> Finding {
    let (hold, at) = (&held.hold, moment(held.held_at_ms));
    let waiting = evidence.pending.map_or_else(String::new, |pending| waiting(evidence, pending));
    let because = match hold.reason.is_empty() {
        true => String::new(),
        false => format!(" ({})", quoted(&hold.reason)),
    };
    let actor = quoted(&hold.actor);
    let kind = match hold.kind {
        HoldKind::Parked => format!("was parked by {actor} at {at} UTC instead of failing"),
        HoldKind::OrchestrationPaused => {
            format!("is held since {at} UTC, because {actor} paused its orchestration")
        }
        _ => format!("was paused by {actor} at {at} UTC"),
    };
    let says = format!("{kind}{because}{waiting}");
    if let Some(live) = parking_build(evidence, hold) {
        let says = format!(
            "{says}; {live} it again: first deploy a build whose code fits, whose runtimes release the instance by themselves with \
             on_misfit: Park, or else `outlast instance resume {}` does",
            argument(evidence.instance)
        );
        return Finding::new(Rule::Held, says);
    }
    let remedy = match (hold.kind, evidence.orchestration()) {
        (HoldKind::OrchestrationPaused, Some(name)) => {
            format!("outlast orchestration resume {}", argument(name))
        }
        _ => format!("outlast instance resume {}", argument(evidence.instance)),
    };
    let remedy = Some(remedy);
    Finding { remedy, ..Finding::new(Rule::Held, says) }
}

/// The live nodes that run the build that parked the instance, if there are any, and what they do to it. A runtime without a name of its
/// build parks as `a runtime`.
fn parking_build(evidence: &Evidence<'_>, hold: &Hold) -> Option<&'static str> {
    if hold.kind != HoldKind::Parked {
        return None;
    }
    let (build, live) = match hold.actor.strip_prefix("build ") {
        Some(build) => (build, "a live node still runs this build, which would park"),
        None if hold.actor == "a runtime" => {
            ("", "a live node still runs a build without a name, which may park")
        }
        None => return None,
    };
    let mut nodes = evidence.nodes.unwrap_or_default().iter();
    nodes.any(|node| !node.is_lost() && node.report.build == build).then_some(live)
}

/// The messages that wait for the release, apart from timers that are not due.
fn waiting(evidence: &Evidence<'_>, pending: &PendingWork) -> String {
    let is_future_timer = |item: &&QueuedItem| is_future_timer(evidence.history, pending.now_ms, item);
    let timers = pending.messages.iter().filter(is_future_timer).count() as u64;
    let timers_text = if timers == 1 { "a timer".to_string() } else { counted(timers, "timer") };
    match (pending.message_count.saturating_sub(timers), timers) {
        (0, 0) => String::new(),
        (0, 1) => ", and a timer waits".to_string(),
        (0, _) => format!(", and {timers_text} wait"),
        (1, 0) => ", and 1 message waits".to_string(),
        (count, 0) => format!(", and {} wait", counted(count, "message")),
        (count, _) => format!(", and {} and {timers_text} wait", counted(count, "message")),
    }
}
