//! The store of the runtime of a worker. The store forwards every call. Each commit is logged before it is sent and when the store has
//! taken it, and its answer is counted and logged. On an order of the supervisor, a commit pauses at a point until the worker is killed.

use super::pause_points::{PausePoints, Point};
use crate::commit_log::{Commit, CommitLog, CommitStep, size_of};
use crate::job::Sabotage;
use async_trait::async_trait;
use outlast::Event;
use outlast::providers::{
    Completion, EagerStart, ExecutionMetadata, FusedCompletion, LeasedOutcome, Provider, ProviderError,
    ScheduledActivityIdentifier, TurnAhead, TurnCommit, WorkItem, forward_provider,
};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

pub(super) struct PausingStore {
    pub(super) inner: Arc<dyn Provider>,
    pub(super) pause_points: Arc<PausePoints>,
    pub(super) commit_log: Arc<CommitLog>,
    pub(super) sabotage: Option<Sabotage>,
    pub(super) name: String,
}

type Answer<T> = Result<T, ProviderError>;

impl PausingStore {
    /// Sends a call that makes these commits. `is_stored` reads from an answer whether it made a commit.
    async fn commit<T>(
        &self,
        commits: Vec<Commit>,
        is_stored: impl Fn(&T, &Commit) -> bool,
        call: impl Future<Output = Answer<T>>,
    ) -> Answer<T> {
        // A kill at a point counts as in a commit, so a call without a commit in the log does not take the point.
        let point = if commits.is_empty() { None } else { self.pause_points.take_point() };
        if point == Some(Point::Before) {
            return announce_and_wait(Point::Before).await;
        }
        let sent = Sent::log(&self.commit_log, commits);
        let mut call = pin!(call);
        // The first poll hands the call to the store: to its thread, or to its connection.
        let answer = match poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            Poll::Pending => {
                sent.taken();
                if point == Some(Point::Within) {
                    announce(Point::Within);
                }
                call.await
            }
            Poll::Ready(answer) => {
                // The call was never open: the point is for the next one.
                if point == Some(Point::Within) {
                    self.pause_points.arm(Point::Within);
                }
                answer
            }
        };
        sent.answered(|commit| answer.as_ref().is_ok_and(|answer| is_stored(answer, commit)));
        if point == Some(Point::After) {
            // The answer is in the log, so the verifier looks for the commit although its worker is killed here.
            return announce_and_wait(Point::After).await;
        }
        self.commit_log.change(|state| match &answer {
            Ok(_) => state.stored += 1,
            Err(error) if error.is_retryable() => state.failed += 1,
            Err(_) => state.refused += 1,
        });
        answer
    }

    /// Holds back a turn of at least the ordered size until the supervisor releases it.
    async fn hold_large(&self, events: &[Event]) {
        if let Some(least) = self.pause_points.held_from()
            && size_of(events) >= least
        {
            self.commit_log.change(|state| state.held += 1);
            self.pause_points.released().await;
        }
    }

    fn sabotage_turn(&self, commit: &mut TurnCommit, record: Option<&Commit>) -> bool {
        let (Some(sabotage), Some(record)) = (self.sabotage, record) else { return false };
        if sabotage.affects(Sabotage::DoubleComplete, record.instance()) {
            commit.worker_items.extend(commit.worker_items.clone());
        }
        // Each process drops other turns, so that the instance ends at last.
        sabotage.affects(Sabotage::SilentOk, &format!("{} {:?}", self.name, record.subject()))
    }
}

/// Commits that are sent and have no answer. The log has them as unanswered until they are answered or their call is dropped.
struct Sent<'a> {
    log: &'a CommitLog,
    commits: Vec<Commit>,
}

impl<'a> Sent<'a> {
    fn log(log: &'a CommitLog, commits: Vec<Commit>) -> Self {
        commits.iter().for_each(|commit| write(log, CommitStep::Begun, commit));
        Self { log, commits }
    }

    /// The store has the call, and did not answer at once.
    fn taken(&self) {
        self.commits.iter().for_each(|commit| write(self.log, CommitStep::Sent, commit));
    }

    fn answered(mut self, is_stored: impl Fn(&Commit) -> bool) {
        for commit in std::mem::take(&mut self.commits) {
            let step = if is_stored(&commit) { CommitStep::Stored } else { CommitStep::NotStored };
            write(self.log, step, &commit);
        }
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        self.commits.iter().for_each(|commit| write(self.log, CommitStep::Dropped, commit));
    }
}

/// An incomplete log would hide errors, so the worker exits if it cannot write.
fn write(log: &CommitLog, step: CommitStep, commit: &Commit) {
    if let Err(error) = log.log(step, commit) {
        eprintln!("the commit log cannot be written: {error}");
        std::process::exit(4);
    }
}

fn announce(point: Point) {
    println!("{}{}", super::AT, point.name());
}

