//! Instances with more messages than fit into memory: the memory of their worker process, and the delay of other instances.

use crate::args::FloodArgs;
use crate::store::StoreKind;
use outlast::providers::Provider;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions,
};
use outlast_model::WorkItem;
use outlast_testkit::figures;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const HOARDER: &str = "hoarder";
const STEADY: &str = "steady";
const QUEUE: &str = "flood";
/// Messages that the steady instance reads before it continues as new.
const PER_EXECUTION: usize = 10;
/// Senders at a time.
const SENDERS: usize = 4;
/// For ordinary instances: the duration of one activity, the number of activities, and the time from one start to the next.
const ACTIVITY: Duration = Duration::from_millis(50);
const ACTIVITIES: usize = 3;
const PACE: Duration = Duration::from_millis(20);

/// Floods two instances: one reads all its messages, and fails; one continues as new, and completes. Returns whether both ended as expected.
pub(crate) async fn run(args: FloodArgs) -> Result<bool, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let provider = open(args.store, folder.path()).await?;
    let patience = Duration::from_secs(args.patience);
    let begun = Instant::now();

    let runtime = start(&provider).await?;
    let alone = ordinary(&provider, "alone", args.ordinary, patience).await?;
    runtime.shutdown(Some(5_000)).await;
    println!("{:>6.1} s  ordinary instances alone: {}", begun.elapsed().as_secs_f64(), alone.shown());

    let client = Client::new(Arc::clone(&provider));
    for (instance, name, input) in
        [(HOARDER, "Hoarder", args.messages.to_string()), (STEADY, "Steady", format!("0 {}", args.messages))]
    {
        let started = client.start_orchestration(instance, name, input).await;
        started.map_err(|error| format!("'{instance}' did not start: {error}"))?;
        send(&provider, instance, &args).await?;
    }
    println!(
        "{:>6.1} s  2 x {} messages of {} bytes wait",
        begun.elapsed().as_secs_f64(),
        args.messages,
        args.bytes
    );

    let runtime = start(&provider).await?;
    let beside = ordinary(&provider, "beside", args.ordinary, patience).await?;
    println!("{:>6.1} s  ordinary instances beside them: {}", begun.elapsed().as_secs_f64(), beside.shown());
    let hoarder = ended(&client, HOARDER, patience).await?;
    println!("{:>6.1} s  {HOARDER}: {}", begun.elapsed().as_secs_f64(), shown(&hoarder));
    let steady = ended(&client, STEADY, patience).await?;
    println!("{:>6.1} s  {STEADY}: {}", begun.elapsed().as_secs_f64(), shown(&steady));
    let left = drained(&provider, patience).await?;
    println!("{:>6.1} s  messages left: {left}", begun.elapsed().as_secs_f64());
    runtime.shutdown(Some(5_000)).await;
    let memory = peak_memory()?;
    println!("{:>6.1} s  peak memory of this process: {} MiB", begun.elapsed().as_secs_f64(), memory >> 20);

    let expected = args.messages.div_ceil(PER_EXECUTION) * PER_EXECUTION;
    let checks = [
        (shown(&hoarder).contains("limits.history_bytes"), "the hoarder failed for limits.history_bytes"),
        (
            matches!(&steady, OrchestrationStatus::Completed { output, .. } if *output == expected.to_string()),
            "the steady instance read all its messages",
        ),
        (left == 0, "all messages were drained"),
        (memory <= args.most_memory << 20, "the process kept within its memory"),
        (args.ignore_latency || beside.p99 <= alone.p99 * 2, "the p99 of ordinary instances at most doubled"),
    ];
    for (holds, what) in checks {
        println!("{} {what}", if holds { "ok     " } else { "FAILED " });
    }
    if let Some(file) = &args.json {
        let figures = json!({
            "floods": 1,
            "messages": 2 * rounded(args.messages),
            "bytes_of_a_message": args.bytes,
            "messages_left": left,
            "worst_memory_mib": memory >> 20,
            "worst_alone_p99_milliseconds": alone.p99.as_millis() as u64,
            "worst_beside_p99_milliseconds": beside.p99.as_millis() as u64,
            "checks_passed": checks.iter().filter(|(holds, _)| *holds).count(),
            "checks_failed": checks.iter().filter(|(holds, _)| !*holds).count(),
        });
        figures::write(file, &figures)?;
    }
    Ok(checks.iter().all(|(holds, _)| *holds))
}

async fn open(store: StoreKind, folder: &Path) -> Result<Arc<dyn Provider>, String> {
    if store == StoreKind::Sqlite {
        let url = format!("sqlite:{}", folder.join("flood.db").display());
        let opened = SqliteProvider::new(&url, None).await;
        return Ok(Arc::new(opened.map_err(|error| format!("the store could not be opened: {error}"))?));
    }
    Ok(store.open(folder, None).await?.provider)
}

async fn start(provider: &Arc<dyn Provider>) -> Result<Arc<Runtime>, String> {
    let activities = ActivityRegistry::builder().register("Rest", |_: ActivityContext, _: String| async {
        sleep(ACTIVITY).await;
        Ok(String::new())
    });
    let options =
        RuntimeOptions { orchestration_concurrency: 4, worker_concurrency: 64, ..RuntimeOptions::default() };
    let started = Runtime::builder()
        .store(Arc::clone(provider))
        .activities(activities.build())
        .orchestrations(orchestrations())
        .options(options)
        .start();
    started.await.map_err(|error| format!("the runtime did not start: {error}"))
}

