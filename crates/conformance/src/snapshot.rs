//! What can be seen of a store without touching it, to tell whether a call changed anything.

use crate::support::*;
use outlast_provider::Provider;
use std::collections::{BTreeMap, BTreeSet};

/// Every visible fact, one per line: the figures of the store, and all there is about the listed and the known
/// instances.
pub(crate) async fn snapshot(provider: &dyn Provider, instances: &[&str]) -> Vec<String> {
    let admin = admin(provider);
    let known = admin.list_instances().await.unwrap();
    let mut lines = vec![
        format!("instances {known:?}"),
        format!("{:?}", admin.get_queue_depths().await.unwrap()),
        format!("{:?}", admin.get_system_metrics().await.unwrap()),
        format!("dead letters {:?}", admin.list_dead_letters(100).await.unwrap()),
    ];
    let all: BTreeSet<&str> = known.iter().map(String::as_str).chain(instances.iter().copied()).collect();
    for id in all {
        lines.push(format!("{id}: {:?}", admin.get_instance_info(id).await.ok()));
        lines.push(format!("{id}: status {:?}", provider.get_custom_status(id, 0).await.unwrap()));
        let values: BTreeMap<_, _> = provider.get_kv_all_values(id).await.unwrap().into_iter().collect();
        lines.push(format!("{id}: values {values:?}"));
        lines.push(format!("{id}: {:?}", provider.get_instance_stats(id).await.ok()));
        lines.push(format!("{id}: children {:?}", admin.list_children(id).await.unwrap()));
        for execution_id in admin.list_executions(id).await.unwrap() {
            let info = admin.get_execution_info(id, execution_id).await.unwrap();
            lines.push(format!("{id}: {info:?}"));
            for event in provider.read_with_execution(id, execution_id).await.unwrap() {
                lines.push(format!("{id}: {event:?}"));
            }
        }
    }
    lines
}
