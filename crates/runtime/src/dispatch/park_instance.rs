//! Parking: an instance whose code does not fit its history or panics is held instead of failed.

use super::lease::Lease;
use super::turn::TurnDecision;
use crate::core::Core;
use crate::options::OnMisfit;
use outlast_engine::{Ending, Report};
use outlast_model::{AppErrorKind, AuditEntry, ConfigErrorKind, ErrorDetails, HeldInstance, Hold, HoldKind};
use outlast_provider::{HoldOutcome, ProviderAdmin, ProviderError, ReleaseOutcome};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The delay after an error of the store, of a turn whose instance could not be parked and of the next try to release instances.
const PARK_AGAIN: Duration = Duration::from_secs(1);
/// Parked instances that are released at a time.
const PAGE: usize = 500;
/// The interval at which a runtime looks for instances whose build has no live node any more.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Releases that a runtime remembers.
const MOST_RELEASED: usize = 10_000;
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
    actor_of(&core.options.build_id)
}

fn actor_of(build_id: &str) -> String {
    match build_id {
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
/// later. After that, looks at intervals for instances whose build has no live node any more, as at the end of a rolling deployment.
pub(crate) async fn release_parked(core: Arc<Core>) {
    let mut after = None;
    // The errors are in the metrics and spans of the store.
    while release_all(&core, &mut after).await.is_err_and(|error| error.is_retryable()) {
        tokio::time::sleep(PARK_AGAIN).await;
    }
    // Without reports of its own build a runtime cannot tell which builds have live nodes.
    if core.options.node_heartbeat.is_none() {
        return;
    }
    let mut left = LeftBehind::default();
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        // After an error the next look follows.
        let _ = left.release_page(&core).await;
    }
}

/// Whether the store released the instance. An instance that another runtime has released, or that stays parked, is no error.
async fn release(
    core: &Core,
    admin: &dyn ProviderAdmin,
    held: &HeldInstance,
    why: &str,
) -> Result<bool, ProviderError> {
    match admin.release_instance(&held.instance_id).await {
        Ok(ReleaseOutcome::Released) => {
            audit(core, RELEASE, &held.instance_id, why).await;
            Ok(true)
        }
        Err(error) if error.is_retryable() => Err(error),
        Ok(_) | Err(_) => Ok(false),
    }
}

/// Looks for instances that a build without live nodes has parked.
#[derive(Default)]
struct LeftBehind {
    /// The next look lists held instances after this one; from the first one if it is `None`.
    after: Option<String>,
    /// Instances and builds of holds that were released: a build whose nodes run and do not report may park the instance again.
    released: BTreeSet<(String, String)>,
}

impl LeftBehind {
    /// Releases those of the next page of held instances.
    async fn release_page(&mut self, core: &Core) -> Result<(), ProviderError> {
        let Some(admin) = core.store.as_management_capability() else { return Ok(()) };
        let page = admin.list_held(self.after.as_deref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        let next = page.last().filter(|_| !is_last).map(|held| held.instance_id.clone());
        let own = actor(core);
        let parked =
            page.into_iter().filter(|held| held.hold.kind == HoldKind::Parked && held.hold.actor != own);
        let parked: Vec<HeldInstance> = parked.filter(|held| !self.released.contains(&key(held))).collect();
        if !parked.is_empty() {
            let Some(live) = live_actors(admin).await? else { return Ok(()) };
            for held in parked.iter().filter(|held| !live.contains(&held.hold.actor)) {
                if release(core, admin, held, "its build has no live node any more").await? {
                    if self.released.len() >= MOST_RELEASED {
                        self.released.clear();
                    }
                    self.released.insert(key(held));
                }
            }
        }
        self.after = next;
        Ok(())
    }
}

fn key(held: &HeldInstance) -> (String, String) {
    (held.instance_id.clone(), held.hold.actor.clone())
}

/// The builds of all live nodes, as the actors of holds. `None` if the store keeps no reports of nodes.
async fn live_actors(admin: &dyn ProviderAdmin) -> Result<Option<BTreeSet<String>>, ProviderError> {
    let (mut live, mut after) = (BTreeSet::new(), None);
    loop {
        let Some(page) = admin.nodes(after.as_deref(), PAGE).await? else { return Ok(None) };
        live.extend(page.iter().filter(|node| !node.is_lost()).map(|node| actor_of(&node.report.build)));
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.report.node_id.clone()),
            _ => return Ok(Some(live)),
        }
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
                release(core, admin, &held, "a runtime of another build started").await?;
            }
            *after = Some(held.instance_id);
        }
    }
}