/// Prints the point and waits until the process is killed.
async fn announce_and_wait<T>(point: Point) -> T {
    announce(point);
    std::future::pending().await
}

fn commit_of_activity(completion: Option<&WorkItem>) -> Option<Commit> {
    match completion {
        Some(
            WorkItem::ActivityCompleted { instance, execution_id, id, .. }
            | WorkItem::ActivityFailed { instance, execution_id, id, .. },
        ) => Some(Commit::Activity { instance: instance.clone(), execution: *execution_id, activity: *id }),
        _ => None,
    }
}

fn has_turn(completion: &Completion) -> bool {
    matches!(completion, Completion::WithTurn { .. })
}

#[async_trait]
impl Provider for PausingStore {
    forward_provider!(
        Provider,
        |this| this.inner,
        except(
            commit_turn,
            ack_orchestration_item,
            ack_work_item,
            complete_with_turn,
            complete_all_with_turn,
            start_with_turn
        )
    );

    async fn commit_turn(&self, lock_token: &str, mut commit: TurnCommit) -> Answer<Option<u64>> {
        self.hold_large(&commit.history_delta).await;
        let record = Commit::of_turn(&commit.history_delta);
        let is_dropped = self.sabotage_turn(&mut commit, record.as_ref());
        let call = async {
            match is_dropped {
                true => Ok(None),
                false => self.inner.commit_turn(lock_token, commit).await,
            }
        };
        self.commit(record.into_iter().collect(), |_, _| true, call).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Answer<()> {
        let record = Commit::of_turn(&history_delta);
        let call = self.inner.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        self.commit(record.into_iter().collect(), |(), _| true, call).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
        let record = commit_of_activity(completion.as_ref());
        let call = self.inner.ack_work_item(token, completion);
        self.commit(record.into_iter().collect(), |(), _| true, call).await
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        mut turn: TurnAhead,
    ) -> Answer<Completion> {
        let (work, ahead) =
            (commit_of_activity(Some(&completion)), Commit::of_turn(&turn.commit.history_delta));
        let is_dropped = self.sabotage_turn(&mut turn.commit, ahead.as_ref());
        let completed = async {
            match is_dropped {
                true => Ok(Completion::WithTurn { at_ms: 0 }),
                false => self.inner.complete_with_turn(token, completion, turn).await,
            }
        };
        // The outcome is stored with the turn, or waits for another turn.
        let is_stored = |completed: &Completion, commit: &Commit| {
            has_turn(completed) || matches!(commit, Commit::Activity { .. })
        };
        self.commit(work.into_iter().chain(ahead).collect(), is_stored, completed).await
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        mut turn: TurnAhead,
    ) -> Answer<FusedCompletion> {
        let ahead = Commit::of_turn(&turn.commit.history_delta);
        let is_dropped = self.sabotage_turn(&mut turn.commit, ahead.as_ref());
        let works = outcomes.iter().filter_map(|outcome| commit_of_activity(Some(&outcome.completion)));
        let records: Vec<Commit> = works.chain(ahead).collect();
        let completed = async {
            match is_dropped {
                true => Ok(FusedCompletion::WithTurn { at_ms: 0 }),
                false => self.inner.complete_all_with_turn(outcomes, turn).await,
            }
        };
        let is_stored =
            |completed: &FusedCompletion, _: &Commit| matches!(completed, FusedCompletion::WithTurn { .. });
        self.commit(records, is_stored, completed).await
    }

    /// Never sabotaged: no process would try again to start the instance.
    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Answer<EagerStart> {
        let first = Commit::of_turn(&turn.commit.history_delta);
        let started = self.inner.start_with_turn(start, turn);
        let is_stored = |started: &EagerStart, _: &Commit| matches!(started, EagerStart::WithTurn { .. });
        self.commit(first.into_iter().collect(), is_stored, started).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit_log::CommitRecord;
    use outlast::EventKind;
    use outlast::providers::memory::MemoryProvider;
    use std::future::{pending, ready};

    fn store(folder: &std::path::Path) -> PausingStore {
        PausingStore {
            inner: Arc::new(MemoryProvider::new()),
            pause_points: Arc::default(),
            commit_log: Arc::new(CommitLog::create(folder, "w1").unwrap()),
            sabotage: None,
            name: "w1".to_string(),
        }
    }

    fn record(folder: &std::path::Path) -> CommitRecord {
        let mut record = CommitRecord::default();
        record.add(folder, "w1").unwrap();
        record
    }

    fn turn() -> TurnAhead {
        let kind = EventKind::OrchestrationCompleted { output: String::new() };
        let commit =
            TurnCommit { history_delta: vec![Event::at(7, 3, "i", 1, None, kind)], ..TurnCommit::default() };
        TurnAhead { after_event_id: 2, ran_at_ms: 0, commit }
    }

    fn outcome(id: u64) -> WorkItem {
        WorkItem::ActivityCompleted { instance: "i".to_string(), execution_id: 1, id, result: String::new() }
    }

    /// Polls a call once; it must wait.
    async fn begin<T>(call: impl Future<Output = T> + Unpin) {
        tokio::select! {
            biased;
            _ = call => panic!("the call has an answer"),
            () = ready(()) => {}
        }
    }

    #[tokio::test]
    async fn a_commit_is_open_from_its_start_until_its_answer_or_drop() {
        for (point, open) in [(Point::Before, 0), (Point::Within, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path());
            let commits: Vec<Commit> = commit_of_activity(Some(&outcome(2))).into_iter().collect();
            store.pause_points.arm(point);
            // A call without a commit leaves the point to the next call.
            store.commit(vec![], |(), _| true, ready(Ok(()))).await.unwrap();
            let answer = async {
                match point {
                    Point::Within => pending().await,
                    _ => Ok(()),
                }
            };
            {
                let mut call = pin!(store.commit(commits.clone(), |(), _| true, answer));
                begin(&mut call).await;
                let record = record(folder.path());
                assert_eq!((record.unanswered.len(), record.sent), (open, open), "{point:?}");
            }
            assert_eq!(record(folder.path()), CommitRecord::default(), "{point:?}: dropped");
            store.commit(commits.clone(), |(), _| true, ready(Ok(()))).await.unwrap();
            let expected = CommitRecord { acknowledged: commits, ..CommitRecord::default() };
            assert_eq!(record(folder.path()), expected, "{point:?}: answered");
        }
    }

    #[tokio::test]
    async fn commit_is_announced_after_the_store_has_taken_the_call() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let commits: Vec<Commit> = commit_of_activity(Some(&outcome(2))).into_iter().collect();
        store.pause_points.arm(Point::Within);
        let sent_at_call = std::cell::Cell::new(None);
        let answer = async {
            sent_at_call.set(Some(record(folder.path()).sent));
            pending().await
        };
        let mut call = pin!(store.commit(commits.clone(), |(), _| true, answer));
        begin(&mut call).await;
        assert_eq!(sent_at_call.get(), Some(0), "the store had not taken the call");
        assert_eq!(record(folder.path()).sent, 1);
        assert_eq!(store.pause_points.take_point(), None);
    }

    #[tokio::test]
    async fn point_of_a_call_that_is_answered_at_once_is_left_to_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let commits: Vec<Commit> = commit_of_activity(Some(&outcome(2))).into_iter().collect();
        store.pause_points.arm(Point::Within);
        store.commit(commits, |(), _| true, ready(Ok(()))).await.unwrap();
        assert_eq!(store.pause_points.take_point(), Some(Point::Within));
        assert_eq!(record(folder.path()).sent, 0);
    }

