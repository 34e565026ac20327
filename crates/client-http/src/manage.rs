//! Management for operators: lists, totals, queues, deletion and pruning.

use crate::HttpClient;
use crate::transport::{encoded, of_instance};
use crate::wire::{
    Execution, Executions, InstancePage, Pending, Queues, Removed, Running, Stats, System, Tree, Why,
};
use hyper::Method;
use outlast::providers::{
    ExecutionInfo, InstanceInfo, InstancePage as Page, InstanceQuery, OldestDue, PendingWork, StoreGauges,
};
use outlast::{
    ClientError, DeleteInstanceResult, InstanceTree, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
    SystemStats,
};
use serde_json::json;

impl HttpClient {
    /// One instance.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`] if it does not exist.
    pub async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ClientError> {
        let detail = self.detail(instance).await?;
        Ok(detail.instance.into_info(detail.output))
    }

    /// One page of the instances that match, newest first, without outputs. A page has at most 500 instances.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn list_instances_page(&self, query: InstanceQuery) -> Result<Page, ClientError> {
        let limit = query.page_size().min(500).to_string();
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let pairs = [
            ("status", query.status),
            ("name", query.orchestration_name),
            ("prefix", query.id_prefix),
            ("parent", query.parent_instance_id),
            ("created_from_ms", number(query.created_from)),
            ("created_before_ms", number(query.created_before)),
            ("after", query.after),
            ("limit", Some(limit)),
        ];
        let given =
            pairs.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded(&value?))));
        let path = format!("/instances?{}", given.collect::<Vec<_>>().join("&"));
        let page = self.get::<InstancePage>("", &path).await?.value;
        let instances = page.items.into_iter().map(|instance| instance.into_info(None)).collect();
        Ok(Page { instances, next: page.next })
    }

    /// Ids of all instances, newest first. The ids are read page by page, and all of them are held in memory. Use
    /// [`HttpClient::list_instances_page`] for a large store.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn list_all_instances(&self) -> Result<Vec<String>, ClientError> {
        self.ids_of(InstanceQuery::default()).await
    }

    /// Ids of instances whose current execution is `Running`, `Completed`, `Failed` or `ContinuedAsNew`, newest first.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for another status; an error of the server or of the connection.
    pub async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ClientError> {
        self.ids_of(InstanceQuery { status: Some(status.to_string()), ..InstanceQuery::default() }).await
    }

    async fn ids_of(&self, query: InstanceQuery) -> Result<Vec<String>, ClientError> {
        let mut query = InstanceQuery { limit: Some(500), ..query };
        let mut ids = Vec::new();
        loop {
            let page = self.list_instances_page(query.clone()).await?;
            ids.extend(page.instances.into_iter().map(|info| info.instance_id));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(ids),
            }
        }
    }

    /// Sizes of an instance; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn get_orchestration_stats(&self, instance: &str) -> Result<Option<SystemStats>, ClientError> {
        match self.get::<Stats>(instance, &of_instance(instance, "/stats", "")).await {
            Ok(answer) => Ok(Some(answer.value.into())),
            Err(ClientError::InstanceNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The messages and activities of an instance that wait in the queues, and the lease of the instance: at most `limit` and at most
    /// 200 of each, without payloads. `None` if the store does not support it.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`] if it does not exist.
    pub async fn pending_work(
        &self,
        instance: &str,
        limit: usize,
    ) -> Result<Option<PendingWork>, ClientError> {
        match self.get::<Pending>(instance, &of_instance(instance, "/pending", "")).await {
            Ok(answer) => Ok(Some(answer.value.into_work(limit))),
            Err(ClientError::ManagementNotAvailable) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One execution.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`] if the instance or the execution does not exist.
    pub async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ClientError> {
        let path = of_instance(instance, &format!("/executions/{execution_id}"), "payloads=true");
        Ok(self.get::<Execution>(instance, &path).await?.value.into())
    }

    /// The newest execution ids, ascending, at most 100; empty if the instance does not exist.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ClientError> {
        match self.get::<Executions>(instance, &of_instance(instance, "/executions", "")).await {
            Ok(answer) => Ok(answer.value.items.into_iter().rev().map(|one| one.execution).collect()),
            Err(ClientError::InstanceNotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// An instance and its descendants, at most 200.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`] if it does not exist.
    pub async fn get_instance_tree(&self, instance: &str) -> Result<InstanceTree, ClientError> {
        let tree = self.get::<Tree>(instance, &of_instance(instance, "/tree", "")).await?.value;
        Ok(InstanceTree {
            root_id: instance.to_string(),
            all_ids: tree.items.into_iter().map(|one| one.id).collect(),
        })
    }

    /// Why the instance does not go on, in one sentence.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`] if it does not exist.
    pub async fn why(&self, instance: &str) -> Result<String, ClientError> {
        Ok(self.get::<Why>(instance, &of_instance(instance, "/why", "")).await?.value.sentence)
    }

    /// Totals over the whole store, at most some seconds old.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn get_system_metrics(&self) -> Result<SystemMetrics, ClientError> {
        let system = self.get::<System>("", "/system").await?.value;
        Ok(SystemMetrics {
            total_instances: system.instances.total,
            total_executions: system.executions,
            running_instances: system.instances.running,
            completed_instances: system.instances.completed,
            failed_instances: system.instances.failed,
            total_events: system.events,
        })
    }

    /// The number of waiting messages and activities.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn get_queue_depths(&self) -> Result<QueueDepths, ClientError> {
        let queues = self.get::<Queues>("", "/queues").await?.value;
        let count = |waiting: u64| usize::try_from(waiting).unwrap_or(usize::MAX);
        Ok(QueueDepths {
            orchestrator_queue: count(queues.turns.waiting),
            worker_queue: count(queues.activities.waiting),
            timer_queue: 0,
        })
    }

    /// The running instances, at most some seconds old, and the waiting messages and activities, due and delayed ones separately.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn get_gauges(&self) -> Result<StoreGauges, ClientError> {
        let queues = self.get::<Queues>("", "/queues").await?.value;
        Ok(StoreGauges {
            running_instances: self.get::<Running>("", "/instances/count").await?.value.running,
            orchestrator_queue: queues.turns.waiting,
            worker_queue: queues.activities.waiting,
            orchestrator_backlog: queues.turns.backlog(),
            worker_backlog: queues.activities.backlog(),
        })
    }

    /// For each queue the longest wait of the items that a runtime may take now. `None` if no item is due, or if the store does not look.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn oldest_due(&self) -> Result<Option<OldestDue>, ClientError> {
        let queues = self.get::<Queues>("", "/queues").await?.value;
        let oldest =
            OldestDue { message_ms: queues.turns.oldest_ms, activity_ms: queues.activities.oldest_ms };
        Ok(Some(oldest).filter(|oldest| *oldest != OldestDue::default()))
    }

    /// Removes an instance and its descendants, all or none. A running instance is removed only with `force`.
    ///
    /// # Errors
    ///
    /// As [`outlast::Client::delete_instance`].
    pub async fn delete_instance(
        &self,
        instance: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ClientError> {
        let params = format!("force={force}&reason={}", encoded(&self.reason));
        let path = of_instance(instance, "", &params);
        let removed = self.request::<Removed>(Method::DELETE, instance, &path, None, &[]).await?.value;
        Ok(DeleteInstanceResult {
            instances_deleted: removed.instances,
            executions_deleted: removed.executions,
            events_deleted: removed.events,
            queue_messages_deleted: removed.messages,
        })
    }

    /// Removes old executions of an instance. At least one condition must be given.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`], or [`ClientError::InvalidInput`] without a condition.
    pub async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        let body = json!({ "keep_last": options.keep_last, "completed_before_ms": options.completed_before });
        let removed =
            self.post::<Removed>(instance, &of_instance(instance, "/prune", ""), body, &[]).await?.value;
        Ok(PruneResult {
            instances_processed: 1,
            executions_deleted: removed.executions,
            events_deleted: removed.events,
        })
    }
}