fn orchestrations() -> OrchestrationRegistry {
    let hoarder = |ctx: OrchestrationContext, input: String| async move {
        for _ in 0..number(&input)? {
            ctx.dequeue_event(QUEUE).await;
        }
        Ok(input)
    };
    let steady = |ctx: OrchestrationContext, input: String| async move {
        let (read, all) = input.split_once(' ').ok_or("two numbers")?;
        for _ in 0..PER_EXECUTION {
            ctx.dequeue_event(QUEUE).await;
        }
        let read = number(read)? + PER_EXECUTION;
        match read >= number(all)? {
            true => Ok(read.to_string()),
            false => ctx.continue_as_new(format!("{read} {all}")).await,
        }
    };
    let ordinary = |ctx: OrchestrationContext, _: String| async move {
        for _ in 0..ACTIVITIES {
            ctx.schedule_activity("Rest", "").await?;
        }
        Ok(String::new())
    };
    OrchestrationRegistry::builder()
        .register("Hoarder", hoarder)
        .register("Steady", steady)
        .register("Ordinary", ordinary)
        .build()
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|error| format!("'{text}': {error}"))
}

/// Sends the messages past the client, whose limit for one mailbox they may exceed.
async fn send(provider: &Arc<dyn Provider>, instance: &str, args: &FloodArgs) -> Result<(), String> {
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let count = (sender..rounded(args.messages)).step_by(SENDERS).count();
        let (provider, instance, bytes) = (Arc::clone(provider), instance.to_string(), args.bytes);
        senders.spawn(async move {
            for _ in 0..count {
                let (instance, name) = (instance.clone(), QUEUE.to_string());
                let message = WorkItem::QueueMessage { instance, name, data: "x".repeat(bytes) };
                provider.enqueue_for_orchestrator(message, None).await.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(())
        });
    }
    while let Some(sent) = senders.join_next().await {
        sent.map_err(|error| error.to_string())??;
    }
    Ok(())
}

/// The number of messages, rounded up to whole executions of the steady instance.
fn rounded(messages: usize) -> usize {
    messages.div_ceil(PER_EXECUTION) * PER_EXECUTION
}

/// The durations of ordinary instances.
struct Took {
    p50: Duration,
    p99: Duration,
}

impl Took {
    fn shown(&self) -> String {
        format!("p50 {} ms, p99 {} ms", self.p50.as_millis(), self.p99.as_millis())
    }
}

/// Starts ordinary instances one after the other and waits for all of them.
async fn ordinary(
    provider: &Arc<dyn Provider>,
    name: &str,
    count: usize,
    patience: Duration,
) -> Result<Took, String> {
    let mut clients = JoinSet::new();
    for n in 0..count {
        let (client, id) = (Client::new(Arc::clone(provider)), format!("{name}-{n}"));
        clients.spawn(async move {
            let begun = Instant::now();
            let started = client.start_orchestration(&id, "Ordinary", "").await;
            started.map_err(|error| format!("'{id}' did not start: {error}"))?;
            match ended(&client, &id, patience).await? {
                OrchestrationStatus::Completed { .. } => Ok(begun.elapsed()),
                other => Err(format!("'{id}' did not complete: {}", shown(&other))),
            }
        });
        sleep(PACE).await;
    }
    let mut took = Vec::new();
    while let Some(ended) = clients.join_next().await {
        took.push(ended.map_err(|error| error.to_string())??);
    }
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() * percent / 100).min(took.len().saturating_sub(1)));
    let found = |percent| at(percent).copied().unwrap_or_default();
    Ok(Took { p50: found(50), p99: found(99) })
}

async fn ended(client: &Client, instance: &str, patience: Duration) -> Result<OrchestrationStatus, String> {
    let status = client.wait_for_orchestration(instance, patience).await;
    status.map_err(|error| format!("'{instance}' did not end: {error}"))
}

/// The name of a status, without output.
fn shown(status: &OrchestrationStatus) -> String {
    match status {
        OrchestrationStatus::Failed { details, .. } => format!("failed: {}", details.display_message()),
        OrchestrationStatus::Completed { .. } => "completed".to_string(),
        _ => "not ended".to_string(),
    }
}

/// Waits until no message is left. Returns the number of messages that are left when the patience ends.
async fn drained(provider: &Arc<dyn Provider>, patience: Duration) -> Result<usize, String> {
    let admin = provider.as_management_capability().ok_or("the store cannot be looked into")?;
    let look = || async {
        let depths = admin.get_queue_depths().await.map_err(|error| error.to_string())?;
        Ok::<_, String>(depths.orchestrator_queue)
    };
    let wait = async {
        while look().await? > 0 {
            sleep(Duration::from_millis(100)).await;
        }
        Ok::<_, String>(())
    };
    if let Ok(waited) = timeout(patience, wait).await {
        waited?;
    }
    look().await
}

/// The peak memory of this process, as Linux reports it.
fn peak_memory() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| format!("/proc: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().map_err(|_| "VmHWM is no number")?;
    Ok(kib << 10)
}
