//! A driver that stands for the store and the workers of one instance.
//!
//! Every turn is run twice: by the execution that is in memory, and by a fresh one that is given the stored history. Both
//! must commit the same, event for event (ruling 15), and either may be continued.

use super::message::Message;
use super::print::{event_line, output_text};
use super::same;
use outlast_engine::{
    Admission, Code, Execution, KvValue, Opening, OrchestrationContext, ParentClosePolicy, ParentLink, Past,
    Setup, TurnInput, TurnOutput, admit, new_stamp, run,
};
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_model::{Event, EventKind, WorkItem};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An orchestration that can be called again and again.
type Program = Arc<dyn Fn(OrchestrationContext, String) -> Code + Send + Sync>;

pub(crate) struct InstanceDriver {
    program: Program,
    pub(crate) stamp: String,
    pub(crate) limits: Limits,
    codec: Codec,
    pub(crate) policy: ParentClosePolicy,
    /// Key-value state of earlier executions.
    pub(crate) kv: BTreeMap<String, KvValue>,
    pub(crate) opening: Opening,
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    /// Of the current execution.
    pub(crate) history: Vec<Event>,
    pub(crate) now_ms: u64,
    memory: Option<Execution>,
    /// False for programs that replay cannot repeat: their turns run warm only.
    is_checked: bool,
    turns: u128,
    successor: Option<WorkItem>,
}

impl InstanceDriver {
    pub(crate) fn new<F, Fut>(function: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self {
            program: Arc::new(move |context, input| Box::pin(function(context, input))),
            stamp: new_stamp(false),
            limits: Limits::default(),
            codec: Codec::default(),
            policy: ParentClosePolicy::Contract,
            kv: BTreeMap::new(),
            opening: Opening {
                name: "Main".to_string(),
                version: Some("1.0.0".to_string()),
                input: "in".to_string(),
                parent: None,
                carried: Vec::new(),
                custom_status: None,
            },
            instance: "i".to_string(),
            execution_id: 1,
            history: Vec::new(),
            now_ms: 1_000,
            memory: None,
            is_checked: true,
            turns: 0,
            successor: None,
        }
    }

    /// An instance with this stored history.
    pub(crate) fn stored(mut self, history: Vec<Event>) -> Self {
        self.stamp.clone_from(&history[0].duroxide_version);
        self.opening = Opening::of_event(&history[0].kind).unwrap_or(self.opening);
        self.history = history;
        self
    }

    pub(crate) fn stamped(mut self, stamp: &str) -> Self {
        self.stamp = stamp.to_string();
        self
    }

    pub(crate) fn buffered(self) -> Self {
        let stamp = new_stamp(true);
        self.stamped(&stamp)
    }

    pub(crate) fn closing(mut self, policy: ParentClosePolicy) -> Self {
        self.policy = policy;
        self
    }

