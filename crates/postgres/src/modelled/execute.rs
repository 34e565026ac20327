//! The transactions of the modelled server. Each request is a call of the modelled store, fenced by its own lease, and all of a
//! transaction happen in one moment.

use super::{Held, ModelledRow, ModelledServer, State, at_once};
use crate::ask::{ActivityAsk, TurnAsk};
use crate::db::cell;
use crate::functions::{
    COMMIT_DONE, COMMIT_QUEUED, COMMIT_REFUSED, MEMBER, commit, enqueue_messages, fetch_activities,
    fetch_turns, start,
};
use crate::hand_off::HandOff;
use crate::lanes::PollSecrets;
use crate::notify::Wants;
use crate::request::{Abandon, Commit, Fence, Lease, Message, Renew, Start};
use crate::row::Row;
use crate::transaction::{Done, Transaction, fetch_of_each_lease};
use outlast_model::{Event, EventKind, WorkItem, json};
use outlast_provider::{
    Completion, EagerStart, FetchedTurn, FetchedWork, FusedCompletion, LeasedOutcome, StartOutcome,
    StartRequest, TurnAhead, TurnCommit, TurnRequest, WorkRequest,
};
use outlast_provider_kit::token::Secret;
use outlast_provider_kit::{ActivityRow, CommitPlan, MessageRow};
use std::time::Duration;
use tokio_postgres::types::Type;

impl ModelledServer {
    /// Executes a transaction in the order of its calls: requests, then polls, then notifications.
    pub(super) fn execute(
        &self,
        sender: &str,
        transaction: &Transaction,
        secrets: &PollSecrets,
        notifies: Wants,
    ) -> Done {
        let Transaction { batch, polls, hand_offs, asks_next_due, .. } = transaction;
        let mut state = self.state();
        let mut execution = Execution { server: self, state: &mut state, at: self.rows.now_ms() };
        let mut done = Done::default();
        let mut item = 0;
        for (member, commit) in (1..).zip(&batch.commits) {
            let answer = execution.commit(commit);
            done.commits.push(execution.commit_row(member, commit, answer));
            for row in commit.plan.iter().flat_map(|plan| &plan.activities) {
                let handed_off = hand_offs.activities.hand_offs.iter().find(|hand_off| hand_off.item == item);
                if let Some(hand_off) = handed_off.filter(|_| answer == COMMIT_DONE) {
                    let ask = &hand_offs.activities.fetches[hand_off.fetch].ask;
                    done.commits.extend(execution.hand_off_activity(row, ask, hand_off));
                }
                item += 1;
            }
        }
        let beginnings = batch.beginnings();
        let turn_of = |item: usize| {
            let hand_off = hand_offs.turns.hand_offs.iter().find(|hand_off| hand_off.item == item)?;
            Some((beginnings[item]?, &hand_offs.turns.fetches[hand_off.fetch].ask, hand_off))
        };
        for (item, message) in batch.messages.iter().enumerate() {
            let row = execution.enqueue(message);
            let row = row.with(enqueue_messages::MEMBER, Type::INT4, number(item + 1));
            let leased =
                turn_of(item).and_then(|(row, ask, hand_off)| execution.hand_off_turn(row, ask, hand_off));
            done.messages.push(match leased {
                None => row.row(),
                Some(secret) => row
                    .with(enqueue_messages::MESSAGE_ID, Type::INT8, execution.next_id())
                    .with(enqueue_messages::SECRET, Type::BYTEA, secret.as_slice())
                    .row(),
            });
        }
        for activity in &batch.activities {
            let _ = at_once(self.store().enqueue_for_worker(work_item(&activity.row.work_item)));
        }
        for (nth, start_request) in batch.starts.iter().enumerate() {
            let row = execution.start(start_request);
            done.starts.push(row.with(start::MEMBER, Type::INT4, number(nth + 1)).row());
            let item = batch.messages.len() + nth;
            let leased =
                turn_of(item).and_then(|(row, ask, hand_off)| execution.hand_off_turn(row, ask, hand_off));
            if let Some(secret) = leased {
                let row = ModelledRow::empty(start::SECRET + 1)
                    .with(start::AT, Type::INT8, execution.at())
                    .with(start::MESSAGE_ID, Type::INT8, execution.next_id())
                    .with(start::SECRET, Type::BYTEA, secret.as_slice());
                done.starts.push(row.row());
            }
        }
        let member = |nth: usize| ModelledRow::empty(1).with(MEMBER, Type::INT4, number(nth + 1)).row();
        let renewed = batch.renewals.iter().enumerate().filter(|(_, renew)| execution.renew(renew));
        done.renewals = renewed.map(|(nth, _)| member(nth)).collect();
        let freed = batch.abandons.iter().enumerate().filter(|(_, abandon)| execution.abandon(abandon));
        done.abandons = freed.map(|(nth, _)| member(nth)).collect();
        for (group, secrets) in polls.turns.groups.iter().zip(&secrets.turns) {
            let asks: Vec<&TurnAsk> = group.iter().map(|fetch| &fetch.ask).collect();
            done.turns.push(execution.poll_turns(&asks, secrets, *asks_next_due));
        }
        for (group, secrets) in polls.activities.groups.iter().zip(&secrets.activities) {
            let asks: Vec<&ActivityAsk> = fetch_of_each_lease(group).map(|nth| &group[nth].ask).collect();
            done.activities.push(execution.poll_activities(&asks, secrets, *asks_next_due));
        }
        let ended = if notifies.watches { batch.ends() } else { Vec::new() };
        if notifies.queues.is_any() || !ended.is_empty() {
            state.wires.notify(sender, notifies.queues, ended, 0, &*self.faults);
        }
        done
    }
}

