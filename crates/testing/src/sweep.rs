//! Sweeps: one instance, run again for every moment at which a fault can happen.

use crate::fault::{ActivityFault, CallFault, Schedule, Target};
use crate::parallel;
use crate::spec::Spec;
use crate::story::{value, without_guids};
use crate::test::Test;
use crate::test_run::{Process, TestRun};
use crate::trouble::Trouble;
use outlast_author::{Orchestration, plain_text};
use outlast_provider::Provider;
use outlast_runtime::lens::{counted, times};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The most crashes between two awaits. A longer run is crashed at every second, third, .. poll.
const MOST_POLLS: u64 = 3_000;

/// The result of [`Test::crash_everywhere`], [`Test::fail_everywhere`] or [`Test::cancel_everywhere`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the result is not checked: call `.holds()`"]
pub struct Sweep {
    orchestration: &'static str,
    /// The fault of each run, with its article.
    fault: &'static str,
    moments: usize,
    runs: usize,
    failures: Vec<SweepFailure>,
}

/// A run that ended otherwise than the run without a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepFailure {
    /// The fault, in words.
    pub schedule: String,
    /// The end that was expected.
    pub expected: String,
    /// The end of this run.
    pub found: String,
    /// Activities whose bodies ran more than once for one call, in words.
    pub repeated: Vec<String>,
    /// What happened in the run, one line each. Only the smallest failure has it.
    pub timeline: Vec<String>,
}

/// The end of a run: the result of the instance, and the world outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) result: String,
    pub(crate) has_failed: bool,
    pub(crate) observed: Vec<String>,
}

/// The judge of a run: returns the expected end of a run that ended otherwise.
pub(crate) trait Judge: Fn(&TestRun, &Process, &Ending) -> Option<String> + Sync {}

impl<F: Fn(&TestRun, &Process, &Ending) -> Option<String> + Sync> Judge for F {}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.result)?;
        self.observed.iter().try_for_each(|observed| write!(f, "; world: {observed}"))
    }
}

impl<O: Orchestration> Test<O> {
    /// Runs the instance once without a fault, and then again with one fault at every moment. The process crashes before and after every
    /// call to its store and between two awaits of its tasks, the answer of the store is lost, and the process stalls until its lease is
    /// over. After a crash another process goes on. If the test sends messages, the process also stays down until the next one is
    /// sent. The result of the instance and the [`Test::world`] must be those of the run without a fault.
    ///
    /// Without a [`Test::world`] the result alone is compared, and an effect that happens twice is not found. Random ids
    /// (`ctx.new_guid()`) are not compared.
    ///
    /// # Panics
    ///
    /// If the run without a fault meets a [`Trouble`].
    #[track_caller]
    pub fn crash_everywhere(&self, input: O::Input) -> Sweep {
        match self.try_crash_everywhere(input) {
            Ok(sweep) => sweep,
            Err(trouble) => panic!("{trouble}"),
        }
    }

    /// The same as [`Test::crash_everywhere`], with the [`Trouble`] of the run without a fault as an error.
    ///
    /// # Errors
    ///
    /// See [`Trouble`].
    pub fn try_crash_everywhere(&self, input: O::Input) -> Result<Sweep, Trouble> {
        let (input, baseline, ending) = self.baseline(&input)?;
        let schedules = crashes(&self.spec, &baseline);
        let moments = baseline.shared.calls.moments().len();
        let judge = |_: &TestRun, _: &Process, found: &Ending| (*found != ending).then(|| ending.to_string());
        Ok(self.sweep(&input, moments, &schedules, judge))
    }

    /// Runs the instance once without a fault, and then twice for every activity that it called: that activity fails instead of running,
    /// and it fails after its body has returned, as if the answer of the outside world was lost. If the instance then fails, the
    /// [`Test::world`] must be as it was before the run: everything was undone.
    ///
    /// The failure is final, whatever the `retry` of the activity. An undo that is pushed only after its call has succeeded is found by
    /// the second run: the effect is there, and the undo is not.
    ///
    /// # Panics
    ///
    /// If the run without a fault meets a [`Trouble`], or fails: [`Trouble::FailsAnyway`].
    #[track_caller]
    pub fn fail_everywhere(&self, input: O::Input) -> Sweep {
        match self.try_fail_everywhere(input) {
            Ok(sweep) => sweep,
            Err(trouble) => panic!("{trouble}"),
        }
    }

