//! Steps with activities.

use super::{ms, one_word, text};
use crate::program::activities::{ACTIVITY, Done, NOTED_ACTIVITY, TYPED_ACTIVITY};
use crate::program::{ActivityCall, Task};
use outlast_engine::{DurableFuture, Either2, Either3, OrchestrationContext};
use outlast_model::{BackoffStrategy, RetryPolicy};
use std::time::Duration;

pub(super) fn plain(context: &OrchestrationContext, task: &Task) -> DurableFuture<Result<String, String>> {
    context.schedule_activity(ACTIVITY, text(task))
}

pub(super) async fn call(context: &OrchestrationContext, task: &Task, form: &ActivityCall) -> String {
    one_word(match form {
        ActivityCall::Plain => plain(context, task).await,
        ActivityCall::Typed => typed(context.schedule_activity_typed(TYPED_ACTIVITY, task).await),
        ActivityCall::Tagged(tag) => plain(context, task).with_tag(tag).await,
        ActivityCall::Noted => context.schedule_activity(NOTED_ACTIVITY, text(task)).await,
        ActivityCall::Session(session) => {
            context.schedule_activity_on_session(ACTIVITY, text(task), session).await
        }
        ActivityCall::SessionTyped(session) => {
            typed(context.schedule_activity_on_session_typed(TYPED_ACTIVITY, task, session).await)
        }
    })
}

fn typed(result: Result<Done, String>) -> Result<String, String> {
    result.map(|done| format!("t{}", done.id))
}

pub(super) async fn fan_out(context: &OrchestrationContext, tasks: &[Task], join: bool) -> Vec<String> {
    let calls: Vec<_> = tasks.iter().map(|task| plain(context, task)).collect();
    let results = match join {
        true => context.join(calls).await,
        false => context.join_all(calls).await,
    };
    results.into_iter().map(one_word).collect()
}

pub(super) async fn first(context: &OrchestrationContext, tasks: &[Task], race: bool) -> String {
    let calls: Vec<_> = tasks.iter().map(|task| plain(context, task)).collect();
    one_word(match race {
        true => context.race(calls).await,
        false => context.select_all(calls).await.1,
    })
}

pub(super) async fn race(context: &OrchestrationContext, task: &Task, limit: u64) -> String {
    let (activity, timer) = (plain(context, task), context.schedule_timer(ms(limit)));
    match context.select2(activity, timer).await {
        Either2::First(result) => one_word(result),
        Either2::Second(()) => "late".to_string(),
    }
}

pub(super) async fn race3(context: &OrchestrationContext, task: &Task, limit: u64, event: &str) -> String {
    let (activity, timer) = (plain(context, task), context.schedule_timer(ms(limit)));
    match context.select3(activity, timer, context.schedule_wait(event)).await {
        Either3::First(result) => one_word(result),
        Either3::Second(()) => "late".to_string(),
        Either3::Third(data) => format!("read:{data}"),
    }
}

pub(super) async fn retry(
    context: &OrchestrationContext,
    task: &Task,
    form: &ActivityCall,
    limit: Option<u64>,
) -> String {
    let policy = RetryPolicy {
        max_attempts: task.failures + 1,
        backoff: BackoffStrategy::Fixed { delay: Duration::from_millis(100) },
        timeout: limit.map(Duration::from_millis),
    };
    one_word(match form {
        // A retried activity cannot be tagged.
        ActivityCall::Plain | ActivityCall::Tagged(_) | ActivityCall::Noted => {
            context.schedule_activity_with_retry(ACTIVITY, text(task), policy).await
        }
        ActivityCall::Typed => {
            typed(context.schedule_activity_with_retry_typed(TYPED_ACTIVITY, task, policy).await)
        }
        ActivityCall::Session(session) => {
            context.schedule_activity_with_retry_on_session(ACTIVITY, text(task), policy, session).await
        }
        ActivityCall::SessionTyped(session) => {
            let call =
                context.schedule_activity_with_retry_on_session_typed(TYPED_ACTIVITY, task, policy, session);
            typed(call.await)
        }
    })
}
