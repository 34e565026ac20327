//! Programs: a small language, and the one function that runs it.

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use outlast_engine::{DurableFuture, OrchestrationContext};
use outlast_model::{BackoffStrategy, RetryPolicy};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// An activity; an error is caught, or ends the program.
    Activity {
        caught: bool,
    },
    Retried,
    Timer,
    Child {
        caught: bool,
    },
    Detached,
    /// A positional event, by number.
    Wait(u8),
    /// A message of a shared queue, by number.
    Dequeue(u8),
    /// A message of a queue that no other step reads.
    OwnQueue,
    Set(u8),
    Clear(u8),
    Prune,
    ClearAll,
    Status,
    Guid,
    Now,
    Trace,
    /// Operations that are held while the block runs, and dropped after it.
    Hold(Box<[Step]>),
    /// Scheduled and dropped at once.
    Drop,
    Sequence(Vec<Step>),
    Loop(u8, Vec<Step>),
    Join2(Vec<Step>, Vec<Step>),
    JoinAll(Vec<Vec<Step>>),
    TheirJoinAll(Vec<Vec<Step>>),
    Unordered(Vec<Vec<Step>>),
    Select2(Vec<Step>, Vec<Step>),
    SelectAll(Vec<Vec<Step>>),
    /// Continues as new, twice at most.
    Next,
}

/// The program as an orchestration; its output lists the outcome of each step.
pub(crate) fn code(
    program: Vec<Step>,
) -> impl Fn(OrchestrationContext, String) -> BoxFuture<'static, Result<String, String>> + Send + Sync + 'static
{
    move |ctx, _| {
        let program = program.clone();
        async move { run_all(&ctx, "p".to_string(), &program).await }.boxed()
    }
}

fn run_all<'a>(
    ctx: &'a OrchestrationContext,
    path: String,
    steps: &'a [Step],
) -> BoxFuture<'a, Result<String, String>> {
    async move {
        let mut seen = String::new();
        for (n, step) in steps.iter().enumerate() {
            seen.push_str(&run(ctx, format!("{path}.{n}"), step).await?);
        }
        Ok(seen)
    }
    .boxed()
}

fn branches<'a>(
    ctx: &'a OrchestrationContext,
    path: &str,
    all: &'a [Vec<Step>],
) -> Vec<BoxFuture<'a, Result<String, String>>> {
    let branch = |(n, steps): (usize, &'a Vec<Step>)| run_all(ctx, format!("{path}[{n}]"), steps);
    all.iter().enumerate().map(branch).collect()
}

fn caught(result: Result<String, String>, caught: bool) -> Result<String, String> {
    match result {
        Ok(output) => Ok(format!("{output};")),
        Err(error) if caught => Ok(format!("!{error};")),
        Err(error) => Err(error),
    }
}

fn run<'a>(
    ctx: &'a OrchestrationContext,
    path: String,
    step: &'a Step,
) -> BoxFuture<'a, Result<String, String>> {
    async move {
        match step {
            Step::Hold(block) => {
                let held = (
                    ctx.schedule_activity("H", &path),
                    ctx.schedule_wait("s0"),
                    ctx.dequeue_event("q0"),
                    ctx.schedule_sub_orchestration("HC", &path),
                );
                let seen = run_all(ctx, format!("{path}h"), block).await;
                drop(held);
                seen
            }
            Step::Sequence(steps) => run_all(ctx, path, steps).await,
            Step::Loop(times, steps) => {
                let mut seen = String::new();
                for n in 0..*times {
                    seen.push_str(&run_all(ctx, format!("{path}#{n}"), steps).await?);
                }
                Ok(seen)
            }
            Step::Join2(a, b) => {
                let (a, b) =
                    ctx.join2(run_all(ctx, format!("{path}a"), a), run_all(ctx, format!("{path}b"), b)).await;
                Ok(format!("({}|{})", a?, b?))
            }
            Step::JoinAll(all) => all_of(ctx.join_all(branches(ctx, &path, all)).await),
            Step::TheirJoinAll(all) => all_of(futures::future::join_all(branches(ctx, &path, all)).await),
            Step::Unordered(all) => {
                let mut running: FuturesUnordered<_> = branches(ctx, &path, all).into_iter().collect();
                let mut seen = Vec::new();
                while let Some(outcome) = running.next().await {
                    seen.push(outcome?);
                }
                Ok(format!("<{}>", seen.join("|")))
            }
            Step::Select2(a, b) => {
                let either = ctx
                    .select2(run_all(ctx, format!("{path}a"), a), run_all(ctx, format!("{path}b"), b))
                    .await;
                let (index, outcome) = either.into_tuple();
                Ok(format!("{index}?{}", outcome?))
            }
            Step::SelectAll(all) => {
                let (index, outcome) = ctx.select_all(branches(ctx, &path, all)).await;
                Ok(format!("{index}?{}", outcome?))
            }
            leaf => run_leaf(ctx, path, leaf).await,
        }
    }
    .boxed()
}

