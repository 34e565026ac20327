//! Several processes on one file, and killed processes.

use crate::support::*;
use outlast_model::WorkItem;
use outlast_provider::Provider;
use outlast_sqlite::SqliteProvider;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A child process of the test, whose output the test reads line by line.
pub(crate) struct Process {
    pub(crate) child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn start(test: &str, path: &Path, name: &str) -> Self {
        let mut command = child(test, path);
        let mut child =
            command.env("OUTLAST_TEST_NAME", name).stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn();
        let lines = BufReader::new(child.as_mut().unwrap().stdout.take().unwrap()).lines();
        Self { child: child.unwrap(), lines }
    }

    /// The rest of the next line that begins with the word; `None` at the end of the output.
    pub(crate) fn next(&mut self, word: &str) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix(word).map(str::to_string))
    }

    pub(crate) fn go(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
}

/// The name of this process, which prefixes the ids of its instances.
fn name() -> String {
    std::env::var("OUTLAST_TEST_NAME").unwrap()
}

/// The seconds for which both processes write at full load. `OUTLAST_TEST_SECONDS=10` sets the full length.
fn seconds() -> u64 {
    std::env::var("OUTLAST_TEST_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

/// Measures one call, and keeps the longest time in `worst`. An error fails the test.
async fn measured<T, E: std::fmt::Debug>(worst: &mut u64, call: impl Future<Output = Result<T, E>>) -> T {
    let (result, took) = timed(call).await;
    *worst = took.max(*worst);
    result.unwrap()
}

/// Starts, fetches and ends instances without a pause; returns the number of started instances, and the time of the longest call.
async fn full_load(provider: Arc<SqliteProvider>, until: Instant) -> (u64, u64) {
    let mut tasks = JoinSet::new();
    for task in 0..16 {
        let provider = Arc::clone(&provider);
        tasks.spawn(async move {
            let (mut started_here, mut worst) = (0, 0);
            while Instant::now() < until {
                let instance = format!("{}-{task}-{started_here}", name());
                measured(&mut worst, provider.enqueue_for_orchestrator(start(&instance), None)).await;
                started_here += 1;
                // The turn may belong to an instance of the other process.
                let fetch = provider.fetch_orchestration_item(LONG, NO_WAIT, None);
                if let Some((item, token, _)) = measured(&mut worst, fetch).await {
                    let events = vec![started(&item.instance), ended(&item.instance, 2)];
                    measured(&mut worst, ack(&*provider, &token, events, vec![], completed_metadata())).await;
                }
            }
            (started_here, worst)
        });
    }
    let done = tasks.join_all().await;
    (done.iter().map(|(n, _)| n).sum(), done.iter().map(|(_, worst)| *worst).max().unwrap_or(0))
}

#[test]
fn two_processes_at_full_load_share_one_file() {
    const TEST: &str = "processes::two_processes_at_full_load_share_one_file";
    if let Some(path) = role(TEST) {
        return Runtime::new().unwrap().block_on(async {
            let provider = Arc::new(open(&path).await);
            println!("\nREADY");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            let until = Instant::now() + Duration::from_secs(seconds());
            let (started, worst) = full_load(Arc::clone(&provider), until).await;
            println!("\nRESULT {} {started} {worst}", provider.stats().commits);
        });
    }
    let _alone = ALONE.blocking_lock();
    let (_folder, path) = fresh();
    let mut processes = ["a", "b"].map(|name| Process::start(TEST, &path, name));
    for process in &mut processes {
        process.next("READY").expect("the process opens the store");
    }
    processes.iter_mut().for_each(Process::go);
    let results = processes.each_mut().map(|process| {
        let result = process.next("RESULT ").expect("no call failed");
        assert!(process.child.wait().unwrap().success());
        let numbers: Vec<u64> = result.split(' ').map(|number| number.parse().unwrap()).collect();
        <[u64; 3]>::try_from(numbers).unwrap()
    });
    let commits = results.iter().map(|result| result[0]).sum::<u64>();
    for [own, started, worst] in results {
        let share = 100 * own / commits;
        println!("{share} % of {commits} commits, {started} instances started, longest call {worst} ms");
        assert!(share >= 25, "one process had {own} of {commits} commits");
        assert!(worst < 2_000, "a call took {worst} ms");
    }
    let instances = count(&path, "SELECT count(*) FROM instances");
    let waiting = count(&path, "SELECT count(*) FROM orchestrator_queue");
    let started: u64 = results.iter().map(|result| result[1]).sum();
    assert_eq!((instances + waiting) as u64, started, "every start is an instance or waits to be one");
    let check: String =
        crate::factory::raw(&path).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

const SHORT_LEASE: Duration = Duration::from_millis(300);

/// Holds a turn, and stores activities until the process is killed; prints each acknowledged instance.
async fn write_until_killed(path: &Path) {
    let provider = Arc::new(open(path).await);
    let held = format!("held-{}", name());
    provider.enqueue_for_orchestrator(start(&held), None).await.unwrap();
    let fetched = provider.fetch_orchestration_item(SHORT_LEASE, PATIENCE, None).await.unwrap();
    assert_eq!(fetched.expect("a turn").0.instance, held);
    println!("\nHELD");
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let provider = Arc::clone(&provider);
        tasks.spawn(async move {
            for n in 0.. {
                let instance = format!("{}-{task}-{n}", name());
                provider.enqueue_for_worker(activity(&instance, 1)).await.unwrap();
                println!("ACK {instance}");
            }
        });
    }
    tasks.join_all().await;
}

fn activities(path: &Path) -> BTreeSet<String> {
    let conn = crate::factory::raw(path);
    let mut statement = conn.prepare("SELECT work_item FROM worker_queue").unwrap();
    let texts = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    texts
        .map(|text| match outlast_model::json::decode_work_item(&text.unwrap()) {
            Ok(WorkItem::ActivityExecute { instance, .. }) => instance,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_killed_process_loses_no_acknowledged_write() {
    const TEST: &str = "processes::a_killed_process_loses_no_acknowledged_write";
    if let Some(path) = role(TEST) {
        return Runtime::new().unwrap().block_on(write_until_killed(&path));
    }
    let _alone = ALONE.blocking_lock();
    let (_folder, path) = fresh();
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut acknowledged = BTreeSet::new();
    for round in 0..10 {
        let mut process = Process::start(TEST, &path, &round.to_string());
        process.next("HELD").expect("the process holds a turn");
        for _ in 0..random.below(150) {
            acknowledged.insert(process.next("ACK ").expect("the process writes until it is killed"));
        }
        process.child.kill().unwrap();
        process.child.wait().unwrap();
        // The killed process may have printed more lines. It wrote each line at once, so no line is cut off.
        while let Some(instance) = process.next("ACK ") {
            acknowledged.insert(instance);
        }
        let found = activities(&path);
        let lost: Vec<_> = acknowledged.difference(&found).collect();
        assert!(lost.is_empty(), "round {round}: acknowledged activities are missing: {lost:?}");
        Runtime::new().unwrap().block_on(take_over(&path, round));
    }
    assert!(acknowledged.len() > 200, "only {} activities were acknowledged", acknowledged.len());
}

/// Asserts that the file is intact, and that a fetch gets the turn of the dead process after its lease has expired.
async fn take_over(path: &Path, round: u64) {
    let provider = open(path).await;
    assert_eq!(provider.integrity_check().await.unwrap(), [""; 0]);
    let ((item, token, attempt), took) = timed(turn(&provider)).await;
    assert_eq!((item.instance.as_str(), attempt), (format!("held-{round}").as_str(), 2));
    assert!(took < SHORT_LEASE.as_millis() as u64 + 2_000, "it took {took} ms");
    let events = vec![started(&item.instance), ended(&item.instance, 2)];
    ack(&provider, &token, events, vec![], completed_metadata()).await.unwrap();
}
