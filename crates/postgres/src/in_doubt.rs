//! Leases in doubt: leases that a lost transaction may have taken, and that no fetch received.

use crate::contain::contained;
use crate::db::{Db, Result, cell, text};
use crate::reply::Reply;
use crate::request::{Abandon, Attempts, Lease, Request};
use crate::shared::Shared;
use crate::steps::Step;
use outlast_provider_kit::TurnAtFetch;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The number of searches for the leases: the server may commit the transaction after the client has lost it.
const SEARCHES: u32 = 5;
/// The first pause between searches; each pause is twice as long as the one before, up to a bound.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Leases whose commit is in doubt.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeasesInDoubt {
    /// The secrets of the leases. No fetch received them, so no worker loses a lease.
    pub(crate) secrets: Vec<Vec<u8>>,
    /// The time after which the leases expire.
    pub(crate) lasts: Duration,
}

/// Gives the leases back as soon as the server can be reached, and counts no delivery, so that other fetches need not wait until
/// the leases expire.
pub(crate) async fn give_back(shared: Arc<Shared>, in_doubt: LeasesInDoubt) {
    let begun = Instant::now();
    let (mut searches, mut pause) = (0, PAUSE);
    // A transaction that the network held back may reach the server for as long as the operating system resends it.
    let late = |searches: u32| searches < SEARCHES || begun.elapsed() < shared.db.deadline;
    while late(searches) && begun.elapsed() < in_doubt.lasts && !shared.is_closed() {
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let search = contained(async {
            shared.fault(Step::GiveBack, Vec::new);
            find(&shared.db, &in_doubt.secrets).await
        });
        // An error shows that the server is still away.
        match search.await {
            Ok(Ok(leases)) => {
                searches += 1;
                leases.into_iter().for_each(|lease| release(&shared, lease));
            }
            Ok(Err(_)) => {}
            Err(panic) => shared.panicked("giving leases back", &panic),
        }
    }
}

/// Gives a lease back, and does not count its delivery.
pub(crate) fn release(shared: &Shared, lease: Lease) {
    let (sender, _) = oneshot::channel();
    let reply = Reply::new("release", sender);
    let attempts = Attempts::default();
    shared.submit(Request::Abandon(Abandon {
        lease,
        delay_ms: None,
        ignore_attempt: true,
        note: None,
        reply,
        attempts,
    }));
}

async fn find(db: &Db, secrets: &Vec<Vec<u8>>) -> Result<Vec<Lease>> {
    #[cfg(feature = "test-hooks")]
    if let Some(link) = &db.modelled {
        return link.leases_in_doubt(secrets).await;
    }
    let rows = db.all(&db.statements.leases_in_doubt, &[(secrets as _, Type::BYTEA_ARRAY)]).await?;
    rows.iter().map(lease).collect()
}

/// Reads a lease from the row of its turn or activity. Only the fields that a return of the lease needs are set.
fn lease(row: &Row) -> Result<Lease> {
    let secret = cell::<&[u8]>(row, "lock_token")?.try_into().unwrap_or_default();
    Ok(match cell::<Option<i64>>(row, "activity_id")? {
        Some(id) => Lease::Activity { secret, id },
        None => {
            let (current_execution, messages, is_partial) = (0, 0, false);
            let instance = text(row, "instance_id")?;
            let at_fetch = TurnAtFetch { current_execution, messages, is_partial, instance };
            Lease::Turn { secret, at_fetch }
        }
    })
}
