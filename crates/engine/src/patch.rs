//! Patches: a change of code that running instances must not notice.
//!
//! A patch that is taken is a write of the reserved key `__outlast:patch:NAME` in the history, its *marker*. Replay does not ask the
//! code for a marker: it reads all markers of the history before the code runs. So a call of `patched` can move, and can be removed
//! when no running instance is older than the patch.

use crate::context::OrchestrationContext;
use crate::op::kv::KvValue;
use crate::state::State;
use outlast_model::{Action, EventKind, PATCH_KEY_PREFIX, patch_of};
use std::collections::BTreeMap;
use std::panic::Location;

/// The engine's record of a patch in one execution.
pub(crate) struct Patch {
    is_taken: bool,
    /// The code called `patched` with its name.
    is_asked: bool,
    /// Replay has passed the marker.
    is_passed: bool,
    /// The number of stored decisions behind the first call, if the code asked for the patch and the history does not take it.
    behind: usize,
}

impl Patch {
    /// The replay has passed the marker, and the code did not ask for the patch.
    fn is_missing(&self) -> bool {
        self.is_taken && !self.is_asked && self.is_passed
    }
}

impl OrchestrationContext {
    /// Whether this execution takes a change of the code: `false` for an execution that went past this place before the change was
    /// deployed, `true` for all others. The answer is the same for all calls with this name, and after every replay.
    ///
    /// ```
    /// # use outlast_engine::OrchestrationContext;
    /// # async fn order(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    /// if ctx.patched("check for fraud") {
    ///     ctx.schedule_activity("CheckFraud", &order).await?;
    /// }
    /// ctx.schedule_activity("Charge", &order).await
    /// # }
    /// ```
    ///
    /// A name is used for one change only. When `outlast check` reports no instance that is older than the patch, the call and the old
    /// code can be removed in one step.
    #[track_caller]
    pub fn patched(&self, name: impl AsRef<str>) -> bool {
        let (name, site) = (name.as_ref(), Location::caller());
        let mut state = self.lock();
        if let Some(patch) = state.patches.get_mut(name) {
            patch.is_asked = true;
            return patch.is_taken;
        }
        // History holds a decision that the code made after this place, and not the marker.
        let is_taken = state.is_new_decision() && !state.history_ended;
        let behind = state.ahead.len().saturating_sub(state.emitted.len());
        state.patches.insert(name.to_string(), Patch { is_taken, is_asked: true, is_passed: false, behind });
        if is_taken {
            let key = format!("{PATCH_KEY_PREFIX}{name}");
            state.check_name("patch", &key);
            let last_updated_at_ms = state.now_ms;
            let action = Action::SetKeyValue { key, value: "true".to_string(), last_updated_at_ms };
            state.decide(action, "patched", site);
        }
        is_taken
    }
}

impl State {
    /// Enters the marker of a history that the code will be replayed with. False for other events.
    pub(crate) fn expect_marker(&mut self, kind: &EventKind) -> bool {
        let Some(name) = patch_of(kind) else { return false };
        let patch = Patch { is_taken: true, is_asked: false, is_passed: false, behind: 0 };
        self.patches.insert(name.to_string(), patch);
        true
    }

    /// Replay passes a stored event. False unless it is a marker.
    pub(crate) fn pass_marker(&mut self, kind: &EventKind) -> bool {
        let Some(name) = patch_of(kind) else { return false };
        if let Some(patch) = self.patches.get_mut(name) {
            patch.is_passed = true;
        }
        true
    }

    /// The answers that the code got, by patch.
    pub(crate) fn patch_answers(&self) -> BTreeMap<String, bool> {
        let asked = self.patches.iter().filter(|(_, patch)| patch.is_asked);
        asked.map(|(name, patch)| (name.clone(), patch.is_taken)).collect()
    }

    /// The patch that the replayed history takes and the code did not ask for; of several, the first by name.
    pub(crate) fn missing_patch(&self) -> Option<String> {
        self.patches.iter().find(|(_, patch)| patch.is_missing()).map(|(name, _)| name.clone())
    }

    /// The part that patches have in a replay error, as clauses of its sentence: a patch whose marker the code has passed without asking
    /// for it, and one that is not taken directly before the decision that does not match.
    pub(crate) fn patch_clauses(&self) -> String {
        let clause = |(name, patch): (&String, &Patch)| match (patch.is_taken, patch.is_asked) {
            _ if patch.is_missing() => Some(format!(
                "; the history takes patch '{name}', and the code does not ask for it: is the code older than the patch?"
            )),
            (false, true) if patch.behind == self.ahead.len() => Some(format!(
                "; the history has no record of patch '{name}', so its old way runs, which is not the way of the code that wrote the \
                 history"
            )),
            _ => None,
        };
        self.patches.iter().filter_map(clause).collect()
    }
}

/// Removes markers, which belong to one execution, from the keys of the previous one.
pub(crate) fn without_markers(mut kv: BTreeMap<String, KvValue>) -> BTreeMap<String, KvValue> {
    let from_first = kv.range(PATCH_KEY_PREFIX.to_string()..);
    let markers = from_first.take_while(|(key, _)| key.starts_with(PATCH_KEY_PREFIX));
    let markers: Vec<String> = markers.map(|(key, _)| key.clone()).collect();
    for key in &markers {
        kv.remove(key);
    }
    kv
}
