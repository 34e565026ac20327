//! Samples of the store's figures, for plots.

use super::rfc3339;
use crate::app::App;
use crate::problem::Problem;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use utoipa::ToSchema;

/// The most samples: an hour, with one sample per five seconds.
const MOST: usize = 720;

/// The figures of a store at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Sample {
    pub(crate) at: String,
    pub(crate) at_ms: u64,
    pub(crate) running: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// Messages that wait for turns.
    pub(crate) turns: u64,
    /// Activities that wait for workers.
    pub(crate) activities: u64,
}

/// The samples of this server, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Series {
    pub(crate) items: Vec<Sample>,
}

/// The samples in memory. They are lost with the process.
#[derive(Default)]
pub(crate) struct Samples(Mutex<VecDeque<Sample>>);

impl Samples {
    fn all(&self) -> Vec<Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Keeps a sample, unless it has the time of the last one, and returns all samples.
    fn with(&self, sample: Sample) -> Vec<Sample> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.back().is_none_or(|last| last.at_ms < sample.at_ms) {
            kept.push_back(sample);
        }
        while kept.len() > MOST {
            kept.pop_front();
        }
        kept.iter().cloned().collect()
    }
}

/// The samples so far, and one of the last count if it has none yet. Samples are taken by this call only, so that a
/// server without visitors does not read its store.
pub(crate) async fn series(app: &App) -> Result<Series, Problem> {
    let Some(totals) = app.known_totals().await? else { return Ok(Series { items: app.samples.all() }) };
    let gauges = app.client.get_gauges().await?;
    let items = app.samples.with(Sample {
        at: rfc3339(totals.at_ms),
        at_ms: totals.at_ms,
        running: totals.metrics.running_instances,
        completed: totals.metrics.completed_instances,
        failed: totals.metrics.failed_instances,
        turns: gauges.orchestrator_queue,
        activities: gauges.worker_queue,
    });
    Ok(Series { items })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64) -> Sample {
        let at = rfc3339(at_ms);
        Sample { at, at_ms, running: 1, completed: 0, failed: 0, turns: 0, activities: 0 }
    }

    #[test]
    fn samples_of_one_time_are_kept_once_and_the_oldest_are_dropped() {
        let samples = Samples::default();
        assert_eq!(samples.with(sample(5)).len(), 1);
        assert_eq!(samples.with(sample(5)).len(), 1);
        let all = (6..2_000).map(|at| samples.with(sample(at))).last().unwrap();
        assert_eq!((all.len(), all[0].at_ms, all[MOST - 1].at_ms), (MOST, 2_000 - MOST as u64, 1_999));
    }
}
