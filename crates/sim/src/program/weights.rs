//! How often the generator draws each step, and at which depth.

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Ask,
    FanOut,
    First,
    Timer,
    Race,
    Race3,
    TwoRaces,
    Mixed,
    Retry,
    Child,
    ChildRace,
    CancelledChild,
    LeaveChild,
    LeaveActivity,
    ReadChild,
    Detached,
    Dequeue,
    DequeueOrLeave,
    Drain,
    Signal,
    Count,
    Keys,
    Clear,
    Status,
    Now,
    Guid,
    Look,
    Version,
}

/// The depths at which a step can occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    /// Not in the deepest programs, because the step has a child.
    Parent,
    /// Only in roots, because clients send messages only to roots.
    Root,
}

/// The weights. Basic steps are drawn more often, and steps that make a world long less often.
pub(super) const WEIGHTS: &[(u64, Place, Kind)] = &[
    (18, Place::Anywhere, Kind::Call),
    (4, Place::Anywhere, Kind::Ask),
    (8, Place::Anywhere, Kind::FanOut),
    (5, Place::Anywhere, Kind::First),
    (8, Place::Anywhere, Kind::Timer),
    (10, Place::Anywhere, Kind::Race),
    (4, Place::Root, Kind::Race3),
    (4, Place::Anywhere, Kind::TwoRaces),
    (3, Place::Parent, Kind::Mixed),
    (9, Place::Anywhere, Kind::Retry),
    (12, Place::Parent, Kind::Child),
    (6, Place::Parent, Kind::ChildRace),
    (3, Place::Root, Kind::CancelledChild),
    (3, Place::Parent, Kind::LeaveChild),
    (3, Place::Anywhere, Kind::LeaveActivity),
    (3, Place::Parent, Kind::ReadChild),
    (5, Place::Root, Kind::Detached),
    (16, Place::Root, Kind::Dequeue),
    (4, Place::Root, Kind::DequeueOrLeave),
    (1, Place::Root, Kind::Drain),
    (7, Place::Root, Kind::Signal),
    (9, Place::Anywhere, Kind::Count),
    (3, Place::Anywhere, Kind::Keys),
    (4, Place::Anywhere, Kind::Clear),
    (5, Place::Anywhere, Kind::Status),
    (4, Place::Anywhere, Kind::Now),
    (3, Place::Anywhere, Kind::Guid),
    (3, Place::Anywhere, Kind::Look),
    (3, Place::Anywhere, Kind::Version),
];

/// The kind that a draw below the total weight selects among those that fit.
pub(super) fn choose(fits: impl Fn(Place) -> bool + Copy, draw: impl FnOnce(u64) -> u64) -> Kind {
    let fitting = || WEIGHTS.iter().filter(move |(_, place, _)| fits(*place));
    let mut left = draw(fitting().map(|(weight, ..)| weight).sum());
    for (weight, _, kind) in fitting() {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return *kind,
        }
    }
    Kind::Call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_drawn_and_only_where_it_fits() {
        let total: u64 = WEIGHTS.iter().map(|(weight, ..)| weight).sum();
        for (_, _, kind) in WEIGHTS {
            assert!((0..total).any(|at| choose(|_| true, |_| at) == *kind), "{kind:?}");
        }
        let anywhere = |place| place == Place::Anywhere;
        assert!((0..total).all(|at| choose(anywhere, |most| at % most) != Kind::Dequeue));
    }
}