    /// The same as [`Test::fail_everywhere`], with the [`Trouble`] of the run without a fault as an error.
    ///
    /// # Errors
    ///
    /// See [`Trouble`].
    pub fn try_fail_everywhere(&self, input: O::Input) -> Result<Sweep, Trouble> {
        let (input, baseline, ending) = self.baseline(&input)?;
        if ending.has_failed {
            return Err(Trouble::FailsAnyway(format!(
                "'{}' fails without a fault, so fail_everywhere shows nothing: give it an input, messages and mocks with which it \
                 succeeds. It ends as: {ending}",
                O::NAME
            )));
        }
        let before = TestRun::new(&self.spec, None, false).observed();
        let schedules: Vec<Schedule> = {
            let state = baseline.shared.state();
            let name = |key: &String| {
                let body = state.bodies.iter().find(|body| body.key == *key);
                body.map_or(String::new(), |body| body.activity.clone())
            };
            let keys = state.keys.iter().enumerate();
            let both = [ActivityFault::InsteadOfRunning, ActivityFault::AfterItsBody];
            let faults = keys.flat_map(|key| both.map(|fault| (key, fault)));
            faults
                .map(|((at, key), fault)| {
                    let target = Target::Activity(at, fault);
                    Schedule { target, detail: name(key), is_late: false }
                })
                .collect()
        };
        let moments = schedules.len() / 2;
        Ok(self.sweep(&input, moments, &schedules, |_: &TestRun, _: &Process, found: &Ending| {
            let is_undone = !found.has_failed || found.observed == before;
            (!is_undone)
                .then(|| format!("a failed instance leaves the world as it was: {}", before.join("; ")))
        }))
    }

    /// The run without a fault.
    pub(crate) fn baseline(&self, input: &O::Input) -> Result<(String, TestRun, Ending), Trouble> {
        self.start_checked()?;
        let input = self.encode(input)?;
        let mut baseline = TestRun::new(&self.spec, None, false);
        let (_, ending) = end(&mut baseline, &input)?;
        Ok((input, baseline, ending))
    }

    /// Runs all schedules.
    pub(crate) fn sweep(
        &self,
        input: &str,
        moments: usize,
        schedules: &[Schedule],
        judge: impl Judge,
    ) -> Sweep {
        let failed = parallel::map(schedules, |schedule| {
            let mut test_run = TestRun::new(&self.spec, Some(schedule.clone()), false);
            failure(&mut test_run, input, schedule, &judge)
        });
        let mut failures: Vec<(usize, SweepFailure)> =
            failed.into_iter().enumerate().filter_map(|(at, failed)| Some((at, failed?))).collect();
        if let Some((at, smallest)) = failures.first_mut() {
            let schedule = &schedules[*at];
            let mut test_run = TestRun::new(&self.spec, Some(schedule.clone()), true);
            if let Some(again) = failure(&mut test_run, input, schedule, &judge) {
                *smallest = SweepFailure { timeline: test_run.shared.trace(), ..again };
            }
        }
        let failures = failures.into_iter().map(|(_, failed)| failed).collect();
        Sweep { orchestration: O::NAME, fault: "a fault", moments, runs: schedules.len(), failures }
    }
}

/// The schedules of a crash at every moment, the simplest first.
fn crashes(spec: &Spec, baseline: &TestRun) -> Vec<Schedule> {
    let mut schedules = Vec::new();
    for (at, moment) in baseline.shared.calls.moments().into_iter().enumerate() {
        for fault in CallFault::of(moment.op) {
            let target = Target::Call(at, *fault);
            schedules.push(Schedule { target, detail: moment.detail.clone(), is_late: false });
            let is_crash = matches!(fault, CallFault::CrashBefore | CallFault::CrashAfter);
            if is_crash && !spec.actions.is_empty() {
                schedules.push(Schedule { target, detail: moment.detail.clone(), is_late: true });
            }
        }
    }
    schedules.extend(at_polls(baseline, Target::Poll));
    schedules
}

