//! The cases, their floors and their targets.

use crate::floor::{Batch, SOUND_1_PER_SECOND, SOUND_64_PER_SECOND};
use crate::measure::usage as cpu;
use crate::report::{Report, Row, median};
use crate::{floor, hello};
use outlast_provider::model::{Event, EventKind, WorkItem};
use outlast_provider::{ExecutionMetadata, FetchedTurn, Provider, TagFilter};
use outlast_sqlite::{SqliteOptions, SqliteProvider, SqliteStats};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Which cases to run, and how.
#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Runs fewer and smaller rounds
    #[arg(long)]
    quick: bool,
    /// Runs only these cases: hello64, hello1, timers, history, idle
    #[arg(long, value_name = "CASE,..", value_delimiter = ',', value_parser = CASES.map(|(name, _)| name))]
    only: Option<Vec<String>>,
    /// Also writes the rows as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

type Case = fn(&Plan, &mut Report);

const CASES: [(&str, Case); 5] =
    [("hello64", hello_64), ("hello1", hello_1), ("timers", timers), ("history", history), ("idle", idle)];

impl Plan {
    fn wants(&self, case: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == case))
    }

    fn rounds(&self) -> usize {
        if self.quick { 3 } else { 5 }
    }
}

/// Runs the cases; returns whether all targets were met.
pub(crate) fn run(plan: &Plan) -> bool {
    let mut report = Report::default();
    for (name, case) in CASES {
        if plan.wants(name) {
            case(plan, &mut report);
        }
    }
    let is_met = report.finish();
    if let Some(path) = &plan.json {
        std::fs::write(path, report.json()).unwrap();
    }
    is_met
}

