//! Fetches that wait, and leases in transit to the caller.

use crate::activity::GivenBack;
use crate::seats::Takes;
use crate::store::Store;
use outlast_provider::{FetchedTurn, FetchedWork, ProviderError, saturating_ms};
use outlast_provider_kit::Guarded;
use outlast_provider_kit::leased::TakesBack;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

/// Whether the caller of a fetch has dropped it.
pub(crate) type IsGone = Arc<dyn Fn() -> bool + Send + Sync>;

/// The result of one attempt.
pub(crate) enum Tried<T> {
    Found(T),
    /// No item can be leased. The next item may be due at this time.
    Nothing {
        due: Option<u64>,
    },
}

impl Store {
    /// Repeats an attempt until it finds a lease, it fails, or the time is over. Between two attempts the fetch waits for a
    /// change, for the time at which an item is due, or for the next search for work without a hint.
    pub(crate) async fn park<T, F, Fut>(
        self: &Arc<Self>,
        patience: Duration,
        takes: Takes,
        is_gone: &IsGone,
        attempt: F,
    ) -> Result<Option<T>, ProviderError>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<Tried<T>, ProviderError>>,
    {
        let give_up_at = self.now().saturating_add(saturating_ms(patience));
        let seat = self.seat(takes);
        self.join().await;
        self.seek();
        if self.has_new_role() {
            // Without a search for the new kind of work, the fetch would pass older work over.
            self.look_for_work(patience).await?;
        }
        loop {
            let changed = self.ready.changed();
            tokio::pin!(changed);
            // The fetch subscribes before it searches, so that no change between the two is lost.
            changed.as_mut().enable();
            let repairs = self.repairs.load(Ordering::Acquire);
            let due = match attempt().await? {
                Tried::Found(found) => return Ok(Some(found)),
                Tried::Nothing { due } => due,
            };
            if is_gone() {
                return Ok(None);
            }
            let now = self.now();
            let repair_at = self.repair_due().await;
            if now >= repair_at || self.was_set_back(now).await {
                self.look_for_work(patience).await?;
            }
            if self.repairs.load(Ordering::Acquire) != repairs {
                // This fetch, or another one, has searched for work since the attempt.
                continue;
            }
            let now = self.now();
            if now >= give_up_at {
                return Ok(None);
            }
            let repair_at = self.repair_due().await;
            let until = due.unwrap_or(u64::MAX).min(repair_at).min(give_up_at);
            // The fetch waits at least 1 ms: virtual time may not advance.
            let pause = Duration::from_millis(until.saturating_sub(now).clamp(1, 60_000));
            seat.set_waiting(true);
            self.seek_now.notify_one();
            let _ = tokio::time::timeout(pause, changed).await;
            seat.set_waiting(false);
            if is_gone() {
                return Ok(None);
            }
        }
    }
}

impl Store {
    async fn look_for_work(self: &Arc<Self>, patience: Duration) -> Result<(), ProviderError> {
        match self.repair(self.now()).await {
            // The fetch finds items of this process without the repair query.
            Err(error) if !patience.is_zero() => {
                tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "repair failed");
                Ok(())
            }
            looked => looked,
        }
    }
}

/// Runs a fetch in a task, so that a dropped caller does not leave a lease: the task gives the lease back, also if the caller is
/// dropped between the answer and its next poll.
pub(crate) async fn guarded<T, Fut>(
    store: &Arc<Store>,
    fetch: impl FnOnce(IsGone) -> Fut,
) -> Result<Option<T>, ProviderError>
where
    T: Send + 'static,
    Fut: Future<Output = Result<Option<T>, ProviderError>> + Send + 'static,
    Arc<Store>: TakesBack<T>,
{
    let (sender, receiver) = oneshot::channel::<Result<Option<Guarded<T, Arc<Store>>>, ProviderError>>();
    let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
    let watched = Arc::clone(&sender);
    let is_gone: IsGone =
        Arc::new(move || crate::store::locked(&watched).as_ref().is_none_or(oneshot::Sender::is_closed));
    let (fetching, owner) = (fetch(is_gone), Arc::clone(store));
    crate::tasks::start(async move {
        let answer = fetching.await.map(|found| found.map(|leases| Guarded::new(leases, owner)));
        let sender = crate::store::locked(&sender).take();
        // An answer that no caller takes gives its leases back when it is dropped.
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
    });
    match receiver.await {
        Ok(answer) => Ok(answer?.and_then(Guarded::take)),
        Err(_) => Err(ProviderError::retryable("fetch", "the task of the fetch ended without an answer")),
    }
}

impl TakesBack<FetchedTurn> for Store {
    fn take_back(&self, turn: FetchedTurn) {
        let Some(store) = self.this.upgrade() else { return };
        crate::tasks::start(async move {
            // A lease that cannot be given back expires.
            let _ = store.abandon_turn(&turn.lock_token, None, true).await;
        });
    }
}

impl TakesBack<Vec<FetchedWork>> for Store {
    fn take_back(&self, leased: Vec<FetchedWork>) {
        let Some(store) = self.this.upgrade() else { return };
        crate::tasks::start(async move {
            for work in leased {
                let _ = store.abandon_activity(&work.lock_token, None, GivenBack::Uncounted).await;
            }
        });
    }
}
