//! The orchestration that interprets programs.

mod activity;
mod child;
mod message;
mod state;

use super::{DequeueCall, NEW, OLD, Program, Step};
use outlast_engine::{DurableFuture, OrchestrationContext};
use outlast_runtime::registry::OrchestrationRegistry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ORCHESTRATION: &str = "program";
/// The typed form of the same orchestration.
pub(crate) const TYPED_ORCHESTRATION: &str = "typed-program";

/// The input of one execution.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct State {
    program: Program,
    round: u32,
    /// The output so far.
    out: Vec<String>,
}

impl Program {
    /// The input of the first execution.
    pub(crate) fn state(&self) -> State {
        State { program: self.clone(), round: 0, out: Vec::new() }
    }

    /// The input of the first execution, as text.
    pub(crate) fn input(&self) -> String {
        text(&self.state())
    }
}

fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The orchestrations of a build. An old build lacks the new version.
pub(crate) fn orchestrations(is_old: bool) -> OrchestrationRegistry {
    let mut builder = OrchestrationRegistry::builder();
    for version in if is_old { &[OLD][..] } else { &[OLD, NEW] } {
        builder = builder.register_versioned(ORCHESTRATION, version, run_text).register_versioned_typed(
            TYPED_ORCHESTRATION,
            version,
            run,
        );
    }
    builder.build()
}

/// The orchestrations of a build that does not fit these instances: it repeats no history of them.
pub(crate) fn broken_orchestrations(misfits: &BTreeSet<String>) -> OrchestrationRegistry {
    let misfits = Arc::new(misfits.clone());
    let mut builder = OrchestrationRegistry::builder();
    for version in [OLD, NEW] {
        let (text, typed) = (Arc::clone(&misfits), Arc::clone(&misfits));
        let text_code = move |context: OrchestrationContext, input: String| {
            let misfits = Arc::clone(&text);
            async move {
                misfit(&context, &misfits).await;
                run_text(context, input).await
            }
        };
        let typed_code = move |context: OrchestrationContext, state: State| {
            let misfits = Arc::clone(&typed);
            async move {
                misfit(&context, &misfits).await;
                run(context, state).await
            }
        };
        builder = builder.register_versioned(ORCHESTRATION, version, text_code).register_versioned_typed(
            TYPED_ORCHESTRATION,
            version,
            typed_code,
        );
    }
    builder.build()
}

/// In a replay of one of these instances, makes a decision that no program makes.
async fn misfit(context: &OrchestrationContext, misfits: &BTreeSet<String>) {
    if context.is_replaying() && misfits.contains(&context.instance_id()) {
        let _ = context.schedule_activity("of a broken build", "").await;
    }
}

async fn run_text(context: OrchestrationContext, input: String) -> Result<String, String> {
    run(context, serde_json::from_str(&input).map_err(|error| error.to_string())?).await
}

/// Children and activities that still run when the execution ends.
#[derive(Default)]
struct Unfinished(Vec<DurableFuture<Result<String, String>>>);

async fn run(context: OrchestrationContext, mut state: State) -> Result<String, String> {
    let program = state.program.clone();
    let mut unfinished = Unfinished::default();
    for step in &program.steps {
        let printed = run_step(&context, step, &mut unfinished).await;
        state.out.extend(printed);
    }
    state.round += 1;
    if state.round < program.rounds {
        let is_typed = context.orchestration_name() == TYPED_ORCHESTRATION;
        return match (program.next, is_typed) {
            (Some(version), true) => {
                // There is no typed method with a version; this sends the same input.
                let input = context.codec().encode(&state)?;
                context.continue_as_new_versioned(version, input).await
            }
            (Some(version), false) => context.continue_as_new_versioned(version, text(&state)).await,
            (None, true) => context.continue_as_new_typed(&state).await,
            (None, false) => context.continue_as_new(text(&state)).await,
        };
    }
    match program.fails {
        true => Err("planned".to_string()),
        false => Ok(state.out.join(" ")),
    }
}

async fn run_step(context: &OrchestrationContext, step: &Step, unfinished: &mut Unfinished) -> Vec<String> {
    match step {
        Step::Call(task, form) => vec![activity::call(context, task, form).await],
        Step::Ask(task) => {
            let asked = one_word(activity::plain(context, task).await);
            vec![asked, message::dequeue(context, &task.queue(), DequeueCall::Plain).await]
        }
        Step::FanOut(tasks, join) => activity::fan_out(context, tasks, *join).await,
        Step::First(tasks, race) => vec![activity::first(context, tasks, *race).await],
        Step::Timer(delay) => {
            context.schedule_timer(ms(*delay)).await;
            vec!["timer".to_string()]
        }
        Step::Race(task, limit) => vec![activity::race(context, task, *limit).await],
        Step::Race3(task, limit, event) => vec![activity::race3(context, task, *limit, event).await],
        Step::TwoRaces([(one, one_ms), (two, two_ms)]) => {
            let (one, two) = (activity::race(context, one, *one_ms), activity::race(context, two, *two_ms));
            let (one, two) = context.join2(one, two).await;
            vec![one, two]
        }
        Step::Mixed(task, delay, program) => {
            let child = context.schedule_sub_orchestration(ORCHESTRATION, program.input());
            let timer = context.schedule_timer(ms(*delay));
            let (task, (), child) = context.join3(activity::plain(context, task), timer, child).await;
            [vec![one_word(task), "timer".to_string()], in_brackets(child)].concat()
        }
        Step::Retry(task, form, limit) => vec![activity::retry(context, task, form, *limit).await],
        Step::Child(program, child_call) => child::run(context, program, child_call).await,
        Step::ChildRace(program, limit) => child::race(context, program, *limit).await,
        Step::LeaveChild(program) => {
            unfinished.0.push(context.schedule_sub_orchestration(ORCHESTRATION, program.input()));
            vec!["left".to_string()]
        }
        Step::LeaveActivity(task) => {
            unfinished.0.push(activity::plain(context, task));
            vec!["left".to_string()]
        }
        Step::ReadChild(name, is_typed) => child::read(context, *name, *is_typed).await,
        Step::Detached(instance, program, form) => {
            vec![child::detach(context, instance, program, form)]
        }
        Step::Dequeue(queue, form) => vec![message::dequeue(context, queue, *form).await],
        Step::DequeueOrLeave(queue, limit) => vec![message::dequeue_or_leave(context, queue, *limit).await],
        Step::Drain(queue, count, after) => message::drain(context, queue, *count, *after).await,
        Step::Signal(name, limit, form) => vec![message::signal(context, name, *limit, *form).await],
        local => state::run(context, local).await,
    }
}

/// An outcome as one word of the output.
fn one_word(result: Result<String, String>) -> String {
    result.unwrap_or_else(|error| {
        // The text of a panic contains the id of a tokio task, which differs between runs.
        let panicked = error.split(['"', ' ']).find(|word| word.ends_with("-panics"));
        format!("!{}", panicked.unwrap_or(&error).replace(char::is_whitespace, "_"))
    })
}

/// The output of a child, in brackets.
fn in_brackets(result: Result<String, String>) -> Vec<String> {
    let out = match result {
        Ok(out) => out,
        error => one_word(error),
    };
    vec!["(".to_string(), out, ")".to_string()]
}
