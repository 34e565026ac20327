//! Stores to be damaged: each holds one program and a bystander, as a process left them that died at some moment.

use super::program::{BYSTANDER, PROGRAMS};
use super::world::{MAIN, OTHER, Stand, World};
use crate::scratch::Scratch;
use outlast_testkit::virtual_time;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// When the process died: before anything ran, within activities, in the middle, and when all was done.
pub(super) const MOMENTS_MS: [u64; 6] = [0, 500, 1_500, 2_500, 4_300, 60_000];

/// How long an undamaged store may take to its end.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Template {
    /// The file.
    pub(super) database: Vec<u8>,
    pub(super) moment_ms: u64,
    /// What the program and the bystander return if nothing is damaged.
    pub(super) expected: [Stand; 2],
}

/// The store of a program at a moment; made when it is first asked for.
pub(super) fn template(program: usize, moment: usize) -> &'static Template {
    static MADE: LazyLock<Mutex<BTreeMap<(usize, usize), &'static Template>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    // There are few of them, and they live as long as the process.
    made.entry((program, moment))
        .or_insert_with(|| Box::leak(Box::new(make(PROGRAMS[program], MOMENTS_MS[moment]))))
}

fn make(program: &str, moment_ms: u64) -> Template {
    let scratch = Scratch::new();
    virtual_time::run(until(&scratch, program, moment_ms));
    let database = scratch.content();
    let expected = run(&database, moment_ms);
    assert!(expected.iter().all(Stand::is_over), "{program} does not end: {expected:?}");
    assert_eq!(expected, run(&database, moment_ms), "{program} does not repeat itself");
    Template { database, moment_ms, expected }
}

async fn until(scratch: &Scratch, program: &str, moment_ms: u64) {
    let world = World::open(&scratch.url(), 0, 1).await.expect("a new store can be made");
    for (instance, program) in [(MAIN, program), (OTHER, BYSTANDER)] {
        world.client.start_orchestration(instance, program, instance).await.expect("it can be started");
    }
    for message in ["m1", "m2", "m3", "m4"] {
        world.client.enqueue_event(MAIN, "in", message).await.expect("it can be sent");
    }
    if moment_ms == 0 {
        return;
    }
    let runtime = world.start_runtime(1).await;
    tokio::time::sleep(Duration::from_millis(moment_ms.min(700))).await;
    if moment_ms > 700 {
        // Nobody may wait for it yet or any more, in other programs.
        let _ = world.client.raise_event(MAIN, "go", "gone").await;
        tokio::time::sleep(Duration::from_millis(moment_ms - 700)).await;
    }
    runtime.shutdown(Some(0)).await;
}

/// What becomes of an undamaged store.
fn run(database: &[u8], moment_ms: u64) -> [Stand; 2] {
    let scratch = Scratch::holding(database);
    virtual_time::run(async {
        let world = World::open(&scratch.url(), moment_ms, 2).await.expect("nothing is wrong with it");
        let runtime = world.start_runtime(2).await;
        let stands = world.finish(PATIENCE).await;
        runtime.shutdown(Some(0)).await;
        stands
    })
}
