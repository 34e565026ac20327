//! The management interface of a store.

use crate::forward::forwarded_trait;
use crate::{
    AuditEntry, AuditRecord, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord,
    DeleteInstanceResult, ExecutionInfo, ExportOutcome, HeldCounts, HeldInstance, Hold, HoldOutcome,
    ImportOutcome, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceSnapshot, InstanceTree,
    NodeRecord, NodeReport, OldestDue, OldestPage, PausedOrchestration, PendingWork, ProviderError,
    PruneOptions, PruneResult, QueueDepths, QueuePage, ReleaseOutcome, ResetOutcome, ResetPlan, StoreGauges,
    SystemMetrics, TagDepth,
};
use outlast_model::Event;
use std::any::Any;
use std::collections::BTreeSet;
use std::time::Duration;

forwarded_trait! {
each = __each_admin_method;

/// Lists, statistics, deletion and pruning. Found through
/// [`Provider::as_management_capability`](crate::Provider::as_management_capability).
///
/// No method keeps a lease or leaves a partial change when its future is dropped.
#[async_trait::async_trait]
pub trait ProviderAdmin: Any + Send + Sync {
    /// Ids of all instances, newest first. An instance exists from the first commit of a turn on.
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError>;

    /// Ids of instances whose current execution has this status, newest first.
    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError>;

    /// Execution ids, ascending; empty for an unknown instance.
    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError>;

    /// Events of one execution.
    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Events of the newest execution; empty for an unknown instance.
    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// The newest execution id, 1 if there is none.
    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError>;

    /// One instance; a permanent "not found" error for an unknown one.
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError>;

    /// One execution; a permanent "not found" error for an unknown one.
    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError>;

    /// Exact totals. They may cost a scan of whole tables, so a runtime polls [`ProviderAdmin::get_gauges`] instead.
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError>;

    /// Waiting messages.
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError>;

    /// Direct children; empty for an unknown instance.
    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError>;

    /// The parent, `None` for a root; a permanent "not found" error for an unknown instance.
    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError>;

    /// Removes exactly these instances, or none: a running one (without `force`) or a child that would be left
    /// behind is a permanent error.
    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// The instance and its descendants; the instance alone if it is unknown.
    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        // The set guards against a cycle in a damaged store.
        let mut seen = BTreeSet::from([instance_id.to_string()]);
        let mut all_ids = vec![instance_id.to_string()];
        let mut next = 0;
        while let Some(id) = all_ids.get(next).cloned() {
            for child in self.list_children(&id).await? {
                if seen.insert(child.clone()) {
                    all_ids.push(child);
                }
            }
            next += 1;
        }
        Ok(InstanceTree { root_id: instance_id.to_string(), all_ids })
    }

    /// Removes a root and its descendants. A child cannot be deleted on its own, even with `force`.
    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        if let Some(parent) = self.get_parent_id(instance_id).await? {
            return Err(ProviderError::permanent(
                "delete_instance",
                format!(
                    "instance '{instance_id}' is a sub-orchestration of '{parent}': delete its root instance instead"
                ),
            ));
        }
        let tree = self.get_instance_tree(instance_id).await?;
        self.delete_instances_atomic(&tree.all_ids, force).await
    }

    /// Removes finished roots that match, each with its descendants. Atomic per root.
    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Removes old executions of an instance, never the current or a running one.
    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    /// [`ProviderAdmin::prune_executions`] for every instance that matches, whatever its status.
    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    /// One page of instances, newest first.
    ///
    /// A store may bound the number of instances that it examines for one page. The page then has fewer instances than
    /// requested, or none, and still an [`InstancePage::next`]: only a page without it is the last one.
    ///
    /// The default reads [`ProviderAdmin::list_instances`]; a store with an index overrides it.
    async fn query_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        let ids = self.list_instances().await?;
        let from = match &query.after {
            None => 0,
            Some(after) => match ids.iter().position(|id| id == after) {
                Some(at) => at + 1,
                None => {
                    return Err(ProviderError::permanent(
                        "query_instances",
                        format!("page position '{after}' not found: start again from the first page"),
                    ));
                }
            },
        };
        let mut page = InstancePage::default();
        for id in ids.into_iter().skip(from) {
            if page.instances.len() == query.page_size() {
                page.next = page.instances.last().map(|last| last.instance_id.clone());
                break;
            }
            match self.get_instance_info(&id).await {
                Ok(info) if query.matches(&info) => page.instances.push(info),
                Ok(_) => {}
                Err(error) => {
                    // An instance that was deleted since the list was read is no error.
                    if self.list_instances().await?.contains(&id) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(page)
    }

    /// The counts that a runtime shows as gauges. Every runtime reads them at start and every
    /// `ObservabilityConfig::gauge_poll_interval`, so a store overrides this with a query whose cost does not grow with the
    /// number of finished instances.
    ///
    /// The default reads the totals, and does not split messages into due and delayed.
    async fn get_gauges(&self) -> Result<StoreGauges, ProviderError> {
        let metrics = self.get_system_metrics().await?;
        let depths = self.get_queue_depths().await?;
        Ok(StoreGauges {
            running_instances: metrics.running_instances,
            orchestrator_queue: depths.orchestrator_queue as u64,
            worker_queue: depths.worker_queue as u64,
            orchestrator_backlog: None,
            worker_backlog: None,
        })
    }

    /// For each queue the longest wait of the items that a fetch may take now. Items that are delayed, items under a live lease and the
    /// messages of leased and held instances do not count.
    ///
    /// The default, `None`, is for stores that do not look.
    async fn oldest_due(&self) -> Result<Option<OldestDue>, ProviderError> {
        Ok(None)
    }

    /// The newest dead letters, at most `limit`. The default is for stores without dead letters.
    async fn list_dead_letters(&self, _limit: usize) -> Result<Vec<DeadLetter>, ProviderError> {
        Ok(Vec::new())
    }

    /// Dead letters with their numbers, newest first, at most `limit`, with numbers below `before` if it is given.
    ///
    /// The default, `None`, is for stores whose dead letters have no numbers.
    async fn dead_letter_page(
        &self,
        _before: Option<u64>,
        _limit: usize,
    ) -> Result<Option<Vec<DeadLetterRecord>>, ProviderError> {
        Ok(None)
    }

    /// Puts a dead letter back into its queue, behind the items that wait there, as if it had never been delivered, and appends
    /// `entry` to the audit. The store does all of it in one step where it can; the record may follow in a store whose transactions do
    /// not reach that far.
    ///
    /// The store refuses an item that it cannot deliver: [`DeadLetterOutcome::Undeliverable`]. An activity takes execution, id,
    /// session and tag from its text.
    ///
    /// The default, [`DeadLetterOutcome::Unsupported`], is for stores that cannot change dead letters.
    async fn requeue_dead_letter(
        &self,
        _id: u64,
        _entry: &AuditEntry,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        Ok(DeadLetterOutcome::Unsupported)
    }

    /// Deletes a dead letter and appends `entry` to the audit, as [`ProviderAdmin::requeue_dead_letter`] does.
    async fn drop_dead_letter(&self, _id: u64, _entry: &AuditEntry) -> Result<DeadLetterOutcome, ProviderError> {
        Ok(DeadLetterOutcome::Unsupported)
    }

    /// The queued messages, the queued activities and the lease of an instance: at most `limit` messages and `limit`
    /// activities, without payloads. The result is empty for an unknown instance without messages.
    ///
    /// The default, `None`, is for stores without this read.
    async fn pending(&self, _instance: &str, _limit: usize) -> Result<Option<PendingWork>, ProviderError> {
        Ok(None)
    }

    /// A page of the messages or the activities of all instances, without payloads, at most `limit`, after the position `next` of the
    /// page before. Leased and delayed items are part of it, and so are the messages of held instances.
    ///
    /// The store chooses the order and the text of a position. An item keeps its place as long as it is in the queue, so that pages
    /// neither repeat nor leave out an item while others come and go. The order of arrival is a good one.
    ///
    /// The default, `None`, is for stores without this read.
    async fn queue_page(
        &self,
        _queue: DeadLetterQueue,
        _after: Option<&str>,
        _limit: usize,
    ) -> Result<Option<QueuePage>, ProviderError> {
        Ok(None)
    }

    /// The number of activities for each tag that an activity in the queue has, by ascending tag, at most `limit` tags. Activities
    /// without a tag come first.
    ///
    /// The default, `None`, is for stores without this read.
    async fn tag_depths(&self, _limit: usize) -> Result<Option<Vec<TagDepth>>, ProviderError> {
        Ok(None)
    }

    /// Events of one execution with ids above `after`, ascending, at most `limit`. Empty for an unknown execution.
    ///
    /// The default reads the whole execution; a store overrides it with a query whose cost does not grow with the history.
    async fn history_page(
        &self,
        instance: &str,
        execution_id: u64,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, ProviderError> {
        let mut events = self.read_history_with_execution_id(instance, execution_id).await?;
        events.retain(|event| event.event_id > after);
        events.truncate(limit);
        Ok(events)
    }

    /// Holds an instance: no fetch returns a turn of it until [`ProviderAdmin::release_instance`]. Messages that wait for it or
    /// arrive later stay in the queue, in their order, and do not slow down fetches of other instances. Activities that were
    /// scheduled run on, and their outcomes wait too. Run-ahead turns are refused.
    ///
    /// The store changes nothing while a turn of the instance runs, and answers [`HoldOutcome::InTurn`]. A lease that is over ends
    /// with the hold: its token is refused from then on.
    ///
    /// An instance for which a `CancelInstance` message waits is never held, so that it can end: the store refuses the hold, and a
    /// `CancelInstance` message that arrives later releases the instance, in the step that stores the message.
    ///
    /// Queue depths and gauges leave the messages of held instances out, see [`ProviderAdmin::count_held`].
    ///
    /// The default, [`HoldOutcome::Unsupported`], is for stores that cannot hold instances.
    async fn hold_instance(&self, _instance: &str, _hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        Ok(HoldOutcome::Unsupported)
    }

    /// Ends the hold of an instance. Its messages can be fetched again, in the order in which they arrived; timers that fell due
    /// meanwhile are due at once. The hold counts no delivery.
    async fn release_instance(&self, _instance: &str) -> Result<ReleaseOutcome, ProviderError> {
        Ok(ReleaseOutcome::Unsupported)
    }

    /// The hold of an instance; `None` if it is not held.
    async fn held_instance(&self, _instance: &str) -> Result<Option<HeldInstance>, ProviderError> {
        Ok(None)
    }

    /// Held instances by ascending id, at most `limit`, after the given id.
    async fn list_held(&self, _after: Option<&str>, _limit: usize) -> Result<Vec<HeldInstance>, ProviderError> {
        Ok(Vec::new())
    }

    /// The numbers of held instances and of their messages. `None`, the default, is for stores that cannot hold instances.
    async fn count_held(&self) -> Result<Option<HeldCounts>, ProviderError> {
        Ok(None)
    }

    /// Adds an orchestration to the paused ones, with the time of the store. The set is durable, and changes no fetch: runtimes read it,
    /// and hold the instances of a paused orchestration before their code runs. The store need not know the name.
    ///
    /// Answers [`HoldOutcome::Held`] or, if the orchestration is paused, [`HoldOutcome::AlreadyHeld`]: the earlier pause stays.
    ///
    /// The default, [`HoldOutcome::Unsupported`], is for stores without the set.
    async fn pause_orchestration(
        &self,
        _orchestration: &str,
        _actor: &str,
        _reason: &str,
    ) -> Result<HoldOutcome, ProviderError> {
        Ok(HoldOutcome::Unsupported)
    }

    /// Removes an orchestration from the paused ones. It releases no instance.
    async fn resume_orchestration(&self, _orchestration: &str) -> Result<ReleaseOutcome, ProviderError> {
        Ok(ReleaseOutcome::Unsupported)
    }

    /// The paused orchestrations by ascending name. A read that begins after a pause or resumption was answered shows it. `None`,
    /// the default, is for stores without the set.
    async fn paused_orchestrations(&self) -> Result<Option<Vec<PausedOrchestration>>, ProviderError> {
        Ok(None)
    }

    /// Records a change in the audit; returns whether the store keeps an audit. The record stays when its instance is deleted.
    ///
    /// The default, `false`, is for stores without an audit.
    async fn append_audit(&self, _entry: &AuditEntry) -> Result<bool, ProviderError> {
        Ok(false)
    }

    /// Records of the audit, newest first, at most `limit`, with ids below `before` if it is given. `None`, the default, is for
    /// stores without an audit.
    async fn audit_page(
        &self,
        _before: Option<u64>,
        _limit: usize,
    ) -> Result<Option<Vec<AuditRecord>>, ProviderError> {
        Ok(None)
    }

    /// Begins a new execution with a copy of the first events of another one, see [`ResetPlan`]: the next execution of the same
    /// instance, or for a fork the first stored execution of a new instance. The store writes the whole plan and its record in the
    /// audit in one step where it can; the record may follow in a store whose transactions do not reach that far.
    ///
    /// The store refuses a plan that is older than the instance, a reset while a turn of the instance runs, and a fork whose id is
    /// taken. A lease that is over ends with a reset. A hold of the instance stays, and the messages of the plan wait with it.
    ///
    /// In this order, the store: appends the event that ends the source's execution and gives the execution the status
    /// `ContinuedAsNew` with the input of that event as output, without merging its keys; replaces the keys of the target;
    /// commits `begin` as a turn; sets the custom status, which raises its version; and stores `first_messages` so that they are
    /// delivered before all others.
    ///
    /// The default, [`ResetOutcome::Unsupported`], is for stores that cannot reset instances.
    async fn reset_instance(&self, _plan: &ResetPlan) -> Result<ResetOutcome, ProviderError> {
        Ok(ResetOutcome::Unsupported)
    }

    /// Everything that the store keeps of an instance at one moment: rows, executions with their events, keys, waiting messages and
    /// activities, the hold. A message or activity under a lease is part of it as a waiting one. An instance that only messages wait
    /// for has no row. A row that does not decode is a permanent error.
    ///
    /// The default, [`ExportOutcome::Unsupported`], is for stores that cannot export instances.
    async fn export_instance(&self, _instance: &str) -> Result<ExportOutcome, ProviderError> {
        Ok(ExportOutcome::Unsupported)
    }

    /// Stores a snapshot as an instance that goes on from there, with its times, in one step; the record in the audit may follow in a
    /// store whose transactions do not reach that far. Messages that wait for the id already stay. The store refuses an id that is
    /// taken, as [`Provider::start_orchestration`](crate::Provider::start_orchestration) does, and a snapshot that
    /// [`InstanceSnapshot::check`] refuses.
    ///
    /// The default, [`ImportOutcome::Unsupported`], is for stores that cannot import instances.
    async fn import_instance(
        &self,
        _snapshot: &InstanceSnapshot,
        _audit: &AuditEntry,
    ) -> Result<ImportOutcome, ProviderError> {
        Ok(ImportOutcome::Unsupported)
    }

    /// Ids that messages wait for and that no instance has, by ascending id, at most `limit`, after the given id.
    ///
    /// The default is for stores that cannot export instances.
    async fn list_unstarted(&self, _after: Option<&str>, _limit: usize) -> Result<Vec<String>, ProviderError> {
        Ok(Vec::new())
    }

    /// The instances that were created first, in order of creation: at most `limit`, after the given position. The cost of a page does
    /// not grow with the number of instances behind it, so that retention can look at the oldest instances only.
    ///
    /// The default, `None`, is for stores without this list. Retention then deletes no instance.
    async fn oldest_instances(
        &self,
        _after: Option<u64>,
        _limit: usize,
    ) -> Result<Option<OldestPage>, ProviderError> {
        Ok(None)
    }

    /// Deletes each of these roots with its descendants if, in the step that deletes, the root has ended before `ended_before`, no
    /// instance of the tree runs or is held, and no message and no activity waits for one. A waiting `TimerFired` of an ended instance
    /// counts as nothing and is deleted. A tree is deleted as a whole or stays; an unknown id, a child and a tree that does not match
    /// are passed over. Several processes may delete the same roots at once: each tree is counted once.
    ///
    /// The default, `None`, is for stores that cannot check this. Retention then deletes no instance.
    async fn delete_ended(
        &self,
        _roots: &[String],
        _ended_before: u64,
    ) -> Result<Option<DeleteInstanceResult>, ProviderError> {
        Ok(None)
    }

    /// Examines the oldest `limit` records of the audit and deletes those that were recorded before this time. The newest record of
    /// the audit stays, so that ids grow. Returns the number of deleted records; `None`, the default, is for stores without an audit.
    async fn prune_audit(&self, _before_ms: u64, _limit: usize) -> Result<Option<u64>, ProviderError> {
        Ok(None)
    }

    /// Examines the `limit` dead letters with the lowest numbers and deletes those that were buried before this time. Returns the
    /// number of deleted dead letters; `None`, the default, is for stores that cannot change dead letters.
    async fn prune_dead_letters(&self, _before_ms: u64, _limit: usize) -> Result<Option<u64>, ProviderError> {
        Ok(None)
    }

    /// Stores the report of a node in place of its earlier report; returns whether the store keeps reports. By the store's clock the
    /// report counts as live for `live`, and is kept for `kept` after that. A report whose node id is empty or too long, or whose
    /// stored text exceeds [`MAX_NODE_REPORT_BYTES`](outlast_model::limits::MAX_NODE_REPORT_BYTES), is a permanent error.
    ///
    /// The default, `false`, is for stores that keep no reports.
    async fn announce_node(
        &self,
        _report: &NodeReport,
        _live: Duration,
        _kept: Duration,
    ) -> Result<bool, ProviderError> {
        Ok(false)
    }

    /// Deletes the report of a node that shuts down; returns whether there was one.
    ///
    /// The default is for stores that keep no reports.
    async fn remove_node(&self, _node_id: &str) -> Result<bool, ProviderError> {
        Ok(false)
    }

    /// Reports of live and lost nodes by ascending id, at most `limit`, after the given id. A report that has expired stays in the
    /// list until [`ProviderAdmin::sweep_nodes`] deletes it.
    ///
    /// The default, `None`, is for stores that keep no reports.
    async fn nodes(&self, _after: Option<&str>, _limit: usize) -> Result<Option<Vec<NodeRecord>>, ProviderError> {
        Ok(None)
    }

    /// Deletes reports that are kept no longer, at most `limit`; returns their number.
    ///
    /// The default is for stores that keep no reports.
    async fn sweep_nodes(&self, _limit: usize) -> Result<u64, ProviderError> {
        Ok(0)
    }
}
}
