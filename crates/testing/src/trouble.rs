//! The ways in which a run cannot be judged: the test itself, or the code under test, is at fault.

use std::fmt;

/// A problem that ends a run before the instance ends. [`Test::run`](crate::Test::run) panics with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// The module, its states or the options are not valid.
    Start(String),
    /// The code made other decisions when it was replayed.
    NotDeterministic(String),
    /// An activity or orchestration is neither in the module nor mocked.
    Unregistered(String),
    /// The instance waits for something that does not happen.
    Stuck(String),
    /// The run makes calls to the store without end.
    Runaway(String),
    /// An action of the test failed: a message that could not be sent.
    Action(String),
    /// The instance of [`Test::fail_everywhere`](crate::Test::fail_everywhere) fails without a fault.
    FailsAnyway(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(text) => write!(f, "the test could not begin: {text}"),
            Self::NotDeterministic(text) => write!(f, "the orchestration is not deterministic: {text}"),
            Self::Unregistered(text)
            | Self::Stuck(text)
            | Self::Runaway(text)
            | Self::Action(text)
            | Self::FailsAnyway(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Trouble {}
