//! I10: when everything has ended, nothing is left over.

use super::Snapshot;
use crate::client::STRAY;
use crate::shared::Shared;
use outlast_provider::Clock;

/// What should not be there when all instances have ended. Messages for instances that nobody ever started are orphans,
/// which are kept for a day, and counted.
pub(crate) fn left_over(shared: &Shared, snapshot: &Snapshot) -> Vec<String> {
    let now = shared.clock.now_ms();
    let mut left = Vec::new();
    let witness = shared.witness();
    for message in &snapshot.messages {
        let target = message.item.target_instance();
        // A client may cancel a child that its parent has never come to.
        let is_orphan = !snapshot.instances.contains_key(target) && witness.cancelled.contains(target);
        if !target.starts_with(STRAY) && !is_orphan {
            left.push(format!("message {} for '{target}'", message.item.kind_name()));
        }
    }
    left.extend(snapshot.work.iter().map(|work| format!("activity {} of '{}'", work.id, work.instance)));
    let leased = snapshot.leases.iter().filter(|(_, until)| **until > now);
    left.extend(leased.map(|(instance, _)| format!("lease on '{instance}'")));
    left.extend(snapshot.sessions.iter().map(|session| format!("session {session}")));
    left
}

/// Messages for instances that nobody ever started.
pub(crate) fn orphans(snapshot: &Snapshot) -> usize {
    snapshot.messages.iter().filter(|message| message.item.target_instance().starts_with(STRAY)).count()
}
