//! A process: the shipped runtime, killed, stopped, stalled and started again.

use crate::clock::OffClock;
use crate::fault::Fault;
use crate::heart::Heart;
use crate::plan::FOR_EVER;
use crate::program;
use crate::shared::Shared;
use crate::store::FaultyStore;
use outlast_provider::Clock;
use outlast_runtime::Runtime;
use std::sync::Arc;
use std::time::Duration;

/// Why a life ends.
enum End {
    /// Everything is dropped, nothing is handed back.
    Crash,
    /// It is asked to stop, and has this long.
    Shutdown(u64),
}

/// One process, through all its lives.
struct Process {
    shared: Arc<Shared>,
    node: usize,
    name: String,
    clock: Arc<OffClock>,
}

/// Lives until the world is over.
pub(crate) async fn run(shared: Arc<Shared>, node: usize) {
    let clock = OffClock::new(&shared.truth, shared.plan.skew_ms(node));
    let process = Process { name: format!("node{node}"), clock, node, shared };
    for life in 0.. {
        process.live(life).await;
        process.rest().await;
    }
}

impl Process {
    async fn live(&self, life: u64) {
        let shared = &self.shared;
        let heart = Arc::new(Heart::new(self.last_beat(life)));
        if let Some(aim) = &shared.plan.aim {
            aim.begins(self.node, life, &heart);
        }
        // A rolling update comes to its end, too: until then old builds may take what they do not know from under a new one.
        let is_old = shared.plan.old_builds && self.node > 0 && shared.is_faulty();
        if is_old {
            shared.tally().happened(Fault::OldBuild);
        }
        let mut options = shared.plan.options(self.node, life, Arc::clone(&self.clock) as Arc<dyn Clock>);
        options.pulse = Some(Arc::<Heart>::clone(&heart) as _);
        let runtime = Runtime::start_with_options(
            FaultyStore::for_node(shared, self.node, is_old),
            program::activities(shared),
            program::orchestrations(is_old),
            options,
        )
        .await;
        shared.note(&self.name, "up");
        match self.end_of_life(&heart, is_old).await {
            End::Crash => self.crash(runtime).await,
            End::Shutdown(grace_ms) => self.stop(&heart, runtime, grace_ms).await,
        }
        shared.note(&self.name, &format!("down after {} polls", heart.beats()));
    }

    /// The poll that it dies at, if it shall.
    fn last_beat(&self, life: u64) -> Option<u64> {
        if let Some(aim) = &self.shared.plan.aim {
            return aim.last_beat(self.node, life);
        }
        let mean = self.shared.plan.every_ms.get(&Fault::CrashAtPoll).filter(|_| self.shared.is_faulty())?;
        Some(self.shared.dice().below(*mean))
    }

    async fn rest(&self) {
        let shared = &self.shared;
        let downtime = match shared.plan.downtime_ms {
            FOR_EVER => FOR_EVER / 1_000_000,
            most => shared.dice().below(most),
        };
        tokio::select! {
            biased;
            () = shared.healing() => {}
            () = tokio::time::sleep(Duration::from_millis(downtime)) => {}
        }
    }

    async fn end_of_life(&self, heart: &Heart, is_old: bool) -> End {
        let shared = &self.shared;
        let mut crash = self.after(Fault::Crash);
        let mut shutdown = self.after(Fault::Shutdown);
        let mut stall = self.after(Fault::Stalled);
        let mut jump = self.after(Fault::ClockJump);
        loop {
            let is_healed = !shared.is_faulty();
            if is_healed && is_old {
                return End::Shutdown(1_000);
            }
            tokio::select! {
                biased;
                () = shared.kill[self.node].notified() => return End::Crash,
                () = heart.stopped.notified() => {
                    shared.tally().happened(Fault::CrashAtPoll);
                    return End::Crash;
                }
                // A kill may be on its way still. After that it lives for ever.
                () = shared.healing(), if !is_healed => {}
                () = until(shared, &mut crash), if !is_healed => {
                    shared.tally().happened(Fault::Crash);
                    return End::Crash;
                }
                () = until(shared, &mut shutdown), if !is_healed => {
                    shared.tally().happened(Fault::Shutdown);
                    return End::Shutdown(shared.dice().pick(&[1, 50, 1_000, 5_000, 10_000]));
                }
                () = until(shared, &mut stall), if !is_healed => {
                    self.stall(heart).await;
                    stall = self.after(Fault::Stalled);
                }
                () = until(shared, &mut jump), if !is_healed => {
                    self.jump();
                    jump = self.after(Fault::ClockJump);
                }
            }
        }
    }

    /// When something befalls this process next.
    fn after(&self, fault: Fault) -> Option<u64> {
        let mean = self.shared.plan.every_ms.get(&fault)?;
        Some(self.shared.now_ms() + self.shared.dice().below(2 * mean))
    }

    async fn stall(&self, heart: &Heart) {
        let shared = &self.shared;
        let ms = shared.draw_stall_ms();
        shared.note(&self.name, &format!("stalled for {ms} ms"));
        shared.tally().happened(Fault::Stalled);
        shared.trouble(self.node);
        heart.stall();
        tokio::select! {
            biased;
            () = shared.healing() => {}
            () = tokio::time::sleep(Duration::from_millis(ms)) => {}
        }
        shared.trouble(self.node);
        heart.go_on();
    }

    fn jump(&self) {
        const HOUR_MS: u64 = 3_600_000;
        let shared = &self.shared;
        let ms = i64::try_from(shared.dice().below(2 * HOUR_MS)).unwrap_or(0);
        let ms = ms - i64::try_from(HOUR_MS).unwrap_or(0);
        shared.note(&self.name, &format!("its clock jumps by {ms} ms"));
        shared.tally().happened(Fault::ClockJump);
        self.clock.jump(ms);
    }

    async fn crash(&self, runtime: Arc<Runtime>) {
        self.shared.note(&self.name, "crash");
        self.shared.trouble(self.node);
        runtime.shutdown(Some(0)).await;
    }

    /// An orderly stop, which a crash may cut short.
    async fn stop(&self, heart: &Heart, runtime: Arc<Runtime>, grace_ms: u64) {
        let (shared, name) = (&self.shared, &self.name);
        shared.note(name, &format!("shutdown within {grace_ms} ms"));
        shared.drain(self.node, true);
        let began = shared.now_ms();
        let grace = async {
            tokio::time::sleep(Duration::from_millis(grace_ms)).await;
            // What is cut off now may well be delivered again.
            shared.trouble(self.node);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = shared.kill[self.node].notified() => self.crash(Arc::clone(&runtime)).await,
            () = heart.stopped.notified() => {
                shared.tally().happened(Fault::CrashAtPoll);
                self.crash(Arc::clone(&runtime)).await;
            }
            () = Arc::clone(&runtime).shutdown(Some(grace_ms)) => {
                let took = shared.now_ms() - began;
                // The grace period, and as long again at most for giving back.
                if took > 2 * grace_ms + LEEWAY_MS {
                    shared.fail(format!("S1: {name} took {took} ms to shut down within {grace_ms} ms"));
                }
            }
            () = grace => {}
        }
        shared.trouble(self.node);
        shared.drain(self.node, false);
    }
}

/// Until that moment; for ever if there is none.
async fn until(shared: &Shared, at_ms: &mut Option<u64>) {
    match at_ms {
        Some(at) => tokio::time::sleep(Duration::from_millis(at.saturating_sub(shared.now_ms()))).await,
        None => std::future::pending().await,
    }
}

/// For what is not part of the promise: timers have a resolution.
const LEEWAY_MS: u64 = 20;