    #[tokio::test]
    async fn a_commit_that_was_answered_is_acknowledged_although_its_worker_is_killed_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let commits: Vec<Commit> = commit_of_activity(Some(&outcome(2))).into_iter().collect();
        store.pause_points.arm(Point::After);
        let mut call = pin!(store.commit(commits.clone(), |(), _| true, ready(Ok(()))));
        begin(&mut call).await;
        assert_eq!(record(folder.path()), CommitRecord { acknowledged: commits, ..CommitRecord::default() });
    }

    #[tokio::test]
    async fn every_commit_of_a_call_is_logged_before_the_call() {
        let leased = |id| LeasedOutcome { lock_token: "none".to_string(), completion: outcome(id) };
        let start = WorkItem::StartOrchestration {
            instance: "i".to_string(),
            orchestration: "o".to_string(),
            input: String::new(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        let logged = async |call: usize| {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path());
            // The store knows neither the token nor the instance: only the lines before the call matter.
            match call {
                0 => drop(store.complete_with_turn("none", outcome(2), turn()).await),
                1 => drop(store.complete_all_with_turn(vec![leased(1), leased(2)], turn()).await),
                _ => drop(store.start_with_turn(start.clone(), turn()).await),
            }
            let lines = std::fs::read_to_string(folder.path().join("w1.commits")).unwrap();
            lines.lines().take_while(|line| line.starts_with("b ")).count()
        };
        assert_eq!([logged(0).await, logged(1).await, logged(2).await], [2, 3, 1]);
    }

    #[tokio::test]
    async fn a_turn_that_was_not_written_is_not_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let ahead = Commit::of_turn(&turn().commit.history_delta).unwrap();
        let work = commit_of_activity(Some(&outcome(2))).unwrap();
        let is_stored = |(): &(), commit: &Commit| matches!(commit, Commit::Activity { .. });
        store.commit(vec![work.clone(), ahead], is_stored, ready(Ok(()))).await.unwrap();
        let expected = CommitRecord { acknowledged: vec![work], ..CommitRecord::default() };
        assert_eq!(record(folder.path()), expected);
    }
}
