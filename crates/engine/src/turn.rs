//! One turn: a batch of messages in, a commit out. No clock, no randomness, no store: they are in the input.

use crate::admit::{self, Verdict};
use crate::draft::{Draft, Report};
use crate::execution::{Execution, Stop};
use crate::finish::{self, Closing, ParentClosePolicy};
use crate::mismatch::Mismatch;
use crate::opening::Opening;
use crate::outcome::Outcome;
use crate::state::What;
use crate::version::{self, Rules};
use outlast_model::{ErrorDetails, Event, EventKind, TurnCommit, WorkItem};

/// What a turn is given.
pub struct TurnInput<'a> {
    /// Stored events that the execution has not applied: all of them after a restart, none when it is warm.
    pub history: Vec<Event>,
    /// What arrived, in order.
    pub messages: Vec<WorkItem>,
    /// Messages to others that the sorting of the batch produced.
    pub notices: Vec<WorkItem>,
    /// The time of the turn.
    pub now_ms: u64,
    /// Where random bits come from.
    pub random: &'a mut dyn FnMut() -> u128,
    /// What happens to children at the end.
    pub parent_close: ParentClosePolicy,
}

/// What a turn results in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnOutput {
    /// What to write.
    pub commit: TurnCommit,
    /// What to say about it.
    pub report: Report,
}

/// Runs a turn. The execution is warm afterwards, and good for another if the commit succeeds.
pub fn run(execution: &mut Execution, input: TurnInput<'_>) -> TurnOutput {
    let _turn = execution.alarm.enter();
    let mut draft = execution.begin(&input);
    let replayed = execution.replay(input.history);
    if execution.has_ended() {
        // Whoever runs it again after its end gets nothing but what the sorting of the batch produced.
        draft.commit.orchestrator_items = input.notices;
        return TurnOutput { commit: draft.commit, report: draft.report };
    }
    let batch = execution.admit(&mut draft, input.messages);
    let ran = match (&batch.abort, replayed) {
        (Some(_), _) => Ok(()),
        (None, Err(stop)) => Err(stop),
        (None, Ok(())) => {
            execution.advance(batch.events).and_then(|()| execution.emit(&mut draft, input.random))
        }
    };
    let outcome = execution.outcome(&mut draft, batch.abort, ran);
    execution.finish(&mut draft, outcome, input.parent_close);
    draft.commit.orchestrator_items.extend(input.notices);
    execution.report(&mut draft);
    execution.forget_input();
    TurnOutput { commit: draft.commit, report: draft.report }
}

/// The batch as events.
struct Batch {
    events: Vec<Event>,
    /// Why the code does not get to see it.
    abort: Option<ErrorDetails>,
}

impl Execution {
    /// Opens the draft.
    fn begin(&mut self, input: &TurnInput<'_>) -> Draft {
        let mut draft = Draft::new(self.who(), input.now_ms);
        self.context.lock().begin_turn(input.now_ms);
        self.turns += 1;
        if self.turns == 1 && !Rules::of_stamp(&self.stamp).1 {
            let text = format!("Invalid pinned version '{}': replaying by the oldest rules", self.stamp);
            draft.report.warnings.push(text);
        }
        draft
    }

    /// Step 2a: what is stored.
    fn replay(&mut self, history: Vec<Event>) -> Result<(), Stop> {
        if self.alarm.woken_from_outside() {
            let last = self.context.lock().last_call;
            return Err(Stop::Mismatch(Mismatch::not_durable(self.who(), last)));
        }
        let is_warm = self.ledger.events > 0;
        if is_warm || history.is_empty() {
            return Ok(());
        }
        self.expect_history(&history);
        for event in &history {
            self.ledger.note(event);
        }
        if self.has_ended() {
            return Ok(());
        }
        if let Some(damage) = damage(&history) {
            return Err(Stop::Mismatch(Mismatch::corrupted(self.who(), &damage)));
        }
        for event in history {
            self.apply(event, true)?;
        }
        self.poll_if_due()?;
        self.check_drops()
    }

