//! Fetches activities: decodes leased activities on the caller's task, and turns those that do not decode into dead letters.

use crate::ask::ActivityAsk;
use crate::db::{Param, Result};
use crate::fetch::wait;
use crate::leased::{Guarded, RawActivity};
use crate::parked::Fetch;
use crate::provider::PostgresProvider;
use crate::request::{Answer, Lease};
use crate::text::owned;
use outlast_model::WorkItem;
use outlast_provider::{FetchedWork, TagFilter, WorkRequest, saturating_ms};
use outlast_provider_kit::rows;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::types::Type;

const FETCH: &str = "fetch_work_item";

impl PostgresProvider {
    pub(crate) async fn fetch_activities(&self, request: &WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        if *request.tag_filter == TagFilter::None || request.max_items == 0 {
            return Ok(Vec::new());
        }
        let begun = Instant::now();
        let mut gathered: Vec<Gathered> = Vec::new();
        let mut missing = request.max_items.min(MOST_ITEMS);
        loop {
            let patience = match gathered.is_empty() {
                true => request.poll_timeout.saturating_sub(begun.elapsed()),
                false => Duration::ZERO,
            };
            let ask = ActivityAsk {
                max_items: missing,
                lock_ms: saturating_ms(request.lock_timeout),
                session: request.session.cloned(),
                tags: request.tag_filter.clone(),
            };
            let (fetch, answer) = Fetch::new(ask, patience);
            self.shared.fetch_activities(fetch);
            let leased = match wait(&self.shared, answer, patience, FETCH).await {
                Ok(Some(leased)) => self.decoded(leased).await.map_err(|error| error.during(FETCH)),
                Ok(None) => break,
                Err(error) => Err(error),
            };
            match leased {
                Ok(more) => {
                    let is_damaged = more.items.iter().any(Option::is_none);
                    missing -= more.items.iter().flatten().count();
                    if missing < request.max_items.min(MOST_ITEMS) {
                        gathered.push(more);
                    }
                    // Only activities that became dead letters are replaced: a fetch waits for the first activity, not for all.
                    if missing == 0 || (!is_damaged && !gathered.is_empty()) {
                        break;
                    }
                }
                // Activities that are leased already must reach the caller.
                Err(_) if !gathered.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(gathered.into_iter().flat_map(Gathered::take).collect())
    }

    /// Decodes leased activities, and turns those that do not decode into dead letters.
    async fn decoded(&self, leased: Guarded<Vec<RawActivity>>) -> Result<Gathered> {
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
            self.store_dead_letters(&damaged).await?;
        }
        Ok(Gathered { leased, items })
    }

    async fn store_dead_letters(&self, damaged: &[(&RawActivity, String)]) -> Result<()> {
        for (activity, _) in damaged {
            // The reason may quote the activity, so it goes to the table and not to the log.
            tracing::warn!(
                target: "duroxide::providers::postgres",
                instance = activity.instance, "an activity became a dead letter, see dead_letters"
            );
        }
        let db = &self.shared.db;
        db.counters.dead_letters.add(damaged.len());
        let ids: Vec<i64> = damaged.iter().map(|(activity, _)| activity.id).collect();
        let secrets: Vec<Vec<u8>> = damaged.iter().map(|(activity, _)| activity.secret.to_vec()).collect();
        let reasons: Vec<String> = damaged.iter().map(|(_, reason)| owned(reason)).collect();
        let params: [Param<'_>; 3] =
            [(&ids, Type::INT8_ARRAY), (&secrets, Type::BYTEA_ARRAY), (&reasons, Type::TEXT_ARRAY)];
        db.one(&db.statements.dead_letter_activities, &params).await?;
        Ok(())
    }
}

/// Leased activities, decoded where possible, and guarded until the caller has them.
struct Gathered {
    leased: Guarded<Vec<RawActivity>>,
    items: Vec<Option<WorkItem>>,
}

impl Gathered {
    fn take(self) -> Vec<FetchedWork> {
        let all = self.leased.take().unwrap_or_default();
        let whole = all.into_iter().zip(self.items).filter_map(|(activity, item)| Some((activity, item?)));
        whole
            .map(|(activity, item)| FetchedWork {
                item,
                lock_token: Lease::Activity { secret: activity.secret, id: activity.id }.text(),
                attempt_count: activity.attempts,
                orchestration: activity.orchestration,
                now_ms: Some(activity.now),
            })
            .collect()
    }
}

/// Most activities for one fetch, so that other fetches of the same poll get some too.
const MOST_ITEMS: usize = 256;
