//! A scenario is written once and played on every store, undisturbed and with a crash at every moment.

use super::crash::{Crash, Gate};
use super::store::{Kind, Place};
use super::world::World;
use std::pin::Pin;
use std::sync::Arc;

/// Plays in a world and judges for itself.
pub(crate) type Scenario = fn(Arc<World>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// The scenario, undisturbed.
pub(crate) async fn works(kind: Kind, play: Scenario) {
    let world = World::real(kind).await;
    play(Arc::clone(&world)).await;
    world.end().await;
}

/// The scenario with a crash of all runtimes at each moment between two commits, or at `at_most` of these moments. What
/// it judges by must come out the same.
pub(crate) async fn survives_crashes(kind: Kind, play: Scenario, at_most: usize) {
    let gate = Arc::new(Gate::new(None));
    let world = World::on(Place::paused(kind).await, Some(Arc::clone(&gate)));
    play(Arc::clone(&world)).await;
    world.end().await;
    let commits = gate.commits();
    assert!(commits > 0, "nothing was committed");
    let (mut planned, mut crashed) = (0, 0);
    for crash in Crash::moments(commits, at_most) {
        println!("{crash:?} of {commits} commits");
        let world = World::crashing(kind, crash).await;
        play(Arc::clone(&world)).await;
        world.end().await;
        planned += 1;
        crashed += usize::from(world.has_crashed());
    }
    // A run may need a commit or two less than the first did.
    assert!(crashed * 4 >= planned * 3, "only {crashed} of {planned} crashes happened");
}

/// Tests for a scenario, or for several.
macro_rules! on_every_store {
    ($($(#[$attribute:meta])* $name:ident: $at_most:expr),+ $(,)?) => { $(
        $(#[$attribute])*
        mod $name {
            use crate::support::{Kind, survives_crashes, works};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_memory() {
                works(Kind::Memory, |world| Box::pin(super::$name(world))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite_in_memory() {
                works(Kind::SqliteMemory, |world| Box::pin(super::$name(world))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_a_sqlite_file() {
                works(Kind::SqliteFile, |world| Box::pin(super::$name(world))).await;
            }

            mod needs_postgres {
                use crate::support::{Kind, works};

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_postgres() {
                    works(Kind::Postgres, |world| Box::pin(super::super::$name(world))).await;
                }
            }

            #[tokio::test(start_paused = true)]
            async fn crashes_on_memory() {
                survives_crashes(Kind::Memory, |world| Box::pin(super::$name(world)), $at_most).await;
            }

            #[tokio::test(start_paused = true)]
            async fn crashes_on_sqlite_in_memory() {
                survives_crashes(Kind::SqliteMemory, |world| Box::pin(super::$name(world)), $at_most / 3 + 1).await;
            }

            #[tokio::test(start_paused = true)]
            async fn crashes_on_a_sqlite_file() {
                survives_crashes(Kind::SqliteFile, |world| Box::pin(super::$name(world)), $at_most / 3 + 1).await;
            }
        }
    )+ };
}
pub(crate) use on_every_store;
