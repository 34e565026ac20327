//! Scenarios: programs that run on every store, without crashes and with a crash at every crash point.

use super::cluster::Cluster;
use super::crash::{Crash, CrashHook};
use super::store::{Kind, TestStore};
use std::pin::Pin;
use std::sync::Arc;

/// Runs in a cluster and checks its results.
pub(crate) type Scenario = fn(Arc<Cluster>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs the scenario without crashes.
pub(crate) async fn works(kind: Kind, play: Scenario) {
    let cluster = Cluster::real(kind).await;
    play(Arc::clone(&cluster)).await;
    cluster.end().await;
}

/// Runs the scenario with a crash of all runtimes at each crash point, or at `at_most` of them. Its checks must hold every time.
pub(crate) async fn survives_crashes(kind: Kind, play: Scenario, at_most: usize) {
    let crash_hook = Arc::new(CrashHook::new(None));
    let cluster = Cluster::on(TestStore::crashing(kind).await, Some(Arc::clone(&crash_hook)));
    play(Arc::clone(&cluster)).await;
    cluster.end().await;
    let commits = crash_hook.commits();
    assert!(commits > 0, "the scenario made no commit");
    let (mut planned, mut crashed) = (0, 0);
    for crash in Crash::points(commits, at_most) {
        println!("{crash:?} of {commits} commits");
        let cluster = Cluster::crashing(kind, crash).await;
        play(Arc::clone(&cluster)).await;
        cluster.end().await;
        planned += 1;
        crashed += usize::from(cluster.has_crashed());
    }
    // A run may make fewer commits than the first.
    assert!(crashed * 4 >= planned * 3, "only {crashed} of {planned} crashes happened");
}

/// Declares the tests of scenarios on every store.
macro_rules! on_every_store {
    ($($(#[$attribute:meta])* $name:ident: $at_most:expr),+ $(,)?) => { $(
        $(#[$attribute])*
        mod $name {
            use crate::support::{Kind, survives_crashes, works};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_memory() {
                works(Kind::Memory, |cluster| Box::pin(super::$name(cluster))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite_in_memory() {
                works(Kind::SqliteMemory, |cluster| Box::pin(super::$name(cluster))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_a_sqlite_file() {
                works(Kind::SqliteFile, |cluster| Box::pin(super::$name(cluster))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_cosmos() {
                works(Kind::Cosmos, |cluster| Box::pin(super::$name(cluster))).await;
            }

            mod needs_postgres {
                use crate::support::{Kind, works};

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_postgres() {
                    works(Kind::Postgres, |cluster| Box::pin(super::super::$name(cluster))).await;
                }
            }

            #[tokio::test(start_paused = true)]
            async fn crashes_on_memory() {
                survives_crashes(Kind::Memory, |cluster| Box::pin(super::$name(cluster)), $at_most).await;
            }

            #[tokio::test(start_paused = true)]
            async fn crashes_on_sqlite_in_memory() {
                survives_crashes(Kind::SqliteMemory, |cluster| Box::pin(super::$name(cluster)), $at_most / 3 + 1).await;
            }

            #[tokio::test(start_paused = true)]
            async fn crashes_on_a_sqlite_file() {
                survives_crashes(Kind::SqliteFile, |cluster| Box::pin(super::$name(cluster)), $at_most / 3 + 1).await;
            }
        }
    )+ };
}
pub(crate) use on_every_store;
