//! Parking: an instance whose code does not fit its history or panics is held instead of failed.

use super::lease::Lease;
use super::turn::TurnDecision;
use crate::core::Core;
use crate::options::OnMisfit;
use outlast_engine::{Ending, Report};
use outlast_model::{AppErrorKind, AuditEntry, ConfigErrorKind, ErrorDetails, Hold, HoldKind};
use outlast_provider::{HoldOutcome, ProviderError, ReleaseOutcome};
use std::sync::Arc;
use std::time::Duration;

/// The delay after an error of the store, of a turn whose instance could not be parked and of the next try to release instances.
const PARK_AGAIN: Duration = Duration::from_secs(1);
/// Parked instances that are released at a time.
const PAGE: usize = 500;
/// The action of a parked instance in the audit.
const PARK: &str = "instance.park";
/// The action of an instance that a runtime releases.
const RELEASE: &str = "instance.unpark";

/// The reason of a hold after a panic. The message of the panic may quote a payload, and the panic hook has printed it.
const PANICKED: &str =
    "the code of the orchestration panicked: the error output of the runtime's process has the message";

/// The reason why the code of a turn does not fit the history, if the turn failed so.
pub(super) fn misfit(report: &Report) -> Option<String> {
    match &report.ended {
        Some(Ending::Failed(details)) => reason(details),
        _ => None,
    }
}

/// The reason of a hold for a failure that another build may not have.
pub(super) fn reason(details: &ErrorDetails) -> Option<String> {
    match details {
        ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, message, .. } => {
            Some(message.clone().unwrap_or_default())
        }
        ErrorDetails::Application { kind: AppErrorKind::Panicked, .. } => Some(PANICKED.to_string()),
        _ => None,
    }
}

/// Whether the instance of this turn is parked, so that the turn must not be committed.
pub(super) fn parks(core: &Core, report: &Report) -> bool {
    core.options.on_misfit == OnMisfit::Park && misfit(report).is_some()
}

/// Parks the instance for the reason, if there is one and the runtime parks instances that do not fit; else `otherwise`.
pub(super) fn or_park(core: &Core, reason: Option<String>, otherwise: TurnDecision) -> TurnDecision {
    match reason.filter(|_| core.options.on_misfit == OnMisfit::Park) {
        Some(reason) => TurnDecision::ParkInstance { reason, otherwise: Box::new(otherwise) },
        None => otherwise,
    }
}

/// Holds the instance of a turn. Returns the lease if the instance cannot be held.
pub(super) async fn park(core: &Core, instance: &str, lease: Lease, reason: String) -> Option<Lease> {
    let hold = Hold { kind: HoldKind::Parked, actor: actor(core), reason };
    match core.store.hold_turn(lease.token(), &hold).await {
        Ok(HoldOutcome::Held) => {
            lease.settle();
            tracing::warn!(target: "duroxide::runtime", instance_id = %instance, "the instance is parked instead of failing, see `outlast instance why`");
            audit(core, PARK, instance, &hold.reason).await;
            None
        }
        // The store cannot hold it, or a cancellation waits for it: it fails.
        Ok(_) => Some(lease),
        Err(_) => {
            lease.give_back(core, Some(PARK_AGAIN), true).await;
            None
        }
    }
}

/// The name of this build as the actor of holds.
fn actor(core: &Core) -> String {
    match core.options.build_id.as_str() {
        "" => "a runtime".to_string(),
        build => format!("build {build}"),
    }
}

/// Records a change. An audit that fails undoes nothing: the hold itself has the reason.
async fn audit(core: &Core, action: &str, instance: &str, reason: &str) {
    let Some(admin) = core.store.as_management_capability() else { return };
    let entry = AuditEntry {
        actor: actor(core),
        action: action.to_string(),
        target: instance.to_string(),
        reason: reason.to_string(),
        request: None,
        result: "done".to_string(),
    };
    let _ = admin.append_audit(&entry).await;
}

/// Releases the instances that runtimes of other builds have parked: this build may fit them. Repeats calls that the store may answer
/// later, because the next release comes only with the next start of a runtime.
pub(crate) async fn release_parked(core: Arc<Core>) {
    let mut after = None;
    // The errors are in the metrics and spans of the store.
    while release_all(&core, &mut after).await.is_err_and(|error| error.is_retryable()) {
        tokio::time::sleep(PARK_AGAIN).await;
    }
}

/// Releases the instances behind `after`, which follows the released ones: a repetition releases none that was parked since.
async fn release_all(core: &Core, after: &mut Option<String>) -> Result<(), ProviderError> {
    let Some(admin) = core.store.as_management_capability() else { return Ok(()) };
    let own = actor(core);
    let is_other = |by: &str| core.options.build_id.is_empty() || by != own;
    loop {
        let page = admin.list_held(after.as_deref(), PAGE).await?;
        if page.is_empty() {
            return Ok(());
        }
        for held in page {
            if held.hold.kind == HoldKind::Parked && is_other(&held.hold.actor) {
                match admin.release_instance(&held.instance_id).await {
                    Ok(ReleaseOutcome::Released) => {
                        audit(core, RELEASE, &held.instance_id, "a runtime of another build started").await;
                    }
                    Err(error) if error.is_retryable() => return Err(error),
                    // Another runtime has released it, or it stays parked and visible.
                    Ok(_) | Err(_) => {}
                }
            }
            *after = Some(held.instance_id);
        }
    }
}
