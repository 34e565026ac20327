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
//! | T1 | no timer fires before its time | `history` |
//! | O1 | every program prints what it must | `ending`, `program/expect.rs` |
//! | S1 | a shutdown keeps its promise of time | `node.rs` |
//! | P1 | nothing panics | `panics.rs` |

pub(crate) mod ending;
mod history;
mod presence;
pub(crate) mod replay;
mod snapshot;

pub(crate) use snapshot::{Recorder, Snapshot};

use crate::shared::Shared;

/// Looks at everything once.
pub(crate) async fn everything(shared: &Shared, recorder: &mut Recorder) -> Result<Snapshot, String> {
    let snapshot = recorder.record(&shared.store.dump())?;
    history::check(shared, &snapshot)?;
    presence::check(&shared.witness(), &snapshot)?;
    replay::check(shared, &snapshot).await?;
    Ok(snapshot)
}
