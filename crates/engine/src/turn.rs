//! One turn: a batch of messages becomes a commit. Time and randomness are part of the input.

use crate::draft::{Draft, Report};
use crate::execution::{Execution, Stop};
use crate::op::child::ParentClosePolicy;
use crate::opening::Opening;
use crate::replay_error::Mismatch;
use crate::version::{self, Rules};
use outlast_model::{Event, TurnCommit, WorkItem};

/// The input of a turn.
pub struct TurnInput<'a> {
    /// Stored events that the execution has not applied: all of them after a restart, none if the execution is warm.
    pub history: Vec<Event>,
    /// The messages of the batch, in order.
    pub messages: Vec<WorkItem>,
    /// Messages to other instances that [`admit`](crate::admit) produced.
    pub notices: Vec<WorkItem>,
    /// The time of the turn.
    pub now_ms: u64,
    /// The source of random bits.
    pub random: &'a mut dyn FnMut() -> u128,
    /// The policy for running children when the execution ends.
    pub parent_close: ParentClosePolicy,
}

/// The output of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnOutput {
    /// The result, which the store writes.
    pub commit: TurnCommit,
    /// The report for logs and metrics.
    pub report: Report,
}

/// Runs a turn. Afterwards the execution is warm: it can run the next turn if the commit succeeds.
///
/// | step | does | file |
/// |---|---|---|
/// | 1 replay | applies the stored events to a fresh call of the function; nothing if the execution is warm | `walk.rs` |
/// | 2 receive | turns the messages into events | `receive.rs` |
/// | 3 advance | applies these events, and polls the code after each | `walk.rs`, `execution.rs` |
/// | 4 emit | turns the decisions of the code into events, and applies them | `emit.rs` |
/// | 5 conclude | decides whether the execution goes on or ends; checks limits; notes dropped futures | `conclude.rs`, `drops.rs` |
/// | 6 finish | sends the decisions, or ends the execution | `finish.rs` |
pub fn run(execution: &mut Execution, input: TurnInput<'_>) -> TurnOutput {
    let _turn = execution.waker.enter();
    let mut draft = execution.begin(&input);
    let replayed = execution.replay(input.history);
    if execution.has_ended() {
        // A turn after the end sends the notices of its batch and nothing else.
        draft.commit.orchestrator_items = input.notices;
        return TurnOutput { commit: draft.commit, report: draft.report };
    }
    let batch = execution.receive(&mut draft, input.messages);
    let ran = match (&batch.failure, replayed) {
        (Some(_), _) => Ok(()),
        (None, Err(stop)) => Err(stop),
        (None, Ok(())) => {
            execution.advance(batch.events).and_then(|()| execution.emit(&mut draft, input.random))
        }
    };
    let conclusion = execution.conclude(&mut draft, batch.failure, ran);
    execution.finish(&mut draft, conclusion, input.parent_close);
    draft.commit.orchestrator_items.extend(input.notices);
    execution.report(&mut draft);
    execution.forget_input();
    TurnOutput { commit: draft.commit, report: draft.report }
}

impl Execution {
    /// Begins the draft of the turn.
    fn begin(&mut self, input: &TurnInput<'_>) -> Draft {
        let mut draft = Draft::new(self.identity(), input.now_ms);
        self.context.lock().begin_turn(input.now_ms);
        self.turns += 1;
        if self.turns == 1 && !Rules::of_stamp(&self.stamp).1 {
            let text = format!("Invalid pinned version '{}': replaying by the oldest rules", self.stamp);
            draft.report.warnings.push(text);
        }
        draft
    }

    /// Step 1: applies the stored events.
    fn replay(&mut self, history: Vec<Event>) -> Result<(), Stop> {
        if self.waker.woken_from_outside() {
            let last = self.context.lock().last_call;
            return Err(Stop::Mismatch(Mismatch::not_durable(self.identity(), last)));
        }
        let is_warm = self.summary.events > 0;
        if is_warm || history.is_empty() {
            return Ok(());
        }
        self.expect_history(&history);
        for event in &history {
            self.summary.note(event);
        }
        if self.has_ended() {
            return Ok(());
        }
        if let Some(damage) = damage(&history) {
            return Err(Stop::Mismatch(Mismatch::corrupted(self.identity(), &damage)));
        }
        for event in history {
            self.apply(event, true)?;
        }
        self.poll_if_due()?;
        self.check_drops()
    }

    /// Records the start event.
    pub(crate) fn start(&mut self, draft: &mut Draft) -> Event {
        let mut event = draft.event(self.identity(), 1, None, self.opening.event());
        event.duroxide_version.clone_from(&self.stamp);
        self.summary.note(&event);
        draft.commit.history_delta.push(event.clone());
        let metadata = &mut draft.commit.metadata;
        metadata.orchestration_name = Some(self.identity().name.clone());
        metadata.orchestration_version = Some(self.identity().version.clone());
        metadata.parent_instance_id = self.opening.parent.as_ref().map(|parent| parent.instance.clone());
        metadata.pinned_duroxide_version = version::pin(&self.stamp);
        draft.report.started = Some(if self.execution_id() > 1 { "continueAsNew" } else { "client" });
        event
    }

    /// Step 3: applies the events of the batch, and polls the code after each.
    fn advance(&mut self, events: Vec<Event>) -> Result<(), Stop> {
        for event in events {
            self.poll_if_due()?;
            if !self.is_running() {
                break;
            }
            self.context.lock().received();
            self.apply(event, false)?;
        }
        self.poll_if_due()
    }

    pub(crate) fn report(&mut self, draft: &mut Draft) {
        let mut state = self.context.lock();
        draft.report.traces = std::mem::take(&mut state.traces);
        draft.report.warnings.append(&mut state.warnings);
        draft.report.events = self.summary.events;
        draft.report.turns = self.turns;
    }
}

/// Damage of a history that shows without its code.
fn damage(history: &[Event]) -> Option<String> {
    if history.first().is_none_or(|first| Opening::of_event(&first.kind).is_none()) {
        return Some("first event must be OrchestrationStarted".to_string());
    }
    let unordered = history.windows(2).find(|pair| pair[0].event_id >= pair[1].event_id)?;
    Some(format!("event {} comes after event {}", unordered[1].event_id, unordered[0].event_id))
}
