//! The comparison with the specification, run on the memory store: it finds no difference, and it finds seeded defects.

use async_trait::async_trait;
use outlast_conformance::model::{self, Damage, Hand, Sequence, Stored, Subject};
use outlast_memory::{Defect, MemoryProvider, Rules};
use outlast_provider::{Clock, OsEntropy, Provider};
use std::sync::Arc;

outlast_conformance::model_tests!(20, run);

fn run(sequence: &Sequence) -> Result<(), String> {
    run_under(Rules::default(), sequence)
}

fn run_under(rules: Rules, sequence: &Sequence) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(sequence.run(&mut Memory::new(rules)))
}

/// One of each kind: fences, order, leases, sessions, key-value tiers, orphans, activities, deletion, pauses and resets.
const DEFECTS: [Defect; 23] = [
    Defect::AheadOvertakesMessages,
    Defect::AckIgnoresExpiry,
    Defect::HalfABatchCommitted,
    Defect::InsertionOrder,
    Defect::RenewShortens,
    Defect::AbandonTouchesAllRows,
    Defect::SessionStolen,
    Defect::ClearAllForgetsStore,
    Defect::OrphanControlMessagesDropped,
    Defect::WorkRenewRevives,
    Defect::NoteNotKept,
    Defect::BulkDeleteForcesChildren,
    Defect::DeleteKeepsWork,
    Defect::SecondPauseReplacesFirst,
    Defect::ResetIgnoresTurn,
    Defect::ResetIgnoresPosition,
    Defect::ResetLeavesExecutionRunning,
    Defect::ResetKeepsKeys,
    Defect::ResetKeepsActivities,
    Defect::ResetKeepsCustomStatus,
    Defect::ResetMessagesComeLast,
    Defect::ResetReleasesHold,
    Defect::ForkIgnoresWaitingStart,
];

#[test]
fn the_comparison_finds_seeded_defects() {
    let is_unnoticed = |defect: &Defect| {
        let rules = Rules::with(*defect);
        model::sequences(1).take(600).all(|sequence| run_under(rules, &sequence).is_ok())
    };
    let unnoticed: Vec<Defect> = DEFECTS.into_iter().filter(is_unnoticed).collect();
    assert_eq!(unnoticed, []);
}

/// The memory store as a subject. It is not closed, which would lose its data.
struct Memory {
    clock: Arc<Hand>,
    store: MemoryProvider,
}

impl Memory {
    fn new(rules: Rules) -> Self {
        let clock = Arc::new(Hand::default());
        let shown = Arc::clone(&clock) as Arc<dyn Clock>;
        Self { clock, store: MemoryProvider::with_parts(shown, Arc::new(OsEntropy)).with_rules(rules) }
    }
}

#[async_trait(?Send)]
impl Subject for Memory {
    fn provider(&self) -> &dyn Provider {
        &self.store
    }

    async fn set_time(&mut self, now_ms: u64) {
        self.clock.set(now_ms);
    }

    async fn reopen(&mut self) {}

    async fn dump(&self) -> Vec<String> {
        self.store.dump()
    }

    async fn damage(&self, what: Damage, instance: &str) {
        match what {
            Damage::History => self.store.corrupt_history(instance),
            Damage::Messages => self.store.corrupt_messages(instance),
            Damage::Work => self.store.corrupt_activities(instance),
        }
    }

    async fn stored(&self, instance: &str, execution: u64) -> Stored {
        let mut stored = Stored::default();
        for line in self.store.dump() {
            let event = line.strip_prefix(&format!("history {instance} {execution} "));
            let Some((id, text)) = event.and_then(|event| event.split_once(' ')) else { continue };
            stored.last_event = stored.last_event.max(id.parse().unwrap());
            let ends = ["Completed", "Failed", "ContinuedAsNew"];
            stored.is_over |= ends.iter().any(|end| text.contains(&format!("\"Orchestration{end}\"")));
        }
        stored
    }
}