/// A schedule for each poll of the run without a fault.
pub(crate) fn at_polls(baseline: &TestRun, target: fn(u64) -> Target) -> impl Iterator<Item = Schedule> {
    let polls = baseline.first_gate.as_ref().map_or(0, |gate| gate.polls());
    let step = usize::try_from(polls / MOST_POLLS + 1).unwrap_or(1);
    let schedule = move |at| Schedule { target: target(at), detail: String::new(), is_late: false };
    (0..polls).step_by(step).map(schedule)
}

fn failure(
    test_run: &mut TestRun,
    input: &str,
    schedule: &Schedule,
    judge: &impl Judge,
) -> Option<SweepFailure> {
    let (found, expected) = match end(test_run, input) {
        Ok((process, ending)) => (ending.to_string(), judge(test_run, &process, &ending)?),
        Err(trouble) => (trouble.to_string(), "the instance ends".to_string()),
    };
    let repeated = repeated(test_run);
    let schedule = schedule.to_string();
    Some(SweepFailure { schedule, expected, found, repeated, timeline: Vec::new() })
}

/// Runs a test to its end.
fn end(test_run: &mut TestRun, input: &str) -> Result<(Process, Ending), Trouble> {
    let process = test_run.run(input)?;
    let outcome = process.tokio.block_on(test_run.shared.store.read_outcome(&test_run.spec.instance));
    let outcome = outcome.ok().flatten();
    let observed = test_run.observed();
    let Some(outcome) = outcome else {
        let result = "the instance is gone".to_string();
        return Ok((process, Ending { result, has_failed: true, observed }));
    };
    let (has_failed, text) = match (&outcome.failure, &outcome.output) {
        (Some(failure), _) => (true, plain_text(&failure.display_message())),
        (None, Some(output)) => (false, output.clone()),
        (None, None) => (false, String::new()),
    };
    let result = without_guids(&format!("{} with {}", outcome.status, value(&text)));
    Ok((process, Ending { result, has_failed, observed }))
}

/// The activities whose bodies ran more than once for one call.
fn repeated(test_run: &TestRun) -> Vec<String> {
    let state = test_run.shared.state();
    let mut activities: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for body in &state.bodies {
        let (runs, keys) = activities.entry(&body.activity).or_default();
        *runs += 1;
        keys.insert(&body.key);
    }
    let more = activities.into_iter().filter(|(_, (runs, keys))| *runs > keys.len());
    more.map(|(name, (runs, keys))| {
        format!("the body of {name} ran {} for {}", times(runs), counted(keys.len(), "call"))
    })
    .collect()
}

impl Sweep {
    /// The same sweep with other words for the fault of its runs.
    pub(crate) fn of(self, fault: &'static str) -> Self {
        Self { fault, ..self }
    }

    pub(crate) fn push(&mut self, failure: SweepFailure) {
        self.failures.push(failure);
    }

    /// # Panics
    ///
    /// If a run ended otherwise, with the timeline of the smallest one.
    #[track_caller]
    pub fn holds(&self) {
        assert!(self.failures.is_empty(), "{self}");
    }

    /// The number of moments at which a fault happened.
    pub fn moments(&self) -> usize {
        self.moments
    }

    /// The number of runs with a fault.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// The runs that ended otherwise, the smallest first.
    pub fn failures(&self) -> &[SweepFailure] {
        &self.failures
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (moments, runs) = (counted(self.moments, "moment"), counted(self.runs, "run"));
        let failed = match self.failures.len() {
            1 => "1 of them ends otherwise".to_string(),
            failed => format!("{failed} of them end otherwise"),
        };
        write!(f, "'{}': {moments}, {runs} with {}, {failed}", self.orchestration, self.fault)?;
        let Some(smallest) = self.failures.first() else { return Ok(()) };
        writeln!(f, "\n\nthe smallest: {}", smallest.schedule)?;
        writeln!(f, "expected: {}", smallest.expected)?;
        writeln!(f, "found:    {}", smallest.found)?;
        smallest.repeated.iter().try_for_each(|repeated| writeln!(f, "{repeated}"))?;
        writeln!(f)?;
        smallest.timeline.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
