//! The visible content of a store, to check that a call changed nothing.

use outlast_provider::{Provider, ProviderAdmin};
use std::collections::{BTreeMap, BTreeSet};

/// The visible content, one fact per line: of these instances and, if the store has management, of the whole store.
pub(crate) async fn snapshot(provider: &dyn Provider, instances: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for id in instances {
        lines.push(format!("{id}: status {:?}", provider.get_custom_status(id, 0).await.unwrap()));
        let values: BTreeMap<_, _> = provider.get_kv_all_values(id).await.unwrap().into_iter().collect();
        lines.push(format!("{id}: values {values:?}"));
        lines.push(format!("{id}: {:?}", provider.get_instance_stats(id).await.ok()));
        lines.extend(provider.read(id).await.unwrap().iter().map(|event| format!("{id}: {event:?}")));
    }
    if let Some(admin) = provider.as_management_capability() {
        managed(admin, instances, &mut lines).await;
    }
    lines
}

async fn managed(admin: &dyn ProviderAdmin, instances: &[&str], lines: &mut Vec<String>) {
    let known = admin.list_instances().await.unwrap();
    lines.push(format!("instances {known:?}"));
    lines.push(format!("{:?}", admin.get_queue_depths().await.unwrap()));
    lines.push(format!("{:?}", admin.get_system_metrics().await.unwrap()));
    lines.push(format!("dead letters {:?}", admin.list_dead_letters(100).await.unwrap()));
    let all: BTreeSet<&str> = known.iter().map(String::as_str).chain(instances.iter().copied()).collect();
    for id in all {
        lines.push(format!("{id}: {:?}", admin.get_instance_info(id).await.ok()));
        lines.push(format!("{id}: children {:?}", admin.list_children(id).await.unwrap()));
        for execution_id in admin.list_executions(id).await.unwrap() {
            lines.push(format!("{id}: {:?}", admin.get_execution_info(id, execution_id).await.unwrap()));
            let events = admin.read_history_with_execution_id(id, execution_id).await.unwrap();
            lines.extend(events.iter().map(|event| format!("{id}: {event:?}")));
        }
    }
}
