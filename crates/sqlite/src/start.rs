//! Starting with a policy.

use crate::command::Cx;
use crate::db::Result;
use crate::write::enqueue_message;
use crate::{history, sql};
use outlast_model::{WorkItem, json};
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
    let waiting = cx.db.find(sql::WAITING_MESSAGES, [instance], |row| {
        let text: String = row.get(0)?;
        let begins = matches!(
            json::decode_work_item(&text),
            Ok(WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. })
        );
        Ok(begins.then_some(()))
    })?;
    Ok(waiting.is_some())
}
