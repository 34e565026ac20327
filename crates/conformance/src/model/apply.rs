//! Makes one call on one store, and removes the parts of the answer in which two stores may differ.

use super::build::{CallTime, duration, supported};
use super::ops::*;
use super::subject::Stored;
use outlast_provider::model::{Event, WorkItem};
use outlast_provider::{
    FetchedTurn, FetchedWork, Hold, HoldKind, HoldOutcome, InstanceTree, KvEntry, LeasedOutcome,
    OrchestrationItem, Provider, ProviderAdmin, ProviderError, ResetOutcome, ResetPlan, SessionFetchConfig,
    StartPolicy, StartRequest, TurnAhead, TurnCommit, TurnRequest, WorkRequest,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::time::Duration;

/// The target of a call with a lease.
#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    /// The store's own token.
    pub(super) token: String,
    pub(super) instance: String,
    pub(super) execution: u64,
    pub(super) stored: Stored,
    pub(super) work: Option<WorkItem>,
    /// For a call with several leases: the token and the activity of each.
    pub(super) all: Vec<(String, Option<WorkItem>)>,
    /// The plan of a reset.
    pub(super) plan: Option<ResetPlan>,
}

/// An answer, in a form that can be compared, and the leases that came with it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) turn: Option<(String, String, u64)>,
    pub(super) work: Vec<(String, WorkItem)>,
}

type Answered = Result<Answer, ProviderError>;

fn shown(value: impl Debug) -> Answer {
    Answer { text: format!("{value:?}"), ..Answer::default() }
}

