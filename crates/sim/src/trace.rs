//! The trace of a world, line by line, with a digest of all lines. Two runs of a seed must have the same trace.

use outlast_testkit::rng::{DIGEST_START, digest};
use std::collections::VecDeque;

pub(crate) struct Trace {
    lines: VecDeque<String>,
    keep: usize,
    digest: u64,
}

impl Trace {
    pub(crate) fn new(keep: usize) -> Self {
        Self { lines: VecDeque::new(), keep, digest: DIGEST_START }
    }

    pub(crate) fn note(&mut self, at_ms: u64, source: &str, text: &str) {
        let line = format!("{:>4}.{:03} {source:<6} {text}", at_ms / 1_000, at_ms % 1_000);
        self.digest = digest(self.digest, line.as_bytes());
        self.lines.push_back(line);
        if self.lines.len() > self.keep {
            self.lines.pop_front();
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines).into()
    }
}
