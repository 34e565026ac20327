//! `outlast instance export`

use super::file::Writer;
use super::{Counts, admin, shown};
use crate::failure::Failure;
use crate::instance::args::{ExportArgs, Status};
use crate::output::print;
use crate::store::{self, Intent, Place};
use outlast::providers::snapshot::{ExportOutcome, InstanceSnapshot};
use outlast::providers::{Clock, InstanceQuery, ProviderAdmin, SystemClock};
use outlast::{EventKind, build_child_instance_id};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Ids and instances of one page.
const PAGE: u32 = 1_000;

pub(crate) async fn run(args: ExportArgs) -> Result<(), Failure> {
    let place = args.common.store.clone().place()?;
    let provider = store::open_provider(&place, Intent::Read).await?;
    let admin = admin(&*provider)?;
    let roots = match &args.instance {
        Some(instance) => vec![root(admin, &place, instance).await?],
        None => matching(admin, &args).await?,
    };
    let mut export = Export {
        admin,
        file: Writer::create(&args.file, SystemClock.now_ms())?,
        done: BTreeSet::new(),
        unfinished: Vec::new(),
        counts: Counts::default(),
    };
    for root in roots {
        export.tree(root).await?;
    }
    export.check_unchanged().await?;
    let Export { file, counts, .. } = export;
    file.finish()?;
    let done = Done { file: args.file, counts };
    print(args.common.output, &done, |done| {
        format!("Exported {} to '{}'.\n", done.counts.text(), done.file.display())
    })
}

/// The id, if it is that of a root.
async fn root(admin: &dyn ProviderAdmin, place: &Place, instance: &str) -> Result<String, Failure> {
    let ExportOutcome::Exported(found) = read(admin, instance).await? else {
        return Err(crate::instance::unknown(instance, place));
    };
    match found.row.and_then(|row| row.parent_instance_id) {
        None => Ok(instance.to_string()),
        Some(parent) => Err(Failure::refused(format!(
            "instance '{}' is a child of '{}': export its root, which takes its children along",
            crate::output::plain(instance),
            crate::output::plain(&parent)
        ))),
    }
}

