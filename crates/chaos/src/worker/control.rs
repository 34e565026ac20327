//! Named points of a commit, where the supervisor may have the process stop to be killed.
//!
//! Our own few lines instead of a crate for failpoints: the points are calls of the contract, so a wrapper around the
//! store is enough, and the shipped code stays as it is.

use std::sync::atomic::{AtomicU8, Ordering};

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
    Stop,
}

impl Order {
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        match line.strip_prefix("pause ").and_then(Point::parse) {
            Some(point) => Ok(Self::Pause(point)),
            None if line == "stop" => Ok(Self::Stop),
            None => Err(format!("nobody can follow the order `{line}`")),
        }
    }
}

/// The point that is asked for, if any; taken by the first commit that comes by.
#[derive(Default)]
pub(super) struct Control(AtomicU8);

impl Control {
    pub(super) fn arm(&self, point: Point) {
        let number = Point::ALL.iter().position(|other| *other == point).unwrap_or(0) + 1;
        self.0.store(u8::try_from(number).unwrap_or(0), Ordering::SeqCst);
    }

    pub(super) fn take(&self) -> Option<Point> {
        let number = usize::from(self.0.swap(0, Ordering::SeqCst));
        Point::ALL.get(number.checked_sub(1)?).copied()
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
        assert!(Order::parse("pause now").is_err());
    }
}
