//! The facts about a turn that its fetch writes into the lock token.

use std::fmt;

/// A turn when it was fetched. Only the holder of the lease changes these facts, so the commit does not read them again.
///
/// The key of a lock token has the text `3.7p.name`: execution 3, 7 messages, a `p` for a partial batch, and the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnAtFetch<I> {
    /// The instance's current execution, 0 if the instance has no row.
    pub current_execution: u64,
    /// The number of messages that the lease covers.
    pub messages: usize,
    /// Whether the instance had more visible messages than a fetch takes.
    pub is_partial: bool,
    /// The instance.
    pub instance: I,
}

impl<'a> TurnAtFetch<&'a str> {
    /// Reads the key of a token; `None` if the text is not such a key.
    pub fn parse(key: &'a str) -> Option<Self> {
        let (execution, rest) = key.split_once('.')?;
        let (messages, instance) = rest.split_once('.')?;
        let (messages, is_partial) = match messages.strip_suffix('p') {
            Some(messages) => (messages, true),
            None => (messages, false),
        };
        let (current_execution, messages) = (execution.parse().ok()?, messages.parse().ok()?);
        Some(Self { current_execution, messages, is_partial, instance })
    }

    /// The same facts with a copy of the instance.
    pub fn to_owned(self) -> TurnAtFetch<String> {
        let Self { current_execution, messages, is_partial, instance } = self;
        TurnAtFetch { current_execution, messages, is_partial, instance: instance.to_string() }
    }
}

impl<I: fmt::Display> fmt::Display for TurnAtFetch<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partial = if self.is_partial { "p" } else { "" };
        write!(f, "{}.{}{partial}.{}", self.current_execution, self.messages, self.instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_even_if_the_instance_looks_like_a_key() {
        for (is_partial, text) in [(false, "3.7.1.2p.🦀"), (true, "3.7p.1.2p.🦀")] {
            let turn = TurnAtFetch { current_execution: 3, messages: 7, is_partial, instance: "1.2p.🦀" };
            assert_eq!((turn.to_string().as_str(), turn.to_owned().to_string().as_str()), (text, text));
            assert_eq!(TurnAtFetch::parse(text), Some(turn));
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "7", "3.7", "x.7.i", "3.x.i", "3.p.i", "-3.7.i"] {
            assert_eq!(TurnAtFetch::parse(text), None, "{text}");
        }
    }
}
