//! The orchestration that runs programs, and its activity.

use super::{Program, Step, Task};
use crate::shared::Shared;
use outlast_engine::{Either2, OrchestrationContext};
use outlast_model::{BackoffStrategy, RetryPolicy};
use outlast_runtime::ActivityContext;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ORCHESTRATION: &str = "program";
pub(crate) const ACTIVITY: &str = "work";

/// The input of one execution.
#[derive(Serialize, Deserialize)]
struct State {
    program: Program,
    round: u32,
    /// What was printed so far.
    out: Vec<String>,
}

impl Program {
    /// The input that starts it.
    pub(crate) fn input(&self) -> String {
        text(&State { program: self.clone(), round: 0, out: Vec::new() })
    }
}

fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// What a build knows.
pub(crate) fn orchestrations(_is_old: bool) -> OrchestrationRegistry {
    OrchestrationRegistry::builder().register(ORCHESTRATION, run).build()
}

async fn run(context: OrchestrationContext, input: String) -> Result<String, String> {
    let mut state: State = serde_json::from_str(&input).map_err(|error| error.to_string())?;
    let program = state.program.clone();
    for step in &program.steps {
        let printed = run_step(&context, step).await;
        state.out.extend(printed);
    }
    state.round += 1;
    if state.round < program.rounds {
        return context.continue_as_new(text(&state)).await;
    }
    match program.fails {
        true => Err("planned".to_string()),
        false => Ok(state.out.join(" ")),
    }
}

async fn run_step(context: &OrchestrationContext, step: &Step) -> Vec<String> {
    let ms = |ms: &u64| Duration::from_millis(*ms);
    let call = |task: &Task| context.schedule_activity(ACTIVITY, text(task));
    match step {
        Step::Call(task) => vec![flat(call(task).await)],
        Step::FanOut(tasks) => {
            let results = context.join(tasks.iter().map(call).collect()).await;
            results.into_iter().map(flat).collect()
        }
        Step::Timer(delay) => {
            context.schedule_timer(ms(delay)).await;
            vec!["timer".to_string()]
        }
        Step::Race(task, limit) => match context.select2(call(task), context.schedule_timer(ms(limit))).await
        {
            Either2::First(result) => vec![flat(result)],
            Either2::Second(()) => vec!["late".to_string()],
        },
        Step::Session(task, session) => {
            vec![flat(context.schedule_activity_on_session(ACTIVITY, text(task), session).await)]
        }
        Step::Retry(task) => {
            let policy = RetryPolicy {
                max_attempts: task.failures + 1,
                backoff: BackoffStrategy::Fixed { delay: Duration::from_millis(100) },
                timeout: None,
            };
            vec![flat(context.schedule_activity_with_retry(ACTIVITY, text(task), policy).await)]
        }
        Step::Child(program) => {
            let child = context.schedule_sub_orchestration(ORCHESTRATION, program.input());
            nested(child.await)
        }
        Step::ChildRace(program, limit) => {
            let child = context.schedule_sub_orchestration(ORCHESTRATION, program.input());
            match context.select2(child, context.schedule_timer(ms(limit))).await {
                Either2::First(result) => nested(result),
                Either2::Second(()) => vec!["late".to_string()],
            }
        }
        Step::Detached(instance, program) => {
            context.schedule_orchestration(ORCHESTRATION, instance, program.input());
            vec!["detached".to_string()]
        }
        Step::Dequeue(queue) => vec![format!("read:{}", context.dequeue_event(queue).await)],
        Step::DequeueOrLeave(queue, limit) => {
            match context.select2(context.dequeue_event(queue), context.schedule_timer(ms(limit))).await {
                Either2::First(data) => vec![format!("read:{data}")],
                Either2::Second(()) => vec!["late".to_string()],
            }
        }
        Step::Signal(name, limit) => {
            match context.select2(context.schedule_wait(name), context.schedule_timer(ms(limit))).await {
                Either2::First(data) => vec![format!("read:{data}")],
                Either2::Second(()) => vec!["late".to_string()],
            }
        }
        Step::Count(key) => {
            let before = context.get_kv_value(key).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
            context.set_kv_value(key, (before + 1).to_string());
            vec![format!("{key}={}", before + 1)]
        }
        Step::Status(status) => {
            context.set_custom_status(status);
            Vec::new()
        }
        Step::Now => match context.utc_now().await {
            Ok(_) => vec!["now".to_string()],
            Err(error) => vec![format!("!{error}")],
        },
    }
}

fn flat(result: Result<String, String>) -> String {
    result.unwrap_or_else(|error| format!("!{error}"))
}

/// What a child printed, in brackets.
fn nested(result: Result<String, String>) -> Vec<String> {
    match result {
        Ok(out) => vec!["(".to_string(), out, ")".to_string()],
        Err(error) => vec!["(".to_string(), format!("!{error}"), ")".to_string()],
    }
}

pub(crate) fn activities(shared: &Arc<Shared>) -> ActivityRegistry {
    let shared = Arc::clone(shared);
    let body = move |context, input| work(Arc::clone(&shared), context, input);
    ActivityRegistry::builder().register(ACTIVITY, body).build()
}

async fn work(shared: Arc<Shared>, context: ActivityContext, input: String) -> Result<String, String> {
    let task: Task = serde_json::from_str(&input).map_err(|error| error.to_string())?;
    let runs = shared.effects().ran(&context, &task);
    let pause = tokio::time::sleep(Duration::from_millis(task.ms));
    // Half of the activities listen to cancellation, the others have to be aborted.
    if task.id.is_multiple_of(2) {
        tokio::select! {
            biased;
            () = context.cancelled() => return Err("told to stop".to_string()),
            () = pause => {}
        }
    } else {
        pause.await;
    }
    match runs > u64::from(task.failures) {
        true => Ok(format!("t{}", task.id)),
        false => Err(format!("failed {runs} times")),
    }
}
