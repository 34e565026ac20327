//! Progress in the custom status, which a client watches.

use crate::support::{Cluster, LONGEST_WAIT, Node, activities, on_every_store, orchestrations};
use outlast::{ActivityContext, OrchestrationContext, OrchestrationStatus};
use std::sync::Arc;
use std::time::Duration;

on_every_store! { progress: 100 }

async fn import(ctx: OrchestrationContext, files: u64) -> Result<String, String> {
    for file in 0..files {
        ctx.set_custom_status(format!("{file}/{files}"));
        ctx.schedule_activity("Import", file.to_string()).await?;
    }
    ctx.set_custom_status(format!("{files}/{files}"));
    Ok(ctx.get_custom_status().unwrap_or_default())
}

async fn progress(cluster: Arc<Cluster>) {
    let node = Node::new(
        orchestrations().register_typed("Import", import),
        activities().register("Import", |_: ActivityContext, _: String| async move { Ok(String::new()) }),
    );
    cluster.start(&node).await;
    cluster.client.start_orchestration_typed("import-1", "Import", 4_u64).await.unwrap();
    let (mut seen, mut last) = (0, 0);
    loop {
        let poll = Duration::from_millis(5);
        let status =
            cluster.client.wait_for_status_change("import-1", last, poll, LONGEST_WAIT).await.unwrap();
        let (text, version, ended) = match status {
            OrchestrationStatus::Running { custom_status, custom_status_version } => {
                (custom_status.unwrap(), custom_status_version, false)
            }
            OrchestrationStatus::Completed { custom_status, custom_status_version, .. } => {
                (custom_status.unwrap(), custom_status_version, true)
            }
            other => panic!("{other:?}"),
        };
        let files: u64 = text.strip_suffix("/4").unwrap().parse().unwrap();
        assert!(files >= seen && version >= last, "progress does not decrease: {files} after {seen}");
        assert_eq!(version, files + 1, "one version per commit that set the custom status");
        (seen, last) = (files, version);
        if ended {
            break;
        }
    }
    assert_eq!((seen, last), (4, 5));
}
