//! Named points of a commit at which the supervisor can pause a worker in order to kill it.
//!
//! A wrapper around the store is enough, because the points are calls of the provider. No crate for failpoints is
//! needed, and the shipped code is unchanged.

use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::watch;

/// A point of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The runtime has made the commit, and the worker has not sent it to the store.
    Before,
    /// The worker sends the commit to the store. The commit continues, and the kill follows shortly after.
    Within,
    /// The store has answered, and the answer is in the commit log. The runtime does not get it.
    After,
}

impl Point {
    pub(crate) const ALL: [Self; 3] = [Self::Before, Self::Within, Self::After];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Within => "within",
            Self::After => "after",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.name() == name)
    }
}

/// An order of the supervisor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Print the point when the next commit reaches it, and wait there.
    Pause(Point),
    /// Hold back turns of at least this many bytes until they are released.
    Hold(usize),
    /// Pass the held turns to the store.
    Release,
    Stop,
}

impl Order {
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let unknown = || format!("the order `{line}` is unknown");
        match line.split_once(' ').unwrap_or((line, "")) {
            ("pause", point) => Point::parse(point).map(Self::Pause).ok_or_else(unknown),
            ("hold", bytes) => bytes.parse().map(Self::Hold).map_err(|_| unknown()),
            ("release", "") => Ok(Self::Release),
            ("stop", "") => Ok(Self::Stop),
            _ => Err(unknown()),
        }
    }
}

/// The orders that are in force.
#[derive(Default)]
pub(super) struct PausePoints {
    /// The number of a point, which the next commit takes; 0 for none.
    point: AtomicU8,
    /// Turns of at least this many bytes are held back.
    held_from: watch::Sender<Option<usize>>,
}

impl PausePoints {
    pub(super) fn arm(&self, point: Point) {
        let number = Point::ALL.iter().position(|other| *other == point).unwrap_or(0) + 1;
        self.point.store(u8::try_from(number).unwrap_or(0), Ordering::SeqCst);
    }

    pub(super) fn take_point(&self) -> Option<Point> {
        let number = usize::from(self.point.swap(0, Ordering::SeqCst));
        Point::ALL.get(number.checked_sub(1)?).copied()
    }

    pub(super) fn hold(&self, bytes: usize) {
        self.held_from.send_replace(Some(bytes));
    }

    pub(super) fn release(&self) {
        self.held_from.send_replace(None);
    }

    /// The size from which turns are held back, if any are.
    pub(super) fn held_from(&self) -> Option<usize> {
        *self.held_from.borrow()
    }

    pub(super) async fn released(&self) {
        // It cannot fail, because `self` owns the sender.
        let _ = self.held_from.subscribe().wait_for(Option::is_none).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn armed_pause_point_is_taken_by_one_commit() {
        let pause_points = PausePoints::default();
        assert_eq!(pause_points.take_point(), None);
        for point in Point::ALL {
            pause_points.arm(point);
            assert_eq!((pause_points.take_point(), pause_points.take_point()), (Some(point), None));
            assert_eq!(Order::parse(&format!("pause {}", point.name())), Ok(Order::Pause(point)));
        }
        assert_eq!(Order::parse("stop"), Ok(Order::Stop));
        for line in ["pause now", "hold", "hold all", "release now", "", "go"] {
            assert!(Order::parse(line).is_err(), "{line}");
        }
    }

    #[tokio::test]
    async fn held_turns_wait_for_their_release() {
        assert_eq!(Order::parse("hold 100"), Ok(Order::Hold(100)));
        assert_eq!(Order::parse("release"), Ok(Order::Release));
        let pause_points = PausePoints::default();
        pause_points.released().await;
        assert_eq!(pause_points.held_from(), None);
        pause_points.hold(100);
        assert_eq!(pause_points.held_from(), Some(100));
        let waits = tokio::select! {
            biased;
            () = pause_points.released() => false,
            () = std::future::ready(()) => true,
        };
        assert!(waits);
        pause_points.release();
        pause_points.released().await;
    }
}
