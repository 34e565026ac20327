//! The activities of programs.

use super::{End, Task};
use crate::shared::Shared;
use async_trait::async_trait;
use outlast_runtime::registry::ActivityRegistry;
use outlast_runtime::{ActivityContext, ActivityHandler, Attempt};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

pub(super) const ACTIVITY: &str = "work";
/// The typed form of the same activity.
pub(super) const TYPED_ACTIVITY: &str = "typed-work";

/// The same activity with failures that the worker retries.
pub(super) const NOTED_ACTIVITY: &str = "noted-work";

/// The result of the typed activity.
#[derive(Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) id: u64,
}

/// Whether this is the name of an activity of programs, whose effects are counted.
pub(crate) fn is_activity(name: &str) -> bool {
    [ACTIVITY, TYPED_ACTIVITY, NOTED_ACTIVITY].contains(&name)
}

pub(crate) fn activities(shared: &Arc<Shared>) -> ActivityRegistry {
    let (text, typed) = (Arc::clone(shared), Arc::clone(shared));
    ActivityRegistry::builder()
        .register(ACTIVITY, move |context, input: String| {
            let shared = Arc::clone(&text);
            async move {
                let task: Task = serde_json::from_str(&input).map_err(|error| error.to_string())?;
                work(shared, context, &task).await.map(|()| task.word())
            }
        })
        .register_typed(TYPED_ACTIVITY, move |context, task: Task| {
            let shared = Arc::clone(&typed);
            async move { work(shared, context, &task).await.map(|()| Done { id: task.id }) }
        })
        .register_handler(NOTED_ACTIVITY, Arc::new(Noted(Arc::clone(shared))))
        .build()
}

/// The handler of [`NOTED_ACTIVITY`]: the failures of a task are those that the store counts.
struct Noted(Arc<Shared>);

#[async_trait]
impl ActivityHandler for Noted {
    async fn invoke(&self, context: ActivityContext, input: String) -> Result<String, String> {
        let task: Task = serde_json::from_str(&input).map_err(|error| error.to_string())?;
        work(Arc::clone(&self.0), context, &Task { failures: 0, ..task.clone() }).await.map(|()| task.word())
    }

    async fn attempt(&self, context: ActivityContext, input: String) -> Attempt {
        let failures = context.failures();
        match serde_json::from_str::<Task>(&input) {
            Ok(task) if failures < task.failures => {
                let error = format!("failed {} times", failures + 1);
                Attempt::Retry { error, after: Duration::from_millis(100) }
            }
            Ok(task) if failures > task.failures => Attempt::Done(Err(format!("failed {failures} times"))),
            _ => Attempt::Done(self.invoke(context, input).await),
        }
    }
}

async fn work(shared: Arc<Shared>, context: ActivityContext, task: &Task) -> Result<(), String> {
    let runs = shared.effects().ran(&context, task);
    let ms = if shared.plan.has_quick_work { 0 } else { task.ms };
    let pause = tokio::time::sleep(Duration::from_millis(ms));
    // Half of the activities stop when they are cancelled; the others must be aborted.
    if task.id.is_multiple_of(2) {
        tokio::select! {
            biased;
            () = context.cancelled() => return Err("told to stop".to_string()),
            () = pause => {}
        }
    } else {
        pause.await;
    }
    if runs <= u64::from(task.failures) {
        return Err(format!("failed {runs} times"));
    }
    match task.end {
        End::Succeeds => Ok(()),
        End::Fails => Err(format!("t{}-fails", task.id)),
        End::Panics => outlast_testkit::panics::planned(&format!("t{}-panics", task.id)),
        End::Sends => {
            send(&context, task, runs).await;
            Ok(())
        }
    }
}

/// Sends a message to its own instance until the call succeeds. Every try has its own data.
async fn send(context: &ActivityContext, task: &Task, runs: u64) {
    let (client, instance) = (context.get_client(), context.instance_id());
    for attempt in 0.. {
        let data = format!("{instance}/{}.t{}.{runs}.{attempt}", context.execution_id(), task.id);
        match client.enqueue_event(instance, task.queue(), data).await {
            Ok(()) => return,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
