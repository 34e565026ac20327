//! `cargo xtask bench growth`: the times of calls in a store with more and more finished instances, beside instances that
//! wait for a timer.

use crate::hello::turn_request;
use crate::measure::{self, ms, percentile};
use crate::place::{Place, Stores};
use duroxide::client::Client;
use duroxide::providers::{InstanceFilter, InstanceQuery, Provider, ProviderAdmin, PruneOptions};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{OrchestrationRegistry, Runtime};
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationStatus};
use futures::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Orchestrations that run at the same time.
const AT_ONCE: usize = 64;
/// Calls of each kind; the median counts.
const CALLS: usize = 50;
const HELLOS: usize = 4_000;
const LONG: Duration = Duration::from_secs(600);
/// A figure at the last stage may be this many times that of the first.
const MOST_GROWTH: f64 = 1.5;

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Finished instances of each stage, at least two numbers in ascending order
    #[arg(long, value_name = "N,N,..", value_parser = stages, default_value = "0,10000,100000,1000000")]
    finished: Stages,
    /// Instances that wait for a timer
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    asleep: usize,
    #[command(flatten)]
    stores: Stores,
}

type Stages = Vec<u64>;

fn stages(text: &str) -> Result<Stages, String> {
    let stages: Stages =
        text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|error| format!("{error}"))?;
    match stages.is_sorted_by(|a, b| a < b) && stages.len() > 1 {
        true => Ok(stages),
        false => Err("not at least two numbers in ascending order".to_string()),
    }
}

pub(crate) fn run(plan: &Plan) -> Result<bool, String> {
    measure::on_two_threads(async {
        let mut met = true;
        for store in plan.stores.names() {
            let stages = measure_store(plan, store).await?;
            println!("{}", table(store, &plan.finished, &stages));
            for (name, growth) in grown(&stages) {
                met = false;
                println!("MISSED: {store}: {name} took {growth:.2} times as long (at most {MOST_GROWTH})");
            }
        }
        Ok(met)
    })
}

/// A figure of a stage, in milliseconds.
struct Figure {
    name: &'static str,
    value: f64,
    /// Whether the call returns all instances, so that its time grows with them.
    lists_all: bool,
}

async fn measure_store(plan: &Plan, store: &str) -> Result<Vec<Vec<Figure>>, String> {
    let place = Place::new(store).await?;
    let provider = place.open().await?;
    let (activities, orchestrations) = registries();
    let runtime = Runtime::start_with_store(Arc::clone(&provider), activities, orchestrations).await;
    let client = Client::new(Arc::clone(&provider));
    sleepers(&client, plan.asleep).await;
    let (mut filled, mut stages) = (0, Vec::new());
    for &finished in &plan.finished {
        if finished > filled {
            place.fill(filled + 1, finished).await?;
            filled = finished;
        }
        stages.push(stage(&client, provider.as_ref(), finished).await?);
        println!("{store}: {finished} finished instances were measured");
    }
    runtime.shutdown(None).await;
    Ok(stages)
}

