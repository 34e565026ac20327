//! Clients: they start orders and record each answer.

use super::call_log::{CallLog, CallState};
use super::disk::Disk;
use outlast_model::WorkItem;
use outlast_provider::{Provider, ProviderError};
use outlast_runtime::{Client, ClientError, OrchestrationStatus};
use outlast_sqlite::{SqliteError, SqliteProvider};
use outlast_testkit::rng::Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The orchestration, the activity that it calls, and the queue from which it dequeues one message.
pub(crate) const ORDER: &str = "Order";
pub(crate) const PACK: &str = "Pack";
pub(crate) const NOTES: &str = "notes";

/// The result of the activity.
pub(crate) fn packed(input: &str) -> String {
    format!("{} bytes", input.len())
}

/// The output of the orchestration.
pub(crate) fn output(packed: &str, note: &str) -> String {
    format!("{packed}, {note}")
}

/// No instance takes this long while the power is on.
const PATIENCE: Duration = Duration::from_secs(60);

/// The state that the clients of one boot share.
pub(crate) struct Clients {
    pub(crate) store: Arc<dyn Provider>,
    /// The same store, for checkpoints.
    pub(crate) sqlite: Arc<SqliteProvider>,
    pub(crate) call_log: Arc<CallLog>,
    /// `None` for a boot without a power cut.
    pub(crate) disk: Option<Arc<Disk>>,
    /// Number of the next instance.
    pub(crate) next: Arc<AtomicU64>,
    /// Number of instances that may still be started in this boot.
    pub(crate) orders_left: AtomicU64,
    pub(crate) seed: u64,
    /// Errors while the power was on.
    pub(crate) unexpected_errors: Arc<Mutex<Vec<String>>>,
}

impl Clients {
    /// Finishes all known orders, and runs new ones one after the other in each of `new_order_tasks` tasks.
    pub(crate) async fn run(self: Arc<Self>, new_order_tasks: usize) {
        let mut tasks = JoinSet::new();
        for instance in self.unfinished() {
            let clients = Arc::clone(&self);
            tasks.spawn(async move {
                let done = clients.finish(&instance).await;
                clients.check(&instance, done);
            });
        }
        for _ in 0..new_order_tasks {
            let clients = Arc::clone(&self);
            tasks.spawn(async move { while clients.run_new_order().await {} });
        }
        tasks.join_all().await;
    }

    fn unfinished(&self) -> Vec<String> {
        let instances = self.call_log.instances();
        let open = instances.iter().filter(|(_, calls)| calls.client_output.is_none());
        open.map(|(instance, _)| instance.clone()).collect()
    }

    /// Runs a new order. Returns `false` if the client must stop.
    async fn run_new_order(&self) -> bool {
        let left =
            self.orders_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_err() {
            return false;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let instance = format!("order-{number}");
        let done = self.order(&instance, number).await;
        self.check(&instance, done)
    }

    async fn order(&self, instance: &str, number: u64) -> Result<(), ClientError> {
        // Some inputs fit into a row, others need overflow pages.
        let mut rng = Rng::new(self.seed ^ number);
        let input = "x".repeat(rng.pick(&[3, 40, 900, 6_000]));
        self.client().start_orchestration(instance, ORDER, input).await?;
        self.finish(instance).await?;
        match rng.below(8) {
            0 => match self.sqlite.checkpoint().await {
                // On a busy machine a checkpoint may time out; no data is lost by that.
                Ok(()) | Err(SqliteError::Busy { .. }) => Ok(()),
                Err(error) => Err(ProviderError::permanent("checkpoint", error.to_string()).into()),
            },
            1 | 2 => self.delete(instance).await,
            _ => Ok(()),
        }
    }

    /// Deletes an instance. The store then also truncates its file.
    async fn delete(&self, instance: &str) -> Result<(), ClientError> {
        self.call_log.deletion_state(instance, CallState::Unanswered);
        self.client().delete_instance(instance, false).await?;
        self.call_log.deletion_state(instance, CallState::Acknowledged);
        Ok(())
    }

    /// Sends the message, unless it is known to be stored, and waits for the end.
    async fn finish(&self, instance: &str) -> Result<(), ClientError> {
        if !self.has_note(instance) {
            self.client().enqueue_event(instance, NOTES, format!("a note for {instance}")).await?;
        }
        match self.client().wait_for_orchestration(instance, PATIENCE).await? {
            OrchestrationStatus::Completed { output, .. } => {
                let expected = self.expected(instance);
                if Some(&output) != expected.as_ref() {
                    self.record_error(format!("{instance} ended with '{output}', not with {expected:?}"));
                }
                self.call_log.client_output(instance, output);
            }
            other => self.record_error(format!("{instance} ended as {other:?}")),
        }
        Ok(())
    }

    fn client(&self) -> Client {
        Client::new(Arc::clone(&self.store))
    }

    fn has_note(&self, instance: &str) -> bool {
        let instances = self.call_log.instances();
        let sent = instances.get(instance).map_or(&[][..], |calls| &calls.sent);
        sent.iter().any(|(item, state)| {
            *state == CallState::Acknowledged && matches!(item, WorkItem::QueueMessage { .. })
        })
    }

    fn expected(&self, instance: &str) -> Option<String> {
        let instances = self.call_log.instances();
        instances.get(instance)?.sent.iter().find_map(|(item, _)| match item {
            WorkItem::StartOrchestration { input, .. } => {
                Some(output(&packed(input), &format!("a note for {instance}")))
            }
            _ => None,
        })
    }

    /// Records an error unless the power is off. Returns whether the client continues.
    fn check(&self, instance: &str, done: Result<(), ClientError>) -> bool {
        let has_power = !self.disk.as_ref().is_some_and(|disk| disk.is_off());
        if let Err(error) = &done
            && has_power
        {
            self.record_error(format!("{instance}: {error}"));
        }
        done.is_ok() && has_power
    }

    fn record_error(&self, what: String) {
        self.unexpected_errors.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}
