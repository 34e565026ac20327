//! The result of a select: the first of several futures.

/// The first of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Either2<A, B> {
    /// The first argument.
    First(A),
    /// The second argument.
    Second(B),
}

impl<A, B> Either2<A, B> {
    /// Whether the first argument won.
    pub fn is_first(&self) -> bool {
        matches!(self, Self::First(_))
    }

    /// Whether the second argument won.
    pub fn is_second(&self) -> bool {
        matches!(self, Self::Second(_))
    }

    /// 0 or 1.
    pub fn index(&self) -> usize {
        match self {
            Self::First(_) => 0,
            Self::Second(_) => 1,
        }
    }
}

impl<T> Either2<T, T> {
    /// Index and output.
    pub fn into_tuple(self) -> (usize, T) {
        match self {
            Self::First(output) => (0, output),
            Self::Second(output) => (1, output),
        }
    }
}

/// The first of three.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Either3<A, B, C> {
    /// The first argument.
    First(A),
    /// The second argument.
    Second(B),
    /// The third argument.
    Third(C),
}

impl<A, B, C> Either3<A, B, C> {
    /// 0, 1 or 2.
    pub fn index(&self) -> usize {
        match self {
            Self::First(_) => 0,
            Self::Second(_) => 1,
            Self::Third(_) => 2,
        }
    }
}

impl<T> Either3<T, T, T> {
    /// Index and output.
    pub fn into_tuple(self) -> (usize, T) {
        match self {
            Self::First(output) => (0, output),
            Self::Second(output) => (1, output),
            Self::Third(output) => (2, output),
        }
    }
}
