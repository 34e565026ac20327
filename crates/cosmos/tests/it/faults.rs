//! A fault at every request of a script: each status, before and after the execution, and lost connections.
//!
//! A run in CI strikes every ninth request, and a different one for each fault. `OUTLAST_COSMOS_SWEEP=full` strikes every request, and
//! `OUTLAST_COSMOS_SWEEP_JSON` names a file for the number of struck requests.

use crate::factory::fresh_config;
use crate::script;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig};
use outlast_cosmos_rig::{Fault, Rig, RigOptions, Target};
use std::sync::Mutex;
use std::time::Duration;

/// A store on a rig of its own. Deliveries are repeated soon.
async fn store(batch: (usize, usize)) -> (Target, CosmosDBProvider) {
    let options = RigOptions { keeps_records: false, ..RigOptions::default() };
    let target = Target::Rig(Box::new(Rig::start_with(options).await.unwrap()));
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(50),
        reconciler_age_threshold: Duration::from_millis(50),
        ..fresh_config(&target)
    };
    let often = Duration::from_millis(100);
    let options =
        CosmosDBOptions { batch, poll_interval: often, repair_interval: often, ..CosmosDBOptions::default() };
    let store = CosmosDBProvider::open(config, options).await.unwrap();
    (target, store)
}

/// Whether this run leaves nothing out.
pub(crate) fn is_full() -> bool {
    std::env::var("OUTLAST_COSMOS_SWEEP").is_ok_and(|value| value == "full")
}

/// The first request that is struck, and the distance to the next one.
fn steps(offset: u64) -> (u64, u64) {
    match is_full() {
        true => (1, 1),
        false => (1 + offset % 9, 9),
    }
}

/// Runs the script with a fault at each of its requests, one run for each.
async fn sweep(batch: (usize, usize), offset: u64, fault: impl Fn(Fault) -> Fault) {
    let (mut nth, step) = steps(offset);
    let mut requests = 0;
    loop {
        let (target, store) = store(batch).await;
        let handle = target.rig().unwrap().fault(fault(Fault::any().nth(nth)));
        script::begin(&store).await;
        script::finish(&store).await;
        let struck = handle.struck();
        target.rig().unwrap().clear_faults();
        script::check(&store).await;
        // The script is over before the fault.
        if struck == 0 || nth > 60 {
            break;
        }
        requests += 1;
        nth += step;
    }
    assert!(nth > 15, "the script has more requests: {nth}");
    record(requests);
}

/// Adds the struck requests of a sweep to those of the sweeps of this process, and writes the figures.
fn record(requests: u64) {
    static SUM: Mutex<(u64, u64)> = Mutex::new((0, 0));
    let Ok(file) = std::env::var("OUTLAST_COSMOS_SWEEP_JSON") else { return };
    let mut sum = SUM.lock().unwrap();
    *sum = (sum.0 + 1, sum.1 + requests);
    let figures = format!("{{\"sweeps\": {}, \"struck_requests\": {}}}\n", sum.0, sum.1);
    std::fs::write(&file, figures).unwrap_or_else(|error| panic!("{file}: {error}"));
}

const WHOLE: (usize, usize) = (100, 1_800_000);
const SMALL: (usize, usize) = (3, 4_000);

/// A test for each fault, on turns of one batch and on staged turns.
macro_rules! sweeps {
    ($($name:ident: $offset:literal, $fault:expr;)*) => {
        $(mod $name {
            #[tokio::test]
            async fn of_whole_turns() {
                super::sweep(super::WHOLE, $offset, $fault).await;
            }

            #[tokio::test]
            async fn of_staged_turns() {
                super::sweep(super::SMALL, $offset + 1, $fault).await;
            }
        })*
    };
}

sweeps! {
    status_408_before: 0, |fault| fault.before().status(408);
    status_408_after: 2, |fault| fault.after().status(408);
    status_410_before: 4, |fault| fault.before().status(410);
    status_410_after: 6, |fault| fault.after().status(410);
    status_429_before: 8, |fault| fault.before().status(429);
    status_449_before: 10, |fault| fault.before().status(449);
    status_449_after: 12, |fault| fault.after().status(449);
    status_500_before: 14, |fault| fault.before().status(500);
    status_500_after: 16, |fault| fault.after().status(500);
    status_503_before: 0, |fault| fault.before().status(503);
    status_503_after: 2, |fault| fault.after().status(503);
    connection_lost_before: 4, |fault| fault.before().drop_connection();
    connection_lost_after: 6, |fault| fault.after().drop_connection();
    request_reset_after: 8, |fault| fault.after().reset();
}
