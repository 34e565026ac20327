//! Completing an activity together with the turn that follows from it.

use crate::commit::Commit;
use crate::rules::{Defect, Rules};
use crate::state::State;
use crate::work::check_completion;
use outlast_provider::model::WorkItem;
use outlast_provider::{Completion, ProviderError, TurnAhead};

impl State {
    /// The activity's fence first. Then the turn, if the instance is where its runner thought; else the outcome alone.
    pub(crate) fn complete_with_turn(
        &mut self,
        token: &str,
        completion: WorkItem,
        ahead: TurnAhead,
        now: u64,
        rules: &Rules,
    ) -> Result<Completion, ProviderError> {
        let instance = completion.target_instance().to_string();
        let (after_event_id, is_of_now) = (ahead.after_event_id, ahead.is_of_now(now));
        let turn = Commit::from(ahead.commit);
        check_completion(&completion)?;
        turn.check(&instance, rules)?;
        let is_timely = is_of_now || rules.broken(Defect::AheadIgnoresTime);
        if !is_timely || !self.is_undisturbed(&instance, turn.execution_id, after_event_id, now, rules) {
            self.ack_work(token, Some(completion), now, rules)?;
            return Ok(Completion::Queued);
        }
        self.check_events(&instance, &turn, rules)?;
        match self.ack_work(token, None, now, rules) {
            Err(refusal) if !rules.broken(Defect::AheadSkipsFence) => return Err(refusal),
            _ => {}
        }
        self.apply_turn(&instance, turn, now, rules)?;
        Ok(Completion::WithTurn { at_ms: now })
    }

    fn is_undisturbed(
        &self,
        instance: &str,
        execution_id: u64,
        after_event_id: u64,
        now: u64,
        rules: &Rules,
    ) -> bool {
        let Some(row) = self.instances.get(instance) else { return false };
        let stands = row.current_execution_id == execution_id
            && self.is_running(instance)
            && self.last_event_id(instance, execution_id) == after_event_id;
        let is_leased = self.leases.contains_key(instance);
        let has_messages = !self.messages.visible(instance, now).is_empty();
        (stands || rules.broken(Defect::AheadIgnoresPosition))
            // It covers messages, which would do, if clocks were not set back.
            && !is_leased
            && (!has_messages || rules.broken(Defect::AheadOvertakesMessages))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::MemoryProvider;
    use outlast_provider::model::WorkItem;
    use outlast_provider::{
        Clock, Completion, ExecutionMetadata, Provider, TagFilter, TurnAhead, TurnCommit,
    };
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    struct Dial(AtomicU64);

    impl Clock for Dial {
        fn now_ms(&self) -> u64 {
            self.0.load(Relaxed)
        }
    }

    fn raised() -> WorkItem {
        WorkItem::ExternalRaised { instance: "i".into(), name: "e".into(), data: String::new() }
    }

    #[tokio::test]
    async fn a_lease_counts_even_if_the_clock_was_set_back_behind_what_it_covers() {
        let (clock, lease, no_wait) =
            (Arc::new(Dial(AtomicU64::new(10_000))), Duration::from_secs(60), Duration::ZERO);
        let store = MemoryProvider::with_clock(clock.clone());
        store.enqueue_for_orchestrator(raised(), None).await.unwrap();
        let start = WorkItem::StartOrchestration {
            instance: "i".into(),
            orchestration: "O".into(),
            input: String::new(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        store.enqueue_for_orchestrator(start, None).await.unwrap();
        let (_, token, _) = store.fetch_orchestration_item(lease, no_wait, None).await.unwrap().unwrap();
        let execute = WorkItem::ActivityExecute {
            instance: "i".into(),
            execution_id: 1,
            id: 2,
            name: "A".into(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        let metadata = ExecutionMetadata {
            orchestration_name: Some("O".into()),
            orchestration_version: Some("1".into()),
            ..Default::default()
        };
        let commit =
            TurnCommit { execution_id: 1, worker_items: vec![execute], metadata, ..Default::default() };
        store.commit_turn(&token, commit).await.unwrap();
        let (_, token, _) =
            store.fetch_work_item(lease, no_wait, None, &TagFilter::default()).await.unwrap().unwrap();

        clock.0.store(20_000, Relaxed);
        store.enqueue_for_orchestrator(raised(), None).await.unwrap();
        store.fetch_orchestration_item(lease, no_wait, None).await.unwrap().unwrap();
        clock.0.store(15_000, Relaxed);
        let completion = WorkItem::ActivityCompleted {
            instance: "i".into(),
            execution_id: 1,
            id: 2,
            result: String::new(),
        };
        let commit = TurnCommit { execution_id: 1, ..Default::default() };
        let answer = store
            .complete_with_turn(
                &token,
                completion,
                TurnAhead { after_event_id: 0, ran_at_ms: 15_000, commit },
            )
            .await;
        assert_eq!(answer, Ok(Completion::Queued));
    }
}
