//! The figures that the screen shows.

use crate::failure::Failure;
use outlast::ExecutionStatus;
use outlast::client::Client;
use outlast::providers::{Clock, HeldCounts, InstanceQuery, StoreGauges, SystemClock, SystemMetrics};
use outlast::runtime::RuntimeOptions;
use std::collections::VecDeque;
use std::time::Duration;

/// The time between two reads of totals and waits, which cost more than the gauges.
const SLOW_MS: u64 = 5_000;
/// A read of the totals takes at most this part of the time.
const LARGEST_SHARE: u64 = 10;
/// The most running instances that are looked at for the longest waits.
pub(super) const MOST_RUNNING: usize = 1_000;
/// The most waits that are explained.
const MOST_WAITS: usize = 20;
/// The most dead letters that are counted: a store lists them with their texts.
pub(super) const MOST_DEAD_LETTERS: usize = 100;
/// The number of rates that are kept.
const MOST_RATES: usize = 200;

/// The figures of a store, and the time of their reads.
pub(super) struct Figures {
    pub(super) store: String,
    pub(super) every: Duration,
    /// The time of the last read.
    pub(super) now_ms: u64,
    pub(super) gauges: StoreGauges,
    pub(super) held: Option<HeldCounts>,
    pub(super) dead_letters: usize,
    pub(super) totals: SystemMetrics,
    /// When the totals were read, and when they are read again.
    totals_ms: u64,
    next_totals_ms: u64,
    pub(super) rates: VecDeque<Rate>,
    pub(super) waits: Vec<Wait>,
    /// Whether more instances run than were looked at.
    pub(super) more_run: bool,
    /// The error of the last read.
    pub(super) error: Option<String>,
}

/// The work between two reads of the totals, per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    /// Instances that ended.
    pub(super) ended: f64,
    pub(super) events: f64,
}

/// An instance that waits.
pub(super) struct Wait {
    pub(super) instance: String,
    pub(super) orchestration: String,
    /// When its last turn was committed.
    pub(super) since_ms: u64,
    /// The sentence of its diagnosis.
    pub(super) why: String,
}

impl Figures {
    pub(super) fn new(store: String, every: Duration) -> Self {
        Self {
            store,
            every,
            now_ms: 0,
            gauges: StoreGauges::default(),
            held: None,
            dead_letters: 0,
            totals: SystemMetrics::default(),
            totals_ms: 0,
            next_totals_ms: 0,
            rates: VecDeque::new(),
            waits: Vec::new(),
            more_run: false,
            error: None,
        }
    }

    /// Reads the figures, and keeps the earlier ones with the reason if the store does not answer.
    pub(super) async fn read_or_note(&mut self, client: &Client) {
        self.error = self.read(client).await.err().map(Failure::into_message);
    }

    pub(super) async fn read(&mut self, client: &Client) -> Result<(), Failure> {
        self.now_ms = SystemClock.now_ms();
        self.gauges = client.get_gauges().await?;
        self.held = client.count_held().await?;
        self.dead_letters = client.list_dead_letters(MOST_DEAD_LETTERS).await?.len();
        if self.now_ms >= self.next_totals_ms {
            let totals = client.get_system_metrics().await?;
            self.waits(client).await?;
            let took = SystemClock.now_ms().saturating_sub(self.now_ms);
            self.next_totals_ms = self.now_ms + SLOW_MS.max(took * LARGEST_SHARE);
            self.add(totals, self.now_ms);
        }
        Ok(())
    }

    /// Replaces the totals, and adds the rate since the earlier ones.
    fn add(&mut self, totals: SystemMetrics, at_ms: u64) {
        let before = std::mem::replace(&mut self.totals, totals);
        let passed = at_ms.saturating_sub(self.totals_ms);
        if self.totals_ms > 0 && passed > 0 {
            // Deleted instances make the numbers smaller.
            let per_second =
                |now: u64, before: u64| now.saturating_sub(before) as f64 * 1_000.0 / passed as f64;
            let ended = |totals: &SystemMetrics| totals.completed_instances + totals.failed_instances;
            self.rates.push_back(Rate {
                ended: per_second(ended(&self.totals), ended(&before)),
                events: per_second(self.totals.total_events, before.total_events),
            });
            while self.rates.len() > MOST_RATES {
                self.rates.pop_front();
            }
        }
        self.totals_ms = at_ms;
    }

    /// The running instances whose last turn is longest ago, with the reasons.
    async fn waits(&mut self, client: &Client) -> Result<(), Failure> {
        let query = InstanceQuery {
            status: Some(ExecutionStatus::Running.as_str().to_string()),
            limit: u32::try_from(MOST_RUNNING).ok(),
            ..InstanceQuery::default()
        };
        let page = client.list_instances_page(query).await?;
        self.more_run = page.next.is_some();
        let mut running = page.instances;
        running.sort_by_key(|info| info.updated_at);
        running.truncate(MOST_WAITS);
        let mut waits = Vec::new();
        for info in running {
            let found =
                client.diagnose_instance(&info.instance_id, RuntimeOptions::default().max_attempts).await?;
            let sentence = found.sentence();
            let start = format!("Instance '{}' ", info.instance_id);
            waits.push(Wait {
                why: sentence.strip_prefix(&start).unwrap_or(&sentence).to_string(),
                instance: info.instance_id,
                orchestration: info.orchestration_name,
                since_ms: info.updated_at,
            });
        }
        self.waits = waits;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(completed: u64, failed: u64, events: u64) -> SystemMetrics {
        SystemMetrics {
            completed_instances: completed,
            failed_instances: failed,
            total_events: events,
            ..SystemMetrics::default()
        }
    }

    #[test]
    fn rates_are_per_second_between_two_reads() {
        let mut figures = Figures::new(String::new(), Duration::from_secs(1));
        figures.add(totals(10, 0, 100), 1_000);
        assert!(figures.rates.is_empty(), "one read has no rate");
        figures.add(totals(19, 1, 200), 6_000);
        figures.add(totals(0, 0, 0), 7_000);
        let expected = [Rate { ended: 2.0, events: 20.0 }, Rate { ended: 0.0, events: 0.0 }];
        assert_eq!(figures.rates, expected, "a deletion is no negative rate");
        (0..MOST_RATES as u64).for_each(|at| figures.add(totals(at, 0, 0), 8_000 + at));
        assert_eq!(figures.rates.len(), MOST_RATES);
    }
}
