//! A node: the shipped runtime, crashed, shut down, stalled and started again.

use crate::call::is_about_a_lock;
use crate::clock::SkewedClock;
use crate::fault::Fault;
use crate::life::Life;
use crate::plan::UNTIL_HEALED;
use crate::program;
use crate::shared::Shared;
use crate::store::FaultyStore;
use outlast_provider::Clock;
use outlast_runtime::{OnMisfit, Runtime};
use outlast_testing::poll_gate::PollGate;
use std::sync::Arc;
use std::time::Duration;

/// The end of a life.
enum LifeEnd {
    /// All tasks are dropped, and no lease is given back.
    Crash,
    /// The runtime shuts down and has this long, in milliseconds.
    Shutdown(u64),
}

/// One node through all its lives.
struct Process {
    shared: Arc<Shared>,
    node: usize,
    name: String,
    clock: Arc<SkewedClock>,
}

/// Runs a node until the world is torn down.
pub(crate) async fn run(shared: Arc<Shared>, node: usize) {
    let clock = SkewedClock::new(&shared.true_clock, shared.plan.skew_ms(node));
    let process = Process { name: format!("node{node}"), clock, node, shared };
    for life in 0.. {
        process.live(life).await;
        process.stay_down().await;
    }
}

impl Process {
    async fn live(&self, life: u64) {
        let shared = &self.shared;
        let opened = shared.backend.open_for(&format!("{} life {life}", self.name)).await;
        let store = match opened {
            Ok(store) => store,
            Err(error) => {
                let reason = shared.backend.without_folder(&error);
                if is_about_a_lock(&reason) {
                    shared.fail(format!(
                        "B1: {} needs the lock that another process holds, to open the store: {reason}",
                        self.name
                    ));
                }
                return shared.note(&self.name, &format!("cannot open the store: {reason}"));
            }
        };
        shared.tally().busy_openings += u64::from(shared.backend.is_busy());
        let gate = Arc::new(PollGate::new(self.last_poll(life)));
        if let Some(probe) = &shared.plan.probe {
            probe.life_begins(self.node, life, &gate);
        }
        // Old and broken builds end when the world is healed. Until then an old node may fetch a turn whose version it does
        // not have.
        let is_old = shared.plan.old_builds && self.node > 0 && shared.has_faults();
        if is_old {
            shared.tally().happened(Fault::OldBuild);
        }
        let is_broken = shared.plan.is_broken(self.node, life) && shared.has_faults();
        let mut options = shared.plan.options(self.node, life, Arc::clone(&self.clock) as Arc<dyn Clock>);
        if !shared.plan.misfits.is_empty() {
            options.on_misfit = OnMisfit::Park;
            options.build_id = if is_broken { "broken" } else { "whole" }.to_string();
        }
        options.pulse = Some(Arc::<PollGate>::clone(&gate) as _);
        let store = FaultyStore::for_node(shared, self.node, store, is_old);
        let runtime = Runtime::start_with_options(
            Arc::<FaultyStore>::clone(&store),
            program::activities(shared),
            match is_broken {
                true => program::broken_orchestrations(&shared.plan.misfits),
                false => program::orchestrations(is_old),
            },
            options,
        )
        .await;
        shared.note(&self.name, if is_broken { "up with a broken build" } else { "up" });
        let process = Life::new(store);
        shared.lives.begin(self.node, &process);
        match self.end_of_life(&gate, is_old || is_broken).await {
            LifeEnd::Crash => self.crash(&process, runtime).await,
            LifeEnd::Shutdown(grace_ms) => self.shut_down(&gate, &process, runtime, grace_ms).await,
        }
        process.end();
        shared.lives.end(self.node);
        drop(process);
        shared.backend.process_ended();
        shared.note(&self.name, &format!("down after {} polls", gate.polls()));
    }

    /// The poll at which this life ends with a crash; `None` if no poll ends it.
    fn last_poll(&self, life: u64) -> Option<u64> {
        if let Some(probe) = &self.shared.plan.probe {
            return probe.last_poll(self.node, life);
        }
        let mean = self
            .shared
            .plan
            .process_fault_means_ms
            .get(&Fault::CrashAtPoll)
            .filter(|_| self.shared.has_faults())?;
        Some(self.shared.rng().below(*mean))
    }

    async fn stay_down(&self) {
        let shared = &self.shared;
        let downtime = match shared.plan.downtime_ms {
            UNTIL_HEALED => UNTIL_HEALED / 1_000_000,
            most => shared.rng().below(most),
        };
        tokio::select! {
            biased;
            () = shared.healing() => {}
            () = tokio::time::sleep(Duration::from_millis(downtime)) => {}
        }
    }

    async fn end_of_life(&self, gate: &PollGate, ends_with_faults: bool) -> LifeEnd {
        let shared = &self.shared;
        let mut crash = self.next_time_of(Fault::Crash);
        let mut shutdown = self.next_time_of(Fault::Shutdown);
        let mut stall = self.next_time_of(Fault::Stalled);
        let mut jump_clock = self.next_time_of(Fault::ClockJump);
        loop {
            let is_healed = !shared.has_faults();
            if is_healed && ends_with_faults {
                return LifeEnd::Shutdown(1_000);
            }
            tokio::select! {
                biased;
                () = shared.kill[self.node].notified() => return LifeEnd::Crash,
                () = gate.reached_last_poll.notified() => {
                    shared.tally().happened(Fault::CrashAtPoll);
                    return LifeEnd::Crash;
                }
                // A crash of a call may still arrive. After that the node runs until the world is torn down.
                () = shared.healing(), if !is_healed => {}
                () = sleep_until(shared, &mut crash), if !is_healed => {
                    shared.tally().happened(Fault::Crash);
                    return LifeEnd::Crash;
                }
                () = sleep_until(shared, &mut shutdown), if !is_healed => {
                    shared.tally().happened(Fault::Shutdown);
                    return LifeEnd::Shutdown(shared.rng().pick(&[1, 50, 1_000, 5_000, 10_000]));
                }
                () = sleep_until(shared, &mut stall), if !is_healed => {
                    self.stall(gate).await;
                    stall = self.next_time_of(Fault::Stalled);
                }
                () = sleep_until(shared, &mut jump_clock), if !is_healed => {
                    self.jump_clock();
                    jump_clock = self.next_time_of(Fault::ClockJump);
                }
            }
        }
    }

