//! `cargo xtask bench recovery`: the start of a process on a store with many unfinished instances that each have a due
//! message, and the first turn of an instance with a long history in a process that does not hold it.

use crate::measure::{self, ms, percentile};
use crate::place::{Place, Stores};
use duroxide::client::Client;
use duroxide::providers::Provider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{OrchestrationRegistry, Runtime};
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationStatus};
use futures::StreamExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const AT_ONCE: usize = 64;
const LONG: Duration = Duration::from_secs(600);
/// Instances with a long history; the median counts.
const CHAINS: usize = 5;
/// The bound for the turn of an instance with 10,000 events.
const MOST_MS: f64 = 20.0;

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Unfinished instances
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    unfinished: usize,
    /// Events of the long history
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    events: usize,
    #[command(flatten)]
    stores: Stores,
}

pub(crate) fn run(plan: &Plan) -> Result<bool, String> {
    measure::on_two_threads(async {
        let mut met = true;
        for store in plan.stores.names() {
            cold_start(store, plan.unfinished).await?;
            let turn = long_history(store, plan.events).await?;
            met &= turn < MOST_MS;
        }
        Ok(met)
    })
}

/// The times at which the code of instances ran on after their event.
type Ran = Arc<Mutex<Vec<Instant>>>;

fn registries(ran: &Ran) -> (ActivityRegistry, OrchestrationRegistry) {
    let activities = ActivityRegistry::builder()
        .register("Step", |_: ActivityContext, step: String| async move { Ok(step) })
        .build();
    let ran = Arc::clone(ran);
    // Runs as many activities as its input says, sets its status, waits for an event, and ends.
    let chain = move |ctx: OrchestrationContext, steps: String| {
        let ran = Arc::clone(&ran);
        async move {
            let steps: usize = steps.parse().map_err(|_| format!("'{steps}' is not a number"))?;
            for step in 0..steps {
                ctx.schedule_activity("Step", step.to_string()).await?;
            }
            ctx.set_custom_status("waits");
            ctx.schedule_wait("go").await;
            ran.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            Ok(steps.to_string())
        }
    };
    (activities, OrchestrationRegistry::builder().register("Chain", chain).build())
}

async fn start(store: &Arc<dyn Provider>, ran: &Ran) -> (Arc<Runtime>, Client) {
    let (activities, orchestrations) = registries(ran);
    let runtime = Runtime::start_with_store(Arc::clone(store), activities, orchestrations).await;
    (runtime, Client::new(Arc::clone(store)))
}

/// Starts an instance, and waits until it waits for its event.
async fn until_it_waits(client: &Client, id: &str, steps: usize) {
    client.start_orchestration(id, "Chain", steps.to_string()).await.unwrap();
    let changed = client.wait_for_status_change(id, 0, Duration::from_millis(5), LONG).await.unwrap();
    assert!(matches!(changed, OrchestrationStatus::Running { .. }), "{id}: {changed:?}");
}

async fn ended(client: &Client, id: &str) {
    let ended = client.wait_for_orchestration(id, LONG).await.unwrap();
    assert!(matches!(ended, OrchestrationStatus::Completed { .. }), "{id}: {ended:?}");
}

async fn cold_start(store: &str, unfinished: usize) -> Result<(), String> {
    let place = Place::new(store).await?;
    let ran = Ran::default();
    let provider = place.open().await?;
    let (runtime, client) = start(&provider, &ran).await;
    let client = &client;
    let ids: Vec<String> = (0..unfinished).map(|n| format!("cold-{n}")).collect();
    each(&ids, async |id| until_it_waits(client, id, 1).await).await;
    runtime.shutdown(None).await;
    each(&ids, async |id| client.raise_event(id, "go", "on").await.unwrap()).await;
    drop(provider);
    let since = Instant::now();
    let provider = place.open().await?;
    let (runtime, client) = start(&provider, &ran).await;
    let opened = ms(since.elapsed());
    let client = &client;
    each(&ids, async |id| ended(client, id).await).await;
    let all = ms(since.elapsed());
    let ran = ran.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let first = ran.iter().min().map_or(f64::NAN, |first| ms(*first - since));
    println!(
        "{store}: cold start with {unfinished} unfinished instances: open after {opened:.1} ms, first turn after \
         {first:.1} ms, all ended after {all:.0} ms"
    );
    runtime.shutdown(None).await;
    Ok(())
}

/// The time from an event to the end of its instance, in milliseconds: with a long history and, beside it, with a short one.
async fn long_history(store: &str, events: usize) -> Result<f64, String> {
    let place = Place::new(store).await?;
    let ran = Ran::default();
    let provider = place.open().await?;
    let (runtime, client) = start(&provider, &ran).await;
    let client = &client;
    // A step is two events.
    let long: Vec<String> = (0..CHAINS).map(|n| format!("long-{n}")).collect();
    let short: Vec<String> = (0..CHAINS).map(|n| format!("short-{n}")).collect();
    each(&long, async |id| until_it_waits(client, id, events / 2).await).await;
    each(&short, async |id| until_it_waits(client, id, 1).await).await;
    runtime.shutdown(None).await;
    drop(provider);
    let provider = place.open().await?;
    let (runtime, client) = start(&provider, &ran).await;
    let times = async |ids: &[String]| {
        let mut times = Vec::new();
        for id in ids {
            let since = Instant::now();
            client.raise_event(id, "go", "on").await.unwrap();
            ended(&client, id).await;
            times.push(ms(since.elapsed()));
        }
        percentile(&times, 50)
    };
    let (short, long) = (times(&short).await, times(&long).await);
    let turn = long - short;
    println!(
        "{store}: from the event to the end: {short:.1} ms with a short history, {long:.1} ms with {events} events that no \
         process holds, a difference of {turn:.1} ms (below {MOST_MS})"
    );
    runtime.shutdown(None).await;
    Ok(turn)
}

async fn each(ids: &[String], call: impl AsyncFn(&str)) {
    let call = &call;
    let calls = ids.iter().map(|id| async move { call(id).await });
    futures::stream::iter(calls).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}
