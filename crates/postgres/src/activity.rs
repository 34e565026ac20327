//! Gathers the activities of a fetch: decodes leased activities on the caller's task, and turns those that do not decode into dead
//! letters.

use crate::ask::FETCH_ACTIVITIES;
use crate::db::{Db, Param, Result};
use crate::leased::{Guarded, RawActivity};
use crate::request::{Answer, Lease};
use crate::text::owned;
use outlast_model::WorkItem;
use outlast_provider::FetchedWork;
use outlast_provider_kit::rows;
use tokio_postgres::types::Type;

/// The largest number of activities of one fetch, so that other fetches of the same poll receive activities too.
const MOST_ITEMS: usize = 256;

/// The activities of a fetch, guarded until the caller has them.
pub(crate) struct Gathered {
    most: usize,
    /// The activities that each poll has leased.
    decoded: Vec<Decoded>,
}

/// Leased activities, decoded where possible.
struct Decoded {
    leased: Guarded<Vec<RawActivity>>,
    items: Vec<Option<WorkItem>>,
}

impl Gathered {
    pub(crate) fn new(max_items: usize) -> Self {
        Self { most: max_items.min(MOST_ITEMS), decoded: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.decoded.is_empty()
    }

    /// The number of activities that the fetch may still have.
    pub(crate) fn missing(&self) -> usize {
        let items = self.decoded.iter().flat_map(|decoded| decoded.items.iter().flatten());
        self.most.saturating_sub(items.count())
    }

    /// Adds the activities that a poll has leased. Returns whether another poll is needed, which replaces activities that became
    /// dead letters.
    pub(crate) async fn add(
        &mut self,
        db: &Db,
        leased: Answer<Option<Guarded<Vec<RawActivity>>>>,
    ) -> Answer<bool> {
        let decoded = match leased {
            Ok(Some(leased)) => decoded(db, leased).await.map_err(|error| error.during(FETCH_ACTIVITIES)),
            Ok(None) => return Ok(false),
            Err(error) => Err(error),
        };
        match decoded {
            Ok(decoded) => {
                let is_damaged = decoded.items.iter().any(Option::is_none);
                if decoded.items.iter().any(Option::is_some) || !self.is_empty() {
                    self.decoded.push(decoded);
                }
                Ok(self.missing() > 0 && (is_damaged || self.is_empty()))
            }
            // Activities that are leased already must reach the caller.
            Err(_) if !self.is_empty() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn take(self) -> Vec<FetchedWork> {
        self.decoded.into_iter().flat_map(Decoded::take).collect()
    }
}

impl Decoded {
    fn take(self) -> Vec<FetchedWork> {
        let all = self.leased.take().unwrap_or_default();
        let whole = all.into_iter().zip(self.items).filter_map(|(activity, item)| Some((activity, item?)));
        whole
            .map(|(activity, item)| FetchedWork {
                item,
                lock_token: Lease::Activity { secret: activity.secret, id: activity.id }.text(),
                attempt_count: activity.attempts,
                notes: Some(activity.notes),
                orchestration: activity.orchestration,
                now_ms: Some(activity.now),
            })
            .collect()
    }
}

/// Decodes leased activities, and turns those that do not decode into dead letters.
async fn decoded(db: &Db, leased: Guarded<Vec<RawActivity>>) -> Result<Decoded> {
    let mut items = Vec::new();
    let mut damaged = Vec::new();
    for activity in leased.peek().into_iter().flatten() {
        match rows::decode_activity(&activity.instance, &activity.text) {
            Ok(item) => items.push(Some(item)),
            Err(reason) => {
                damaged.push((activity, reason));
                items.push(None);
            }
        }
    }
    if !damaged.is_empty() {
        store_dead_letters(db, &damaged).await?;
    }
    Ok(Decoded { leased, items })
}

/// Turns leased activities into dead letters, each with its reason.
async fn store_dead_letters(db: &Db, damaged: &[(&RawActivity, String)]) -> Result<()> {
    for (activity, _) in damaged {
        // The reason may quote the activity, so it goes to the table and not to the log.
        tracing::warn!(
            target: "duroxide::providers::postgres",
            instance = activity.instance, "an activity became a dead letter, see dead_letters"
        );
    }
    db.counters.dead_letters.add(damaged.len());
    let ids: Vec<i64> = damaged.iter().map(|(activity, _)| activity.id).collect();
    let secrets: Vec<Vec<u8>> = damaged.iter().map(|(activity, _)| activity.secret.to_vec()).collect();
    let reasons: Vec<String> = damaged.iter().map(|(_, reason)| owned(reason)).collect();
    let params: [Param<'_>; 3] =
        [(&ids, Type::INT8_ARRAY), (&secrets, Type::BYTEA_ARRAY), (&reasons, Type::TEXT_ARRAY)];
    db.one(&db.statements.dead_letter_activities, &params).await?;
    Ok(())
}
