//! The message queue of an instance.

use std::fmt;

/// The execution of the parent that waits for a child; `None` for the parent itself.
pub(super) type Link = Option<u8>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Message {
    Start {
        link: Link,
    },
    Successor {
        link: Link,
    },
    Cancel,
    /// Any other message that wakes an instance.
    Poke,
    /// The outcome of a child: it has ended, or its id is taken.
    Answer {
        execution: u8,
        taken: bool,
    },
}

const KINDS: usize = 12;

/// All messages.
const ALL: [Message; KINDS] = [
    Message::Start { link: None },
    Message::Start { link: Some(1) },
    Message::Start { link: Some(2) },
    Message::Successor { link: None },
    Message::Successor { link: Some(1) },
    Message::Successor { link: Some(2) },
    Message::Cancel,
    Message::Poke,
    Message::Answer { execution: 1, taken: false },
    Message::Answer { execution: 1, taken: true },
    Message::Answer { execution: 2, taken: false },
    Message::Answer { execution: 2, taken: true },
];

/// The index of a message in [`ALL`].
fn kind(message: Message) -> usize {
    let link = |link: Link| usize::from(link.unwrap_or(0));
    match message {
        Message::Start { link: of } => link(of),
        Message::Successor { link: of } => 3 + link(of),
        Message::Cancel => 6,
        Message::Poke => 7,
        Message::Answer { execution, taken } => 6 + 2 * usize::from(execution) + usize::from(taken),
    }
}

#[test]
fn every_message_has_its_own_index() {
    let places: Vec<usize> = ALL.into_iter().map(kind).collect();
    assert_eq!(places, (0..KINDS).collect::<Vec<_>>());
}

/// A multiset of messages: the number of each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::model) struct Bag([u8; KINDS]);

impl Bag {
    pub(in crate::model) fn put(&mut self, message: Message) {
        self.0[kind(message)] += 1;
    }

    pub(in crate::model) fn take_all(&mut self, part: Self) {
        for (there, taken) in self.0.iter_mut().zip(part.0) {
            *there -= taken;
        }
    }

    pub(in crate::model) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each message as often as it occurs.
    pub(in crate::model) fn iter(&self) -> impl Iterator<Item = Message> {
        ALL.into_iter().zip(self.0).flat_map(|(message, count)| std::iter::repeat_n(message, count.into()))
    }

    pub(in crate::model) fn has(&self, message: Message) -> bool {
        self.0[kind(message)] > 0
    }

    /// All non-empty subsets.
    pub(in crate::model) fn parts(&self) -> Vec<Self> {
        let mut parts = vec![Self::default()];
        for kind in (0..KINDS).filter(|kind| self.0[*kind] > 0) {
            for nth in 0..parts.len() {
                for count in 1..=self.0[kind] {
                    let mut part = parts[nth];
                    part.0[kind] = count;
                    parts.push(part);
                }
            }
        }
        parts.split_off(1)
    }
}

impl fmt::Debug for Bag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
