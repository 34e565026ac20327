//! Drawing programs.

use super::{Program, Step, Task};
use crate::rng::Rng;

/// A program for a client to start.
pub(crate) fn program(rng: &mut Rng, instance: &str) -> Program {
    let mut draw = Draw { rng, instance, ids: 0 };
    draw.program(0)
}

struct Draw<'a> {
    rng: &'a mut Rng,
    instance: &'a str,
    ids: u64,
}

impl Draw<'_> {
    fn program(&mut self, depth: u32) -> Program {
        let longest = if depth == 0 { 5 } else { 2 };
        let steps = (0..self.rng.between(1, longest)).map(|_| self.step(depth)).collect();
        let rounds = if self.rng.per_mille(300) { 2 + u32::from(self.rng.per_mille(300)) } else { 1 };
        Program { rounds, steps, fails: self.rng.per_mille(60) }
    }

    fn step(&mut self, depth: u32) -> Step {
        // Only what a client started can be sent to, and nesting ends somewhere.
        let kinds = if depth == 0 { 18 } else { 10 };
        let kind = self.rng.below(kinds);
        let nested = depth < 2;
        match kind {
            0 => Step::Call(self.task()),
            1 => Step::FanOut((0..self.rng.between(2, 5)).map(|_| self.task()).collect()),
            2 => Step::Timer(self.rng.between(0, 3_000)),
            3 => Step::Race(self.task(), self.rng.between(0, 1_500)),
            4 => Step::Session(self.task(), format!("s{}", self.rng.below(3))),
            5 => Step::Retry(Task { failures: self.small(2), ..self.task() }),
            6 => Step::Count(format!("k{}", self.rng.below(2))),
            7 => Step::Status(format!("at {}", self.rng.below(100))),
            8 => Step::Now,
            9 | 10 if nested => Step::Child(Box::new(self.program(depth + 1))),
            11 if nested => Step::ChildRace(Box::new(self.program(depth + 1)), self.rng.between(0, 3_000)),
            12 => Step::Signal(format!("e{}", self.rng.below(2)), self.rng.between(500, 3_000)),
            13 | 15 | 16 => Step::Dequeue(format!("q{}", self.rng.below(2))),
            // Another queue: what is read here must not be missing there.
            14 => match self.rng.per_mille(500) {
                true => Step::DequeueOrLeave("maybe".to_string(), self.rng.between(100, 2_000)),
                false => {
                    let id = self.id();
                    let instance = format!("{}-d{id}", self.instance);
                    // Continuing as new would start the same id again.
                    let program = Program { rounds: 1, steps: vec![Step::Call(self.task())], fails: false };
                    Step::Detached(instance, Box::new(program))
                }
            },
            _ => Step::Call(self.task()),
        }
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    fn small(&mut self, most: u64) -> u32 {
        u32::try_from(self.rng.between(0, most)).unwrap_or(0)
    }

    /// Some activities outlive a lease, and some the whole world if nobody renewed it.
    fn task(&mut self) -> Task {
        let ms = match self.rng.below(10) {
            0..=5 => self.rng.between(0, 50),
            6..=8 => self.rng.between(50, 2_000),
            _ => self.rng.between(2_000, 8_000),
        };
        Task { id: self.id(), ms, failures: 0 }
    }
}