    /// Step 1: messages become events. An execution that begins gets its start event and what was carried over first.
    fn admit(&mut self, draft: &mut Draft, messages: Vec<WorkItem>) -> Batch {
        let mut batch = Batch { events: Vec::new(), abort: None };
        if self.ledger.events == 0 {
            let start = self.start(draft);
            batch.events.push(start);
            for (name, data) in self.opening.carried.clone() {
                let carried = EventKind::QueueEventDelivered { name, data };
                batch.events.push(self.record(draft, None, carried));
            }
        }
        for message in messages {
            if !self.wants(&message) {
                continue;
            }
            match admit::message(self.who(), &self.ledger, message) {
                Verdict::Drop => {}
                Verdict::Refuse(mismatch) => batch.abort = Some(mismatch.details()),
                Verdict::Record { source, kind } => {
                    let failure = admit::system_failure(&kind).cloned();
                    batch.abort = batch.abort.or(failure);
                    draft.report.children_ended.extend(self.ledger.child_ended(source, &kind, draft.now_ms));
                    batch.events.push(self.record(draft, source, kind));
                }
            }
        }
        batch
    }

    pub(crate) fn start(&mut self, draft: &mut Draft) -> Event {
        let mut event = draft.event(self.who(), 1, None, self.opening.event());
        event.duroxide_version.clone_from(&self.stamp);
        self.ledger.note(&event);
        draft.commit.history_delta.push(event.clone());
        let metadata = &mut draft.commit.metadata;
        metadata.orchestration_name = Some(self.who().name.clone());
        metadata.orchestration_version = Some(self.who().version.clone());
        metadata.parent_instance_id = self.opening.parent.as_ref().map(|parent| parent.instance.clone());
        metadata.pinned_duroxide_version = version::pin(&self.stamp);
        draft.report.started = Some(if self.execution_id() > 1 { "continueAsNew" } else { "client" });
        event
    }

    /// Timers that the code dropped wake nobody, and topics need a subscriber.
    fn wants(&self, message: &WorkItem) -> bool {
        match message {
            WorkItem::TimerFired { execution_id, id, .. } => {
                *execution_id != self.execution_id() || !self.is_dropped(self.token(*id))
            }
            #[cfg(feature = "replay-version-test")]
            WorkItem::ExternalRaised2 { name, topic, .. } => {
                self.context.lock().signals.knows(&crate::op::topic::lane(name, topic))
            }
            _ => true,
        }
    }

    /// Step 2b: what is new.
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

    /// Step 4.
    pub(crate) fn finish(&mut self, draft: &mut Draft, outcome: Outcome, policy: ParentClosePolicy) {
        match outcome {
            Outcome::GoesOn { dropped_children } => {
                let this = &*self;
                let children = &this.ledger.open_children;
                finish::go_on(this.who(), draft, children, &dropped_children, |token| this.is_dropped(token));
            }
            Outcome::Ends { close, dropped_children } => {
                let state = self.context.lock();
                let closing = Closing {
                    who: self.context.identity(),
                    opening: &self.opening,
                    ledger: &mut self.ledger,
                    open_signals: state.open_waits(|what| matches!(what, What::Signal { .. })),
                    open_queues: state.open_waits(|what| matches!(what, What::Queue { .. })),
                    dropped_children,
                    unread: state.queues.unread(),
                    custom_status: state.custom_status.clone(),
                    policy,
                    carry_limit: state.limits.carry_forward_events,
                    carry_bytes: state.limits.carry_forward_bytes,
                };
                drop(state);
                finish::finish(closing, draft, close);
            }
        }
    }

    pub(crate) fn report(&mut self, draft: &mut Draft) {
        let mut state = self.context.lock();
        draft.report.traces = std::mem::take(&mut state.traces);
        draft.report.warnings.append(&mut state.warnings);
        draft.report.events = self.ledger.events;
        draft.report.turns = self.turns;
    }
}

/// What is wrong with a history before anybody looks at the code.
fn damage(history: &[Event]) -> Option<String> {
    if history.first().is_none_or(|first| Opening::of_event(&first.kind).is_none()) {
        return Some("first event must be OrchestrationStarted".to_string());
    }
    let unordered = history.windows(2).find(|pair| pair[0].event_id >= pair[1].event_id)?;
    Some(format!("event {} comes after event {}", unordered[1].event_id, unordered[0].event_id))
}