pub(super) async fn apply(op: &Op, at: CallTime, target: &Target, store: &dyn Provider) -> Answered {
    let admin = store.as_management_capability().expect("both stores can be managed");
    let token = target.token.as_str();
    match op {
        Op::Advance(_) | Op::SetBack(_) | Op::Reopen | Op::Damage(..) => Ok(Answer::default()),
        Op::Enqueue { message, delay } => {
            store.enqueue_for_orchestrator(at.item(message, 0), delay.map(duration)).await.map(shown)
        }
        Op::EnqueueWithin { message, most } => {
            store.enqueue_within(at.item(message, 0), *most).await.map(shown)
        }
        Op::Start { to, delay, use_existing, along } => {
            let request = StartRequest {
                start: at.item(&Message::Start(to), 9),
                delay: delay.map(duration),
                policy: if *use_existing { StartPolicy::UseExisting } else { StartPolicy::FailIfExists },
                messages: at.items(along),
            };
            store.start_orchestration(request).await.map(shown)
        }
        Op::StartAhead { to, after, turn } => {
            let commit = turn.commit(at, to, 1, target.stored);
            let ahead = TurnAhead { after_event_id: *after, ran_at_ms: at.now, commit };
            store.start_with_turn(at.item(&Message::Start(to), 9), ahead).await.map(shown)
        }
        Op::FetchTurn { lease, supported, how } => {
            fetch_turn(*lease, supported.as_deref(), *how, store).await
        }
        Op::AckTurn { turn, .. } => {
            let events = at.events(&turn.events, &target.instance, target.execution, target.stored);
            let (work, messages) = (at.items(&turn.work), at.items(&turn.messages));
            let (metadata, cancelled) = (turn.metadata(), turn.cancelled());
            let acked = store.ack_orchestration_item(
                token,
                target.execution,
                events,
                work,
                messages,
                metadata,
                cancelled,
            );
            acked.await.map(shown)
        }
        Op::AbandonTurn { delay, ignore_attempt, .. } => {
            store.abandon_orchestration_item(token, delay.map(duration), *ignore_attempt).await.map(shown)
        }
        Op::RenewTurn { extend, .. } => {
            store.renew_orchestration_item_lock(token, duration(*extend)).await.map(shown)
        }
        Op::HoldTurn { .. } => store.hold_turn(token, &hold()).await.map(outcome),
        Op::Hold(id) => admin.hold_instance(id, &hold()).await.map(outcome),
        Op::Release(id) => admin.release_instance(id).await.map(shown),
        Op::Reset(_) => match &target.plan {
            Some(plan) => admin.reset_instance(plan).await.map(|outcome| match outcome {
                ResetOutcome::InTurn { .. } => shown("InTurn"),
                other => shown(other),
            }),
            None => Ok(Answer::default()),
        },
        Op::PauseOrchestration(name) => {
            let actor = format!("{} ß", at.step);
            admin.pause_orchestration(name, &actor, "grün").await.map(outcome)
        }
        Op::ResumeOrchestration(name) => admin.resume_orchestration(name).await.map(shown),
        Op::Append { to, execution, events } => {
            let events = at.events(events, to, *execution, target.stored);
            store.append_with_execution(to, *execution, events).await.map(shown)
        }
        Op::EnqueueWork(activity) => store.enqueue_for_worker(at.item(activity, 0)).await.map(shown),
        Op::FetchWork { lease, max, session, tags } => {
            fetch_activity(*lease, *max, *session, tags, store).await
        }
        Op::AckWork { completion, .. } => {
            let completion = completion.as_ref().map(|end| at.completion(end, target.work.as_ref()));
            store.ack_work_item(token, completion).await.map(shown)
        }
        Op::AckAhead { completion, late_by, turn, .. } => {
            let completion = at.completion(completion, target.work.as_ref());
            let commit = turn.commit(at, &target.instance, target.execution, target.stored);
            let (after_event_id, ran_at_ms) = (target.stored.last_event + late_by, at.now);
            let turn = TurnAhead { after_event_id, ran_at_ms, commit };
            store.complete_with_turn(token, completion, turn).await.map(shown)
        }
        Op::AckFused { late_by, turn, .. } => {
            let outcome = |(token, work): &(String, Option<WorkItem>)| LeasedOutcome {
                lock_token: token.clone(),
                completion: at.completion(&Completion::Done, work.as_ref()),
            };
            let outcomes = target.all.iter().map(outcome).collect();
            let commit = turn.commit(at, &target.instance, target.execution, target.stored);
            let (after_event_id, ran_at_ms) = (target.stored.last_event + late_by, at.now);
            let turn = TurnAhead { after_event_id, ran_at_ms, commit };
            store.complete_all_with_turn(outcomes, turn).await.map(shown)
        }
        Op::AbandonWork { delay, ignore_attempt, .. } => {
            store.abandon_work_item(token, delay.map(duration), *ignore_attempt).await.map(shown)
        }
        Op::NoteWork { delay, error, .. } => {
            store.abandon_work_noted(token, delay.map(duration), error).await.map(shown)
        }
        Op::RenewWork { extend, .. } => store.renew_work_item_lock(token, duration(*extend)).await.map(shown),
        Op::RenewSessions { owners, extend, idle } => {
            store.renew_session_lock(owners, duration(*extend), duration(*idle)).await.map(shown)
        }
        Op::CleanUpSessions => store.cleanup_orphaned_sessions(Duration::ZERO).await.map(shown),
        Op::DeleteAtomic { ids, force } => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            admin.delete_instances_atomic(&ids, *force).await.map(shown)
        }
        Op::Delete { id, force } => admin.delete_instance(id, *force).await.map(shown),
        Op::DeleteBulk(bulk) => admin.delete_instance_bulk(at.filter(bulk)).await.map(shown),
        Op::Prune { id, keep_last, finished_ago } => {
            admin.prune_executions(id, at.pruning(*keep_last, *finished_ago)).await.map(shown)
        }
        Op::PruneBulk { bulk, keep_last, finished_ago } => {
            let options = at.pruning(*keep_last, *finished_ago);
            admin.prune_executions_bulk(at.filter(bulk), options).await.map(shown)
        }
        Op::Read(read) => self::read(read, at, store, admin).await,
    }
}

impl Turn {
    fn commit(&self, at: CallTime, instance: &str, execution_id: u64, stored: Stored) -> TurnCommit {
        TurnCommit {
            execution_id,
            history_delta: at.events(&self.events, instance, execution_id, stored),
            worker_items: at.items(&self.work),
            orchestrator_items: at.items(&self.messages),
            metadata: self.metadata(),
            cancelled_activities: self.cancelled(),
        }
    }
}

fn hold() -> Hold {
    Hold { kind: HoldKind::Paused, actor: "wer".to_string(), reason: "grün".to_string() }
}

/// Stores saturate infinite times at different values, so the end of a lease is not compared.
fn outcome(outcome: HoldOutcome) -> Answer {
    match outcome {
        HoldOutcome::InTurn { .. } => shown("InTurn"),
        other => shown(other),
    }
}

