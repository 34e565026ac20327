//! Reads outcomes of many instances at once: clients that wait for an instance mostly ask at the same time.

use crate::contain::contained;
use crate::history;
use crate::reply::Reply;
use crate::shared::Shared;
use crate::steps::Step;
use outlast_provider::InstanceOutcome;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, Semaphore};

/// Most instances in one read.
const MOST: usize = 256;

/// An instance, and the reply to the caller that asks for its outcome.
type Question = (String, Reply<Option<InstanceOutcome>>);

/// Most questions that wait: sixteen reads. Without room, a caller waits before its question is queued.
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
    pub(crate) async fn ask(&self, instance: &str, mut reply: Reply<Option<InstanceOutcome>>) {
        // The semaphore is never closed.
        reply.room = Arc::clone(&self.room).acquire_owned().await.ok();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((instance.to_string(), reply));
        self.wake.notify_one();
    }

    /// How many more questions may wait.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn free(&self) -> usize {
        self.room.available_permits()
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

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

async fn answer(shared: &Shared, questions: Vec<Question>) {
    let instances: Vec<&str> = questions.iter().map(|(instance, _)| instance.as_str()).collect();
    shared.fault(Step::Outcomes, || instances.iter().map(ToString::to_string).collect());
    let read = history::outcomes(&shared.db, &instances).await;
    for (instance, reply) in questions {
        reply.send(read.as_ref().map(|found| found.get(&instance).cloned()));
    }
}
