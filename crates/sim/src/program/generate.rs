//! Draws programs.

use super::weights::{Kind, Place, choose};
use super::{
    ActivityCall, ChildCall, DequeueCall, DetachedCall, End, NEW, OLD, Program, Step, TAGS, Task, WaitCall,
};
use outlast_testkit::rng::Rng;

/// Draws the program of a root.
pub(crate) fn program(rng: &mut Rng, instance: &str) -> Program {
    let mut draw = Draw { rng, instance, ids: 0, drained: false };
    draw.program(0)
}

struct Draw<'a> {
    rng: &'a mut Rng,
    instance: &'a str,
    ids: u64,
    /// Whether the program already has a [`Step::Drain`]; one is enough.
    drained: bool,
}

/// More messages than the contract carries over, and more than it delivers in a turn.
const CROWD: u64 = 105;

impl Draw<'_> {
    fn program(&mut self, depth: u32) -> Program {
        let longest = if depth == 0 { 5 } else { 2 };
        let steps: Vec<Step> = (0..self.rng.between(1, longest)).map(|_| self.step(depth)).collect();
        let mut rounds = if self.rng.per_mille(300) { 2 + u32::from(self.rng.per_mille(300)) } else { 1 };
        if steps.iter().any(|step| matches!(step, Step::Drain(..))) {
            // Messages that are not dequeued before the execution ends may be more than are carried over.
            rounds = 1;
        }
        let next = (rounds > 1 && self.rng.per_mille(300)).then(|| self.version());
        Program { rounds, steps, fails: self.rng.per_mille(60), next }
    }

    fn step(&mut self, depth: u32) -> Step {
        let fits = |place| match place {
            Place::Anywhere => true,
            Place::Parent => depth < 2,
            Place::Root => depth == 0,
        };
        let kind = choose(fits, |total| self.rng.below(total));
        match kind {
            Kind::Call => self.call(),
            Kind::Ask => Step::Ask(Task { end: End::Sends, ..self.task() }),
            Kind::FanOut => Step::FanOut(self.tasks(5), self.flip()),
            Kind::First => Step::First(self.tasks(3), self.flip()),
            Kind::Timer => Step::Timer(self.rng.between(0, 3_000)),
            Kind::Race => Step::Race(self.task(), self.limit()),
            Kind::Race3 => Step::Race3(self.task(), self.limit(), self.event()),
            Kind::TwoRaces => Step::TwoRaces([(self.task(), self.limit()), (self.task(), self.limit())]),
            Kind::Mixed => Step::Mixed(self.task(), self.limit(), self.child(depth)),
            Kind::Retry => self.retry(),
            Kind::Child => {
                let program = self.child(depth);
                Step::Child(program, self.child_call())
            }
            Kind::ChildRace => Step::ChildRace(self.child(depth), self.rng.between(0, 3_000)),
            Kind::CancelledChild => {
                let child_call =
                    ChildCall { name: Some(self.id()), may_be_cancelled: true, ..ChildCall::default() };
                Step::Child(self.child(depth), child_call)
            }
            Kind::LeaveChild => Step::LeaveChild(self.child(depth)),
            Kind::LeaveActivity => Step::LeaveActivity(self.task()),
            Kind::ReadChild => Step::ReadChild(self.id(), self.flip()),
            Kind::Detached => self.detached(),
            Kind::Dequeue => self.dequeue(),
            // A separate queue: a message that is dequeued here must not be missing in another step.
            Kind::DequeueOrLeave => Step::DequeueOrLeave("maybe".to_string(), self.rng.between(100, 2_000)),
            Kind::Drain if self.drained => self.call(),
            Kind::Drain => {
                self.drained = true;
                Step::Drain("crowd".to_string(), CROWD, self.rng.between(1_000, 5_000))
            }
            Kind::Signal => self.signal(),
            Kind::Count => Step::Count(format!("k{}", self.rng.below(2)), self.flip()),
            Kind::Keys => Step::Keys,
            Kind::Clear => match self.rng.below(3) {
                0 => Step::ClearKey(format!("k{}", self.rng.below(2))),
                1 => Step::ClearKeys,
                _ => Step::Prune,
            },
            Kind::Status => match self.rng.below(3) {
                0 => Step::ResetStatus,
                _ => Step::Status(format!("at-{}", self.rng.below(100))),
            },
            Kind::Now => Step::Now,
            Kind::Guid => Step::Guid,
            Kind::Look => Step::Look,
            Kind::Version => Step::Version,
        }
    }

    /// Draws a call of one activity, in one of its forms.
    fn call(&mut self) -> Step {
        let mut task = self.task();
        let form = match self.rng.below(12) {
            0..=3 => ActivityCall::Plain,
            4 | 5 => ActivityCall::Typed,
            6 | 7 => ActivityCall::Tagged(self.rng.pick(TAGS).to_string()),
            8 => ActivityCall::Session(self.session()),
            9 => ActivityCall::SessionTyped(self.session()),
            _ => {
                task.failures = u32::try_from(self.rng.between(0, 3)).unwrap_or(0);
                ActivityCall::Noted
            }
        };
        Step::Call(task, form)
    }

    fn retry(&mut self) -> Step {
        let failures = u32::try_from(self.rng.between(0, 2)).unwrap_or(0);
        let task = Task { failures, ..self.task() };
        let form = match self.rng.below(4) {
            0 => ActivityCall::Plain,
            1 => ActivityCall::Typed,
            2 => ActivityCall::Session(self.session()),
            _ => ActivityCall::SessionTyped(self.session()),
        };
        Step::Retry(task, form, self.rng.per_mille(300).then(|| self.limit() + 200))
    }

    fn child(&mut self, depth: u32) -> Box<Program> {
        Box::new(self.program(depth + 1))
    }

    fn child_call(&mut self) -> ChildCall {
        let is_typed = self.rng.per_mille(300);
        ChildCall {
            name: self.rng.per_mille(400).then(|| self.id()),
            version: (!is_typed && self.rng.per_mille(400)).then(|| self.version()),
            is_typed,
            may_be_cancelled: false,
        }
    }

    fn detached(&mut self) -> Step {
        let id = self.id();
        let instance = format!("{}-d{id}", self.instance);
        // A second execution would start the same id again.
        let program = Program::once(vec![self.call(), Step::Version]);
        let form = match self.rng.below(5) {
            0 => DetachedCall::Plain,
            1 => DetachedCall::Typed,
            2 => DetachedCall::Versioned(self.version()),
            3 => DetachedCall::VersionedTyped(self.version()),
            _ => DetachedCall::Try,
        };
        Step::Detached(instance, Box::new(program), form)
    }

    fn dequeue(&mut self) -> Step {
        match self.rng.below(6) {
            0 => Step::Dequeue("typed-q".to_string(), DequeueCall::Typed),
            1 => Step::Dequeue("typed-q".to_string(), DequeueCall::TryTyped),
            2 => Step::Dequeue("typed-q".to_string(), DequeueCall::PersistentTyped),
            3 => Step::Dequeue(self.queue(), DequeueCall::Persistent),
            _ => Step::Dequeue(self.queue(), DequeueCall::Plain),
        }
    }

    fn signal(&mut self) -> Step {
        let limit = self.rng.between(500, 3_000);
        match self.rng.below(4) {
            0 => Step::Signal("typed-e".to_string(), limit, WaitCall::Typed),
            1 => Step::Signal("typed-e".to_string(), limit, WaitCall::TryTyped),
            _ => Step::Signal(self.event(), limit, WaitCall::Plain),
        }
    }

    fn queue(&mut self) -> String {
        format!("q{}", self.rng.below(2))
    }

    fn event(&mut self) -> String {
        format!("e{}", self.rng.below(2))
    }

    fn session(&mut self) -> String {
        format!("s{}", self.rng.below(3))
    }

    fn version(&mut self) -> String {
        self.rng.pick(&[OLD, NEW]).to_string()
    }

    fn limit(&mut self) -> u64 {
        self.rng.between(0, 1_500)
    }

    fn flip(&mut self) -> bool {
        self.rng.per_mille(500)
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    fn tasks(&mut self, most: u64) -> Vec<Task> {
        (0..self.rng.between(2, most)).map(|_| self.task()).collect()
    }

    /// Some activities last longer than a lease, and need renewals.
    fn task(&mut self) -> Task {
        let ms = match self.rng.below(10) {
            0..=5 => self.rng.between(0, 50),
            6..=8 => self.rng.between(50, 2_000),
            _ => self.rng.between(2_000, 8_000),
        };
        let end = match self.rng.below(25) {
            0 => End::Fails,
            1 => End::Panics,
            _ => End::Succeeds,
        };
        Task { id: self.id(), ms, failures: 0, end }
    }
}