async fn fetch_turn(
    lease: u64,
    ranges: Option<&[(&str, &str)]>,
    how: Fetch,
    store: &dyn Provider,
) -> Answered {
    let filter = ranges.map(supported);
    let request = TurnRequest {
        lock_timeout: duration(lease),
        poll_timeout: Duration::ZERO,
        filter: filter.as_ref(),
        with_history: matches!(how, Fetch::WithHistory),
    };
    if let Fetch::Item = how {
        let fetched = store
            .fetch_orchestration_item(request.lock_timeout, request.poll_timeout, request.filter)
            .await?;
        let Some((item, token, attempts)) = fetched else { return Ok(shown("nothing")) };
        let turn = Some((token, item.instance.clone(), item.execution_id));
        return Ok(Answer { text: format!("attempt {attempts}: {}", turn_text(item)), turn, work: vec![] });
    }
    let Some(fetched) = store.fetch_turn(request).await? else { return Ok(shown("nothing")) };
    let FetchedTurn {
        item,
        lock_token,
        attempt_count,
        last_event_id,
        history_loaded,
        has_ended,
        created_at_ms,
        now_ms,
    } = fetched;
    let turn = Some((lock_token, item.instance.clone(), item.execution_id));
    let facts = format!(
        "attempt {attempt_count}, {last_event_id:?}, {history_loaded}, {has_ended:?}, {created_at_ms:?}, {now_ms:?}"
    );
    Ok(Answer { text: format!("{facts}: {}", turn_text(item)), turn, work: vec![] })
}

fn turn_text(item: OrchestrationItem) -> String {
    let what = (item.instance, item.orchestration_name, item.execution_id, item.version);
    let history = history_text(item.history, item.history_error.is_some(), item.kv_snapshot);
    format!("{what:?} {:?} {history}", item.messages)
}

fn history_text(history: Vec<Event>, is_damaged: bool, snapshot: HashMap<String, KvEntry>) -> String {
    let snapshot: BTreeMap<_, _> = snapshot.into_iter().collect();
    format!("{history:?} damaged: {is_damaged} {snapshot:?}")
}

async fn fetch_activity(
    lease: u64,
    max: Option<usize>,
    session: Option<(&str, u64)>,
    tags: &Tags,
    store: &dyn Provider,
) -> Answered {
    let session = session.map(|(owner, lease)| SessionFetchConfig {
        owner_id: owner.to_string(),
        lock_timeout: duration(lease),
    });
    let (lock_timeout, tag_filter) = (duration(lease), tags.filter());
    let fetched = match max {
        None => {
            let one =
                store.fetch_work_item(lock_timeout, Duration::ZERO, session.as_ref(), &tag_filter).await?;
            let one = one.map(|(item, lock_token, attempt_count)| FetchedWork {
                item,
                lock_token,
                attempt_count,
                notes: None,
                orchestration: None,
                now_ms: None,
            });
            one.into_iter().collect()
        }
        Some(max_items) => {
            let request = WorkRequest {
                max_items,
                lock_timeout,
                poll_timeout: Duration::ZERO,
                session: session.as_ref(),
                tag_filter: &tag_filter,
            };
            store.fetch_work_items(request).await?
        }
    };
    let mut answer = Answer::default();
    for FetchedWork { item, lock_token, attempt_count, notes, orchestration, .. } in fetched {
        answer.text +=
            &format!("attempt {attempt_count} of {item:?} after {notes:?} for {orchestration:?}; ");
        answer.work.push((lock_token, item));
    }
    Ok(answer)
}