/// A new folder in `OUTLAST_BENCH_DIR`, or in the usual place for temporary files.
pub(crate) fn folder() -> TempDir {
    match std::env::var_os("OUTLAST_BENCH_DIR") {
        Some(base) => tempfile::tempdir_in(base).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

async fn open(folder: &TempDir, name: &str) -> SqliteProvider {
    let url = format!("sqlite:{}", folder.path().join(name).display());
    SqliteProvider::new(&url, Some(SqliteOptions::default())).await.unwrap()
}

fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn per_second(time: Duration, count: usize) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn per_count(before: SqliteStats, after: SqliteStats, count: usize, figure: fn(&SqliteStats) -> u64) -> f64 {
    (figure(&after) - figure(&before)) as f64 / count as f64
}

/// 64 concurrent callers, compared with 64 steps per transaction.
fn hello_64(plan: &Plan, report: &mut Report) {
    let cycles = if plan.quick { 4_000 } else { 12_000 };
    let (mut ours, mut floors, mut statements, mut syncs) = (vec![], vec![], vec![], vec![]);
    let (mut writer_us, mut callers_us, mut bytes) = (vec![], vec![], vec![]);
    let is_writer = |name: &str| name == "outlast-writer";
    for _ in 0..plan.rounds() {
        let folder = folder();
        let (per_cycle, _) = floor::run(folder.path(), cycles, Batch::Steps(64), "FULL");
        floors.push(1.0 / per_cycle.as_secs_f64());
        one_thread().block_on(async {
            let store = Arc::new(open(&folder, "ours.db").await);
            hello::many_callers(&store, 0..200).await;
            let before = store.stats();
            let cpu = (cpu::used_by(is_writer), cpu::used());
            let written = cpu::bytes_written();
            let begun = Instant::now();
            hello::many_callers(&store, 200..200 + cycles).await;
            ours.push(per_second(begun.elapsed(), cycles));
            bytes.push((cpu::bytes_written() - written) as f64 / 1e3 / cycles as f64);
            let writer = cpu::used_by(is_writer) - cpu.0;
            writer_us.push(writer.as_secs_f64() * 1e6 / cycles as f64);
            callers_us.push((cpu::used() - cpu.1 - writer).as_secs_f64() * 1e6 / cycles as f64);
            let after = store.stats();
            statements.push(per_count(before, after, cycles, |stats| stats.statements));
            syncs.push(per_count(before, after, cycles, |stats| stats.commits));
        });
    }
    let floor = report.row(Row::new("hello64", "floor-64, by hand", "cycles/s", floors));
    let ours = report.row(Row::new("hello64", "outlast, 64 callers", "cycles/s", ours));
    let statements = report.row(Row::new("hello64", "statements per cycle", "", statements));
    report.row(Row::new("hello64", "commits per cycle", "", syncs));
    report.row(Row::new("hello64", "written per cycle", "kB", bytes));
    report.row(Row::new("hello64", "processor time per cycle, writer", "us", writer_us));
    report.row(Row::new("hello64", "processor time per cycle, callers", "us", callers_us));
    let share = ours / floor * 100.0;
    report.target("64 callers: at least 40 % of floor-64", format!("{share:.1} %"), share >= 40.0);
    report.target("at most 22 statements per cycle", format!("{statements:.2}"), statements <= 22.0);
    let sound = floor >= SOUND_64_PER_SECOND;
    report.target(
        format!("floor-64 sound (at least {SOUND_64_PER_SECOND}/s)"),
        format!("{floor:.0}/s"),
        sound,
    );
}

/// One caller, compared with one step per transaction.
fn hello_1(plan: &Plan, report: &mut Report) {
    let cycles = if plan.quick { 300 } else { 1_000 };
    let (mut ours, mut fused, mut floors) = (vec![], vec![], vec![]);
    let (mut syncs, mut fused_syncs) = (vec![], vec![]);
    for _ in 0..plan.rounds() {
        let folder = folder();
        let (per_cycle, _) = floor::run(folder.path(), cycles, Batch::Steps(1), "FULL");
        floors.push(1.0 / per_cycle.as_secs_f64());
        one_thread().block_on(async {
            let store = open(&folder, "ours.db").await;
            let before = store.stats();
            let begun = Instant::now();
            for n in 0..cycles {
                hello::one_caller(&store, &format!("hello-{n:06}")).await;
            }
            ours.push(per_second(begun.elapsed(), cycles));
            let between = store.stats();
            let begun = Instant::now();
            for n in 0..cycles {
                hello::with_waiting_fetches(&store, &format!("fused-{n:06}")).await;
            }
            fused.push(per_second(begun.elapsed(), cycles));
            syncs.push(per_count(before, between, cycles, |stats| stats.commits));
            fused_syncs.push(per_count(between, store.stats(), cycles, |stats| stats.commits));
        });
    }
    let floor = report.row(Row::new("hello1", "floor-1, by hand", "cycles/s", floors));
    let ours = report.row(Row::new("hello1", "outlast, 1 caller", "cycles/s", ours));
    report.row(Row::new("hello1", "syncs per cycle", "", syncs));
    report.row(Row::new("hello1", "outlast, 1 caller, fetches waiting", "cycles/s", fused));
    let fused_syncs = report.row(Row::new("hello1", "syncs per cycle, fetches waiting", "", fused_syncs));
    let share = ours / floor * 100.0;
    report.target("1 caller: at least 70 % of floor-1", format!("{share:.1} %"), share >= 70.0);
    report.target("fetches waiting: 4 syncs per cycle", format!("{fused_syncs:.2}"), fused_syncs <= 4.0);
    let sound = floor >= SOUND_1_PER_SECOND;
    report.target(format!("floor-1 sound (at least {SOUND_1_PER_SECOND}/s)"), format!("{floor:.0}/s"), sound);
}

/// A fetch in a store with 10,000 timers, compared with a fetch in an empty store.
fn timers(plan: &Plan, report: &mut Report) {
    let calls = if plan.quick { 2_000 } else { 20_000 };
    let folder = folder();
    one_thread().block_on(async {
        let empty = open(&folder, "empty.db").await;
        let full = open(&folder, "full.db").await;
        for n in 0..10_000_u64 {
            let timer = WorkItem::TimerFired {
                instance: format!("asleep-{n:06}"),
                execution_id: 1,
                id: 2,
                fire_at_ms: u64::MAX / 4,
            };
            full.enqueue_for_orchestrator(timer, None).await.unwrap();
        }
        for store in [&empty, &full] {
            hello::one_caller(store, "warm").await;
        }
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for n in 0..calls {
            for (store, times) in [(&empty, &mut without), (&full, &mut with)] {
                times.push(timed_fetch(store, "warm", n as u64 + 5).await);
            }
        }
        let base =
            report.row(Row::new("timers", "fetch, empty store", "us (median)", vec![median(&without)]));
        let found = report.row(Row::new(
            "timers",
            "fetch, 10,000 timers waiting",
            "us (median)",
            vec![median(&with)],
        ));
        let ratio = found / base;
        report.target("10,000 timers: fetch within 1.2 x", format!("{ratio:.3} x"), ratio <= 1.2);
    });
}

/// Sends a message to an instance, measures the fetch of its turn, and commits the turn.
async fn timed_fetch(store: &SqliteProvider, instance: &str, event_id: u64) -> f64 {
    let message =
        WorkItem::QueueMessage { instance: instance.to_string(), name: "q".into(), data: "d".into() };
    store.enqueue_for_orchestrator(message, None).await.unwrap();
    let begun = Instant::now();
    let turn = store.fetch_turn(hello::turn_request(Duration::ZERO)).await.unwrap().unwrap();
    let took = begun.elapsed();
    append(store, &turn, event_id).await;
    took.as_secs_f64() * 1e6
}

async fn append(store: &SqliteProvider, turn: &FetchedTurn, event_id: u64) {
    let kind = EventKind::QueueEventDelivered { name: "q".to_string(), data: "d".to_string() };
    let event = Event::with_event_id(event_id, &turn.item.instance, 1, None, kind);
    let metadata = ExecutionMetadata::default();
    store
        .ack_orchestration_item(&turn.lock_token, 1, vec![event], vec![], vec![], metadata, vec![])
        .await
        .unwrap();
}

/// A warm fetch of an instance with a long history, compared with a short one.
fn history(plan: &Plan, report: &mut Report) {
    let calls = if plan.quick { 1_000 } else { 5_000 };
    let folder = folder();
    one_thread().block_on(async {
        let store = open(&folder, "history.db").await;
        for (instance, length) in [("short", 10_u64), ("long", 10_000)] {
            hello::one_caller(&store, instance).await;
            let kind = || EventKind::QueueEventDelivered { name: "q".to_string(), data: "d".to_string() };
            let events = (5..=length).map(|id| Event::with_event_id(id, instance, 1, None, kind())).collect();
            store.append_with_execution(instance, 1, events).await.unwrap();
        }
        let before = store.stats();
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for n in 0..calls {
            short.push(timed_fetch(&store, "short", 100_000 + n as u64).await);
            long.push(timed_fetch(&store, "long", 100_000 + n as u64).await);
        }
        let rows = store.stats().history_rows_read - before.history_rows_read;
        let base =
            report.row(Row::new("history", "warm fetch, 10 events", "us (median)", vec![median(&short)]));
        let found =
            report.row(Row::new("history", "warm fetch, 10,000 events", "us (median)", vec![median(&long)]));
        let ratio = found / base;
        report.target("history of 10,000: warm fetch within 1.2 x", format!("{ratio:.3} x"), ratio <= 1.2);
        report.target("warm fetches read no history", format!("{rows} rows"), rows == 0);
    });
}

/// Processor time while fetches wait and no message arrives.
fn idle(plan: &Plan, report: &mut Report) {
    let seconds = if plan.quick { 5 } else { 20 };
    let folder = folder();
    one_thread().block_on(async {
        let store = open(&folder, "idle.db").await;
        hello::one_caller(&store, "once").await;
        let patience = Duration::from_secs(seconds);
        let before = cpu::used();
        let begun = Instant::now();
        let (turn, work) = tokio::join!(
            store.fetch_turn(hello::turn_request(patience)),
            store.fetch_work_item(patience, patience, None, &TagFilter::DefaultOnly)
        );
        assert!(turn.unwrap().is_none() && work.unwrap().is_none());
        let share = (cpu::used() - before).as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0;
        let share = report.row(Row::new(
            "idle",
            "waiting for work, other processes watched",
            "% of a core",
            vec![share],
        ));
        report.target("idle: below 0.3 % of a core", format!("{share:.3} %"), share < 0.3);
    });
}
