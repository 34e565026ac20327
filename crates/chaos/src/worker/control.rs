//! Named points of a commit, where the supervisor may have the process stop to be killed.
//!
//! Our own few lines instead of a crate for failpoints: the points are calls of the contract, so a wrapper around the
//! store is enough, and the shipped code stays as it is.

use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::watch;

/// Where a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The runtime has decided, the store knows nothing of it.
    Before,
    /// The store has been given the commit. It goes on; the kill comes some moment later.
    Within,
    /// The store has committed, the runtime does not know.
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

/// What the supervisor says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// At the next commit, say that this point is reached, and stay there.
    Pause(Point),
    /// Keep turns of at least this many bytes from the store until they are released.
    Hold(usize),
    /// Give the store the turns that are held.
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

/// What the supervisor has asked for.
#[derive(Default)]
pub(super) struct Control {
    /// The number of a point, taken by the first commit that comes by; 0 for none.
    point: AtomicU8,
    /// Turns of at least this many bytes are held.
    held_from: watch::Sender<Option<usize>>,
}

impl Control {
    pub(super) fn arm(&self, point: Point) {
        let number = Point::ALL.iter().position(|other| *other == point).unwrap_or(0) + 1;
        self.point.store(u8::try_from(number).unwrap_or(0), Ordering::SeqCst);
    }

    pub(super) fn take(&self) -> Option<Point> {
        let number = usize::from(self.point.swap(0, Ordering::SeqCst));
        Point::ALL.get(number.checked_sub(1)?).copied()
    }

    pub(super) fn hold(&self, bytes: usize) {
        self.held_from.send_replace(Some(bytes));
    }

    pub(super) fn release(&self) {
        self.held_from.send_replace(None);
    }

    /// The size from which turns are held, if any are.
    pub(super) fn held_from(&self) -> Option<usize> {
        *self.held_from.borrow()
    }

    pub(super) async fn released(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.held_from.subscribe().wait_for(Option::is_none).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_taken_once() {
        let control = Control::default();
        assert_eq!(control.take(), None);
        for point in Point::ALL {
            control.arm(point);
            assert_eq!((control.take(), control.take()), (Some(point), None));
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
        let control = Control::default();
        control.released().await;
        assert_eq!(control.held_from(), None);
        control.hold(100);
        assert_eq!(control.held_from(), Some(100));
        let waits = tokio::select! {
            biased;
            () = control.released() => false,
            () = std::future::ready(()) => true,
        };
        assert!(waits);
        control.release();
        control.released().await;
    }
}