    pub(crate) fn limited(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn written_as(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// The child of event 7 of the second execution of `boss`.
    pub(crate) fn with_parent(mut self) -> Self {
        self.opening.parent =
            Some(ParentLink { instance: "boss".to_string(), event_id: 7, execution_id: Some(2) });
        self
    }

    pub(crate) fn with_key(mut self, key: &str, value: &str, updated_at_ms: u64) -> Self {
        self.kv.insert(key.to_string(), KvValue { value: value.to_string(), updated_at_ms });
        self
    }

    /// Runs turns warm only, for programs that replay cannot repeat.
    pub(crate) fn unchecked(mut self) -> Self {
        self.is_checked = false;
        self
    }

    fn fresh(&self) -> Execution {
        let setup = Setup {
            instance: self.instance.clone(),
            execution_id: self.execution_id,
            opening: self.opening.clone(),
            stamp: self.stamp.clone(),
            kv: self.kv.clone(),
            limits: Arc::new(self.limits.clone()),
        };
        let program = Arc::clone(&self.program);
        let execution = Execution::new(setup, move |context, input| program(context, input));
        execution.expect("the call panicked").with_codec(self.codec)
    }

    /// Drops the execution in memory, as a restart of the process does.
    pub(crate) fn forget(&mut self) {
        self.memory = None;
    }

    fn run_on(&self, execution: &mut Execution, history: Vec<Event>, messages: Vec<WorkItem>) -> TurnOutput {
        let mut drawn = self.turns << 32;
        let mut random = || {
            drawn += 1;
            drawn
        };
        let input = TurnInput {
            history,
            messages,
            notices: Vec::new(),
            now_ms: self.now_ms,
            random: &mut random,
            parent_close: self.policy,
        };
        run(execution, input)
    }

    /// Runs one turn and stores its commit.
    #[track_caller]
    pub(crate) fn give(&mut self, messages: impl IntoIterator<Item = Message>) -> TurnOutput {
        let address = |message: Message| message.address(&self.instance, self.execution_id);
        let messages: Vec<WorkItem> = messages.into_iter().map(address).collect();
        self.give_items(messages)
    }

    #[track_caller]
    pub(crate) fn give_items(&mut self, messages: Vec<WorkItem>) -> TurnOutput {
        self.turns += 1;
        self.now_ms += 10;
        let (mut warm, missing) = match self.memory.take() {
            // An execution in memory needs no history, and takes no notice of one. Drivers that are not checked are large: a copy
            // of their history in every second turn would take minutes.
            Some(execution) if self.is_checked && self.turns.is_multiple_of(2) => {
                (execution, self.history.clone())
            }
            Some(execution) => (execution, Vec::new()),
            None => (self.fresh(), self.history.clone()),
        };
        let output = self.run_on(&mut warm, missing, messages.clone());
        let mut kept = warm;
        if self.is_checked {
            let mut cold = self.fresh();
            let again = self.run_on(&mut cold, self.history.clone(), messages);
            self.check_same(&output, &again);
            assert_eq!(kept.past(), cold.past());
            assert_eq!(kept.keys(), cold.keys());
            if self.turns.is_multiple_of(3) {
                kept = cold;
            }
        }
        self.commit(&output);
        assert_eq!(kept.last_event_id(), self.history.last().map_or(0, |event| event.event_id));
        self.memory = output.commit.metadata.status.is_none().then_some(kept);
        output
    }

    #[track_caller]
    fn check_same(&self, warm: &TurnOutput, cold: &TurnOutput) {
        let stored: Vec<String> = self.history.iter().map(event_line).collect();
        let stored = stored.join("\n");
        // Warnings are for people, and are given once for each time that an execution is loaded.
        let of_the_turn = |output: &TurnOutput| {
            let text = output_text(output);
            text.lines().filter(|line| !line.starts_with('!')).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(of_the_turn(warm), of_the_turn(cold), "warm and cold differ after\n{stored}");
        assert_eq!(warm.commit, cold.commit, "warm and cold differ after\n{stored}");
        assert_eq!(warm.report.ended, cold.report.ended);
    }

    fn commit(&mut self, output: &TurnOutput) {
        let expected = self.history.len() as u64 + 1;
        for (event, id) in output.commit.history_delta.iter().zip(expected..) {
            assert_eq!(event.event_id, id, "ids have a gap");
        }
        if self.history.is_empty()
            && let Some(first) = output.commit.history_delta.first()
        {
            assert_eq!(first.duroxide_version, self.stamp);
        }
        if let Some(stored) = &output.commit.metadata.output {
            let said = output.commit.history_delta.iter().find_map(|event| match &event.kind {
                EventKind::OrchestrationCompleted { output } => Some(output.clone()),
                EventKind::OrchestrationFailed { details } => Some(details.display_message()),
                EventKind::OrchestrationContinuedAsNew { input } => Some(input.clone()),
                _ => None,
            });
            assert_eq!(Some(stored), said.as_ref(), "the stored output is not what the last event says");
        }
        self.history.extend(output.commit.history_delta.iter().cloned());
        let is_next = |item: &&WorkItem| matches!(item, WorkItem::ContinueAsNew { .. });
        self.successor = output.commit.orchestrator_items.iter().find(is_next).cloned();
    }

    /// Runs one turn and compares its output with the expected lines.
    #[track_caller]
    pub(crate) fn turn(&mut self, messages: impl IntoIterator<Item = Message>, expected: &str) -> &mut Self {
        let output = self.give(messages);
        same(&output_text(&output), expected);
        self
    }

    /// The next execution, if this one continued as new: as the runtime begins it.
    pub(crate) fn next_execution(&mut self) {
        let start = self.successor.take().expect("the execution did not continue as new");
        let past = Past::of_history(&self.history);
        let Admission::Run(admitted) = admit(&self.instance, self.execution_id, &past, vec![start]) else {
            panic!("the successor was not admitted");
        };
        assert!(admitted.is_new);
        for event in &self.history {
            match &event.kind {
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                    let value = KvValue { value: value.clone(), updated_at_ms: *last_updated_at_ms };
                    self.kv.insert(key.clone(), value);
                }
                EventKind::KeyValueCleared { key } => {
                    self.kv.remove(key);
                }
                EventKind::KeyValuesCleared => self.kv.clear(),
                _ => {}
            }
        }
        self.execution_id = admitted.execution_id;
        let version = admitted.opening.version.clone().or(self.opening.version.take());
        self.opening = Opening { version, ..admitted.opening };
        self.history = Vec::new();
        self.memory = None;
    }

    pub(crate) fn has_next_execution(&self) -> bool {
        self.successor.is_some()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.history.iter().any(Event::is_terminal)
    }

    /// The same without looking through the history.
    pub(crate) fn has_ended_now(&self) -> bool {
        self.history.last().is_some_and(Event::is_terminal)
    }

    /// The execution in memory.
    pub(crate) fn memory(&self) -> Option<&Execution> {
        self.memory.as_ref()
    }

    /// The error text that the instance failed with.
    pub(crate) fn error(&self) -> String {
        let failed = self.history.iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationFailed { details } => Some(details.display_message()),
            _ => None,
        });
        failed.expect("the instance did not fail")
    }
}
