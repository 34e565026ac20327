//! Management for operators: lists, totals, holds, deletion and pruning.

use crate::HttpClient;
use crate::transport::{encoded, of_instance};
use crate::wire::{Executions, InstancePage, Queues, Removed, System, Tree, Why};
use hyper::Method;
use outlast::providers::{InstanceInfo, InstancePage as Page, InstanceQuery};
use outlast::{
    ClientError, DeleteInstanceResult, InstanceTree, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
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

    /// Pauses an instance; returns whether it was not held before. The server records the name of the token.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`], or [`ClientError::InvalidInput`] for an ended instance.
    pub async fn pause_instance(&self, instance: &str, reason: &str) -> Result<bool, ClientError> {
        self.act(instance, "/pause", json!({ "reason": reason })).await
    }

    /// Resumes an instance; returns whether it was held.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::pause_instance`].
    pub async fn resume_instance(&self, instance: &str, reason: &str) -> Result<bool, ClientError> {
        self.act(instance, "/resume", json!({ "reason": reason })).await
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
