//! `outlast stress`: a runtime under load on a new store, with results that can be compared and saved.

mod check;
mod preset;
mod report;
mod target;

pub(crate) use preset::Preset;

use crate::args::StressArgs;
use crate::failure::Failure;
use crate::output::print;
use crate::store::{self, StoreUrl};
use outlast::provider_stress_tests::StressProgress;
use report::{Report, Run};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use target::{Opened, Target};

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(250);

pub(crate) async fn run(args: StressArgs) -> Result<(), Failure> {
    let named = match args.store.is_empty() {
        true => std::env::var(store::VARIABLE).ok().map(StoreUrl::from).into_iter().collect(),
        false => args.store.clone(),
    };
    if named.is_empty() {
        return Err(Failure::usage(format!(
            "no store is named: give --store memory, a file, sqlite::memory:, postgres://USER@HOST/DATABASE or \
             cosmos://HOST/DATABASE, or set {}",
            store::VARIABLE
        )));
    }
    // All targets are resolved first: an error in the last one must not show after minutes.
    let mut targets = Vec::new();
    for url in &named {
        targets.extend(Target::of(url, &args)?);
    }
    let mut report = Report::default();
    for target in targets {
        let opened = target.open(&args).await?;
        let runs = tokio::select! {
            runs = all_presets(&opened, &args) => runs,
            _ = tokio::signal::ctrl_c() => Err(Failure::stopped()),
        };
        // Also after a failure, the command removes the store that it created.
        let closed = opened.close(args.keep).await;
        report.runs.extend(runs?);
        closed?;
    }
    if args.check {
        report.checks = check::targets(&report.runs);
    }
    if let Some(file) = &args.json {
        let text = format!("{:#}\n", report.figures());
        std::fs::write(file, text).map_err(|error| {
            Failure::new(format!("the figures cannot be written to '{}': {error}", file.display()))
        })?;
    }
    print(args.output, &report, Report::text)?;
    match report.is_fine() {
        true => Ok(()),
        false => Err(Failure::reported()),
    }
}

async fn all_presets(opened: &Opened, args: &StressArgs) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for preset in &args.preset {
        let plan = preset.plan(args.seconds);
        let progress = StressProgress::default();
        let title = format!("{}, {}", opened.label, preset.name());
        let mut screen = Screen::new(title, plan.seconds());
        let result = {
            let running = plan.run(opened, &progress);
            tokio::pin!(running);
            let mut ticks = tokio::time::interval(TICK);
            let mut ticked = 0;
            loop {
                tokio::select! {
                    result = &mut running => break result,
                    _ = ticks.tick() => {
                        screen.show(TICK * ticked, &progress);
                        ticked += 1;
                    }
                }
            }
        };
        screen.clear();
        let result = result.map_err(|error| {
            Failure::new(format!("the run '{}' on {} failed: {error}", preset.name(), opened.label))
        })?;
        runs.push(Run::new(opened, preset.name(), &plan, &result, &progress));
    }
    Ok(runs)
}

/// A progress line on standard error, redrawn in place; nothing if standard error is not a terminal.
struct Screen {
    title: String,
    seconds: u64,
    is_terminal: bool,
}

impl Screen {
    fn new(title: String, seconds: u64) -> Self {
        Self { title, seconds, is_terminal: io::stderr().is_terminal() }
    }

    fn show(&mut self, passed: Duration, progress: &StressProgress) {
        if self.is_terminal {
            let (started, completed, failed) = (progress.launched(), progress.completed(), progress.failed());
            let (seconds, passed) = (self.seconds, passed.as_secs());
            // An error while printing progress does not stop the run.
            let _ = write!(
                io::stderr(),
                "\r\x1b[K{}: {passed} of {seconds} s, {started} started, {completed} completed, {failed} failed",
                self.title
            );
        }
    }

    fn clear(&mut self) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
