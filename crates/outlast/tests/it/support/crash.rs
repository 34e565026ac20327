//! Crashes at a chosen point: before the n-th commit, or after it and before its answer.

use super::hooked::Hook;
use async_trait::async_trait;
use outlast::providers::ProviderError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use tokio::sync::Notify;

/// The point of a crash. Commits are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Before(usize),
    After(usize),
}

impl Crash {
    /// All crash points of a run with this number of commits; if there are more than `at_most`, an even sample of them.
    pub(crate) fn points(commits: usize, at_most: usize) -> impl Iterator<Item = Self> {
        let points = 2 * commits;
        let count = points.min(at_most);
        (0..count).map(move |n| n * points / count).map(|point| match point % 2 {
            0 => Self::Before(point / 2),
            _ => Self::After(point / 2),
        })
    }
}

/// Counts the commits of runtimes and lets one of them hang, which announces the crash.
pub(crate) struct CrashHook {
    crash: Option<Crash>,
    begun: AtomicUsize,
    answered: AtomicUsize,
    reached: Notify,
    crashed: AtomicBool,
}

impl CrashHook {
    pub(crate) fn new(crash: Option<Crash>) -> Self {
        let (begun, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { crash, begun, answered, reached: Notify::new(), crashed: AtomicBool::new(false) }
    }

    pub(crate) fn commits(&self) -> usize {
        self.begun.load(SeqCst)
    }

    /// Whether the crash point was reached.
    pub(crate) fn has_crashed(&self) -> bool {
        self.crashed.load(SeqCst)
    }

    /// Waits until the crash point is reached.
    pub(crate) async fn crash(&self) {
        self.reached.notified().await;
    }

    /// Never returns at the crash point, so that this commit is not answered.
    async fn pass(&self, point: Crash) {
        if self.crash == Some(point) {
            self.crashed.store(true, SeqCst);
            self.reached.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

fn is_commit(call: &str) -> bool {
    matches!(call, "ack_orchestration_item" | "ack_work_item")
}

#[async_trait]
impl Hook for CrashHook {
    async fn before(&self, call: &'static str) -> Result<(), ProviderError> {
        if is_commit(call) {
            self.pass(Crash::Before(self.begun.fetch_add(1, SeqCst))).await;
        }
        Ok(())
    }

    async fn after(&self, call: &'static str) {
        if is_commit(call) {
            self.pass(Crash::After(self.answered.fetch_add(1, SeqCst))).await;
        }
    }
}

#[test]
fn crash_points_cover_a_short_run_and_sample_a_long_one() {
    let all: Vec<_> = Crash::points(2, 100).collect();
    assert_eq!(all, [Crash::Before(0), Crash::After(0), Crash::Before(1), Crash::After(1)]);
    let some: Vec<_> = Crash::points(1_000, 7).collect();
    assert_eq!(some.len(), 7);
    assert!(some.iter().any(|crash| matches!(crash, Crash::After(_))), "{some:?}");
    assert_eq!(Crash::points(0, 5).count(), 0);
}
