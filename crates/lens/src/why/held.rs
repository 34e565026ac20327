//! Rules about an instance that is paused or parked.

use super::diagnosis::{Finding, Rule};
use super::evidence::Evidence;
use super::words::{argument, quoted};
use crate::count::counted;
use crate::time::moment;
use outlast_model::{HeldInstance, HoldKind};

pub(super) fn diagnose(evidence: &Evidence<'_>, held: &HeldInstance) -> Finding {
    let (hold, at) = (&held.hold, moment(held.held_at_ms));
    let waiting = evidence.pending.map_or(0, |pending| pending.message_count);
    let waiting = match waiting {
        0 => String::new(),
        1 => ", and 1 message waits".to_string(),
        count => format!(", and {} wait", counted(count, "message")),
    };
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
    let remedy = match (hold.kind, evidence.orchestration()) {
        (HoldKind::OrchestrationPaused, Some(name)) => {
            format!("outlast orchestration resume {}", argument(name))
        }
        _ => format!("outlast instance resume {}", argument(evidence.instance)),
    };
    let remedy = Some(remedy);
    Finding { remedy, ..Finding::new(Rule::Held, says) }
}
