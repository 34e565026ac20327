//! The hot paths of the engine, for a tool that counts instructions: `cargo xtask bench engine` runs each case with and
//! without the measured part, and takes the difference.

use outlast_engine::{
    Code, Execution, Opening, OrchestrationContext, ParentClosePolicy, Setup, TurnInput, TurnOutput,
};
use outlast_model::{Event, EventKind, WorkItem};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Each outcome adds two events; two events exist before the first.
const OUTCOMES: u64 = 4_999;
const EVENTS: u64 = 10_000;
const BRANCHES: u64 = 10_000;
/// Number of outcomes in a turn of the join.
const BATCH: usize = 100;

#[derive(clap::Args)]
pub(crate) struct Plan {
    case: Case,
    /// Leaves the measured part out
    #[arg(long)]
    setup_only: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Case {
    Replay,
    WarmTurns,
    TypedTurns,
    Join,
}

pub(crate) fn run(plan: &Plan) {
    let measured = !plan.setup_only;
    match plan.case {
        Case::Replay => replay(measured),
        Case::WarmTurns => warm_turns(steps, measured),
        Case::TypedTurns => warm_turns(typed_steps, measured),
        Case::Join => join(measured),
    }
}

/// Replays 10,000 stored events in a new execution.
fn replay(measured: bool) {
    let (_, history) = chain(steps);
    let mut cold = execution(steps);
    if measured {
        turn(&mut cold, history, Vec::new());
        assert_eq!(cold.last_event_id(), EVENTS);
    }
}

/// Runs a hundred more turns of an execution with 10,000 events.
fn warm_turns(code: fn(OrchestrationContext, String) -> Code, measured: bool) {
    // Kept, so that freeing it is not measured.
    let (mut warm, _history) = chain(code);
    if measured {
        for _ in 0..100 {
            let outcome = outcome(warm.last_event_id());
            turn(&mut warm, Vec::new(), vec![outcome]);
        }
        assert_eq!(warm.last_event_id(), EVENTS + 200);
    }
}

/// A join of 10,000 activities: the turn that schedules them, and the turns with their outcomes.
fn join(measured: bool) {
    let mut joined = execution(branches);
    if !measured {
        return;
    }
    let scheduled = turn(&mut joined, Vec::new(), Vec::new()).commit.history_delta;
    let ids = scheduled.iter().filter(|event| matches!(event.kind, EventKind::ActivityScheduled { .. }));
    let outcomes: Vec<WorkItem> = ids.map(|event| outcome(event.event_id)).collect();
    assert_eq!(outcomes.len() as u64, BRANCHES);
    for batch in outcomes.chunks(BATCH) {
        turn(&mut joined, Vec::new(), batch.to_vec());
    }
    assert!(joined.has_ended());
}

/// An execution that waits for the outcome of its last activity, and its 10,000 events.
fn chain(code: fn(OrchestrationContext, String) -> Code) -> (Execution, Vec<Event>) {
    let mut execution = execution(code);
    let mut history = turn(&mut execution, Vec::new(), Vec::new()).commit.history_delta;
    for _ in 0..OUTCOMES {
        let outcome = outcome(execution.last_event_id());
        history.extend(turn(&mut execution, Vec::new(), vec![outcome]).commit.history_delta);
    }
    assert_eq!(history.len() as u64, EVENTS);
    (execution, history)
}

fn steps(context: OrchestrationContext, _: String) -> Code {
    Box::pin(async move {
        loop {
            context.schedule_activity("Step", "input").await?;
        }
    })
}

/// The same calls by the typed layer.
fn typed_steps(context: OrchestrationContext, _: String) -> Code {
    Box::pin(async move {
        loop {
            step::call(&context, "input".to_string()).await?;
        }
    })
}

#[duroxide::activity(crate = duroxide, name = "Step")]
async fn step(_ctx: duroxide::ActivityContext, input: String) -> Result<String, String> {
    Ok(input)
}

fn branches(context: OrchestrationContext, _: String) -> Code {
    Box::pin(async move {
        let calls = (0..BRANCHES).map(|_| context.schedule_activity("Branch", "input")).collect();
        Ok(context.join(calls).await.len().to_string())
    })
}

fn execution(code: fn(OrchestrationContext, String) -> Code) -> Execution {
    let opening = Opening {
        name: "Measured".to_string(),
        version: Some("1.0.0".to_string()),
        input: String::new(),
        parent: None,
        carried: Vec::new(),
        custom_status: None,
    };
    let setup = Setup {
        instance: "measured".to_string(),
        execution_id: 1,
        opening,
        stamp: outlast_engine::new_stamp(false),
        kv: BTreeMap::new(),
        limits: Arc::default(),
    };
    Execution::new(setup, code).expect("the function can be called")
}

fn turn(execution: &mut Execution, history: Vec<Event>, messages: Vec<WorkItem>) -> TurnOutput {
    let input = TurnInput {
        history,
        messages,
        notices: Vec::new(),
        now_ms: 1,
        random: &mut || 1,
        parent_close: ParentClosePolicy::default(),
    };
    outlast_engine::run(execution, input)
}

fn outcome(id: u64) -> WorkItem {
    let instance = "measured".to_string();
    WorkItem::ActivityCompleted { instance, execution_id: 1, id, result: "result".to_string() }
}