async fn read(read: &Read, at: CallTime, store: &dyn Provider, admin: &dyn ProviderAdmin) -> Answered {
    match read {
        Read::History(id) => store.read(id).await.map(shown),
        Read::Execution(id, execution) => store.read_with_execution(id, *execution).await.map(shown),
        Read::AdminHistory(id) => admin.read_history(id).await.map(shown),
        Read::AdminExecution(id, execution) => {
            admin.read_history_with_execution_id(id, *execution).await.map(shown)
        }
        Read::LoadTurn(id, execution) => {
            let loaded = store.load_turn(id, *execution).await?;
            let text = history_text(loaded.history, loaded.history_error.is_some(), loaded.kv_snapshot);
            Ok(Answer { text, ..Answer::default() })
        }
        Read::Outcome(id) => store.read_outcome(id).await.map(shown),
        Read::CustomStatus(id, seen) => store.get_custom_status(id, *seen).await.map(shown),
        Read::KeyValue(id, key) => store.get_kv_value(id, key).await.map(shown),
        Read::KeyValues(id) => {
            let values = store.get_kv_all_values(id).await?;
            Ok(shown(values.into_iter().collect::<BTreeMap<_, _>>()))
        }
        Read::Stats(id) => store.get_instance_stats(id).await.map(shown),
        Read::Instances => admin.list_instances().await.map(shown),
        Read::InstancesByStatus(status) => admin.list_instances_by_status(status).await.map(shown),
        Read::Executions(id) => admin.list_executions(id).await.map(shown),
        Read::LatestExecution(id) => admin.latest_execution_id(id).await.map(shown),
        Read::Info(id) => admin.get_instance_info(id).await.map(shown),
        Read::ExecutionInfo(id, execution) => admin.get_execution_info(id, *execution).await.map(shown),
        Read::Metrics => admin.get_system_metrics().await.map(shown),
        Read::Depths => Ok(shown((admin.get_queue_depths().await?, admin.get_gauges().await?))),
        Read::Pending(id, limit) => {
            let pending = admin.pending(id, *limit).await?.map(|pending| {
                // Times by the store's own clock are not compared here: other reads compare the times that both stores know.
                let items = |items: Vec<outlast_provider::QueuedItem>| {
                    let item = |item: outlast_provider::QueuedItem| {
                        // Stores saturate infinite times at different values, so their order is not compared.
                        if item.visible_at >= u64::MAX / 4 {
                            return (outlast_provider::QueuedItem::default(), false);
                        }
                        let is_leased = item.locked_until.is_some();
                        (
                            outlast_provider::QueuedItem { visible_at: 0, locked_until: None, ..item },
                            is_leased,
                        )
                    };
                    items.into_iter().map(item).collect::<Vec<_>>()
                };
                let counts = (pending.message_count, pending.activity_count);
                let is_leased = pending.turn_locked_until.is_some();
                (counts, is_leased, items(pending.messages), items(pending.activities))
            });
            Ok(shown(pending))
        }
        Read::Children(id) => {
            let mut children = admin.list_children(id).await?;
            children.sort();
            Ok(shown(children))
        }
        Read::Parent(id) => admin.get_parent_id(id).await.map(shown),
        Read::Tree(id) => {
            let InstanceTree { root_id, mut all_ids } = admin.get_instance_tree(id).await?;
            // The root comes first, the others in any order.
            all_ids[1..].sort();
            Ok(shown((root_id, all_ids)))
        }
        Read::Query(query) => pages(query, at, admin).await,
        Read::BogusPage(position) => {
            let query = outlast_provider::InstanceQuery {
                after: Some(position.to_string()),
                ..at.query(&Query::default())
            };
            admin.query_instances(&query).await.map(shown)
        }
        Read::DeadLetters(limit) => {
            let mut letters = admin.list_dead_letters(*limit).await?;
            letters.iter_mut().for_each(|letter| letter.reason.clear());
            Ok(shown(letters))
        }
        Read::Held(id) => admin.held_instance(id).await.map(shown),
        Read::HeldCounts => Ok(shown((
            admin.count_held().await?,
            admin.list_held(None, 2).await?,
            admin.list_held(Some("a"), 9).await?,
        ))),
        Read::Audit(limit) => {
            let page = admin.audit_page(None, *limit).await?.unwrap_or_default();
            Ok(shown(page.into_iter().map(|record| (record.at_ms, record.entry)).collect::<Vec<_>>()))
        }
        Read::PausedOrchestrations => admin.paused_orchestrations().await.map(shown),
    }
}

/// All pages in order: page positions differ between stores.
async fn pages(query: &Query, at: CallTime, admin: &dyn ProviderAdmin) -> Answered {
    let mut query = at.query(query);
    let mut text = String::new();
    loop {
        let page = admin.query_instances(&query).await?;
        text += &format!("{:?} more: {}; ", page.instances, page.next.is_some());
        query.after = page.next;
        if query.after.is_none() {
            return Ok(Answer { text, ..Answer::default() });
        }
    }
}
