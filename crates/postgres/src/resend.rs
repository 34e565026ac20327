//! Requests whose transaction was lost: which are sent again, and which fail.
//!
//! | request | after its transaction was lost |
//! |---|---|
//! | commit, completion, fused outcomes, lease given back: fenced by tokens | sent again over a new connection; if the first attempt was stored, the second is refused, and the store recognises its own commit |
//! | renewal | sent again until the server is back: after an error the runtime would treat the lease as lost |
//! | texts of messages that are read | sent again |
//! | start, with or without its first turn, message, activity of a client | fails with an error that says that the outcome is unknown: sent again, it could be stored twice |

use crate::PostgresError;
use crate::batch::{Batch, instance_of};
use crate::db::{Param, Result, cell, column, unsigned};
use crate::request::{Attempts, Commit, Committed, Fence, Request};
use crate::shared::Shared;
use crate::text::owned;
use outlast_provider_kit::invalid_token;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::types::Type;

/// The largest number of attempts at a request.
const MOST_ATTEMPTS: u32 = 10;
/// The time for which a request is sent again, in deadlines. After that its lease is over.
const MOST_DEADLINES: u32 = 3;

impl Attempts {
    /// The next attempt, if there is one.
    fn next(self, shared: &Shared, cause: &PostgresError) -> Option<Self> {
        let since = self.in_doubt.map_or(Duration::ZERO, |since| since.elapsed());
        let is_over = self.made >= MOST_ATTEMPTS || since > shared.db.deadline * MOST_DEADLINES;
        (cause.is_retryable() && !is_over && !shared.is_closed())
            .then_some(Self { made: self.made + 1, ..self })
    }

    /// The attempts of a request whose result is unknown.
    pub(crate) fn mark_unknown(self) -> Self {
        Self { in_doubt: self.in_doubt.or_else(|| Some(Instant::now())), ..self }
    }
}

/// Fails the requests of a batch of which nothing is stored. Renewals are sent again, and so are fenced requests if they were in
/// doubt before or the server was silent.
pub(crate) fn give_up(shared: &Arc<Shared>, batch: Batch, cause: &PostgresError) {
    let (client_requests, fenced) = batch.into_parts();
    for request in client_requests {
        fail(request, cause);
    }
    for request in fenced {
        // A silent server has cost the caller a whole deadline: an error would cost it the lease too.
        let repeats = matches!(request, Request::Renew(_))
            || matches!(cause, PostgresError::Silent { .. })
            || request.is_in_doubt();
        match request.attempts().filter(|_| repeats).and_then(|attempts| attempts.next(shared, cause)) {
            Some(attempts) => send_later(shared, request, attempts),
            None if request.is_in_doubt() => fail_unknown(request, cause),
            None => fail(request, cause),
        }
    }
}

/// Fails or resends the requests of a batch of which it is unknown whether it is stored.
pub(crate) fn resend_or_fail_unknown(shared: &Arc<Shared>, batch: Batch, cause: &PostgresError) {
    let (client_requests, fenced) = batch.into_parts();
    for request in client_requests {
        fail_unknown(request, cause);
    }
    for request in fenced {
        match request.attempts().and_then(|attempts| attempts.mark_unknown().next(shared, cause)) {
            Some(attempts) => send_later(shared, request, attempts),
            None => fail_unknown(request, cause),
        }
    }
}

/// Submits a request again after a pause that grows with the attempts.
fn send_later(shared: &Arc<Shared>, mut request: Request, attempts: Attempts) {
    shared.db.counters.resent.add(1);
    request.set_attempts(attempts);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50 * u64::from(attempts.made))).await;
        shared.submit(request);
    });
}

/// Fails a request. The error of a panic names the instance of the request.
fn fail(request: Request, cause: &PostgresError) {
    match cause {
        PostgresError::Panicked { details, .. } => {
            let own = PostgresError::Panicked { instance: request.subject(), details: details.clone() };
            request.fail(&own);
        }
        cause => request.fail(cause),
    }
}

/// Fails a request with an error that says that its outcome is unknown, and why.
fn fail_unknown(request: Request, cause: &PostgresError) {
    match cause {
        PostgresError::Panicked { .. } => fail(request, cause),
        // A read has no outcome that could be in doubt.
        cause if matches!(request, Request::ReadTexts(_)) => fail(request, cause),
        cause => {
            let unknown = PostgresError::Unknown { instance: request.subject(), details: cause.to_string() };
            request.fail(&unknown);
        }
    }
}

/// Replies to a commit that was refused after an earlier attempt in doubt: it may have been refused because the earlier attempt
/// was stored. No other worker writes the same events, since their times and contents belong to one run of the turn. An outcome
/// that waits for a turn keeps the lease that completed it: another worker may have completed the activity with the same text.
pub(crate) fn reply_if_already_stored(shared: &Arc<Shared>, commit: Commit) {
    tokio::spawn(reply_if_stored(Arc::clone(shared), commit));
}

/// Replies with the result of the earlier attempt if that attempt was stored, else with the refusal.
async fn reply_if_stored(shared: Arc<Shared>, commit: Commit) {
    match stored(&shared, &commit).await {
        Ok(Some(completion)) => {
            if commit.plan.is_some() {
                let ended = commit.plan.as_ref().is_some_and(outlast_provider_kit::CommitPlan::ends_instance);
                shared.watches.committed(instance_of(&commit), ended);
            }
            commit.reply.send(Ok(completion));
        }
        Ok(None) => reply_refused(commit),
        Err(error) => {
            fail_unknown(Request::Commit(Box::new(commit)), &error);
        }
    }
}

/// Replies to a commit that the server refused, and of which nothing is stored.
pub(crate) fn reply_refused(commit: Commit) {
    match &commit.fence {
        Fence::Fused { .. } | Fence::Unknown { .. } => commit.reply.send(Ok(Committed::Unchanged)),
        Fence::Lease(_) => {
            let token = commit.token();
            commit.reply.refuse(invalid_token(&token));
        }
    }
}

/// The result of the earlier attempt, if it was stored.
async fn stored(shared: &Shared, commit: &Commit) -> Result<Option<Committed>> {
    let db = &shared.db;
    #[cfg(feature = "test-hooks")]
    if let Some(link) = &db.modelled {
        return link.stored_commit(commit).await;
    }
    let instance = owned(instance_of(commit));
    let (mut execution, mut ids, mut texts) = (0, Vec::new(), Vec::new());
    if let Some(plan) = &commit.plan {
        execution = column(plan.execution_id);
        for row in &plan.history {
            ids.push(column(row.event_id));
            texts.push(row.event_data.as_str());
        }
    }
    let origin: &[u8] = commit.fence.lease().map_or(&[], |lease| lease.secret());
    let wanted: [Param<'_>; 5] = [
        (&instance, Type::TEXT),
        (&execution, Type::INT8),
        (&ids, Type::INT8_ARRAY),
        (&texts, Type::TEXT_ARRAY),
        (&origin, Type::BYTEA),
    ];
    let Some(row) = db.one(&db.statements.stored_commit, &wanted).await? else { return Ok(None) };
    let (events, is_queued) = (unsigned(&row, "events")?, cell::<bool>(&row, "is_queued")?);
    let at = cell::<Option<i64>>(&row, "updated_at")?;
    Ok(match at {
        Some(at) if !ids.is_empty() && events == ids.len() as u64 => {
            Some(Committed::WithTurn { at_ms: u64::try_from(at).unwrap_or(0) })
        }
        _ => is_queued.then_some(Committed::Queued),
    })
}