/// The roots that match, oldest first, and the ids that messages wait for.
async fn matching(admin: &dyn ProviderAdmin, args: &ExportArgs) -> Result<Vec<String>, Failure> {
    let mut query = InstanceQuery {
        status: args.status.map(Status::stored).map(str::to_string),
        orchestration_name: args.name.clone(),
        id_prefix: args.prefix.clone(),
        limit: Some(PAGE),
        ..InstanceQuery::default()
    };
    let mut roots = Vec::new();
    loop {
        let page = admin.query_instances(&query).await?;
        let found = page.instances.into_iter().filter(|info| info.parent_instance_id.is_none());
        roots.extend(found.map(|info| info.instance_id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    roots.reverse();
    // Without a turn there is neither a status nor a name.
    if args.status.is_none() && args.name.is_none() {
        let prefix = args.prefix.as_deref().unwrap_or("");
        let mut after: Option<String> = None;
        loop {
            let page = admin.list_unstarted(after.as_deref(), PAGE as usize).await?;
            let Some(last) = page.last().cloned() else { break };
            roots.extend(page.into_iter().filter(|id| id.starts_with(prefix)));
            after = Some(last);
        }
    }
    Ok(roots)
}

async fn read(admin: &dyn ProviderAdmin, instance: &str) -> Result<ExportOutcome, Failure> {
    match admin.export_instance(instance).await? {
        ExportOutcome::Changed => Err(changed(&[instance.to_string()])),
        ExportOutcome::Unsupported => Err(Failure::new("this kind of store cannot export instances")),
        outcome => Ok(outcome),
    }
}

fn changed(ids: &[String]) -> Failure {
    Failure::refused(format!(
        "{} instances changed while they were exported: {}. No file was written; stop the runtimes of the store, or pause the \
         instances (`outlast instance pause`, `outlast orchestration pause`), and export again",
        ids.len(),
        shown(ids)
    ))
}

struct Export<'a> {
    admin: &'a dyn ProviderAdmin,
    file: Writer,
    done: BTreeSet<String>,
    /// Unfinished instances, each with the digest of its snapshot.
    unfinished: Vec<(String, [u8; 32])>,
    counts: Counts,
}

impl Export<'_> {
    /// Exports a root before its descendants, so that a child finds its parent when it is imported.
    async fn tree(&mut self, root: String) -> Result<(), Failure> {
        let mut waiting = std::collections::VecDeque::from([root]);
        while let Some(id) = waiting.pop_front() {
            if !self.done.insert(id.clone()) {
                continue;
            }
            // An instance that was deleted since it was listed is left out.
            let ExportOutcome::Exported(snapshot) = read(self.admin, &id).await? else { continue };
            if let Err(reason) = snapshot.check() {
                return Err(Failure::new(format!(
                    "instance '{}' cannot be exported, because its rows contradict each other: {reason}",
                    crate::output::plain(&id)
                )));
            }
            waiting.extend(self.admin.list_children(&id).await?);
            waiting.extend(scheduled_children(&snapshot));
            self.counts.add(&snapshot);
            if !snapshot.has_ended() {
                self.unfinished.push((id, digest(&snapshot)?));
            }
            self.file.add(&snapshot)?;
        }
        Ok(())
    }

    /// Reads the unfinished instances again. A message between two of them that was on its way would be lost or doubled.
    async fn check_unchanged(&self) -> Result<(), Failure> {
        let mut found = Vec::new();
        for (id, before) in &self.unfinished {
            let now = match read(self.admin, id).await? {
                ExportOutcome::Exported(snapshot) => Some(digest(&snapshot)?),
                _ => None,
            };
            if now.as_ref() != Some(before) {
                found.push(id.clone());
            }
        }
        if found.is_empty() { Ok(()) } else { Err(changed(&found)) }
    }
}

/// Children whose start may wait for its first turn: no row names their parent yet.
fn scheduled_children(snapshot: &InstanceSnapshot) -> Vec<String> {
    let newest = snapshot.executions.last().into_iter().flat_map(|execution| &execution.events);
    let children = newest.filter_map(|event| match &event.kind {
        EventKind::SubOrchestrationScheduled { instance, .. } => {
            Some(build_child_instance_id(&snapshot.instance_id, instance))
        }
        _ => None,
    });
    children.collect()
}

fn digest(snapshot: &InstanceSnapshot) -> Result<[u8; 32], Failure> {
    let text = serde_json::to_vec(snapshot).map_err(|error| Failure::new(error.to_string()))?;
    Ok(Sha256::digest(text).into())
}

#[derive(Serialize)]
struct Done {
    file: PathBuf,
    #[serde(flatten)]
    counts: Counts,
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::providers::memory::MemoryProvider;
    use outlast::providers::{Provider, WorkItem};

    fn start(instance: &str) -> WorkItem {
        WorkItem::StartOrchestration {
            instance: instance.to_string(),
            orchestration: "O".to_string(),
            input: "s3cret".to_string(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        }
    }

    #[tokio::test]
    async fn instance_that_changes_while_it_is_exported_is_named_and_no_file_is_left() {
        let dir = std::env::temp_dir().join(format!("outlast-export-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("all.jsonl");
        let store = MemoryProvider::new();
        for id in ["still", "moves"] {
            store.enqueue_for_orchestrator(start(id), None).await.unwrap();
        }
        let mut export = Export {
            admin: &store,
            file: Writer::create(&path, 1).unwrap(),
            done: BTreeSet::new(),
            unfinished: Vec::new(),
            counts: Counts::default(),
        };
        for id in ["still", "moves"] {
            export.tree(id.to_string()).await.unwrap();
        }
        export.check_unchanged().await.unwrap();
        let event = WorkItem::ExternalRaised {
            instance: "moves".to_string(),
            name: "e".to_string(),
            data: "s3cret".to_string(),
        };
        store.enqueue_for_orchestrator(event, None).await.unwrap();
        let message = export.check_unchanged().await.unwrap_err().to_string();
        assert!(message.contains("1 instances changed") && message.contains("'moves'"), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
        drop(export);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "the partial file is removed");
        std::fs::remove_dir(&dir).unwrap();
    }
}
