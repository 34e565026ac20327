//! The management interface, which a store need not have. Rules about it use [`admin`]; all others check the data of an
//! [`operator`], if there is one.

use super::permanent;
use outlast_provider::model::Event;
use outlast_provider::{DeleteInstanceResult, InstanceFilter, Provider, ProviderAdmin};

/// The management interface, for rules that are about it.
pub(crate) fn admin(provider: &dyn Provider) -> &dyn ProviderAdmin {
    provider.as_management_capability().expect("the store has a management interface")
}

/// All instances, sorted.
pub(crate) async fn instances(provider: &dyn Provider) -> Vec<String> {
    listed(admin(provider)).await
}

async fn listed(admin: &dyn ProviderAdmin) -> Vec<String> {
    let mut ids = admin.list_instances().await.expect("list_instances succeeds");
    ids.sort();
    ids
}

/// When an execution that has ended did so.
pub(crate) async fn ended_at(provider: &dyn Provider, instance: &str, execution_id: u64) -> u64 {
    let info = admin(provider).get_execution_info(instance, execution_id).await.unwrap();
    info.completed_at.unwrap_or_else(|| panic!("execution {execution_id} of {instance} has ended"))
}

/// Instances, executions, events and queue messages deleted.
pub(crate) fn deleted(result: &DeleteInstanceResult) -> [u64; 4] {
    [
        result.instances_deleted,
        result.executions_deleted,
        result.events_deleted,
        result.queue_messages_deleted,
    ]
}

/// Selects these instances.
pub(crate) fn only(ids: &[&str]) -> InstanceFilter {
    let instance_ids = Some(ids.iter().map(ToString::to_string).collect());
    InstanceFilter { instance_ids, ..InstanceFilter::default() }
}

/// Management reads of the store, if it has any.
pub(crate) fn operator(provider: &dyn Provider) -> Operator<'_> {
    Operator(provider.as_management_capability())
}

/// Checks of management reads. Without a management interface nothing is checked.
pub(crate) struct Operator<'a>(Option<&'a dyn ProviderAdmin>);

impl Operator<'_> {
    /// Exactly these instances, in any order.
    pub(crate) async fn sees_instances(&self, expected: &[&str]) {
        let Some(admin) = self.0 else { return };
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(listed(admin).await, expected, "all instances");
    }

    /// No instance of this name, though there may be executions.
    pub(crate) async fn sees_no_instance(&self, instance: &str) {
        let Some(admin) = self.0 else { return };
        permanent(admin.get_instance_info(instance).await, &format!("info about '{instance}', no instance,"));
    }

    /// An instance of this name and version.
    pub(crate) async fn sees_name(&self, instance: &str, name: &str, version: &str) {
        let Some(admin) = self.0 else { return };
        let info = admin.get_instance_info(instance).await.expect("the instance is known");
        assert_eq!((info.orchestration_name.as_str(), info.orchestration_version.as_str()), (name, version));
    }

    /// The current execution, its status and its output.
    pub(crate) async fn sees_current(
        &self,
        instance: &str,
        execution_id: u64,
        status: &str,
        output: Option<&str>,
    ) {
        let Some(admin) = self.0 else { return };
        let info = admin.get_instance_info(instance).await.expect("the instance is known");
        let found = (info.current_execution_id, info.status.as_str(), info.output.as_deref());
        assert_eq!(found, (execution_id, status, output), "the current execution of '{instance}'");
    }

    /// Exactly these executions, the newest last.
    pub(crate) async fn sees_executions(&self, instance: &str, expected: &[u64]) {
        let Some(admin) = self.0 else { return };
        assert_eq!(admin.list_executions(instance).await.unwrap(), expected, "executions of '{instance}'");
        let latest = admin.latest_execution_id(instance).await.unwrap();
        assert_eq!(Some(&latest), expected.last(), "latest execution of '{instance}'");
    }

    /// Exactly these events in an execution.
    pub(crate) async fn sees_history(&self, instance: &str, execution_id: u64, expected: &[Event]) {
        let Some(admin) = self.0 else { return };
        let history = admin.read_history_with_execution_id(instance, execution_id).await.unwrap();
        assert_eq!(history, expected, "execution {execution_id} of '{instance}'");
    }

    /// Exactly these events in the newest execution.
    pub(crate) async fn sees_newest_history(&self, instance: &str, expected: &[Event]) {
        let Some(admin) = self.0 else { return };
        assert_eq!(admin.read_history(instance).await.unwrap(), expected, "newest execution of '{instance}'");
    }

    /// The parent of an instance, which in turn has this child only.
    pub(crate) async fn sees_only_child(&self, parent: &str, child: &str) {
        let Some(admin) = self.0 else { return };
        assert_eq!(admin.get_parent_id(child).await.unwrap().as_deref(), Some(parent), "parent of '{child}'");
        assert_eq!(admin.list_children(parent).await.unwrap(), [child], "children of '{parent}'");
    }

    /// This number of waiting messages and of waiting activities, including delayed ones.
    pub(crate) async fn sees_waiting(&self, messages: usize, activities: usize, why: &str) {
        let Some(admin) = self.0 else { return };
        let depths = admin.get_queue_depths().await.expect("get_queue_depths succeeds");
        let found = (depths.orchestrator_queue, depths.worker_queue);
        assert_eq!(found, (messages, activities), "waiting messages and activities: {why}");
    }
}
