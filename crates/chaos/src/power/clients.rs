//! Clients: they order things, and keep each answer.

use super::disk::Disk;
use super::ledger::{Claim, Ledger};
use outlast_model::WorkItem;
use outlast_provider::{Provider, ProviderError};
use outlast_runtime::{Client, ClientError, OrchestrationStatus};
use outlast_sqlite::{SqliteError, SqliteProvider};
use outlast_testkit::rng::Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The orchestration that is ordered, the activity that it calls, and the queue from which it takes one note.
pub(crate) const ORDER: &str = "Order";
pub(crate) const PACK: &str = "Pack";
pub(crate) const NOTES: &str = "notes";

/// What the activity makes of an order.
pub(crate) fn packed(input: &str) -> String {
    format!("{} bytes", input.len())
}

/// How an order ends.
pub(crate) fn output(packed: &str, note: &str) -> String {
    format!("{packed}, {note}")
}

/// No instance takes this long on a machine with power.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the clients of one boot share.
pub(crate) struct Clients {
    pub(crate) store: Arc<dyn Provider>,
    /// The same store, for its upkeep.
    pub(crate) upkeep: Arc<SqliteProvider>,
    pub(crate) ledger: Arc<Ledger>,
    /// `None` for a machine that keeps its power.
    pub(crate) disk: Option<Arc<Disk>>,
    /// Number of the next instance.
    pub(crate) next: Arc<AtomicU64>,
    /// Instances that may still be started in this boot.
    pub(crate) budget: AtomicU64,
    pub(crate) seed: u64,
    /// Errors while the power was on.
    pub(crate) complaints: Arc<Mutex<Vec<String>>>,
}

impl Clients {
    /// Brings every order that is known to its end, and makes new ones, one after the other in each of `lanes`.
    pub(crate) async fn run(self: Arc<Self>, lanes: usize) {
        let mut tasks = JoinSet::new();
        for instance in self.unfinished() {
            let clients = Arc::clone(&self);
            tasks.spawn(async move {
                let done = clients.finish(&instance).await;
                clients.check(&instance, done);
            });
        }
        for _ in 0..lanes {
            let clients = Arc::clone(&self);
            tasks.spawn(async move { while clients.order_one().await {} });
        }
        tasks.join_all().await;
    }

    fn unfinished(&self) -> Vec<String> {
        let stories = self.ledger.stories();
        let open = stories.iter().filter(|(_, story)| story.told.is_none());
        open.map(|(instance, _)| instance.clone()).collect()
    }

    /// Whether to go on.
    async fn order_one(&self) -> bool {
        let left = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_err() {
            return false;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let instance = format!("order-{number}");
        let done = self.order(&instance, number).await;
        self.check(&instance, done)
    }

    async fn order(&self, instance: &str, number: u64) -> Result<(), ClientError> {
        // Some fit into a row, some need pages of their own.
        let mut rng = Rng::new(self.seed ^ number);
        let input = "x".repeat(rng.pick(&[3, 40, 900, 6_000]));
        self.client().start_orchestration(instance, ORDER, input).await?;
        self.finish(instance).await?;
        match rng.below(8) {
            0 => match self.upkeep.checkpoint().await {
                // On a machine with too much to do somebody may be in the way for too long: nothing is lost by that.
                Ok(()) | Err(SqliteError::Busy { .. }) => Ok(()),
                Err(error) => Err(ProviderError::permanent("checkpoint", error.to_string()).into()),
            },
            1 | 2 => self.delete(instance).await,
            _ => Ok(()),
        }
    }

    /// Also gives the freed pages back, which makes the file shorter.
    async fn delete(&self, instance: &str) -> Result<(), ClientError> {
        self.ledger.deletes(instance, Claim::Asked);
        self.client().delete_instance(instance, false).await?;
        self.ledger.deletes(instance, Claim::Acknowledged);
        Ok(())
    }

    /// Sends the note, unless it is known to be stored, and waits for the end.
    async fn finish(&self, instance: &str) -> Result<(), ClientError> {
        if !self.has_note(instance) {
            self.client().enqueue_event(instance, NOTES, format!("a note for {instance}")).await?;
        }
        match self.client().wait_for_orchestration(instance, PATIENCE).await? {
            OrchestrationStatus::Completed { output, .. } => {
                let expected = self.expected(instance);
                if Some(&output) != expected.as_ref() {
                    self.complain(format!("{instance} ended with '{output}', not with {expected:?}"));
                }
                self.ledger.told(instance, output);
            }
            other => self.complain(format!("{instance} ended as {other:?}")),
        }
        Ok(())
    }

    fn client(&self) -> Client {
        Client::new(Arc::clone(&self.store))
    }

    fn has_note(&self, instance: &str) -> bool {
        let stories = self.ledger.stories();
        let sent = stories.get(instance).map_or(&[][..], |story| &story.sent);
        sent.iter().any(|(item, claim)| {
            *claim == Claim::Acknowledged && matches!(item, WorkItem::QueueMessage { .. })
        })
    }

    fn expected(&self, instance: &str) -> Option<String> {
        let stories = self.ledger.stories();
        stories.get(instance)?.sent.iter().find_map(|(item, _)| match item {
            WorkItem::StartOrchestration { input, .. } => {
                Some(output(&packed(input), &format!("a note for {instance}")))
            }
            _ => None,
        })
    }

    /// An error is excused by a power cut, and by nothing else. Whether to go on.
    fn check(&self, instance: &str, done: Result<(), ClientError>) -> bool {
        let has_power = !self.disk.as_ref().is_some_and(|disk| disk.is_dead());
        if let Err(error) = &done
            && has_power
        {
            self.complain(format!("{instance}: {error}"));
        }
        done.is_ok() && has_power
    }

    fn complain(&self, what: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}
