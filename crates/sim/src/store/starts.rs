//! Starts with the first turn of their instance, as a client in the process of a node makes them.

use super::FaultyStore;
use super::record::kinds;
use super::sabotage;
use crate::check::replay;
use crate::performed::Turn;
use outlast_model::WorkItem;
use outlast_provider::{EagerStart, ProviderError, TurnAhead};

/// The numbers of rows that the store has for an instance.
#[derive(Default)]
struct Known {
    messages: usize,
    events: usize,
}

impl FaultyStore {
    /// Starts an instance together with its first turn.
    pub(super) async fn start_ahead(
        &self,
        start: WorkItem,
        mut ahead: TurnAhead,
    ) -> Result<EagerStart, ProviderError> {
        let instance = start.target_instance().to_string();
        let commit = &ahead.commit;
        let detail = format!(
            "{instance} +{} events, work {}, [{}] {}",
            commit.history_delta.len(),
            commit.worker_items.len(),
            kinds(&commit.orchestrator_items),
            commit.metadata.status.as_deref().unwrap_or("")
        );
        let call = async {
            let before = self.known(&instance).await;
            let mut again = None;
            if before.events == 0 && self.shared.rng().per_mille(250) {
                let turn = Turn {
                    instance: instance.clone(),
                    execution_id: ahead.commit.execution_id,
                    messages: vec![start.clone()],
                    now_ms: ahead.ran_at_ms,
                    attempts: 1,
                };
                again = replay::again(&self.shared, &turn, self.is_old_build).await;
            }
            let compared = again.map(|again| replay::compare(&again, &ahead.commit));
            sabotage::commit(&self.shared, &instance, &mut ahead.commit);
            let execution_id = ahead.commit.execution_id;
            let disturbances_before = self.disturbances();
            let completed = self.inner().start_with_turn(start.clone(), ahead).await?;
            match completed {
                EagerStart::WithTurn { .. } => {
                    self.shared.performed().enqueued(&start);
                    self.was_alone(&instance, disturbances_before);
                    self.shared.require(before.is_nothing(&instance));
                    self.shared.tally().turns += 1;
                    self.compared(&instance, execution_id, compared);
                }
                // Another process may have started the instance while a task of the store had the start.
                EagerStart::Unchanged if self.shared.backend.has_tasks() => {}
                EagerStart::Unchanged => {
                    let after = self.known(&instance).await;
                    self.shared.require(before.has_same_events(&after, &instance));
                }
            }
            Ok(completed)
        };
        let show = |completed: &EagerStart| match completed {
            EagerStart::WithTurn { .. } => Some("ok".to_string()),
            EagerStart::Unchanged => Some("unchanged".to_string()),
        };
        self.shared.call(&self.caller, self.begin_call("start_ahead", detail), show, call).await
    }

    /// Counts the rows that the store has for an instance. No fault happens during the read.
    async fn known(&self, instance: &str) -> Known {
        let was_armed = self.shared.backend.statements.arm(false);
        let dump = self.shared.backend.dump().await.unwrap_or_default();
        self.shared.backend.statements.arm(was_armed);
        let rows = |table: &str| {
            let prefix = format!("{table} {instance} ");
            dump.iter().filter(|line| line.starts_with(&prefix)).count()
        };
        Known { messages: rows("message"), events: rows("history") }
    }
}

impl Known {
    /// I6: a first turn is committed only if the store knows nothing of its instance.
    fn is_nothing(&self, instance: &str) -> Result<(), String> {
        match (self.messages, self.events) {
            (0, 0) => Ok(()),
            (messages, events) => Err(format!(
                "I6: the first turn of '{instance}' was committed with its start, although {messages} messages \
                 and {events} events were stored"
            )),
        }
    }

    /// I6: nothing of a first turn is stored if the store refuses to start its instance.
    fn has_same_events(&self, after: &Self, instance: &str) -> Result<(), String> {
        match self.events == after.events {
            true => Ok(()),
            false => Err(format!("I6: the store did not start '{instance}', and its first turn is stored")),
        }
    }
}
