//! The sweep over requests to cancel: one instance, cancelled at every moment of its run.

use crate::fault::{CallFault, Schedule, Target};
use crate::run::Run;
use crate::sweep::{Ending, Judge, Sweep, SweepFailure, at_polls};
use crate::test::Test;
use crate::test_run::{Process, TestRun};
use crate::trouble::Trouble;
use outlast_author::Orchestration;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

impl<O: Orchestration> Test<O> {
    /// Runs the instance once, and then again with one request to cancel at every moment: before and after every call of the process to
    /// its store, and between two awaits of its tasks. Each run must end in one of two ways. Either the result and the
    /// [`Test::world`] are those of the run without a request, because the request came too late. Or the instance fails or is cancelled,
    /// and the world is as it was before the run: everything was undone. A run goes on after the end of its instance until the bodies of
    /// its activities have ended, so that an effect after the undo is found.
    ///
    /// A sweep in which no request changes the end of the instance fails too: the code ignores requests to cancel.
    ///
    /// An orchestration that answers a request with a value of its own (`on_cancel = observe`) needs
    /// [`Test::cancel_everywhere_with`].
    ///
    /// # Panics
    ///
    /// If the run without a request meets a [`Trouble`].
    #[track_caller]
    pub fn cancel_everywhere(&self, input: O::Input) -> Sweep {
        match self.try_cancel_everywhere(input) {
            Ok(sweep) => sweep,
            Err(trouble) => panic!("{trouble}"),
        }
    }

    /// The same as [`Test::cancel_everywhere`], with the [`Trouble`] of the run without a request as an error.
    ///
    /// # Errors
    ///
    /// See [`Trouble`].
    pub fn try_cancel_everywhere(&self, input: O::Input) -> Result<Sweep, Trouble> {
        let before = TestRun::new(&self.spec, None, false).observed();
        let expected = format!(
            "the end without a request, or a cancelled instance that leaves the world as it was: {}",
            before.join("; ")
        );
        self.cancels(input, |_: &TestRun, _: &Process, found: &Ending| {
            let is_undone = found.has_failed && found.observed == before;
            (!is_undone).then(|| expected.clone())
        })
    }

    /// The same as [`Test::cancel_everywhere`] with another judge: `is_right` returns whether a run with a request ended as it should. A
    /// run whose result and world are those of the run without a request is not judged.
    ///
    /// # Panics
    ///
    /// If the run without a request meets a [`Trouble`].
    #[track_caller]
    pub fn cancel_everywhere_with(
        &self,
        input: O::Input,
        is_right: impl Fn(&Run<O>) -> bool + Sync,
    ) -> Sweep {
        let sweep = self.cancels(input, |test_run: &TestRun, process: &Process, _: &Ending| {
            match Run::of(test_run, process) {
                Ok(run) if is_right(&run) => None,
                Ok(_) => Some("an end that the closure of the test accepts".to_string()),
                Err(trouble) => Some(trouble.to_string()),
            }
        });
        match sweep {
            Ok(sweep) => sweep,
            Err(trouble) => panic!("{trouble}"),
        }
    }

    /// Runs all schedules. `judge` judges the runs that end otherwise than the run without a request.
    fn cancels(&self, input: O::Input, judge: impl Judge) -> Result<Sweep, Trouble> {
        let (input, baseline, ending) = self.baseline(&input)?;
        let schedules = requests(&baseline);
        let moments = baseline.shared.calls.moments().len();
        let is_answered = AtomicBool::new(false);
        let judge = |test_run: &TestRun, process: &Process, found: &Ending| {
            if *found == ending {
                return None;
            }
            is_answered.store(true, Relaxed);
            judge(test_run, process, found)
        };
        let sweep = self.sweep(&input, moments, &schedules, judge);
        let mut sweep = sweep.of("a request to cancel");
        if !is_answered.into_inner() && sweep.failures().is_empty() {
            sweep.push(ignored(&ending, schedules.first()));
        }
        Ok(sweep)
    }
}

/// The schedules of a request at every moment, in the order of the calls; requests between two awaits are last.
fn requests(baseline: &TestRun) -> Vec<Schedule> {
    let mut schedules = Vec::new();
    for (at, moment) in baseline.shared.calls.moments().into_iter().enumerate() {
        for fault in CallFault::cancels(moment.op) {
            let target = Target::Call(at, *fault);
            schedules.push(Schedule { target, detail: moment.detail.clone(), is_late: false });
        }
    }
    schedules.extend(at_polls(baseline, Target::CancelAtPoll));
    schedules
}

/// The failure of a sweep in which no request had an effect.
fn ignored(ending: &Ending, first: Option<&Schedule>) -> SweepFailure {
    SweepFailure {
        schedule: first.map_or_else(String::new, ToString::to_string),
        expected: "a request to cancel that changes the end of the instance: does the code await ctx.cancelled(), and does it run \
                   outside of ctx.shielded(..)?"
            .to_string(),
        found: format!("the same end in every run: {ending}"),
        repeated: Vec::new(),
        timeline: Vec::new(),
    }
}
