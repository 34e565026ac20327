//! The two queues of a store: turns and activities.

/// One value for each queue, of the same type or of a type of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct PerQueue<T, A = T> {
    pub(crate) turns: T,
    pub(crate) activities: A,
}

impl<T> PerQueue<T> {
    pub(crate) fn map<U>(self, mut of: impl FnMut(T) -> U) -> PerQueue<U> {
        PerQueue { turns: of(self.turns), activities: of(self.activities) }
    }

    pub(crate) fn zip<U>(self, other: PerQueue<U>) -> PerQueue<(T, U)> {
        PerQueue { turns: (self.turns, other.turns), activities: (self.activities, other.activities) }
    }
}

/// A set of queues.
impl PerQueue<bool> {
    pub(crate) const BOTH: Self = Self { turns: true, activities: true };
    pub(crate) const TURNS: Self = Self { turns: true, activities: false };

    pub(crate) fn is_any(self) -> bool {
        self.turns || self.activities
    }

    pub(crate) fn and(self, other: Self) -> Self {
        self.zip(other).map(|(one, other)| one && other)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        self.zip(other).map(|(one, other)| one || other)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        self.zip(other).map(|(one, other)| one && !other)
    }
}