async fn run_leaf(ctx: &OrchestrationContext, path: String, step: &Step) -> Result<String, String> {
    match step {
        Step::Activity { caught: is } => caught(ctx.schedule_activity("A", &path).await, *is),
        Step::Retried => {
            let backoff = BackoffStrategy::Fixed { delay: Duration::from_millis(5) };
            let policy = RetryPolicy::new(2).with_backoff(backoff);
            caught(ctx.schedule_activity_with_retry("R", &path, policy).await, true)
        }
        Step::Timer => {
            ctx.schedule_timer(Duration::from_millis(20)).await;
            Ok("t;".to_string())
        }
        Step::Child { caught: is } => caught(ctx.schedule_sub_orchestration("C", &path).await, *is),
        Step::Detached => {
            ctx.schedule_orchestration("D", format!("d{path}"), &path);
            Ok(String::new())
        }
        Step::Wait(name) => Ok(format!("{};", ctx.schedule_wait(format!("s{name}")).await)),
        Step::Dequeue(name) => Ok(format!("{};", ctx.dequeue_event(format!("q{name}")).await)),
        Step::OwnQueue => Ok(format!("{};", ctx.dequeue_event(format!("own{path}")).await)),
        Step::Set(key) => {
            ctx.set_kv_value(format!("k{key}"), &path);
            Ok(String::new())
        }
        Step::Clear(key) => {
            ctx.clear_kv_value(format!("k{key}"));
            Ok(String::new())
        }
        Step::Prune => {
            let pruned = ctx.prune_kv_values_updated_before(1_040);
            Ok(format!("{pruned}{:?};", ctx.get_kv_all_keys()))
        }
        Step::ClearAll => {
            ctx.clear_all_kv_values();
            Ok(String::new())
        }
        Step::Status => {
            ctx.set_custom_status(&path);
            Ok(String::new())
        }
        Step::Guid => ctx.new_guid().await.map(|id| format!("{};", id.len())),
        Step::Now => ctx.utc_now().await.map(|_| "now;".to_string()),
        Step::Trace => {
            ctx.trace_info(&path);
            Ok(String::new())
        }
        Step::Drop => {
            let dropped: DurableFuture<_> = ctx.schedule_activity("X", &path);
            drop(dropped);
            drop((ctx.schedule_wait("s1"), ctx.dequeue_event("q1")));
            Ok(String::new())
        }
        Step::Next if ctx.execution_id() < 3 => ctx.continue_as_new(path).await,
        Step::Next => Ok("last;".to_string()),
        block => unreachable!("{block:?} is no leaf"),
    }
}

fn all_of(outcomes: Vec<Result<String, String>>) -> Result<String, String> {
    let all: Result<Vec<String>, String> = outcomes.into_iter().collect();
    Ok(format!("[{}]", all?.join("|")))
}

