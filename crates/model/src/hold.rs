//! Holds: a held instance keeps its state and its messages, and a store delivers no turn of it.

/// Why an instance is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HoldKind {
    /// An operator paused the instance.
    Paused,
    /// An operator paused the orchestration of the instance.
    OrchestrationPaused,
    /// A runtime parked the instance, because its code does not fit the history, panics or is not registered.
    Parked,
}

impl HoldKind {
    /// The text by which a store keeps the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::OrchestrationPaused => "orchestration-paused",
            Self::Parked => "parked",
        }
    }

    /// The kind of a stored text. A store of a later release may hold a kind that this build does not know.
    pub fn from_text(text: &str) -> Option<Self> {
        match text {
            "paused" => Some(Self::Paused),
            "orchestration-paused" => Some(Self::OrchestrationPaused),
            "parked" => Some(Self::Parked),
            _ => None,
        }
    }
}

impl std::fmt::Display for HoldKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A hold to place on an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Why the instance is held.
    pub kind: HoldKind,
    /// The person, program or build that holds the instance.
    pub actor: String,
    /// The reason, for people.
    pub reason: String,
}

/// A held instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldInstance {
    /// The instance.
    pub instance_id: String,
    /// The hold as it was placed.
    pub hold: Hold,
    /// The store's time at which the hold was placed.
    pub held_at_ms: u64,
}

/// A paused orchestration: no runtime runs a turn of its instances, in whichever version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedOrchestration {
    /// The name of the orchestration.
    pub orchestration: String,
    /// The person or program that paused it.
    pub actor: String,
    /// The reason, for people.
    pub reason: String,
    /// The store's time at which it was paused.
    pub paused_at_ms: u64,
}

/// The numbers of held instances and of messages that wait for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldCounts {
    /// Held instances.
    pub instances: u64,
    /// Messages of held instances, due or not.
    pub messages: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip_through_their_texts() {
        for kind in [HoldKind::Paused, HoldKind::OrchestrationPaused, HoldKind::Parked] {
            assert_eq!(HoldKind::from_text(kind.as_str()), Some(kind));
            assert_eq!(kind.to_string(), kind.as_str());
        }
        assert_eq!(HoldKind::from_text("frozen"), None);
    }
}
