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

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Minutes of each of the two loads
    #[arg(long, value_name = "N", value_parser = minutes, default_value = "10")]
    minutes: Duration,
    /// The store
    #[arg(long, value_parser = ["sqlite", "postgres"], default_value = "sqlite")]
    store: String,
    /// The file of the plots; default: target/soak-STORE.html
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

fn minutes(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().filter(|number| (0.05..=1_440.0).contains(number));
    number
        .map(|minutes: f64| Duration::from_secs_f64(minutes * 60.0))
        .ok_or("not a number from 0.05 to 1440".into())
}

pub(crate) fn run(args: Args) -> Result<bool, String> {
    let report = args.report.unwrap_or_else(|| PathBuf::from(format!("target/soak-{}.html", args.store)));
    measure::on_two_threads(measure_loads(Plan { time: args.minutes, store: args.store, report }))
}

struct Plan {
    /// The time of each of the two loads.
    time: Duration,
    store: String,
    report: PathBuf,
}

async fn measure_loads(plan: Plan) -> Result<bool, String> {
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
    use crate::{Call, parse};

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
        let Ok(Call::Soak(args)) = parse("soak --minutes 0.5 --store postgres") else { panic!("soak") };
        assert_eq!((args.minutes, args.store.as_str()), (Duration::from_secs(30), "postgres"));
        for (line, text) in [
            ("--minutes nan", "--minutes"),
            ("--minutes 0", "--minutes"),
            ("--store memory", "'memory'"),
            ("--report", "--report"),
            ("--fast 1", "--fast"),
        ] {
            let Err(error) = parse(&format!("soak {line}")) else { panic!("{line}") };
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
