//! The two queues of a store: turns and activities.

/// One value for each queue, of the same type or of a type of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PerQueue<T, A = T> {
    pub(crate) turns: T,
    pub(crate) activities: A,
}

/// A set of queues.
impl PerQueue<bool> {
    pub(crate) const BOTH: Self = Self { turns: true, activities: true };
    pub(crate) const NONE: Self = Self { turns: false, activities: false };
}
