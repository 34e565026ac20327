//! A network between the workers and the server of their store that swallows, delays or trickles what is sent, while every
//! connection stays open.

use super::scene::{Clients, Scene};
use crate::args::Run;
use crate::report::Report;
use crate::store::{COMMIT_BYTES, DEADLINE, Server};
use crate::worker::LEASE;
use outlast_chaos::proxy::{Disturbance, Flow, Whom};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

const WORKERS: usize = 3;
/// Commits that each worker makes before the first trial, and then in every trial.
const ENOUGH: u64 = 5;
/// For the first commits, and for a commit to come by.
const TO_BEGIN: Duration = Duration::from_secs(30);
/// Beyond the deadline: time to connect again and to get something to do.
const TO_RECONNECT: Duration = Duration::from_secs(5);

/// The connections that a trial is about.
enum Aim {
    /// One, from its next commit on.
    Lane,
    Connections(Whom),
}

struct Trial {
    name: &'static str,
    aim: Aim,
    disturbance: Disturbance,
}

const SWALLOW: Flow = Flow::Swallow;
const DELAY: Flow = Flow::Delay(Duration::from_millis(50));
const TRICKLE: Flow = Flow::Trickle { bytes: 256, pause: Duration::from_millis(2) };

const TRIALS: [Trial; 9] = [
    Trial { name: "lane_swallowed", aim: Aim::Lane, disturbance: Disturbance::both(SWALLOW) },
    Trial { name: "lane_requests_swallowed", aim: Aim::Lane, disturbance: Disturbance::requests(SWALLOW) },
    Trial { name: "lane_answers_swallowed", aim: Aim::Lane, disturbance: Disturbance::answers(SWALLOW) },
    Trial {
        name: "all_swallowed",
        aim: Aim::Connections(Whom::Open),
        disturbance: Disturbance::both(SWALLOW),
    },
    Trial {
        name: "all_requests_swallowed",
        aim: Aim::Connections(Whom::Open),
        disturbance: Disturbance::requests(SWALLOW),
    },
    Trial {
        name: "all_answers_swallowed",
        aim: Aim::Connections(Whom::Open),
        disturbance: Disturbance::answers(SWALLOW),
    },
    Trial {
        name: "listeners_swallowed",
        aim: Aim::Connections(Whom::Listeners),
        disturbance: Disturbance::both(SWALLOW),
    },
    Trial { name: "delayed", aim: Aim::Connections(Whom::All), disturbance: Disturbance::both(DELAY) },
    Trial { name: "trickled", aim: Aim::Connections(Whom::All), disturbance: Disturbance::both(TRICKLE) },
];

pub(super) async fn run(run: &Run, folder: PathBuf, report: &mut Report) -> Result<(), String> {
    let clients = Clients { in_flight: run.in_flight, ballast: 0, lease: LEASE };
    let mut scene = Scene::open(run, folder.clone(), folder, clients).await?;
    for _ in 0..WORKERS {
        scene.fleet.add(&[])?;
    }
    let nothing = BTreeMap::new();
    let began = scene.until(TO_BEGIN, |scene| each_went_on(scene, &nothing)).await;
    report.require("the phase began", began, || format!("commits by worker: {:?}", scene.fleet.stored()));
    for trial in &TRIALS {
        let tried = trial.run(&scene).await?;
        println!(
            "  {:>5} ms until every worker went on: {} ({})",
            tried.took.as_millis(),
            trial.name,
            tried.count
        );
        report.figure(&format!("partition_{}_connections", trial.name), tried.count);
        report.figure(
            &format!("partition_{}_milliseconds", trial.name),
            u64::try_from(tried.took.as_millis()).unwrap_or(u64::MAX),
        );
        report.require(&format!("work goes on in time: {}", trial.name), tried.problem.is_none(), || {
            tried.problem.unwrap_or_default()
        });
    }
    let server = server(&scene)?;
    report.figure("partition_connections_disturbed", server.proxy().disturbed());
    report.figure("partition_connections_given_up", server.proxy().abandoned());
    report.figure("partition_bytes_swallowed", server.proxy().swallowed_bytes());
    scene.close("partitions_", report).await
}

fn server(scene: &Scene) -> Result<&Server, String> {
    scene.server.as_ref().ok_or_else(|| "a store without a server has no network".to_string())
}

/// Whether every worker has made enough commits since it had made this many.
fn each_went_on(scene: &Scene, before: &BTreeMap<String, u64>) -> bool {
    let went_on = |(name, stored): (&String, &u64)| *stored >= before.get(name).unwrap_or(&0) + ENOUGH;
    let stored = scene.fleet.stored();
    !stored.is_empty() && stored.iter().all(went_on)
}

/// How a trial went.
struct Tried {
    /// Connections that were disturbed.
    count: u64,
    took: Duration,
    problem: Option<String>,
}

impl Trial {
    async fn run(&self, scene: &Scene) -> Result<Tried, String> {
        let proxy = server(scene)?.proxy();
        let (disturbed, given_up) = (proxy.disturbed(), proxy.abandoned());
        let mut problem = None;
        match self.aim {
            Aim::Lane => {
                proxy.aim_disturbance(self.disturbance, COMMIT_BYTES);
                if !scene.until(TO_BEGIN, |_| proxy.disturbed() > disturbed).await {
                    problem = Some("no commit came by".to_string());
                }
            }
            Aim::Connections(whom) => {
                if proxy.disturb(whom, self.disturbance) == 0 {
                    problem = Some("no connection was open".to_string());
                }
            }
        }
        let (began, before) = (Instant::now(), scene.fleet.stored());
        let in_time = DEADLINE + TO_RECONNECT;
        // The others go on without the lane, so it is looked for itself.
        let is_given_up = || !matches!(self.aim, Aim::Lane) || proxy.abandoned() > given_up;
        if !scene.until(in_time, |scene| is_given_up() && each_went_on(scene, &before)).await {
            let stored = scene.fleet.stored();
            let more = format!("{in_time:?} after it, commits by worker are {stored:?}, and were {before:?}");
            problem.get_or_insert(if is_given_up() { more } else { "the lane was not given up".to_string() });
        }
        let took = began.elapsed();
        let count = proxy.disturbed() - disturbed;
        proxy.heal();
        Ok(Tried { count, took, problem })
    }
}
