//! The pauses of a process between reads of the hints of other processes.
//!
//! Two processes often answer each other: one stores an activity, the other one its completion. Each then waits for a page that
//! the other process has to cause. If the pauses between pages doubled, both processes would find their hints at late pages, and the
//! late pages would delay the next hints: the pair would stay at a period of 350, 750 or 1,550 ms, depending on the moment at which
//! it began. A pause of half of the time since the last page with hints has no such period beyond a few times the time that the
//! two processes need for their own work.

/// The shortest pause between two pages.
pub(crate) const SHORTEST_MS: u64 = 50;

/// The longest pause after a page with hints: the next hint may be the first of many.
const LONGEST_AFTER_HINTS_MS: u64 = 200;

/// The pace of one feed.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The time at which the last page with hints was read, or the first page at all.
    found_at: Option<u64>,
}

impl Pace {
    /// The pause after a page that was read at this time. It is at most `longest_ms`.
    pub(crate) fn pause_ms(&mut self, now: u64, has_hints: bool, longest_ms: u64) -> u64 {
        let since = now.saturating_sub(*self.found_at.get_or_insert(now));
        let longest = if has_hints { longest_ms.min(LONGEST_AFTER_HINTS_MS) } else { longest_ms };
        if has_hints {
            self.found_at = Some(now);
        }
        (since / 2).max(SHORTEST_MS).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST_MS: u64 = 1_000;

    /// A process that reads a feed and answers each hint after a time.
    struct Peer {
        pace: Pace,
        due: u64,
        /// The time at which the hint for this process is stored.
        hint: Option<u64>,
        answers_after: u64,
        pages: u64,
    }

    impl Peer {
        fn new(due: u64, answers_after: u64) -> Self {
            Self { pace: Pace::default(), due, hint: None, answers_after, pages: 0 }
        }

        /// Reads a page; returns the time at which the answer is stored, if there was a hint.
        fn read(&mut self) -> Option<u64> {
            let now = self.due;
            let hint = self.hint.take_if(|stored| *stored <= now);
            self.due = now + self.pace.pause_ms(now, hint.is_some(), LONGEST_MS);
            self.pages += 1;
            hint.map(|_| now + self.answers_after)
        }
    }

    /// The time and the pages of one step, if two idle processes answer each other.
    fn ping_pong(first_due: u64, second_due: u64, answers: (u64, u64)) -> (u64, u64) {
        const STEPS: u64 = 40;
        let mut peers = [Peer::new(first_due, answers.0), Peer::new(second_due, answers.1)];
        for peer in &mut peers {
            peer.pace.pause_ms(0, true, LONGEST_MS);
        }
        let begun = 10_000;
        peers[0].hint = Some(begun);
        let (mut steps, mut now) = (0, 0);
        while steps < STEPS {
            let turn = usize::from(peers[1].due < peers[0].due);
            now = peers[turn].due;
            if let Some(answered_at) = peers[turn].read() {
                peers[1 - turn].hint = Some(answered_at);
                steps += turn as u64;
            }
        }
        ((now - begun) / STEPS, (peers[0].pages + peers[1].pages) / STEPS)
    }

    #[test]
    fn processes_that_answer_each_other_do_not_wait_much_longer_than_their_own_work_takes() {
        for answers in [(5, 3), (20, 10), (45, 20), (120, 60), (40, 300)] {
            let work = answers.0 + answers.1;
            for phase in 0..50 {
                let (first, second) = (10_000 + 20 * phase, 10_000 + (370 * phase) % 1_000);
                let (period, pages) = ping_pong(first, second, answers);
                // The first steps wait for the pages of idle processes.
                assert!(period <= 2 * work + 150, "{answers:?}, phase {phase}: {period} ms per step");
                assert!(pages <= 7, "{answers:?}, phase {phase}: {pages} pages per step");
            }
        }
    }

    #[test]
    fn pauses_grow_with_the_time_without_hints_up_to_the_interval() {
        let mut pace = Pace::default();
        assert_eq!(pace.pause_ms(0, false, LONGEST_MS), 50);
        assert_eq!(pace.pause_ms(50, false, LONGEST_MS), 50);
        assert_eq!(pace.pause_ms(400, false, LONGEST_MS), 200);
        assert_eq!(pace.pause_ms(9_000, false, LONGEST_MS), 1_000);
        assert_eq!(pace.pause_ms(9_000, true, LONGEST_MS), 200, "the first hint after a long time");
        assert_eq!(pace.pause_ms(9_200, true, LONGEST_MS), 100);
        assert_eq!(pace.pause_ms(9_210, true, LONGEST_MS), 50);
        assert_eq!(pace.pause_ms(9_210, true, 20), 20, "a shorter interval counts");
        assert_eq!(pace.pause_ms(0, false, LONGEST_MS), 50, "the clock was set back");
    }
}
