//! Plans of resets and forks, made from the content of the specification.

use super::build::CallTime;
use super::ops::*;
use outlast_provider::model::{Event, EventKind};
use outlast_provider::{AuditEntry, ProviderAdmin, ResetKey, ResetPlan, TurnCommit};
use std::collections::BTreeMap;

/// A reset of an instance, or a fork of it as another one.
#[derive(Debug, Clone)]
pub(super) struct Branch {
    pub(super) of: Id,
    /// The id of a fork. A plan whose source and target are the same is a reset.
    pub(super) target: Id,
    /// The number of copied events.
    pub(super) keep: usize,
    /// The distance of the plan's last event from the stored one: a plan that is out of date is refused.
    pub(super) late_by: u64,
    /// Keys with which the new execution begins.
    pub(super) keys: Vec<(&'static str, &'static str)>,
    pub(super) custom_status: Option<&'static str>,
    /// Messages that the target gets before all others.
    pub(super) first: Vec<Message>,
    /// The items of the first turn. Its events are the copied ones.
    pub(super) turn: Turn,
}

impl Branch {
    /// The plan; `None` if the source has no readable history.
    pub(super) async fn plan(&self, at: CallTime, specification: &dyn ProviderAdmin) -> Option<ResetPlan> {
        let execution_id = specification.latest_execution_id(self.of).await.ok()?;
        let history = specification.read_history_with_execution_id(self.of, execution_id).await.ok()?;
        let last_event_id = history.iter().map(|event| event.event_id).max()?;
        let is_fork = self.of != self.target;
        let began = if is_fork { execution_id } else { execution_id + 1 };
        let copied = history.iter().take(self.keep).filter(|event| !event.is_terminal());
        let copied = copied.map(|event| Event {
            instance_id: self.target.to_string(),
            execution_id: began,
            ..event.clone()
        });
        let is_over = history.iter().any(Event::is_terminal);
        let input = format!("{} é", at.step);
        let end = EventKind::OrchestrationContinuedAsNew { input };
        let end = Event::at(at.now, last_event_id + 1, self.of, execution_id, None, end);
        let keys = self.keys.iter().map(|(key, value)| {
            let entry = ResetKey { value: value.to_string(), last_updated_at_ms: at.step as u64 };
            (key.to_string(), entry)
        });
        Some(ResetPlan {
            source: self.of.to_string(),
            execution_id,
            last_event_id: last_event_id + self.late_by,
            target: self.target.to_string(),
            end: Some(end).filter(|_| !is_fork && !is_over),
            begin: TurnCommit {
                execution_id: began,
                history_delta: copied.collect(),
                worker_items: at.items(&self.turn.work),
                orchestrator_items: at.items(&self.turn.messages),
                metadata: self.turn.metadata(),
                cancelled_activities: self.turn.cancelled(),
            },
            first_messages: at.items(&self.first),
            first_available_ms: 7,
            keys: keys.collect::<BTreeMap<_, _>>(),
            custom_status: self.custom_status.map(str::to_string),
            audit: AuditEntry {
                actor: "wer".to_string(),
                action: "instance.reset".to_string(),
                target: self.target.to_string(),
                reason: format!("{} grün", at.step),
                request: None,
                result: "done".to_string(),
            },
        })
    }
}
