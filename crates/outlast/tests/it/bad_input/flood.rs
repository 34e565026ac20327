//! One instance that is flooded with messages, and a hundred others that are not delayed by it.
//!
//! `OUTLAST_TEST_FLOOD=100000 cargo test -p outlast --all-features --test it flood` takes the full number.

use crate::support::{ALONE, Cluster, Kind, LONGEST_WAIT, Node, activities, orchestrations};
use outlast::runtime::limits::Limits;
use outlast::{ActivityContext, ClientError, OrchestrationContext};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

const SENDERS: usize = 16;
const OTHERS: usize = 100;
const MAILBOX: usize = 1_000;

/// Set in the process that runs the flood.
const OWN_PROCESS: &str = "OUTLAST_TEST_FLOOD_PROCESS";

/// The least number of messages to the flooded instance: it is flooded until the other instances have ended.
fn messages() -> usize {
    std::env::var("OUTLAST_TEST_FLOOD").ok().and_then(|text| text.parse().ok()).unwrap_or(8_000)
}

fn node() -> Node {
    // The flooded instance never reads its messages.
    let sinks = |ctx: OrchestrationContext, _: String| async move { Ok(ctx.schedule_wait("never").await) };
    let steps = |ctx: OrchestrationContext, _: String| async move {
        for step in 0..3 {
            ctx.schedule_activity("Step", step.to_string()).await?;
        }
        Ok("done".to_string())
    };
    let step = |_: ActivityContext, input: String| async move { Ok(input) };
    Node::new(
        orchestrations().register("Sinks", sinks).register("Steps", steps),
        activities().register("Step", step),
    )
}

/// Runs the other instances, ten at a time. Returns the duration of each, sorted.
async fn others(cluster: &Arc<Cluster>, name: &'static str) -> Vec<Duration> {
    let mut tasks = JoinSet::new();
    for lane in 0..10 {
        let cluster = Arc::clone(cluster);
        tasks.spawn(async move {
            let mut took = Vec::new();
            for n in 0..OTHERS / 10 {
                let since = Instant::now();
                cluster.run(&format!("{name}-{lane}-{n}"), "Steps", "").await;
                took.push(since.elapsed());
            }
            took
        });
    }
    let mut all = tasks.join_all().await.concat();
    all.sort();
    all
}

/// Sends messages from all senders concurrently. Returns the number of accepted and of rejected messages. A rejected message is not
/// sent again.
async fn flood(cluster: &Arc<Cluster>, sent: &Arc<AtomicUsize>, is_over: &Arc<AtomicBool>) -> (usize, usize) {
    let limits = Limits { mailbox_messages: MAILBOX, ..Limits::default() };
    let client = cluster.client.clone().with_limits(limits);
    let mut tasks = JoinSet::new();
    for sender in 0..SENDERS {
        let (client, sent, is_over) = (client.clone(), Arc::clone(sent), Arc::clone(is_over));
        tasks.spawn(async move {
            let (mut taken, mut refused) = (0, 0);
            while taken + refused < messages() / SENDERS || !is_over.load(Ordering::Relaxed) {
                let n = taken + refused;
                match client.enqueue_event("flooded", "queue", format!("{sender}-{n}")).await {
                    Ok(()) => taken += 1,
                    Err(ClientError::InvalidInput { message }) => {
                        assert!(message.contains("mailbox_messages") && message.contains("'flooded'"));
                        refused += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
                sent.fetch_add(1, Ordering::Relaxed);
            }
            (taken, refused)
        });
    }
    tasks.join_all().await.into_iter().fold((0, 0), |(a, b), (taken, refused)| (a + taken, b + refused))
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
}

/// Runs in a process of its own, because it bounds the memory of the process.
#[test]
fn a_flooded_instance_does_not_delay_other_instances() {
    if std::env::var_os(OWN_PROCESS).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        return runtime.unwrap().block_on(flood_beside_other_instances());
    }
    let _alone = ALONE.blocking_lock();
    let name = "bad_input::flood::a_flooded_instance_does_not_delay_other_instances";
    let mut test = Command::new(std::env::current_exe().unwrap());
    let output = test.args(["--exact", name, "--nocapture"]).env(OWN_PROCESS, "1").output().unwrap();
    let [said, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && said.contains("1 passed"), "{said}{errors}");
}

async fn flood_beside_other_instances() {
    for kind in [Kind::SqliteMemory, Kind::SqliteFile] {
        let cluster = Cluster::real(kind).await;
        cluster.start(&node()).await;
        cluster.begin("flooded", "Sinks", "").await;
        let undisturbed = others(&cluster, "without-flood").await;
        let before = resident();
        let sent = Arc::new(AtomicUsize::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let flooding = tokio::spawn({
            let (cluster, sent, is_over) = (Arc::clone(&cluster), Arc::clone(&sent), Arc::clone(&is_over));
            async move { flood(&cluster, &sent, &is_over).await }
        });
        let flooded = others(&cluster, "with-flood").await;
        let meanwhile = sent.load(Ordering::Relaxed);
        is_over.store(true, Ordering::Relaxed);
        let (taken, refused) = tokio::time::timeout(2 * LONGEST_WAIT, flooding).await.unwrap().unwrap();
        let (median, flooded_median) = (undisturbed[OTHERS / 2], flooded[OTHERS / 2]);
        let (worst, flooded_worst) = (undisturbed[OTHERS - 1], flooded[OTHERS - 1]);
        println!(
            "{kind:?}: median {median:?} undisturbed and {flooded_median:?} flooded, worst {worst:?} and {flooded_worst:?}; \
             {meanwhile} sent meanwhile, {taken} taken, {refused} refused; {before} MiB before, {} MiB after",
            resident()
        );
        assert_eq!(taken + refused, sent.load(Ordering::Relaxed));
        // Counted in messages, which does not depend on the load of the machine: the other instances progress while messages are sent.
        // If the flood blocked them they would never end, because the flood ends when they have ended.
        assert!(
            (1..40_000).contains(&meanwhile),
            "{kind:?}: {meanwhile} messages before the other instances had ended"
        );
        // In time: a turn of the flooded instance processes at most a full mailbox.
        let bound = 20 * median + Duration::from_secs(2);
        assert!(flooded_median < bound, "{kind:?}: {flooded_median:?} with the flood, {median:?} without");
        assert!(resident() < before + 100, "{kind:?}: {before} MiB before, {} MiB after", resident());
        cluster.end().await;
    }
}

/// A mailbox that is not read fills up to its limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_stopped_by_the_mailbox_limit() {
    let _alone = ALONE.lock().await;
    let cluster = Cluster::real(Kind::SqliteFile).await;
    cluster.begin("flooded", "Sinks", "").await;
    let (taken, refused) = flood(&cluster, &Arc::default(), &Arc::new(AtomicBool::new(true))).await;
    // The start waits too.
    assert_eq!(taken, MAILBOX - 1);
    assert_eq!(taken + refused, messages() / SENDERS * SENDERS);
    assert_eq!(cluster.client.get_queue_depths().await.unwrap().orchestrator_queue, MAILBOX);
    // Other instances accept messages.
    cluster.client.enqueue_event("another", "queue", "").await.unwrap();
    cluster.end().await;
}