async fn sleepers(client: &Client, count: usize) {
    let starts = (0..count).map(|n| async move {
        let id = format!("asleep-{n}");
        client.start_orchestration(&id, "Sleep", "").await.unwrap();
        while !matches!(client.get_orchestration_status(&id).await, Ok(OrchestrationStatus::Running { .. })) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    futures::stream::iter(starts).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

async fn stage(client: &Client, store: &dyn Provider, finished: u64) -> Result<Vec<Figure>, String> {
    let admin = store.as_management_capability().ok_or("the store has no management interface")?;
    let run = async |id: String, name: &str| {
        client.start_orchestration(&id, name, "3").await.unwrap();
        let ended = client.wait_for_orchestration(&id, LONG).await.unwrap();
        assert!(matches!(ended, OrchestrationStatus::Completed { .. }), "{id}: {ended:?}");
    };
    let each = |name, value| Figure { name, value, lists_all: false };
    // A runtime reads a store that has grown from outside of it for the first time.
    for n in 0..CALLS {
        run(format!("warm-up-{finished}-{n}"), "Hello").await;
    }
    let hello = median(async |n| run(format!("alone-{finished}-{n}"), "Hello").await).await;
    let since = Instant::now();
    let runs = (0..HELLOS).map(|n| run(format!("many-{finished}-{n}"), "Hello"));
    futures::stream::iter(runs).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    let many = ms(since.elapsed()) / HELLOS as f64;
    for n in 0..CALLS {
        run(format!("again-{finished}-{n}"), "Again").await;
    }
    let fetch = median(async |_| {
        let turn = store.fetch_turn(turn_request(Duration::ZERO)).await.unwrap();
        assert!(turn.is_none(), "no message is due");
    })
    .await;
    let mut figures =
        vec![each("one hello, idle", hello), each("hello among 64", many), each("fetch, no message", fetch)];
    figures.extend(pages(admin).await);
    let delete = median(async |n| {
        let deleted = admin.delete_instance(&format!("alone-{finished}-{n}"), false).await.unwrap();
        assert_eq!(deleted.instances_deleted, 1);
    })
    .await;
    let prune = median(async |n| {
        let keep = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
        let pruned = admin.prune_executions(&format!("again-{finished}-{n}"), keep).await.unwrap();
        assert_eq!(pruned.executions_deleted, 3);
    })
    .await;
    let ids = (0..HELLOS).map(|n| format!("many-{finished}-{n}")).collect::<Vec<_>>();
    let bulk = median(async |n| {
        let instance_ids = Some(ids[n * 20..(n + 1) * 20].to_vec());
        let filter = InstanceFilter { instance_ids, ..InstanceFilter::default() };
        assert_eq!(admin.delete_instance_bulk(filter).await.unwrap().instances_deleted, 20);
    })
    .await;
    figures.extend([
        each("delete an instance", delete),
        each("prune an instance", prune),
        each("delete 20 instances", bulk),
    ]);
    let since = Instant::now();
    admin.list_instances().await.map_err(|error| error.to_string())?;
    figures.push(Figure { name: "list all ids", value: ms(since.elapsed()), lists_all: true });
    Ok(figures)
}

async fn pages(admin: &dyn ProviderAdmin) -> [Figure; 3] {
    let page = async |status: Option<&str>| {
        let query = InstanceQuery {
            status: status.map(str::to_string),
            limit: Some(100),
            ..InstanceQuery::default()
        };
        median(async |_| assert_eq!(admin.query_instances(&query).await.unwrap().instances.len(), 100)).await
    };
    let each = |name, value| Figure { name, value, lists_all: false };
    [
        each("page of 100", page(None).await),
        each("page of 100, Running", page(Some("Running")).await),
        each("page of 100, Completed", page(Some("Completed")).await),
    ]
}

/// The median time of a call in milliseconds.
async fn median(mut call: impl AsyncFnMut(usize)) -> f64 {
    let mut times = Vec::new();
    for n in 0..CALLS {
        let since = Instant::now();
        call(n).await;
        times.push(ms(since.elapsed()));
    }
    percentile(&times, 50)
}

/// Hello; a sleeper; and an instance that ends in its fourth execution.
fn registries() -> (ActivityRegistry, OrchestrationRegistry) {
    let activities = ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("hello, {name}")) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .register("Sleep", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_timer(Duration::from_secs(86_400)).await;
            Ok(String::new())
        })
        .register("Again", |ctx: OrchestrationContext, left: String| async move {
            match left.parse::<u32>() {
                Ok(left @ 1..) => ctx.continue_as_new((left - 1).to_string()).await,
                _ => Ok(left),
            }
        })
        .build();
    (activities, orchestrations)
}

/// The figures of the last stage that are above the bound, with their growth.
fn grown(stages: &[Vec<Figure>]) -> Vec<(&'static str, f64)> {
    let (Some(first), Some(last)) = (stages.first(), stages.last()) else { return Vec::new() };
    let pairs = first.iter().zip(last).filter(|(first, _)| !first.lists_all);
    let growths = pairs.map(|(first, last)| (first.name, last.value / first.value));
    growths.filter(|(_, growth)| *growth > MOST_GROWTH).collect()
}

fn table(store: &str, finished: &[u64], stages: &[Vec<Figure>]) -> String {
    let head: Vec<String> = finished.iter().map(u64::to_string).collect();
    let mut text = format!(
        "\n{store}, milliseconds, by the number of finished instances:\n\n| | {} |\n|---|{}\n",
        head.join(" | "),
        "---:|".repeat(head.len())
    );
    for (place, figure) in stages.first().into_iter().flatten().enumerate() {
        let values: Vec<String> = stages.iter().map(|stage| format!("{:.2}", stage[place].value)).collect();
        text.push_str(&format!("| {} | {} |\n", figure.name, values.join(" | ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, parse};

    fn figure(name: &'static str, value: f64, lists_all: bool) -> Figure {
        Figure { name, value, lists_all }
    }

    #[test]
    fn a_call_that_takes_longer_in_a_larger_store_is_named() {
        let first = vec![figure("fetch", 1.0, false), figure("page", 1.0, false), figure("all", 1.0, true)];
        let last = vec![figure("fetch", 1.5, false), figure("page", 1.6, false), figure("all", 90.0, true)];
        assert_eq!(grown(&[first, last]), [("page", 1.6)]);
    }

    #[test]
    fn stages_are_numbers_in_ascending_order() {
        let Ok(Call::Growth(plan)) = parse("growth --finished 0,10 --store sqlite") else { panic!("growth") };
        assert_eq!((plan.finished.as_slice(), plan.stores.names()), (&[0, 10][..], vec!["sqlite"]));
        let Ok(Call::Growth(plan)) = parse("growth") else { panic!("growth") };
        assert_eq!((plan.finished[3], plan.stores.names()), (1_000_000, vec!["sqlite", "postgres"]));
        for (line, text) in [
            ("--finished 10,0", "ascending"),
            ("--finished 10", "two numbers"),
            ("--finished ten", "ten"),
            ("--store memory", "'memory'"),
            ("--asleep", "--asleep"),
        ] {
            let Err(error) = parse(&format!("growth {line}")) else { panic!("{line}") };
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