    /// Draws the time of the next fault of this kind.
    fn next_time_of(&self, fault: Fault) -> Option<u64> {
        let mean = self.shared.plan.process_fault_means_ms.get(&fault)?;
        Some(self.shared.now_ms() + self.shared.rng().below(2 * mean))
    }

    async fn stall(&self, gate: &PollGate) {
        let shared = &self.shared;
        let ms = shared.draw_stall_ms();
        shared.note(&self.name, &format!("stalled for {ms} ms"));
        shared.tally().happened(Fault::Stalled);
        shared.disturb(self.node);
        gate.stall();
        tokio::select! {
            biased;
            () = shared.healing() => {}
            () = tokio::time::sleep(Duration::from_millis(ms)) => {}
        }
        shared.disturb(self.node);
        gate.resume();
    }

    fn jump_clock(&self) {
        const HOUR_MS: u64 = 3_600_000;
        let shared = &self.shared;
        let ms = i64::try_from(shared.rng().below(2 * HOUR_MS)).unwrap_or(0);
        let ms = ms - i64::try_from(HOUR_MS).unwrap_or(0);
        shared.note(&self.name, &format!("its clock jumps by {ms} ms"));
        shared.tally().happened(Fault::ClockJump);
        self.clock.jump(ms);
    }

    async fn crash(&self, process: &Life, runtime: Arc<Runtime>) {
        process.end();
        self.shared.note(&self.name, "crash");
        self.shared.disturb(self.node);
        runtime.shutdown(Some(0)).await;
        if self.shared.plan.takes_over && self.shared.has_faults() {
            self.shared.tally().happened(Fault::Takeover);
            for token in take_for_dead(&self.shared, self.node).await {
                let mut performed = self.shared.performed();
                performed.turns.remove(&token);
                performed.leases.given_back(&token);
            }
        }
    }

    /// Shuts the runtime down; a crash may interrupt the shutdown.
    async fn shut_down(&self, gate: &PollGate, process: &Life, runtime: Arc<Runtime>, grace_ms: u64) {
        let (shared, name) = (&self.shared, &self.name);
        shared.note(name, &format!("shutdown within {grace_ms} ms"));
        shared.drain(self.node, true);
        let began = shared.now_ms();
        let grace = async {
            tokio::time::sleep(Duration::from_millis(grace_ms)).await;
            // Turns and activities that are aborted now are delivered again.
            shared.disturb(self.node);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = shared.kill[self.node].notified() => self.crash(process, Arc::clone(&runtime)).await,
            () = gate.reached_last_poll.notified() => {
                shared.tally().happened(Fault::CrashAtPoll);
                self.crash(process, Arc::clone(&runtime)).await;
            }
            () = Arc::clone(&runtime).shutdown(Some(grace_ms)) => {
                let took = shared.now_ms() - began;
                // A shutdown takes at most the grace period and as long again to give leases back.
                if took > 2 * grace_ms + LEEWAY_MS {
                    shared.fail(format!("S1: {name} took {took} ms to shut down within {grace_ms} ms"));
                }
            }
            () = grace => {}
        }
        shared.disturb(self.node);
        shared.drain(self.node, false);
    }
}

/// Ends the leases of a node that another process regards as dead, and counts the deliveries. Returns the tokens of the ended leases.
async fn take_for_dead(shared: &Shared, node: usize) -> Vec<String> {
    let (mut ended, outside) = (Vec::new(), shared.backend.outside());
    let tokens = shared.performed().leases.of_node(node);
    for token in tokens {
        let is_turn = shared.performed().turns.contains_key(&token);
        // Until the caller knows the answers to all these calls, another node may have leased the item.
        shared.performed().leases.in_flight(&token, true);
        let abandoned = match is_turn {
            true => outside.abandon_orchestration_item(&token, None, false).await,
            false => outside.abandon_work_item(&token, None, false).await,
        };
        match abandoned {
            Ok(()) => ended.push(token),
            Err(_) if shared.backend.may_hide_commits() => shared.performed().leases.mark_in_doubt(&token),
            Err(_) => shared.performed().leases.in_flight(&token, false),
        }
    }
    ended
}

/// The defect [`Bug::LivingTakenForDead`]: the leases of nodes end at random times.
pub(crate) async fn take_living_for_dead(shared: Arc<Shared>) {
    while shared.has_faults() {
        let (pause, node) = {
            let mut rng = shared.rng();
            (rng.between(100, 1_000), rng.below(shared.plan.nodes as u64))
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        take_for_dead(&shared, usize::try_from(node).unwrap_or(0)).await;
    }
}

/// Sleeps until that time; without a time, never returns.
async fn sleep_until(shared: &Shared, at_ms: &mut Option<u64>) {
    match at_ms {
        Some(at) => tokio::time::sleep(Duration::from_millis(at.saturating_sub(shared.now_ms()))).await,
        None => std::future::pending().await,
    }
}

/// Tolerance for the resolution of timers.
const LEEWAY_MS: u64 = 20;
