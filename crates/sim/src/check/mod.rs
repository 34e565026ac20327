//! The invariants of a world. They are checked against the store's rows, the calls that the store performed, and the answers that
//! clients received.
//!
//! | | invariant | where |
//! |---|---|---|
//! | I1 | an instance whose start was accepted is stored, or its start is queued | `presence` |
//! | I2 | a history only grows, and its ids have no gaps | `snapshot`, `history` |
//! | I3 | each scheduled operation has at most one outcome; each accepted message is stored exactly once | `history`, `presence` |
//! | I4 | each outcome belongs to a scheduled operation, and a completed activity ran | `history` |
//! | I5 | an accepted outcome of an activity is in the history or in the queue; an open activity or child is stored | `presence` |
//! | I6 | by the store's clock, each instance and activity has at most one live lease, and no call succeeds under an ended lease | `leases.rs` |
//! | I7 | after the faults stop, a process takes every available message and activity within a lease and the terms of `liveness`, an event follows within the same terms, and every instance ends | `liveness`, `ending` |
//! | I8 | no event follows the commit that ended an execution | `history` |
//! | I9 | a stored history replays without new decisions; a turn decides the same warm and from a cold start | `replay` |
//! | I10 | after all instances have ended, the store holds no message, activity, lease or session except orphans, which are counted | `queues` |
//! | I11 | the answers to all clients fit one order of events | `client_answers` |
//! | I12 | SQLite and the memory store give the same answers to the same calls and hold the same rows | `mirror.rs` |
//! | I13 | the store's figures add up and agree with its rows | `totals` |
//! | I14 | a node that was not disturbed since a lease was granted does not lose it | `leases.rs` |
//! | I15 | a queue delivers the messages of a client in their order; a turn that was given back for a hold is not counted; no turn of a held instance is fetched | `history`, `performed.rs`, `store/operator.rs` |
//! | I16 | the audit has one record for each change of an operator or runtime, and no other; a caller that crashes or gets no answer may leave its record out, but that of a reset or fork | `records`, `audit.rs` |
//! | I17 | a delivery of an activity reports the failures that were noted, each once, and the text of the last one | `performed.rs` |
//! | D1 | columns of a store that repeat other columns agree with them | `snapshot` |
//! | R1 | a reset or fork loses none of the events before it, and no message; its program returns the expected output | `history`, `presence`, `ending` |
//! | B1 | a process that opens an up-to-date store, and one that reads it, need no lock that another process holds | `call.rs`, `node.rs` |
//! | T1 | no timer fires before its time | `history` |
//! | O1 | every program returns its expected output | `ending`, `program/expect.rs` |
//! | S1 | a shutdown ends within twice its grace period | `node.rs` |
//! | P1 | no code panics, except activities that are planned to | `world.rs` |

mod client_answers;
pub(crate) mod ending;
mod history;
pub(crate) mod liveness;
mod presence;
pub(crate) mod queues;
mod records;
pub(crate) mod replay;
mod snapshot;
mod totals;

pub(crate) use client_answers::ClientAnswers;
pub(crate) use snapshot::{Recorder, Snapshot};

use crate::shared::Shared;

/// Checks all invariants that hold at any time. No fault happens during the check.
pub(crate) async fn check_world(shared: &Shared, recorder: &mut Recorder) -> Result<Snapshot, String> {
    let was_armed = shared.backend.statements.arm(false);
    let checked = check_all(shared, recorder).await;
    shared.backend.statements.arm(was_armed);
    checked
}

async fn check_all(shared: &Shared, recorder: &mut Recorder) -> Result<Snapshot, String> {
    let snapshot = recorder.record(&shared.backend.dump().await?)?;
    history::check(shared, &snapshot)?;
    presence::check(shared, &snapshot)?;
    totals::check(shared, &snapshot).await?;
    records::check(shared).await?;
    replay::check(shared, &snapshot).await?;
    Ok(snapshot)
}
