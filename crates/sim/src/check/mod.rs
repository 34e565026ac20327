//! The invariants, judged from the store's rows and from what was observed at its border.
//!
//! | | invariant | where |
//! |---|---|---|
//! | I1 | an instance whose start was taken is there, or its start waits | `presence` |
//! | I2 | a history only grows, and its ids have no gaps | `snapshot`, `history` |
//! | I3 | each scheduled operation has at most one outcome; each message that was taken is there exactly once | `history`, `presence` |
//! | I4 | each outcome was asked for, and an activity that completed was run | `history` |
//! | I5 | the outcome of an activity that was taken is in history or queue; an open activity or child is somewhere | `presence` |
//! | I6 | at most one lease on anything is alive by the store's clock, and nothing happens under one that ended | `Leases` in `witness.rs` |
//! | I7 | when the faults stop, everything ends | `ending` |
//! | I8 | nothing follows the commit that ended an execution | `history` |
//! | I9 | a history replays, and decides nothing new; a turn that ran warm decides the same from a cold start | `replay` |
//! | I10 | when everything has ended, no message, activity, lease or session is left but orphans, which are counted | `queues` |
//! | I11 | what clients are told fits one order of events | `control` |
//! | I12 | SQLite and the memory store, given the same calls, answer the same and hold the same | `mirror.rs` |
//! | I13 | the store's figures add up and agree with its rows | `totals` |
//! | I14 | nobody loses a lease to whom nothing has happened since it was given | `Leases` in `witness.rs` |
//! | T1 | no timer fires before its time | `history` |
//! | O1 | every program prints what it must | `ending`, `program/expect.rs` |
//! | S1 | a shutdown keeps its promise of time | `node.rs` |
//! | P1 | nothing panics | `panics.rs` |

mod control;
pub(crate) mod ending;
mod history;
mod presence;
pub(crate) mod queues;
pub(crate) mod replay;
mod snapshot;
mod totals;

pub(crate) use control::Control;
pub(crate) use snapshot::{Recorder, Snapshot};

use crate::shared::Shared;

/// Looks at everything once. Nothing goes wrong with a look of ours.
pub(crate) async fn everything(shared: &Shared, recorder: &mut Recorder) -> Result<Snapshot, String> {
    let was_armed = shared.backend.statements.arm(false);
    let looked = look(shared, recorder).await;
    shared.backend.statements.arm(was_armed);
    looked
}

async fn look(shared: &Shared, recorder: &mut Recorder) -> Result<Snapshot, String> {
    let snapshot = recorder.record(&shared.backend.dump().await?)?;
    history::check(shared, &snapshot)?;
    presence::check(&shared.witness(), &snapshot)?;
    totals::check(shared, &snapshot).await?;
    replay::check(shared, &snapshot).await?;
    Ok(snapshot)
}
