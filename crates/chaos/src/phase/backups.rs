//! Backups of the store while it is used. Each must be intact and contain all instances that were acknowledged before.

use crate::load::ClientView;
use crate::store::Store;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Pause between two backups; longer when backups take long.
const PAUSE: Duration = Duration::from_secs(4);
const PAUSE_PER_COPY: u32 = 12;

/// Backups in the background.
pub(super) struct Backups {
    task: JoinSet<Result<Copies, String>>,
    end: Arc<Notify>,
}

#[derive(Default)]
pub(super) struct Copies {
    pub(super) made: u64,
    /// Number of instances that the backups had to contain.
    pub(super) looked_for: u64,
    pub(super) problems: Vec<String>,
}

impl Backups {
    pub(super) fn start(store: Store, client_view: ClientView, folder: PathBuf) -> Self {
        let end = Arc::new(Notify::new());
        let mut task = JoinSet::new();
        task.spawn(copy_until(Arc::clone(&end), store, client_view, folder));
        Self { task, end }
    }

    pub(super) async fn finish(mut self) -> Result<Copies, String> {
        self.end.notify_one();
        match self.task.join_next().await {
            Some(Ok(copies)) => copies,
            Some(Err(error)) => Err(error.to_string()),
            None => Ok(Copies::default()),
        }
    }
}

async fn copy_until(
    end: Arc<Notify>,
    store: Store,
    client_view: ClientView,
    folder: PathBuf,
) -> Result<Copies, String> {
    let mut copies = Copies::default();
    let mut pause = PAUSE;
    while timeout(pause, end.notified()).await.is_err() {
        let began = Instant::now();
        let known = client_view.known();
        copies.looked_for += known.started.len() as u64;
        let problems = store.backup(&folder, known).await?;
        copies
            .problems
            .extend(problems.into_iter().map(|problem| format!("copy {}: {problem}", copies.made + 1)));
        copies.made += 1;
        pause = PAUSE.max(began.elapsed() * PAUSE_PER_COPY);
    }
    Ok(copies)
}
