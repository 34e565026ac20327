//! Reads outcomes of many instances at once: clients that wait for an instance mostly ask at the same time.

use crate::contain::contained;
use crate::db::{Db, Result, cell, text, text_option, unsigned};
use crate::reply::Reply;
use crate::row::Cells;
use crate::shared::Shared;
use crate::steps::Step;
use crate::text::owned;
use outlast_provider::InstanceOutcome;
use outlast_provider_kit::{CommitPlan, rows};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, Semaphore};
use tokio_postgres::types::Type;

/// Most instances in one read.
const MOST: usize = 256;

/// An instance, and the reply to the caller that asks for its outcome.
type Question = (String, Reply<Option<InstanceOutcome>>);

/// The largest number of waiting questions, which is sixteen reads. A caller beyond this number waits before its question is queued.
const MOST_WAITING: usize = 16 * MOST;

/// Questions that wait for the next read.
pub(crate) struct Outcomes {
    waiting: Mutex<Vec<Question>>,
    wake: Notify,
    room: Arc<Semaphore>,
}

impl Default for Outcomes {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(MOST_WAITING));
        Self { waiting: Mutex::default(), wake: Notify::new(), room }
    }
}

impl Outcomes {
    /// Queues a question. Waits while the largest number of questions is waiting.
    pub(crate) async fn ask(&self, instance: &str, mut reply: Reply<Option<InstanceOutcome>>) {
        // The semaphore is never closed.
        reply.room = Arc::clone(&self.room).acquire_owned().await.ok();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((instance.to_string(), reply));
        self.wake.notify_one();
    }

    /// The number of further questions that may wait.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn free(&self) -> usize {
        self.room.available_permits()
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Takes the questions of the next read.
    fn take(&self) -> Vec<Question> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let most = waiting.len().min(MOST);
        let rest = waiting.split_off(most);
        std::mem::replace(&mut *waiting, rest)
    }
}

/// Answers questions until the store is closed. While one read runs, questions gather for the next.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let questions = shared.outcomes.take();
        if questions.is_empty() {
            if shared.is_closed() {
                return;
            }
            shared.outcomes.wake.notified().await;
            tokio::task::yield_now().await;
            continue;
        }
        // Callers whose replies a panic drops get an error.
        if let Err(panic) = contained(answer(&shared, questions)).await {
            shared.panicked("reading outcomes", &panic);
        }
    }
}

/// Reads the outcomes of all questions at once, and answers the questions.
async fn answer(shared: &Shared, questions: Vec<Question>) {
    let instances: Vec<&str> = questions.iter().map(|(instance, _)| instance.as_str()).collect();
    shared.fault(Step::Outcomes, || instances.iter().map(ToString::to_string).collect());
    let read = of_instances(&shared.db, &instances).await;
    for (instance, reply) in questions {
        reply.send(read.as_ref().map(|found| found.get(&instance).cloned()));
    }
}

/// Outcomes of instances. The result lacks instances without a stored row.
async fn of_instances(db: &Db, instances: &[&str]) -> Result<HashMap<String, InstanceOutcome>> {
    let instances: Vec<String> = instances.iter().map(|instance| owned(instance)).collect();
    read(&db.all_prepared(&db.statements.outcomes, &[(&instances, Type::TEXT_ARRAY)]).await?)
}

/// The rows of `outcomes_1`.
pub(crate) fn read<R: Cells>(rows: &[R]) -> Result<HashMap<String, InstanceOutcome>> {
    use crate::functions::outcomes::*;
    let outcome = |row: &R| {
        let terminal: Option<&str> = cell(row, TERMINAL_EVENT)?;
        let outcome = InstanceOutcome {
            execution_id: unsigned(row, EXECUTION)?,
            status: text(row, STATUS)?,
            output: text_option(row, OUTPUT)?,
            failure: terminal.and_then(rows::failure),
            custom_status: text_option(row, CUSTOM_STATUS)?,
            custom_status_version: unsigned(row, CUSTOM_STATUS_VERSION)?,
        };
        Ok((text(row, INSTANCE)?, outcome))
    };
    rows.iter().map(outcome).collect()
}

/// The outcome of an instance that a turn ended, with the custom status that the store has.
pub(crate) fn of_plan(
    plan: &CommitPlan,
    (custom_status, custom_status_version): (Option<String>, u64),
) -> InstanceOutcome {
    let terminal = plan.history.iter().find(|row| Some(row.event_id) == plan.terminal_event_id);
    InstanceOutcome {
        execution_id: plan.execution_id,
        status: plan.metadata.status.clone().unwrap_or_default(),
        output: plan.metadata.output.clone(),
        failure: terminal.and_then(|row| rows::failure(&row.event_data)),
        custom_status,
        custom_status_version,
    }
}
