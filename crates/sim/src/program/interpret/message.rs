//! Steps that receive messages: queues and positional events.

use super::ms;
use crate::program::{DequeueCall, WaitCall};
use outlast_engine::{Either2, OrchestrationContext};

#[allow(deprecated, reason = "the old names must work as long as they exist")]
pub(super) async fn dequeue(context: &OrchestrationContext, queue: &str, form: DequeueCall) -> String {
    let data: Result<String, String> = match form {
        DequeueCall::Plain => Ok(context.dequeue_event(queue).await),
        DequeueCall::Typed => Ok(context.dequeue_event_typed(queue).await),
        DequeueCall::TryTyped => context.try_dequeue_event_typed(queue).await,
        DequeueCall::Persistent => Ok(context.schedule_wait_persistent(queue).await),
        DequeueCall::PersistentTyped => Ok(context.schedule_wait_persistent_typed(queue).await),
    };
    read(data)
}

fn read(data: Result<String, String>) -> String {
    match data {
        Ok(data) => format!("read:{data}"),
        error => super::one_word(error),
    }
}

pub(super) async fn dequeue_or_leave(context: &OrchestrationContext, queue: &str, limit: u64) -> String {
    match context.select2(context.dequeue_event(queue), context.schedule_timer(ms(limit))).await {
        Either2::First(data) => read(Ok(data)),
        Either2::Second(()) => "late".to_string(),
    }
}

pub(super) async fn drain(
    context: &OrchestrationContext,
    queue: &str,
    count: u64,
    after: u64,
) -> Vec<String> {
    context.schedule_timer(ms(after)).await;
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(read(Ok(context.dequeue_event(queue).await)));
    }
    all
}

pub(super) async fn signal(context: &OrchestrationContext, name: &str, limit: u64, form: WaitCall) -> String {
    let event = match form {
        WaitCall::Plain => context.schedule_wait(name).map(Ok),
        WaitCall::Typed => context.schedule_wait_typed(name).map(Ok),
        WaitCall::TryTyped => context.try_schedule_wait_typed(name),
    };
    match context.select2(event, context.schedule_timer(ms(limit))).await {
        Either2::First(data) => read(data),
        Either2::Second(()) => "late".to_string(),
    }
}
