//! Models of the protocols of the store. The checker visits every order of events, not a sample.
//!
//! | model | of |
//! |---|---|
//! | [`commit`] | lock, staged and plain commit, renewal, takeover, requests that arrive late, doubt |
//! | [`ahead`] | run-ahead commits beside messages from outside |
//! | [`outbox`] | messages between instances, delivered more than once |
//! | [`hints`] | ready work is found although hints are lost and dispatch slots move |
//! | [`slots`] | the slot table with runtimes that die, stall and join |
//! | [`delete`] | deletion of several instances by a record |
//!
//! The models call the functions of this crate that ship, and add the service: documents, conditions and requests in flight.
//! Each protocol without a bug keeps all its properties, and each known bug breaks the properties listed beside it.

mod ahead;
mod commit;
mod delete;
mod hints;
mod outbox;
mod search;
mod slots;

use search::{check_bugs, check_sound};

/// Two tests for each protocol.
macro_rules! checked {
    ($name:ident, $protocol:ty, $least_states:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn keeps_every_property() {
                let states = check_sound::<$protocol>(stringify!($name));
                assert!(states >= $least_states, "{states} states: a bound excludes most of the protocol");
            }

            #[test]
            fn every_known_bug_breaks_its_properties() {
                check_bugs::<$protocol>();
            }
        }
    };
}

mod checked {
    use super::*;

    checked!(commit, super::super::commit::Commits, 50_000);
    checked!(ahead, super::super::ahead::RunAhead, 1_000);
    checked!(outbox, super::super::outbox::Outbox, 1_000);
    checked!(hints, super::super::hints::Hints, 1_000);
    checked!(slots, super::super::slots::Slots, 1_000);
    checked!(delete, super::super::delete::Deletes, 1_000);
}
