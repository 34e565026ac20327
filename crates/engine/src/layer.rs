//! Entries for the typed layer, which makes some durable calls later than the code of the user. They take the place of the call in
//! the source, and return a failure as it is recorded.

use crate::context::OrchestrationContext;
use crate::future::{DurableFuture, Raw};
use outlast_model::{Action, ErrorDetails};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

pub use crate::cancel::{Cancelled, DroppedChildren, TERMINATE};
pub use crate::op::kv::RESERVED_KEY_PREFIX;

/// The place of a durable call in the source.
pub type Site = &'static Location<'static>;

/// The outcome of an activity or a child.
pub type Outcome = Result<String, Box<ErrorDetails>>;

/// Schedules an activity.
pub fn activity(
    ctx: &OrchestrationContext,
    name: impl Into<String>,
    input: String,
    session_id: Option<String>,
    site: Site,
) -> DurableFuture<Outcome> {
    ctx.call_activity_as(name.into(), input, session_id, site, Raw::into_details)
}

/// The orchestration that made the call.
pub fn context<T>(future: &DurableFuture<T>) -> &OrchestrationContext {
    &future.context
}

/// Gives a new activity a tag that replay does not compare: a stored tag is kept.
///
/// False if the activity has its event.
pub fn set_default_tag<T>(activity: &DurableFuture<T>, tag: &str) -> bool {
    let mut state = activity.context.lock();
    if !state.tag_activity(activity.token, tag.to_string()) {
        return false;
    }
    if let Some(emitted) =
        state.emitted.iter_mut().rev().find(|emitted| emitted.token == Some(activity.token))
    {
        emitted.tag_is_default = true;
    }
    true
}

/// Gives a new activity a tag.
///
/// False if the activity has its event.
pub fn set_tag<T>(activity: &DurableFuture<T>, tag: String) -> bool {
    activity.context.lock().tag_activity(activity.token, tag)
}

/// The input, tag and session of a new activity; `None` if it has its event.
pub fn scheduled<T>(activity: &DurableFuture<T>) -> Option<(String, Option<String>, Option<String>)> {
    let state = activity.context.lock();
    let found = state.emitted.iter().rev().find(|emitted| emitted.token == Some(activity.token))?;
    match &found.action {
        Action::CallActivity { input, tag, session_id, .. } => {
            Some((input.clone(), tag.clone(), session_id.clone()))
        }
        _ => None,
    }
}

/// Puts a new activity on a session.
///
/// False if the activity has its event.
pub fn set_session<T>(activity: &DurableFuture<T>, session: String) -> bool {
    let mut state = activity.context.lock();
    state.check_name("session id", &session);
    let found = state.emitted.iter_mut().rev().find(|emitted| emitted.token == Some(activity.token));
    match found.map(|emitted| &mut emitted.action) {
        Some(Action::CallActivity { session_id, .. }) => {
            *session_id = Some(session);
            true
        }
        // A decision after a violation is not emitted.
        _ => state.violation.is_some(),
    }
}

/// Marks an activity as this attempt of a retry policy, for metrics.
pub fn set_attempt<T>(activity: DurableFuture<T>, attempt: u32) -> DurableFuture<T> {
    activity.with_attempt(attempt)
}

/// Logs that an attempt failed and that a retry follows. The line quotes no error.
pub fn trace_retry(ctx: &OrchestrationContext, activity: &str, attempt: u32, last: u32) {
    ctx.trace_warn(format!("Activity '{activity}' attempt {attempt}/{last} failed. Retrying..."));
}

/// Schedules a timer.
pub fn timer(ctx: &OrchestrationContext, delay: Duration, site: Site) -> DurableFuture<()> {
    ctx.set_timer(delay, site)
}

/// Starts a child under a generated id.
pub fn child(
    ctx: &OrchestrationContext,
    name: &str,
    version: Option<&str>,
    input: String,
    site: Site,
) -> DurableFuture<Outcome> {
    ctx.start_child_as(name.to_string(), version.map(str::to_string), None, input, site, Raw::into_details)
}

/// Gives a new child an id. A refused id becomes the outcome of the child.
///
/// False if the child has its event.
pub fn set_child_id<T>(child: &DurableFuture<T>, id: String) -> bool {
    child.context.lock().name_child(child.token, id)
}

/// Selects the version of a new child.
///
/// False if the child has its event.
pub fn set_child_version<T>(child: &DurableFuture<T>, version: String) -> bool {
    child.context.lock().select_child_version(child.token, version)
}

/// From now on, a request to cancel does not end the execution: the code observes it, and ends the execution itself.
pub fn observe_cancellation(ctx: &OrchestrationContext) {
    ctx.lock().cancellation.is_observed = true;
}

/// Waits for a request to cancel; resolves with its reason.
pub fn cancelled(ctx: &OrchestrationContext) -> Cancelled {
    Cancelled::new(ctx)
}

/// Whether a child that the code dropped, and so told to cancel, has no outcome yet.
pub fn has_dropped_children(ctx: &OrchestrationContext) -> bool {
    ctx.lock().has_dropped_children()
}

/// Waits until every child that the code dropped has its outcome.
pub fn dropped_children(ctx: &OrchestrationContext) -> DroppedChildren {
    DroppedChildren::new(ctx)
}

/// The reason of the request to cancel, if one has reached the code.
pub fn cancel_reason(ctx: &OrchestrationContext) -> Option<String> {
    ctx.lock().cancellation.reason.clone()
}

/// Ends the execution as cancelled with this reason, at the end of this turn. Without a request to cancel it has no effect.
pub fn end_cancelled(ctx: &OrchestrationContext, reason: String) {
    ctx.lock().cancellation.ends_with = Some(reason);
}

/// The data of the typed layer in this execution, one value.
pub fn extension<T: Default + Send + Sync + 'static>(ctx: &OrchestrationContext) -> Arc<T> {
    let mut state = ctx.lock();
    let found = state.extension.clone().and_then(|found| found.downcast::<T>().ok());
    found.unwrap_or_else(|| {
        let new = Arc::new(T::default());
        state.extension = Some(new.clone());
        new
    })
}

/// The reserved keys that begin with this prefix, the oldest first, and those of one time in the order of keys.
pub fn reserved_keys(ctx: &OrchestrationContext, prefix: &str) -> Vec<String> {
    let state = ctx.lock();
    let mut found: Vec<(u64, &String)> = state
        .kv
        .iter()
        .filter(|(key, _)| key.starts_with(RESERVED_KEY_PREFIX) && key.starts_with(prefix))
        .map(|(key, entry)| (entry.updated_at_ms, key))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, key)| key.clone()).collect()
}