/// Steps without races: each step reads its own messages only.
fn calm_leaf() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<bool>().prop_map(|caught| Step::Activity { caught }),
        1 => Just(Step::Retried),
        2 => Just(Step::Timer),
        2 => any::<bool>().prop_map(|caught| Step::Child { caught }),
        1 => Just(Step::Detached),
        2 => Just(Step::OwnQueue),
        1 => (0..4u8).prop_map(Step::Set),
        1 => (0..4u8).prop_map(Step::Clear),
        1 => Just(Step::Status),
        1 => Just(Step::Guid),
        1 => Just(Step::Now),
        1 => Just(Step::Trace),
    ]
}

fn racy_leaf() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => calm_leaf(),
        1 => (0..3u8).prop_map(Step::Wait),
        2 => (0..3u8).prop_map(Step::Dequeue),
        1 => Just(Step::Prune),
        1 => Just(Step::ClearAll),
        1 => Just(Step::Drop),
    ]
}

fn blocks(step: impl Strategy<Value = Step> + Clone) -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(prop::collection::vec(step, 1..4), 1..5)
}

pub(crate) fn race_free_program() -> impl Strategy<Value = Vec<Step>> {
    let step = calm_leaf().prop_recursive(3, 24, 4, |step| {
        let block = prop::collection::vec(step.clone(), 1..4);
        prop_oneof![
            block.clone().prop_map(Step::Sequence),
            (1..4u8, block.clone()).prop_map(|(times, block)| Step::Loop(times, block)),
            (block.clone(), block).prop_map(|(a, b)| Step::Join2(a, b)),
            blocks(step.clone()).prop_map(Step::JoinAll),
            blocks(step).prop_map(Step::TheirJoinAll),
        ]
    });
    // An error that is not caught ends all branches, in whatever state the others are: a race.
    prop::collection::vec(step, 1..6).prop_map(|steps| steps.into_iter().map(catch_all).collect())
}

fn catch_all(step: Step) -> Step {
    let each = |steps: Vec<Step>| steps.into_iter().map(catch_all).collect::<Vec<_>>();
    let all = |blocks: Vec<Vec<Step>>| blocks.into_iter().map(each).collect::<Vec<_>>();
    match step {
        Step::Activity { .. } => Step::Activity { caught: true },
        Step::Child { .. } => Step::Child { caught: true },
        Step::Sequence(steps) => Step::Sequence(each(steps)),
        Step::Loop(times, steps) => Step::Loop(times, each(steps)),
        Step::Join2(a, b) => Step::Join2(each(a), each(b)),
        Step::JoinAll(blocks) => Step::JoinAll(all(blocks)),
        Step::TheirJoinAll(blocks) => Step::TheirJoinAll(all(blocks)),
        leaf => leaf,
    }
}

pub(crate) fn any_program() -> impl Strategy<Value = Vec<Step>> {
    let step = racy_leaf().prop_recursive(3, 24, 4, |step| {
        let block = prop::collection::vec(step.clone(), 1..4);
        prop_oneof![
            block.clone().prop_map(Step::Sequence),
            block.clone().prop_map(|block| Step::Hold(block.into_boxed_slice())),
            (1..4u8, block.clone()).prop_map(|(times, block)| Step::Loop(times, block)),
            (block.clone(), block.clone()).prop_map(|(a, b)| Step::Join2(a, b)),
            (block.clone(), block).prop_map(|(a, b)| Step::Select2(a, b)),
            blocks(step.clone()).prop_map(Step::JoinAll),
            blocks(step.clone()).prop_map(Step::TheirJoinAll),
            blocks(step.clone()).prop_map(Step::Unordered),
            blocks(step).prop_map(Step::SelectAll),
        ]
    });
    let last = prop_oneof![3 => Just(None), 1 => Just(Some(Step::Next))];
    (prop::collection::vec(step, 1..6), last).prop_map(|(mut steps, last)| {
        steps.extend(last);
        steps
    })
}
