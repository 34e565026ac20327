//! The histories of a store as questions for a program.

use super::lock;
use super::report::Report;
use crate::failure::Failure;
use outlast::Event;
use outlast::providers::{InstanceQuery, Provider};
use outlast::runtime::check::{Finding, Question, Verdict};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;

/// The number of tasks that read histories at the same time.
const READERS: usize = 8;
/// The number of histories that are in memory at the same time for each of these tasks.
const TOGETHER: usize = 16;

/// The instances to ask about.
pub(super) enum Targets {
    /// All running instances that match.
    Running(InstanceQuery),
    /// These.
    These(Vec<Target>),
}

/// An instance to ask about.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) instance: String,
    pub(super) execution_id: u64,
    pub(super) orchestration: String,
    pub(super) version: String,
    /// The event whose place in the source is wanted.
    pub(super) locate: Option<u64>,
}

/// A history that was read.
enum Read {
    /// A question, as a line.
    Question(Vec<u8>),
    /// The instance ended, continued as new or was deleted since it was listed.
    Gone,
    Undecodable(Box<Verdict>),
}

/// Writes a question for every target; returns their number. Histories that the store cannot decode go to the report.
pub(super) async fn write(
    store: &Arc<dyn Provider>,
    targets: Targets,
    to: &mut (impl AsyncWrite + Unpin),
    report: &Mutex<Report>,
) -> Result<usize, Failure> {
    let mut asked = 0;
    let mut query = match targets {
        Targets::These(targets) => return write_batches(store, targets, to, report).await,
        Targets::Running(query) => query,
    };
    let Some(admin) = store.as_management_capability() else {
        return Err(Failure::new(format!("the store '{}' does not list its instances", store.name())));
    };
    loop {
        let page = admin.query_instances(&query).await?;
        let targets = page.instances.into_iter().map(|info| Target {
            instance: info.instance_id,
            execution_id: info.current_execution_id,
            orchestration: info.orchestration_name,
            version: info.orchestration_version,
            locate: None,
        });
        asked += write_batches(store, targets.collect(), to, report).await?;
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(asked),
        }
    }
}

async fn write_batches(
    store: &Arc<dyn Provider>,
    targets: Vec<Target>,
    to: &mut (impl AsyncWrite + Unpin),
    report: &Mutex<Report>,
) -> Result<usize, Failure> {
    let mut asked = 0;
    for batch in targets.chunks(READERS * TOGETHER) {
        let mut readers = JoinSet::new();
        for part in batch.chunks(TOGETHER) {
            readers.spawn(read(Arc::clone(store), part.to_vec()));
        }
        while let Some(found) = readers.join_next().await {
            let found = found.map_err(|error| Failure::new(format!("a reader failed: {error}")))?;
            for read in found? {
                match read {
                    Read::Gone => {}
                    Read::Undecodable(verdict) => lock(report).add(*verdict),
                    Read::Question(line) => match to.write_all(&line).await {
                        Ok(()) => asked += 1,
                        // The program ended: the number of its answers shows it.
                        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(asked + 1),
                        Err(error) => return Err(error.into()),
                    },
                }
            }
        }
    }
    match to.flush().await {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(asked),
    }
}

async fn read(store: Arc<dyn Provider>, targets: Vec<Target>) -> Result<Vec<Read>, Failure> {
    let mut found = Vec::with_capacity(targets.len());
    for target in targets {
        found.push(read_one(store.as_ref(), target).await?);
    }
    Ok(found)
}

async fn read_one(store: &dyn Provider, target: Target) -> Result<Read, Failure> {
    let loaded = store.load_turn(&target.instance, target.execution_id).await;
    let loaded = loaded.map_err(|error| Failure::new(format!("instance '{}': {error}", target.instance)))?;
    if loaded.history_error.is_some() {
        return Ok(Read::Undecodable(Box::new(undecodable(target))));
    }
    if loaded.history.is_empty() || loaded.history.iter().any(Event::is_terminal) {
        return Ok(Read::Gone);
    }
    let question = Question {
        instance: target.instance,
        execution_id: target.execution_id,
        history: loaded.history,
        kv: loaded.kv_snapshot.into_iter().map(|(key, entry)| (key, entry.into())).collect(),
        locate: target.locate,
    };
    let mut line = serde_json::to_vec(&question).map_err(|error| Failure::new(error.to_string()))?;
    line.push(b'\n');
    Ok(Read::Question(line))
}

/// The error of the store is not shown: it may quote a row.
fn undecodable(target: Target) -> Verdict {
    Verdict {
        instance: target.instance,
        execution_id: target.execution_id,
        orchestration: target.orchestration,
        version: target.version,
        finding: Finding::Undecodable,
        event_id: None,
        recorded: None,
        recorded_type: None,
        now: Some("the stored history does not decode: `outlast instance why` says more".to_string()),
        now_type: None,
        site: None,
        located: None,
        patches: Default::default(),
    }
}
