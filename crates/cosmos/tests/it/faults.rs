//! A fault at every request of a script: before and after its execution, as a status and as a lost connection.

use crate::factory::fresh_config;
use crate::script;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig};
use outlast_cosmos_rig::{Fault, Rig, RigOptions, Target};
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

/// Runs the script with a fault at each of its requests, one run for each.
async fn sweep(batch: (usize, usize), fault: impl Fn(Fault) -> Fault) {
    let mut nth = 1;
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
        nth += 3;
    }
    assert!(nth > 20, "the script has more requests: {nth}");
}

const WHOLE: (usize, usize) = (100, 1_800_000);
const SMALL: (usize, usize) = (3, 4_000);

#[tokio::test]
async fn a_request_that_fails_before_its_execution_is_repeated() {
    sweep(WHOLE, |fault| fault.before().status(503)).await;
}

#[tokio::test]
async fn a_request_that_fails_after_its_execution_happens_once() {
    sweep(WHOLE, |fault| fault.after().status(503)).await;
}

#[tokio::test]
async fn a_staged_turn_whose_request_fails_after_its_execution_happens_once() {
    sweep(SMALL, |fault| fault.after().status(408)).await;
}

#[tokio::test]
async fn a_connection_that_is_lost_after_the_execution_loses_nothing() {
    sweep(WHOLE, |fault| fault.after().drop_connection()).await;
}

#[tokio::test]
async fn a_throttled_request_is_repeated() {
    sweep(SMALL, |fault| fault.before().status(429)).await;
}
