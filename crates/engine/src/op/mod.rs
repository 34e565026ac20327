//! The durable operations, one file each.
//!
//! The file of an operation holds everything about it: the calls that orchestration code makes, and an implementation of
//! [`Operation`]. The steps of a turn dispatch to that implementation. The table [`operations!`] below names the actions,
//! events and messages of each operation. CONTRIBUTING.md shows how to add an operation.

pub(crate) mod entropy;
pub(crate) mod retry;

use crate::decide::Emitted;
use crate::draft::{Draft, Recorded};
use crate::execution::{Execution, Stop};
use crate::finish::Closing;
use crate::history_summary::HistorySummary;
use crate::receive::Receipt;
use crate::state::{Inboxes, State};
use outlast_model::{Action, Event, EventKind, WorkItem};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Deref;

/// The part that an event plays for its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A decision of the code: replay must make it again.
    Decision,
    /// The outcome of a decision, which `source_event_id` names.
    Outcome,
    /// Data that a client sent. It belongs to no decision yet.
    Arrival,
    /// The code dropped the future of the decision that `source_event_id` names.
    Cancellation,
}

/// A decision that has its event, and waits on an inbox.
pub(crate) struct Bound<'a> {
    pub(crate) inbox_name: &'a str,
    pub(crate) event_id: u64,
    pub(crate) token: u64,
    /// The code has dropped the future already.
    pub(crate) is_dropped: bool,
}

/// The data in an inbox for a wait that has just been bound.
pub(crate) enum Held {
    /// Data that the wait resolves to.
    Data(String),
    /// Data that the wait may read when its future is polled.
    Readable,
    Nothing,
}

/// The functions of an operation that the steps of a turn call.
pub(crate) trait Operation {
    /// The name in error messages about outcomes.
    fn name(&self) -> &'static str;

    // -- a decision and its event --------------------------------------------------------------------------------

    /// The event that a decision becomes; `None` for continue-as-new, which ends the execution instead.
    fn event(&self, action: &Action, execution_id: u64, event_id: u64) -> Option<EventKind>;

    /// Whether replay may take a stored event for this decision.
    fn matches(&self, action: &Action, recorded: &EventKind) -> bool;

    /// The place of the decision that a stored event belongs to: the oldest decision, if it matches.
    fn find(&self, emitted: &VecDeque<Emitted>, recorded: &EventKind) -> Option<usize> {
        emitted.front().filter(|emitted| self.matches(&emitted.action, recorded)).map(|_| 0)
    }

    /// A decision in words, without its payload.
    fn describe(&self, decision: &EventKind) -> String;

