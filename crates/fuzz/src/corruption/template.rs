//! Stores to damage. Each contains one program and a second instance, in the state that a process left when it stopped.

use super::program::{PROGRAMS, SECOND_PROGRAM};
use super::store_run::{FinalState, MAIN, SECOND, StoreRun};
use crate::scratch::Scratch;
use outlast_testkit::virtual_time;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// The time at which the process stopped: before the first turn, during activities, between them, and after the end.
pub(super) const MOMENTS_MS: [u64; 6] = [0, 500, 1_500, 2_500, 4_300, 60_000];

/// Longest time in which an undamaged store finishes.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Template {
    /// The bytes of the file.
    pub(super) database: Vec<u8>,
    pub(super) moment_ms: u64,
    /// The final states of both instances without damage.
    pub(super) expected: [FinalState; 2],
}

/// The store of a program that stopped at a time; created at its first use.
pub(super) fn template(program: usize, moment: usize) -> &'static Template {
    static TEMPLATES: LazyLock<Mutex<BTreeMap<(usize, usize), &'static Template>>> =
        LazyLock::new(Mutex::default);
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    // There are few templates, and they live as long as the process.
    templates
        .entry((program, moment))
        .or_insert_with(|| Box::leak(Box::new(create(PROGRAMS[program], MOMENTS_MS[moment]))))
}

fn create(program: &str, moment_ms: u64) -> Template {
    let scratch = Scratch::new();
    virtual_time::run(run_until(&scratch, program, moment_ms));
    let database = scratch.content();
    let expected = run(&database, moment_ms);
    assert!(expected.iter().all(FinalState::has_ended), "{program} does not end: {expected:?}");
    assert_eq!(expected, run(&database, moment_ms), "two runs of {program} differ");
    Template { database, moment_ms, expected }
}

async fn run_until(scratch: &Scratch, program: &str, moment_ms: u64) {
    let store_run = StoreRun::open(&scratch.url(), 0, 1).await.expect("a new store can be made");
    for (instance, program) in [(MAIN, program), (SECOND, SECOND_PROGRAM)] {
        store_run.client.start_orchestration(instance, program, instance).await.expect("it can be started");
    }
    for message in ["m1", "m2", "m3", "m4"] {
        store_run.client.enqueue_event(MAIN, "in", message).await.expect("it can be sent");
    }
    if moment_ms == 0 {
        return;
    }
    let runtime = store_run.start_runtime(1).await;
    tokio::time::sleep(Duration::from_millis(moment_ms.min(700))).await;
    if moment_ms > 700 {
        // In other programs no wait for this event may be open.
        let _ = store_run.client.raise_event(MAIN, "go", "gone").await;
        tokio::time::sleep(Duration::from_millis(moment_ms - 700)).await;
    }
    runtime.shutdown(Some(0)).await;
}

/// Runs an undamaged store to its end.
fn run(database: &[u8], moment_ms: u64) -> [FinalState; 2] {
    let scratch = Scratch::holding(database);
    virtual_time::run(async {
        let store_run = StoreRun::open(&scratch.url(), moment_ms, 2).await.expect("an undamaged store opens");
        let runtime = store_run.start_runtime(2).await;
        let states = store_run.finish(TIMEOUT).await;
        runtime.shutdown(Some(0)).await;
        states
    })
}
