//! I10: after all instances have ended, the queues are empty.

use super::Snapshot;
use crate::client::STRAY;
use crate::shared::Shared;
use outlast_provider::Clock;

/// Messages, activities, leases and sessions that must be gone after all instances have ended. Messages for instances
/// that were never started are orphans, which the store keeps for a day.
pub(crate) fn left_over(shared: &Shared, snapshot: &Snapshot) -> Vec<String> {
    let now = shared.clock.now_ms();
    let mut left = Vec::new();
    let performed = shared.performed();
    for message in &snapshot.messages {
        let target = message.item.target_instance();
        // A client may cancel a child that its parent never started.
        let is_orphan = !snapshot.instances.contains_key(target) && performed.cancelled.contains(target);
        if !target.starts_with(STRAY) && !is_orphan {
            left.push(format!("message {} for '{target}'", message.item.kind_name()));
        }
    }
    left.extend(
        snapshot
            .activities
            .iter()
            .map(|activity| format!("activity {} of '{}'", activity.id, activity.instance)),
    );
    let leased = snapshot.leases.iter().filter(|(_, until)| **until > now);
    left.extend(leased.map(|(instance, _)| format!("lease on '{instance}'")));
    left.extend(snapshot.sessions.iter().map(|session| format!("session {session}")));
    left
}

/// Number of messages for instances that were never started.
pub(crate) fn orphans(snapshot: &Snapshot) -> usize {
    snapshot.messages.iter().filter(|message| message.item.target_instance().starts_with(STRAY)).count()
}