    /// The first words of the error when the code makes another decision than the recorded one.
    fn mismatch(&self, _recorded: &EventKind) -> &'static str {
        "schedule mismatch"
    }

    /// The first words of the error when the code makes no decision where one is recorded.
    fn missing(&self) -> &'static str {
        "history schedule but no emitted action"
    }

    /// Whether later code may leave the decision out. [`Operation::adopt`] then applies the decision.
    fn is_optional(&self) -> bool {
        false
    }

    /// Applies a stored decision that the code no longer makes.
    fn adopt(&self, _state: &mut State, _recorded: &EventKind) {}

    /// The time that a stored decision carries and that replay must use again.
    fn stored_time(&self, _recorded: &EventKind) -> Option<u64> {
        None
    }

    /// Refuses a decision that cannot be carried out.
    fn check(&self, _execution: &Execution, _decision: &EventKind) -> Result<(), Stop> {
        Ok(())
    }

    /// The outcome of a decision that the turn itself can answer.
    fn immediate_outcome(
        &self,
        _action: &Action,
        _now_ms: u64,
        _random: &mut dyn FnMut() -> u128,
    ) -> Option<EventKind> {
        None
    }

    // -- the history summary -------------------------------------------------------------------------------------

    /// Enters a decision. An operation with outcomes calls [`HistorySummary::expect_outcome`].
    fn note_decision(&self, _summary: &mut HistorySummary, _event: &Event) {}

    /// The decision has its outcome, or its future was dropped.
    fn note_closed(&self, _summary: &mut HistorySummary, _event_id: u64) {}

    /// The decision has its outcome.
    fn note_answered(&self, _summary: &mut HistorySummary, _event_id: u64) {}

    // -- waiting on an inbox -------------------------------------------------------------------------------------

    /// A wait has its event.
    fn bind(&self, _inboxes: &mut Inboxes, _bound: Bound<'_>) -> Held {
        Held::Nothing
    }

    /// The data that a wait reads when its future is polled.
    fn take(&self, _inboxes: &mut Inboxes, _inbox_name: &str, _event_id: u64) -> Option<String> {
        None
    }

    /// Removes a wait; returns the token of the wait that can read data because of that.
    fn release(&self, _inboxes: &mut Inboxes, _inbox_name: &str, _event_id: u64) -> Option<u64> {
        None
    }

    /// The operation and the inbox whose waits an arrival is for.
    fn inbox_of<'a>(&self, _arrival: &'a EventKind) -> Option<(Op, Cow<'a, str>)> {
        None
    }

    // -- messages, outcomes and arrivals -------------------------------------------------------------------------

    /// Step 2: turns a message into events, or drops it.
    fn receive(&self, _execution: &Execution, _draft: &mut Draft, _message: WorkItem) -> Receipt {
        Receipt::Drop
    }

    /// Applies an outcome or an arrival.
    fn deliver(&self, _execution: &mut Execution, _event: Event) -> Result<(), Stop> {
        Ok(())
    }

    // -- dropped futures -----------------------------------------------------------------------------------------

    /// The event that notes a dropped future; `None` if drops are not noted.
    fn cancellation(&self, _reason: String) -> Option<EventKind> {
        None
    }

    /// The name of dropped futures in error messages.
    fn dropped_name(&self) -> &'static str {
        self.name()
    }

    /// The code dropped the future of a decision. Called before the drop is noted.
    fn on_drop(&self, _execution: &Execution, _draft: &mut Draft, _event_id: u64) {}

    /// The code dropped the future of a decision, and goes on. Called after the messages of the turn's decisions.
    fn after_drop(&self, _execution: &Execution, _draft: &mut Draft, _event_id: u64) {}

    // -- step 6 --------------------------------------------------------------------------------------------------

    /// Whether a decision is sent although the code dropped its future in the same turn.
    fn is_sent_if_dropped(&self) -> bool {
        false
    }

    /// Sends the work item of a decision of this turn. The code goes on.
    fn send(&self, _execution: &Execution, _draft: &mut Draft, _decision: Recorded) {}

    /// The execution ends. Called after the terminal event is recorded, for every operation in the order of the table.
    fn end(&self, _closing: &mut Closing<'_>, _draft: &mut Draft) {}
}

/// An operation with outcomes: its decisions wait for a message. The compiler asks every operation with a list of outcomes for it.
pub(crate) trait HasOutcome: Operation {
    /// The work item that a reset or a fork sends for a decision without an outcome, in the execution that it begins. `None` if the
    /// decision waits on without an item, and for children, which [`crate::reset`] answers by their state.
    fn send_again(&self, instance: &str, execution_id: u64, decision: &Event) -> Option<WorkItem>;
}

/// The operation, if the table gives it outcomes.
macro_rules! with_outcome {
    ($implementation:expr) => {
        None
    };
    ($implementation:expr, $($outcome:ident)+) => {
        Some($implementation)
    };
}

