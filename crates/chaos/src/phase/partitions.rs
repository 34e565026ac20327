//! A network between the workers and the server that drops, delays or trickles bytes while every connection stays open.

use super::phase_run::{Clients, PhaseRun};
use crate::args::Run;
use crate::report::Report;
use crate::store::{COMMIT_BYTES, DEADLINE, Server};
use crate::worker::LEASE;
use outlast_chaos::proxy::{Disturbance, Flow, Scope};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

const WORKERS: usize = 3;
/// Commits of each worker before the first trial, and in every trial.
const ENOUGH: u64 = 5;
/// Time limit for the first commits, and for the next commit in a trial.
const TO_BEGIN: Duration = Duration::from_secs(30);
/// Time to reconnect and to fetch the next item after the deadline.
const TO_RECONNECT: Duration = Duration::from_secs(5);

/// The connections of a trial.
enum TrialTarget {
    /// The connection of the next commit.
    Lane,
    Connections(Scope),
}

struct Trial {
    name: &'static str,
    target: TrialTarget,
    disturbance: Disturbance,
}

const SWALLOW: Flow = Flow::Swallow;
const DELAY: Flow = Flow::Delay(Duration::from_millis(50));
const TRICKLE: Flow = Flow::Trickle { bytes: 256, pause: Duration::from_millis(2) };

const TRIALS: [Trial; 9] = [
    Trial { name: "lane_swallowed", target: TrialTarget::Lane, disturbance: Disturbance::both(SWALLOW) },
    Trial {
        name: "lane_requests_swallowed",
        target: TrialTarget::Lane,
        disturbance: Disturbance::requests(SWALLOW),
    },
    Trial {
        name: "lane_answers_swallowed",
        target: TrialTarget::Lane,
        disturbance: Disturbance::answers(SWALLOW),
    },
    Trial {
        name: "all_swallowed",
        target: TrialTarget::Connections(Scope::Open),
        disturbance: Disturbance::both(SWALLOW),
    },
    Trial {
        name: "all_requests_swallowed",
        target: TrialTarget::Connections(Scope::Open),
        disturbance: Disturbance::requests(SWALLOW),
    },
    Trial {
        name: "all_answers_swallowed",
        target: TrialTarget::Connections(Scope::Open),
        disturbance: Disturbance::answers(SWALLOW),
    },
    Trial {
        name: "listeners_swallowed",
        target: TrialTarget::Connections(Scope::Listeners),
        disturbance: Disturbance::both(SWALLOW),
    },
    Trial {
        name: "delayed",
        target: TrialTarget::Connections(Scope::All),
        disturbance: Disturbance::both(DELAY),
    },
    Trial {
        name: "trickled",
        target: TrialTarget::Connections(Scope::All),
        disturbance: Disturbance::both(TRICKLE),
    },
];

pub(super) async fn run(run: &Run, folder: PathBuf, report: &mut Report) -> Result<(), String> {
    let clients = Clients { in_flight: run.in_flight, ballast: 0, lease: LEASE };
    let mut phase_run = PhaseRun::open(run, folder.clone(), folder, clients).await?;
    for _ in 0..WORKERS {
        phase_run.pool.add(&[])?;
    }
    let nothing = BTreeMap::new();
    let began = phase_run.wait_until(TO_BEGIN, |phase_run| every_worker_committed(phase_run, &nothing)).await;
    report
        .require("the phase started", began, || format!("commits by worker: {:?}", phase_run.pool.stored()));
    for trial in &TRIALS {
        let result = trial.run(&phase_run).await?;
        println!(
            "  {:>5} ms until every worker committed again: {} ({})",
            result.took.as_millis(),
            trial.name,
            result.count
        );
        report.figure(&format!("partition_{}_connections", trial.name), result.count);
        report.figure(
            &format!("partition_{}_milliseconds", trial.name),
            u64::try_from(result.took.as_millis()).unwrap_or(u64::MAX),
        );
        report.require(
            &format!("commits continue in time: {}", trial.name),
            result.problem.is_none(),
            || result.problem.unwrap_or_default(),
        );
    }
    let server = server(&phase_run)?;
    report.figure("partition_connections_disturbed", server.proxy().disturbed());
    report.figure("partition_connections_given_up", server.proxy().abandoned());
    report.figure("partition_bytes_swallowed", server.proxy().swallowed_bytes());
    phase_run.close("partitions_", report).await
}

fn server(phase_run: &PhaseRun) -> Result<&Server, String> {
    phase_run.server.as_ref().ok_or_else(|| "a store without a server has no network".to_string())
}

/// Whether every worker has made enough commits since `before`.
fn every_worker_committed(phase_run: &PhaseRun, before: &BTreeMap<String, u64>) -> bool {
    let went_on = |(name, stored): (&String, &u64)| *stored >= before.get(name).unwrap_or(&0) + ENOUGH;
    let stored = phase_run.pool.stored();
    !stored.is_empty() && stored.iter().all(went_on)
}

/// The result of a trial.
struct TrialResult {
    /// Number of disturbed connections.
    count: u64,
    took: Duration,
    problem: Option<String>,
}

impl Trial {
    async fn run(&self, phase_run: &PhaseRun) -> Result<TrialResult, String> {
        let proxy = server(phase_run)?.proxy();
        let (disturbed, given_up) = (proxy.disturbed(), proxy.abandoned());
        let mut problem = None;
        match self.target {
            TrialTarget::Lane => {
                proxy.disturb_at(self.disturbance, COMMIT_BYTES);
                if !phase_run.wait_until(TO_BEGIN, |_| proxy.disturbed() > disturbed).await {
                    problem = Some("no commit was made".to_string());
                }
            }
            TrialTarget::Connections(scope) => {
                // Workers commit before they listen again, so the trial waits for the first listener.
                if !phase_run.wait_until(TO_BEGIN, |_| proxy.disturb(scope, self.disturbance) > 0).await {
                    problem = Some("no connection was open".to_string());
                }
            }
        }
        let (began, before) = (Instant::now(), phase_run.pool.stored());
        let in_time = DEADLINE + TO_RECONNECT;
        // Other connections continue without this lane, so the lane itself must be given up.
        let is_given_up = || !matches!(self.target, TrialTarget::Lane) || proxy.abandoned() > given_up;
        if !phase_run
            .wait_until(in_time, |phase_run| is_given_up() && every_worker_committed(phase_run, &before))
            .await
        {
            let stored = phase_run.pool.stored();
            let more = format!("{in_time:?} after it, commits by worker are {stored:?}, and were {before:?}");
            problem.get_or_insert(if is_given_up() { more } else { "the lane was not given up".to_string() });
        }
        let took = began.elapsed();
        let count = proxy.disturbed() - disturbed;
        proxy.heal();
        Ok(TrialResult { count, took, problem })
    }
}
