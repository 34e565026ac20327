//! The presets of a stress run.

use super::target::Opened;
use clap::ValueEnum;
use outlast::provider_stress_tests::large_payload::{LargePayloadConfig, run_large_payload_test_observed};
use outlast::provider_stress_tests::{
    StressProgress, StressTestConfig, StressTestResult, create_default_activities,
    create_default_orchestrations, run_stress_test_observed,
};
use std::error::Error;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// 10 in flight, 30 s, three activities of 50 ms, one dispatcher and one worker
    Quick,
    /// 20 in flight, 10 s, five activities of 10 ms, one dispatcher and one worker
    Baseline,
    /// 20 in flight, 10 s, five activities of 10 ms, two dispatchers and two workers
    Default,
    /// 20 in flight, 10 s, five activities of 10 ms, two dispatchers and twenty workers
    Wide,
    /// 5 in flight, 10 s, twenty activities and five children with 10 to 100 KB each
    LargePayload,
}

/// A preset with the requested duration.
pub(super) enum Plan {
    FanOut(StressTestConfig),
    LargePayload(LargePayloadConfig),
}

impl Preset {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Baseline => "baseline",
            Self::Default => "default",
            Self::Wide => "wide",
            Self::LargePayload => "large-payload",
        }
    }

    pub(super) fn plan(self, seconds: Option<u64>) -> Plan {
        let defaults = StressTestConfig::default();
        let wide = |dispatchers, workers| StressTestConfig {
            orch_concurrency: dispatchers,
            worker_concurrency: workers,
            ..defaults.clone()
        };
        let mut plan = match self {
            Self::Quick => Plan::FanOut(StressTestConfig {
                max_concurrent: 10,
                duration_secs: 30,
                tasks_per_instance: 3,
                activity_delay_ms: 50,
                ..wide(1, 1)
            }),
            Self::Baseline => Plan::FanOut(wide(1, 1)),
            Self::Default => Plan::FanOut(defaults.clone()),
            Self::Wide => Plan::FanOut(wide(2, 20)),
            Self::LargePayload => Plan::LargePayload(LargePayloadConfig::default()),
        };
        if let Some(seconds) = seconds {
            plan.base_mut().duration_secs = seconds;
        }
        plan
    }
}

impl Plan {
    pub(super) fn base(&self) -> &StressTestConfig {
        match self {
            Self::FanOut(config) => config,
            Self::LargePayload(config) => &config.base,
        }
    }

    fn base_mut(&mut self) -> &mut StressTestConfig {
        match self {
            Self::FanOut(config) => config,
            Self::LargePayload(config) => &mut config.base,
        }
    }

    pub(super) fn seconds(&self) -> u64 {
        self.base().duration_secs
    }

    pub(super) fn activities(&self) -> usize {
        match self {
            Self::FanOut(config) => config.tasks_per_instance,
            Self::LargePayload(config) => config.activity_count,
        }
    }

    /// The most orchestrations per second that the activities allow, since each worker runs one at a time. `None` if an orchestration
    /// has children too.
    pub(super) fn bound_per_second(&self) -> Option<f64> {
        match self {
            Self::FanOut(config) => {
                let busy_ms = config.tasks_per_instance as f64 * config.activity_delay_ms as f64;
                Some(config.worker_concurrency as f64 * 1_000.0 / busy_ms)
            }
            Self::LargePayload(_) => None,
        }
    }

    pub(super) async fn run(
        &self,
        opened: &Opened,
        progress: &StressProgress,
    ) -> Result<StressTestResult, Box<dyn Error>> {
        let store = Arc::clone(&opened.provider);
        match self {
            Self::FanOut(config) => {
                let activities = create_default_activities(config.activity_delay_ms);
                let orchestrations = create_default_orchestrations();
                run_stress_test_observed(config.clone(), store, activities, orchestrations, progress).await
            }
            Self::LargePayload(config) => {
                run_large_payload_test_observed(config.clone(), store, progress).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_bound_the_throughput() {
        for (preset, expected) in [
            (Preset::Quick, Some(1_000.0 / 150.0)),
            (Preset::Baseline, Some(20.0)),
            (Preset::Default, Some(40.0)),
            (Preset::Wide, Some(400.0)),
            (Preset::LargePayload, None),
        ] {
            assert_eq!(preset.plan(None).bound_per_second(), expected, "{}", preset.name());
        }
        assert_eq!(Preset::LargePayload.plan(Some(3)).seconds(), 3);
        assert_eq!(Preset::Quick.plan(None).seconds(), 30);
    }
}
