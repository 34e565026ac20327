//! `cargo xtask bench soak`: orchestrations at full load and at half of it, for minutes, with a sample of every second.

mod load;
mod plot;
mod sample;
mod store;

use crate::measure;
use crate::verdict::{self, Verdict};
use load::Load;
use sample::Sample;
use std::path::PathBuf;
use std::time::Duration;
use store::Store;

/// Orchestrations that run at the same time at full load.
const IN_FLIGHT: usize = 64;
/// Samples of a minute. The first and the last minute are compared; runs shorter than two minutes are compared by halves.
const MINUTE: usize = 60;

struct Plan {
    /// The time of each of the two loads.
    time: Duration,
    store: String,
    report: PathBuf,
}

pub(crate) fn main(args: impl Iterator<Item = String>) -> Result<bool, String> {
    let plan = Plan::parse(args)?;
    measure::on_two_threads(run(plan))
}

impl Plan {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut minutes, mut store, mut report) = (10.0, "sqlite".to_string(), None);
        while let Some(arg) = args.next() {
            let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
            match arg.as_str() {
                "--minutes" => {
                    let number = value.parse().ok().filter(|number| (0.05..=1_440.0).contains(number));
                    minutes = number
                        .ok_or_else(|| format!("--minutes is a number from 0.05 to 1440, not '{value}'"))?;
                }
                "--store" if matches!(value.as_str(), "sqlite" | "postgres") => store = value,
                "--store" => return Err(format!("--store is sqlite or postgres, not '{value}'")),
                "--report" => report = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown option '{arg}'")),
            }
        }
        let report = report.unwrap_or_else(|| PathBuf::from(format!("target/soak-{store}.html")));
        Ok(Self { time: Duration::from_secs_f64(minutes * 60.0), store, report })
    }
}

async fn run(plan: Plan) -> Result<bool, String> {
    let store = Store::open(&plan.store).await?;
    let full = load::run(&store, "full", Load::InFlight(IN_FLIGHT), plan.time).await?;
    let rate = sample::throughput(&full) / 2.0;
    let half = load::run(&store, "half", Load::PerSecond(rate), plan.time).await?;
    store.close().await;
    let verdicts = verdicts(&full, &half);
    let all_hold = verdict::print(&verdicts);
    let loads = [("Full load", full.as_slice()), ("Half load", half.as_slice())];
    let page = plot::page(&plan.store, &loads, &verdicts);
    std::fs::write(&plan.report, page).map_err(|error| format!("{}: {error}", plan.report.display()))?;
    println!("the plots are in {}", plan.report.display());
    Ok(all_hold)
}

fn verdicts(full: &[Sample], half: &[Sample]) -> Vec<Verdict> {
    let (first, last) = ends(full);
    let (begin, end) = (sample::throughput(first), sample::throughput(last));
    let (p50, p99) =
        (sample::median_of(half, |sample| sample.p50), sample::median_of(half, |sample| sample.p99));
    let (_, last_half) = ends(half);
    let (middle, memory) = (sample::memory(&half[..half.len().div_ceil(2)]), sample::memory(last_half));
    vec![
        Verdict {
            holds: end >= begin * 0.9,
            text: format!(
                "full load: {end:.0} orchestrations/s in the last minute, {begin:.0} in the first ({:.1} %; at least 90 %)",
                end / begin * 100.0
            ),
        },
        Verdict {
            holds: p99 < p50 * 10.0,
            text: format!(
                "half load: p99 {p99:.2} ms, p50 {p50:.2} ms ({:.1} times; below 10 times)",
                p99 / p50
            ),
        },
        Verdict {
            holds: memory <= middle * 1.1,
            text: format!(
                "half load: {memory:.0} MiB of memory in the last minute, {middle:.0} in the first half ({:.1} %; at most 110 %)",
                memory / middle * 100.0
            ),
        },
    ]
}

/// The first and the last minute, or the two halves of a shorter run.
fn ends(samples: &[Sample]) -> (&[Sample], &[Sample]) {
    let length = MINUTE.min(samples.len() / 2).max(1).min(samples.len());
    (&samples[..length], &samples[samples.len() - length..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: usize, throughput: f64, p99: f64, memory: f64) -> Vec<Sample> {
        (0..count)
            .map(|second| Sample { second, throughput, p50: 1.0, p99, memory, ..Sample::default() })
            .collect()
    }

    fn held(full: &[Sample], half: &[Sample]) -> Vec<bool> {
        verdicts(full, half).iter().map(|verdict| verdict.holds).collect()
    }

    #[test]
    fn figures_beyond_their_target_are_missed() {
        let steady = samples(120, 1_000.0, 5.0, 100.0);
        assert_eq!(held(&steady, &steady), [true, true, true]);
        let slower = [samples(60, 1_000.0, 5.0, 100.0), samples(60, 899.0, 5.0, 100.0)].concat();
        assert_eq!(held(&slower, &steady), [false, true, true]);
        assert_eq!(held(&steady, &samples(120, 500.0, 10.0, 100.0)), [true, false, true]);
        let growing = [samples(60, 500.0, 5.0, 100.0), samples(60, 500.0, 5.0, 111.0)].concat();
        assert_eq!(held(&steady, &growing), [true, true, false]);
    }

    #[test]
    fn arguments_are_refused_with_their_name() {
        let parse = |line: &str| Plan::parse(line.split_whitespace().map(str::to_string));
        let plan = parse("--minutes 0.5 --store postgres").unwrap();
        assert_eq!((plan.time, plan.store.as_str()), (Duration::from_secs(30), "postgres"));
        for (line, text) in [
            ("--minutes nan", "--minutes"),
            ("--minutes 0", "--minutes"),
            ("--store memory", "'memory'"),
            ("--report", "--report"),
            ("--fast 1", "--fast"),
        ] {
            let Err(error) = parse(line) else { panic!("{line}") };
            assert!(error.contains(text), "{error}");
        }
    }
}
