//! Starting with a policy.

use crate::command::Cx;
use crate::db::{Result, moment, stored_text};
use crate::message::begins_an_execution;
use crate::write::enqueue_message;
use crate::{history, sql};
use outlast_provider::{StartOutcome, StartPolicy};
use outlast_provider_kit::MessageRow;
use std::time::Duration;

/// A start, ready to be stored.
pub(crate) struct StartPlan {
    pub(crate) start: MessageRow,
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) delay: Option<Duration>,
    pub(crate) policy: StartPolicy,
}

pub(crate) fn start(cx: &mut Cx<'_>, plan: &StartPlan) -> Result<StartOutcome> {
    let instance = &plan.start.instance_id;
    let taken = is_taken(cx, instance)?;
    let outcome = match taken {
        true => {
            let status = history::outcome(cx.db, instance)?.map(|outcome| outcome.status);
            StartOutcome::AlreadyExists { status }
        }
        false => {
            enqueue_message(cx, &plan.start, plan.delay)?;
            StartOutcome::Started
        }
    };
    if !taken || plan.policy == StartPolicy::UseExisting {
        // For an instance that is there, nothing delays its messages.
        let delay = plan.delay.filter(|_| !taken);
        for message in &plan.messages {
            enqueue_message(cx, message, delay)?;
        }
    }
    Ok(outcome)
}

/// Whether anything is stored under the id, or its start waits.
fn is_taken(cx: &Cx<'_>, instance: &str) -> Result<bool> {
    if cx.db.one(sql::IS_TAKEN, [instance], |row| row.get(0))?.unwrap_or(false) {
        return Ok(true);
    }
    Ok(start_due(cx, instance)?.is_some())
}

/// When the start of an instance is delivered, if one waits.
pub(crate) fn start_due(cx: &Cx<'_>, instance: &str) -> Result<Option<u64>> {
    let mut due: Option<u64> = None;
    cx.db.find(sql::WAITING_MESSAGES, [instance], |row| {
        if begins_an_execution(&stored_text(row, 0)?) {
            let visible_at = moment(row, 1)?.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
            due = Some(due.map_or(visible_at, |due| due.min(visible_at)));
        }
        Ok(None::<()>)
    })?;
    Ok(due)
}
