//! Completions of activities and starts of instances that carry the turn that follows: run-ahead turns and first turns.

use crate::activity::check_completion;
use crate::commit::{ACK, Commit, check_messages};
use crate::rules::{CommitRules, HoldRules, StartRules};
use crate::state::{State, refuse};
use outlast_provider::model::WorkItem;
use outlast_provider::{Completion, EagerStart, FusedCompletion, LeasedOutcome, ProviderError, TurnAhead};

const START: &str = "start_with_turn";

impl State {
    /// Completes the activity and commits the turn in one step if the instance has not changed since the turn ran. Otherwise
    /// the completion is queued as a message.
    pub(crate) fn complete_with_turn(
        &mut self,
        token: &str,
        completion: WorkItem,
        ahead: TurnAhead,
        now: u64,
    ) -> Result<Completion, ProviderError> {
        let rules = self.rules;
        let instance = completion.target_instance().to_string();
        let (after_event_id, is_of_now) = (ahead.after_event_id, ahead.is_of_now(now));
        let turn = Commit::from(ahead.commit);
        check_completion(&completion)?;
        turn.check(&instance, rules)?;
        if !self.follows(&instance, turn.execution_id, after_event_id, is_of_now, now) {
            self.ack_activity(token, Some(completion), now)?;
            return Ok(Completion::Queued);
        }
        rules.check_new_events(self, ACK, &instance, turn.execution_id, &turn.delta)?;
        rules.complete_ahead(self, token, now)?;
        self.apply_turn(&instance, turn, now)?;
        Ok(Completion::WithTurn { at_ms: now })
    }

    /// Completes the activities and commits the turn in one step if all leases hold and the instance has not changed since the
    /// turn ran. Otherwise nothing changes.
    pub(crate) fn complete_all_with_turn(
        &mut self,
        outcomes: &[LeasedOutcome],
        ahead: TurnAhead,
        now: u64,
    ) -> Result<FusedCompletion, ProviderError> {
        let rules = self.rules;
        let Some(instance) = LeasedOutcome::instance_of(outcomes).map(str::to_string) else {
            return refuse(ACK, "the outcomes are of different instances, or there are none");
        };
        let (after_event_id, is_of_now) = (ahead.after_event_id, ahead.is_of_now(now));
        let turn = Commit::from(ahead.commit);
        outcomes.iter().try_for_each(|outcome| check_completion(&outcome.completion))?;
        turn.check(&instance, rules)?;
        if !rules.all_fences_hold(self, outcomes, now)
            || !self.follows(&instance, turn.execution_id, after_event_id, is_of_now, now)
        {
            return Ok(FusedCompletion::Unchanged);
        }
        rules.check_new_events(self, ACK, &instance, turn.execution_id, &turn.delta)?;
        for outcome in outcomes {
            rules.complete_fused(self, outcome, now)?;
        }
        self.apply_turn(&instance, turn, now)?;
        Ok(FusedCompletion::WithTurn { at_ms: now })
    }

    /// Whether the instance has not changed since a turn ran.
    fn follows(
        &self,
        instance: &str,
        execution_id: u64,
        after_event_id: u64,
        is_of_now: bool,
        now: u64,
    ) -> bool {
        let rules = self.rules;
        // A lease of the instance covers messages. It counts even if the clock was set back behind those messages.
        rules.ahead_is_timely(is_of_now)
            && rules.ahead_is_in_place(self, instance, execution_id, after_event_id)
            && !self.leases.contains_key(instance)
            && rules.ahead_is_not_held(self, instance)
            && rules.ahead_overtakes_no_message(&self.messages, instance, now)
    }

    /// Starts an instance and commits its first turn in one step if the store knows nothing of the instance. Otherwise nothing
    /// changes.
    pub(crate) fn start_with_turn(
        &mut self,
        start: &WorkItem,
        ahead: TurnAhead,
        now: u64,
    ) -> Result<EagerStart, ProviderError> {
        let rules = self.rules;
        let instance = start.target_instance().to_string();
        let follows = ahead.after_event_id == 0 && rules.ahead_is_timely(ahead.is_of_now(now));
        let turn = Commit::from(ahead.commit);
        check_messages(START, std::slice::from_ref(start))?;
        turn.check(&instance, rules)?;
        if !follows || !rules.is_unknown(self, &instance) {
            rules.refuse_first_turn(self, &instance, turn, now)?;
            return Ok(EagerStart::Unchanged);
        }
        rules.check_new_events(self, ACK, &instance, turn.execution_id, &turn.delta)?;
        self.apply_turn(&instance, turn, now)?;
        Ok(EagerStart::WithTurn { at_ms: now })
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
    async fn run_ahead_turn_is_refused_under_a_lease_when_the_clock_was_set_back() {
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
