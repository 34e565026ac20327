//! The two queues of a store: turns and activities.

/// One value for each queue, of the same type or of a type of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PerQueue<T, A = T> {
    /// The value of the queue of messages, which fetches take as turns.
    pub turns: T,
    /// The value of the queue of activities.
    pub activities: A,
}

impl<T> PerQueue<T> {
    /// The results of a function for both values.
    pub fn map<U>(self, mut of: impl FnMut(T) -> U) -> PerQueue<U> {
        PerQueue { turns: of(self.turns), activities: of(self.activities) }
    }

    /// The values of both queues in pairs.
    pub fn zip<U>(self, other: PerQueue<U>) -> PerQueue<(T, U)> {
        PerQueue { turns: (self.turns, other.turns), activities: (self.activities, other.activities) }
    }
}

/// A set of queues.
impl PerQueue<bool> {
    /// Both queues.
    pub const BOTH: Self = Self { turns: true, activities: true };
    /// No queue.
    pub const NONE: Self = Self { turns: false, activities: false };
    /// The queue of messages.
    pub const TURNS: Self = Self { turns: true, activities: false };

    /// Whether the set has a queue.
    pub fn is_any(self) -> bool {
        self.turns || self.activities
    }

    /// The queues that are in both sets.
    pub fn and(self, other: Self) -> Self {
        self.zip(other).map(|(one, other)| one && other)
    }

    /// The queues that are in one of the sets.
    pub fn or(self, other: Self) -> Self {
        self.zip(other).map(|(one, other)| one || other)
    }

    /// The queues of this set that are not in the other one.
    pub fn without(self, other: Self) -> Self {
        self.zip(other).map(|(one, other)| one && !other)
    }
}