/// Whether the transaction had requests under leases, or took leases.
pub(super) fn is_about_leases(transaction: &Transaction, done: &Done) -> bool {
    let batch = &transaction.batch;
    let has_lease = |column: usize| {
        move |row: &Row| cell::<Option<Vec<u8>>>(row, column).is_ok_and(|secret| secret.is_some())
    };
    !(batch.commits.is_empty() && batch.renewals.is_empty() && batch.abandons.is_empty())
        || done.messages.iter().any(has_lease(enqueue_messages::SECRET))
        || done.starts.iter().any(has_lease(start::SECRET))
        || done.turns.iter().flatten().any(has_lease(fetch_turns::SECRET))
        || done.activities.iter().flatten().any(has_lease(fetch_activities::SECRET))
}

/// A transaction in progress.
struct Execution<'a> {
    server: &'a ModelledServer,
    state: &'a mut State,
    /// The time of the server.
    at: u64,
}

impl Execution<'_> {
    fn at(&self) -> i64 {
        self.at.cast_signed()
    }

    fn next_id(&mut self) -> i64 {
        self.state.last_id += 1;
        self.state.last_id
    }

    fn token(&self, secret: &Secret) -> Option<String> {
        Some(self.state.leases.get(secret)?.token.clone())
    }

    /// Stores a commit; returns the code of the answer.
    fn commit(&mut self, commit: &Commit) -> i32 {
        self.committed(commit).unwrap_or(COMMIT_REFUSED)
    }

    fn committed(&mut self, commit: &Commit) -> Option<i32> {
        let store = self.server.store();
        let completion = commit.completion.as_ref().map(|row| work_item(&row.work_item));
        let ahead = || {
            let (after_event_id, ran_at_ms) = commit.ahead?;
            Some(TurnAhead { after_event_id, ran_at_ms, commit: turn_commit(commit.plan.as_ref()?) })
        };
        match (&commit.fence, &commit.plan) {
            (Fence::Lease(Lease::Turn { secret, .. }), plan) => {
                let turn = turn_commit(plan.as_ref()?);
                at_once(store.commit_turn(&self.token(secret)?, turn)).ok()?;
                Some(COMMIT_DONE)
            }
            (Fence::Lease(Lease::Activity { secret, .. }), None) => {
                at_once(store.ack_work_item(&self.token(secret)?, completion)).ok()?;
                self.state.queued.insert(*secret);
                Some(COMMIT_DONE)
            }
            (Fence::Lease(Lease::Activity { secret, .. }), Some(_)) => {
                let token = self.token(secret)?;
                match at_once(store.complete_with_turn(&token, completion?, ahead()?)).ok()? {
                    Completion::WithTurn { .. } => Some(COMMIT_DONE),
                    Completion::Queued => {
                        self.state.queued.insert(*secret);
                        Some(COMMIT_QUEUED)
                    }
                }
            }
            (Fence::Fused { instance, leases }, _) => {
                let outcome = |lease: &crate::request::ActivityLease| {
                    let held = self.state.leases.get(&lease.secret)?;
                    let (_, execution_id, id) = held.activity?;
                    // The results are events of the turn.
                    let (instance, result) = (instance.clone(), String::new());
                    let completion = WorkItem::ActivityCompleted { instance, execution_id, id, result };
                    Some(LeasedOutcome { lock_token: held.token.clone(), completion })
                };
                let outcomes = leases.iter().map(outcome).collect::<Option<Vec<_>>>()?;
                match at_once(store.complete_all_with_turn(outcomes, ahead()?)).ok()? {
                    FusedCompletion::WithTurn { .. } => Some(COMMIT_DONE),
                    FusedCompletion::Unchanged => None,
                }
            }
            (Fence::Unknown { instance }, _) => {
                let ahead = ahead()?;
                let start = start_of(instance, &ahead.commit)?;
                match at_once(store.start_with_turn(start, ahead)).ok()? {
                    EagerStart::WithTurn { .. } => Some(COMMIT_DONE),
                    EagerStart::Unchanged => None,
                }
            }
        }
    }

    fn commit_row(&self, member: i32, request: &Commit, answer: i32) -> Row {
        let instance = crate::batch::instance_of(request);
        let has_more = match answer {
            COMMIT_DONE => request.plan.is_some() && self.server.rows.has_due_messages(instance),
            COMMIT_QUEUED => true,
            _ => false,
        };
        ModelledRow::empty(commit::CUSTOM_STATUS_VERSION + 1)
            .with(commit::MEMBER, Type::INT4, member)
            .with(commit::ANSWER, Type::INT4, answer)
            .with(commit::AT, Type::INT8, self.at())
            .with(commit::HAS_MORE_MESSAGES, Type::BOOL, has_more)
            .row()
    }

    /// Leases an activity that the transaction has stored. Refused if the store would give the fetch another activity first.
    fn hand_off_activity(&mut self, row: &ActivityRow, ask: &ActivityAsk, hand_off: &HandOff) -> Option<Row> {
        let work = self.fetch_activity(ask, None)?;
        let key = (row.instance_id.as_str(), row.execution_id, row.activity_id);
        if !matches!(&work.item, WorkItem::ActivityExecute { instance, execution_id, id, .. } if (instance.as_str(), *execution_id, *id) == key)
            || work.attempt_count > 1
        {
            let _ = at_once(self.server.store().abandon_work_item(&work.lock_token, None, true));
            return None;
        }
        let id = self.hold_activity(hand_off.secret, &work);
        let row = ModelledRow::empty(commit::CUSTOM_STATUS_VERSION + 1)
            .with(commit::AT, Type::INT8, self.at())
            .with(commit::HAS_MORE_MESSAGES, Type::BOOL, false)
            .with(commit::ACTIVITY_ID, Type::INT8, id)
            .with(commit::SECRET, Type::BYTEA, hand_off.secret.as_slice());
        Some(match &work.orchestration {
            Some((name, version)) => {
                row.with(commit::NAME, Type::TEXT, name).with(commit::VERSION, Type::TEXT, version).row()
            }
            None => row.row(),
        })
    }

    /// Leases the first turn of an instance that the transaction has begun. Refused if the store would give the fetch another turn first.
    fn hand_off_turn(&mut self, row: &MessageRow, ask: &TurnAsk, hand_off: &HandOff) -> Option<Secret> {
        let turn = self.fetch_turn(ask)?;
        let is_first =
            turn.created_at_ms.is_none() && turn.item.messages.len() == 1 && turn.attempt_count == 1;
        if turn.item.instance != row.instance_id || !is_first {
            let _ = at_once(self.server.store().abandon_orchestration_item(&turn.lock_token, None, true));
            return None;
        }
        self.hold_turn(hand_off.secret, &turn);
        Some(hand_off.secret)
    }

    fn enqueue(&mut self, message: &Message) -> ModelledRow {
        let (store, item) = (self.server.store(), work_item(&message.row.work_item));
        let is_stored = match message.most {
            Some(most) => at_once(store.enqueue_within(item, most)).unwrap_or(false),
            None => at_once(store.enqueue_for_orchestrator(item, span(message.delay_ms))).is_ok(),
        };
        let visible_at = is_stored.then(|| self.at() + message.delay_ms.cast_signed());
        ModelledRow::empty(enqueue_messages::SECRET + 1)
            .with(enqueue_messages::VISIBLE_AT, Type::INT8, visible_at)
            .with(enqueue_messages::AT, Type::INT8, self.at())
    }

    fn start(&mut self, request: &Start) -> ModelledRow {
        let outcome = at_once(self.server.store().start_orchestration(StartRequest {
            start: work_item(&request.start.work_item),
            delay: span(request.delay_ms),
            policy: request.policy,
            messages: request.messages.iter().map(|row| work_item(&row.work_item)).collect(),
        }));
        let (is_taken, status) = match outcome {
            Ok(StartOutcome::Started) => (false, None),
            Ok(StartOutcome::AlreadyExists { status }) => (true, status),
            Err(_) => (true, None),
        };
        ModelledRow::empty(start::SECRET + 1)
            .with(start::IS_TAKEN, Type::BOOL, is_taken)
            .with(start::STATUS, Type::TEXT, status)
            .with(start::AT, Type::INT8, self.at())
    }

    fn renew(&self, renew: &Renew) -> bool {
        let (store, extend_for) = (self.server.store(), Duration::from_millis(renew.extend_ms));
        let Some(token) = self.token(renew.lease.secret()) else { return false };
        let renewed = match &renew.lease {
            Lease::Turn { .. } => at_once(store.renew_orchestration_item_lock(&token, extend_for)),
            Lease::Activity { .. } => at_once(store.renew_work_item_lock(&token, extend_for)),
        };
        renewed.is_ok()
    }

    fn abandon(&self, abandon: &Abandon) -> bool {
        let (store, delay) = (self.server.store(), abandon.delay_ms.map(Duration::from_millis));
        let Some(token) = self.token(abandon.lease.secret()) else { return false };
        let abandoned = match (&abandon.lease, &abandon.note) {
            (Lease::Turn { .. }, _) => {
                at_once(store.abandon_orchestration_item(&token, delay, abandon.ignore_attempt))
            }
            (Lease::Activity { .. }, Some(note)) => at_once(store.abandon_work_noted(&token, delay, note)),
            (Lease::Activity { .. }, None) => {
                at_once(store.abandon_work_item(&token, delay, abandon.ignore_attempt))
            }
        };
        abandoned.is_ok()
    }

    fn fetch_turn(&self, ask: &TurnAsk) -> Option<FetchedTurn> {
        let request = TurnRequest {
            lock_timeout: Duration::from_millis(ask.lock_ms),
            poll_timeout: Duration::ZERO,
            filter: ask.filter.as_ref(),
            with_history: false,
        };
        at_once(self.server.store().fetch_turn(request)).ok().flatten()
    }

    fn hold_turn(&mut self, secret: Secret, turn: &FetchedTurn) {
        let (token, instance) = (turn.lock_token.clone(), turn.item.instance.clone());
        self.state.leases.insert(secret, Held { token, instance, activity: None });
    }

    fn poll_turns(&mut self, asks: &[&TurnAsk], secrets: &[Vec<u8>], asks_next_due: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        for (ask, secret) in asks.iter().zip(secrets) {
            let Some(turn) = self.fetch_turn(ask) else { break };
            self.hold_turn(secret.as_slice().try_into().unwrap_or_default(), &turn);
            rows.push(self.turn_row(&turn, secret));
        }
        if rows.len() < asks.len() {
            let next = if asks_next_due { self.server.rows.next_due_ms() } else { None };
            let row = ModelledRow::empty(fetch_turns::HAS_SKIPPED_MANY + 1)
                .with(fetch_turns::NOW, Type::INT8, self.at())
                .with(fetch_turns::NEXT_DUE, Type::INT8, next.map(u64::cast_signed));
            rows.push(row.row());
        }
        rows
    }

    fn turn_row(&mut self, turn: &FetchedTurn, secret: &[u8]) -> Row {
        let FetchedTurn { item, attempt_count, last_event_id, has_ended, created_at_ms, .. } = turn;
        let texts: Vec<Option<String>> =
            item.messages.iter().map(|message| json::encode_work_item(message).ok()).collect();
        let ids: Vec<i64> = texts.iter().map(|_| self.next_id()).collect();
        let available: Vec<i64> = texts.iter().map(|_| self.at()).collect();
        let attempts: Vec<i32> = texts.iter().map(|_| attempt_count.cast_signed()).collect();
        let mut row = ModelledRow::empty(fetch_turns::HAS_SKIPPED_MANY + 1)
            .with(fetch_turns::SECRET, Type::BYTEA, secret)
            .with(fetch_turns::INSTANCE, Type::TEXT, &item.instance)
            .with(fetch_turns::CREATED_AT, Type::INT8, created_at_ms.map(u64::cast_signed))
            .with(fetch_turns::HAS_ENDED, Type::BOOL, has_ended)
            .with(fetch_turns::HAS_HISTORY, Type::BOOL, false)
            .with(fetch_turns::NOW, Type::INT8, self.at())
            .with(fetch_turns::MESSAGE_IDS, Type::INT8_ARRAY, ids)
            .with(fetch_turns::MESSAGES, Type::TEXT_ARRAY, texts)
            .with(fetch_turns::AVAILABLE_AT, Type::INT8_ARRAY, available)
            .with(fetch_turns::ATTEMPTS, Type::INT4_ARRAY, attempts);
        // Of an instance without a row the shipped code finds orchestration and version in its messages.
        if created_at_ms.is_some() || last_event_id.is_some_and(|id| id > 0) {
            row = row
                .with(fetch_turns::NAME, Type::TEXT, &item.orchestration_name)
                .with(fetch_turns::VERSION, Type::TEXT, &item.version)
                .with(fetch_turns::EXECUTION, Type::INT8, item.execution_id.cast_signed())
                .with(fetch_turns::LAST_EVENT, Type::INT8, last_event_id.map(u64::cast_signed));
        }
        row.row()
    }

    fn fetch_activity(
        &self,
        ask: &ActivityAsk,
        session: Option<&outlast_provider::SessionFetchConfig>,
    ) -> Option<FetchedWork> {
        let request = WorkRequest {
            max_items: 1,
            lock_timeout: Duration::from_millis(ask.lock_ms),
            poll_timeout: Duration::ZERO,
            session,
            tag_filter: &ask.tags,
        };
        at_once(self.server.store().fetch_work_items(request)).ok()?.pop()
    }

    /// Returns the id of the activity's row.
    fn hold_activity(&mut self, secret: Secret, work: &FetchedWork) -> i64 {
        let id = self.next_id();
        let WorkItem::ActivityExecute { instance, execution_id, id: event, .. } = &work.item else {
            return id;
        };
        let (token, instance) = (work.lock_token.clone(), instance.clone());
        self.state
            .leases
            .insert(secret, Held { token, instance, activity: Some((id, *execution_id, *event)) });
        id
    }

    fn poll_activities(
        &mut self,
        asks: &[&ActivityAsk],
        secrets: &[Vec<u8>],
        asks_next_due: bool,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        for ((nth, ask), secret) in (1..).zip(asks).zip(secrets) {
            // Fetches of a group may have different owners of sessions.
            let Some(work) = self.fetch_activity(ask, ask.session.as_ref()) else { continue };
            let id = self.hold_activity(secret.as_slice().try_into().unwrap_or_default(), &work);
            let notes = work.notes.clone().unwrap_or_default();
            let mut row = ModelledRow::empty(fetch_activities::LAST_ERROR + 1)
                .with(fetch_activities::NTH, Type::INT4, nth)
                .with(fetch_activities::ID, Type::INT8, id)
                .with(fetch_activities::ITEM, Type::TEXT, json::encode_work_item(&work.item).ok())
                .with(fetch_activities::INSTANCE, Type::TEXT, work.item.target_instance())
                .with(fetch_activities::ATTEMPTS, Type::INT4, work.attempt_count.cast_signed())
                .with(fetch_activities::NOW, Type::INT8, self.at())
                .with(fetch_activities::SECRET, Type::BYTEA, secret)
                .with(fetch_activities::FAILURES, Type::INT4, notes.failures.cast_signed())
                .with(fetch_activities::LAST_ERROR, Type::TEXT, notes.last_error);
            if let Some((name, version)) = &work.orchestration {
                row = row.with(fetch_activities::NAME, Type::TEXT, name).with(
                    fetch_activities::VERSION,
                    Type::TEXT,
                    version,
                );
            }
            rows.push(row.row());
        }
        if rows.len() < asks.len() {
            let next = if asks_next_due { self.server.rows.next_due_ms() } else { None };
            let row = ModelledRow::empty(fetch_activities::LAST_ERROR + 1)
                .with(fetch_activities::NOW, Type::INT8, self.at())
                .with(fetch_activities::NEXT_DUE, Type::INT8, next.map(u64::cast_signed))
                .with(fetch_activities::HAS_SESSIONS, Type::BOOL, true);
            rows.push(row.row());
        }
        rows
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn span(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

/// A work item of a request.
#[allow(clippy::expect_used, reason = "the store has encoded the item before it was sent")]
fn work_item(text: &str) -> WorkItem {
    json::decode_work_item(text).expect("an encoded work item")
}

/// The turn that a plan was made of.
fn turn_commit(plan: &CommitPlan) -> TurnCommit {
    TurnCommit {
        execution_id: plan.execution_id,
        history_delta: plan.history.iter().map(|row| event(&row.event_data)).collect(),
        worker_items: plan.activities.iter().map(|row| work_item(&row.work_item)).collect(),
        orchestrator_items: plan.messages.iter().map(|row| work_item(&row.work_item)).collect(),
        metadata: plan.metadata.clone(),
        cancelled_activities: plan.cancelled.clone(),
    }
}

#[allow(clippy::expect_used, reason = "the store has encoded the event before it was sent")]
fn event(text: &str) -> Event {
    json::decode_event(text).expect("an encoded event")
}

/// The start of an instance that its first turn began with.
fn start_of(instance: &str, turn: &TurnCommit) -> Option<WorkItem> {
    turn.history_delta.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { name, version, input, .. } => Some(WorkItem::StartOrchestration {
            instance: instance.to_string(),
            orchestration: name.clone(),
            input: input.clone(),
            version: Some(version.clone()),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: turn.execution_id,
        }),
        _ => None,
    })
}
