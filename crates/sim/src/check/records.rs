//! I16: the audit has the records of all changes that operators and runtimes made, and no other.

use crate::shared::Shared;

/// More records than a world can have.
const MOST: usize = 100_000;

pub(super) async fn check(shared: &Shared) -> Result<(), String> {
    let Some(admin) = shared.store().as_management_capability() else { return Ok(()) };
    let found = admin.audit_page(None, MOST).await.map_err(|error| format!("I16: no audit: {error}"))?;
    let found = found.ok_or("I16: the store keeps no audit")?;
    let up = shared.lives.nodes_up();
    let goes_on = |node: usize, disturbances: u64| {
        up.contains(&node) && !shared.is_draining_node(node) && shared.disturbances(node) == disturbances
    };
    let performed = shared.performed();
    performed.audit.check(&found)?;
    performed.audit.overdue(shared.now_ms(), goes_on)?;
    drop(performed);
    let mut tally = shared.tally();
    tally.most_records = tally.most_records.max(found.len() as u64);
    Ok(())
}