/// The table of operations: `Type(file)`, then the variants of `Action`, `EventKind` (by [`Role`]) and `WorkItem` that
/// belong to the operation.
macro_rules! operations {
    ($(
        $(#[$when:meta])? $op:ident($file:ident)
        actions [$($(#[$a:meta])? $action:ident)*]
        $(decisions [$($(#[$d:meta])? $decision:ident)*])?
        $(outcomes [$($outcome:ident)*])?
        $(arrivals [$($(#[$v:meta])? $arrival:ident)*])?
        $(cancellations [$($cancellation:ident)*])?
        $(messages [$($(#[$m:meta])? $message:ident)*])?;
    )*) => {
        $($(#[$when])? pub(crate) mod $file;)*

        /// An operation. Dereferences to its implementation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Op {
            $($(#[$when])? $op,)*
        }

        impl Deref for Op {
            type Target = dyn Operation;

            fn deref(&self) -> &(dyn Operation + 'static) {
                match self {
                    $($(#[$when])? Self::$op => &$file::$op,)*
                }
            }
        }

        impl Op {
            /// Every operation, in the order in which a turn notes dropped futures and ends decisions.
            pub(crate) const ALL: &[Self] = &[$($(#[$when])? Self::$op,)*];

            /// `None` if the decisions of the operation wait for no message.
            pub(crate) fn with_outcome(self) -> Option<&'static dyn HasOutcome> {
                match self {
                    $($(#[$when])? Self::$op => with_outcome!(&$file::$op $(, $($outcome)*)?),)*
                }
            }

            pub(crate) fn of_action(action: &Action) -> Self {
                match action {
                    $($($(#[$a])? Action::$action { .. } => Self::$op,)*)*
                }
            }

            /// `None` for events of the execution itself.
            pub(crate) fn of_event(kind: &EventKind) -> Option<(Self, Role)> {
                Some(match kind {
                    $(
                        $($($(#[$d])? EventKind::$decision { .. } => (Self::$op, Role::Decision),)*)?
                        $($(EventKind::$outcome { .. } => (Self::$op, Role::Outcome),)*)?
                        $($($(#[$v])? EventKind::$arrival { .. } => (Self::$op, Role::Arrival),)*)?
                        $($(EventKind::$cancellation { .. } => (Self::$op, Role::Cancellation),)*)?
                    )*
                    EventKind::OrchestrationStarted { .. }
                    | EventKind::OrchestrationCompleted { .. }
                    | EventKind::OrchestrationFailed { .. }
                    | EventKind::OrchestrationContinuedAsNew { .. }
                    | EventKind::OrchestrationCancelRequested { .. } => return None,
                })
            }

            /// `None` for messages to the instance itself, and for work of the other queue.
            pub(crate) fn of_message(message: &WorkItem) -> Option<Self> {
                Some(match message {
                    $($($($(#[$m])? WorkItem::$message { .. } => Self::$op,)*)?)*
                    WorkItem::StartOrchestration { .. }
                    | WorkItem::ContinueAsNew { .. }
                    | WorkItem::CancelInstance { .. }
                    | WorkItem::ActivityExecute { .. } => return None,
                })
            }
        }
    };
}

operations! {
    Activity(activity)
        actions [CallActivity] decisions [ActivityScheduled] outcomes [ActivityCompleted ActivityFailed]
        cancellations [ActivityCancelRequested] messages [ActivityCompleted ActivityFailed];
    Timer(timer) actions [CreateTimer] decisions [TimerCreated] outcomes [TimerFired] messages [TimerFired];
    Detached(detached) actions [StartOrchestrationDetached] decisions [OrchestrationChained];
    Child(child)
        actions [StartSubOrchestration] decisions [SubOrchestrationScheduled]
        outcomes [SubOrchestrationCompleted SubOrchestrationFailed]
        cancellations [SubOrchestrationCancelRequested] messages [SubOrchCompleted SubOrchFailed];
    Signal(signal)
        actions [WaitExternal] decisions [ExternalSubscribed] arrivals [ExternalEvent]
        cancellations [ExternalSubscribedCancelled] messages [ExternalRaised];
    #[cfg(feature = "replay-version-test")]
    Topic(topic)
        actions [#[cfg(feature = "replay-version-test")] WaitExternal2]
        decisions [#[cfg(feature = "replay-version-test")] ExternalSubscribed2]
        arrivals [#[cfg(feature = "replay-version-test")] ExternalEvent2]
        messages [#[cfg(feature = "replay-version-test")] ExternalRaised2];
    Queue(queue)
        actions [DequeueEvent] decisions [QueueSubscribed] arrivals [QueueEventDelivered]
        cancellations [QueueSubscriptionCancelled] messages [QueueMessage];
    CustomStatus(status) actions [UpdateCustomStatus] decisions [CustomStatusUpdated];
    KeyValue(kv)
        actions [SetKeyValue ClearKeyValue ClearKeyValues]
        decisions [KeyValueSet KeyValueCleared KeyValuesCleared];
    ContinueAsNew(continue_as_new) actions [ContinueAsNew];
}
