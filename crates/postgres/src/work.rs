//! Handing out activities.

use crate::db::{Param, Result};
use crate::fetch::wait;
use crate::message::misplaced;
use crate::provider::PostgresProvider;
use crate::request::{Answer, Lease};
use crate::text::owned;
use crate::waiting::{Guarded, RawWork, Waiter, WorkAsk};
use outlast_model::{WorkItem, json};
use outlast_provider::{FetchedWork, TagFilter, WorkRequest, saturating_ms};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_postgres::types::Type;

const FETCH: &str = "fetch_work_item";

impl PostgresProvider {
    pub(crate) async fn fetch_work(&self, request: &WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        if *request.tag_filter == TagFilter::None || request.max_items == 0 {
            return Ok(Vec::new());
        }
        let begun = Instant::now();
        loop {
            let patience = request.poll_timeout.saturating_sub(begun.elapsed());
            let (reply, answer) = oneshot::channel();
            let ask = WorkAsk {
                max_items: request.max_items.min(MOST_ITEMS),
                lock_ms: saturating_ms(request.lock_timeout),
                session: request.session.cloned(),
                tags: request.tag_filter.clone(),
            };
            let parks = !patience.is_zero();
            self.shared.fetch_work(Waiter { ask, parks, fresh: true, reply });
            let Some(leased) = wait(answer, patience, FETCH).await? else { return Ok(Vec::new()) };
            let work = self.decoded(leased).await.map_err(|error| error.during(FETCH))?;
            if !work.is_empty() {
                return Ok(work);
            }
        }
    }

    /// The activities that decode; the others are set aside.
    async fn decoded(&self, leased: Guarded<Vec<RawWork>>) -> Result<Vec<FetchedWork>> {
        let Some(all) = leased.peek() else { return Ok(Vec::new()) };
        let mut items = Vec::with_capacity(all.len());
        let mut damaged = Vec::new();
        for work in all {
            match activity(work) {
                Ok(item) => items.push(Some(item)),
                Err(reason) => {
                    damaged.push((work, reason));
                    items.push(None);
                }
            }
        }
        if !damaged.is_empty() {
            self.bury(&damaged).await?;
        }
        let all = leased.take().unwrap_or_default();
        let whole = all.into_iter().zip(items).filter_map(|(work, item)| Some((work, item?)));
        Ok(whole
            .map(|(work, item)| FetchedWork {
                item,
                lock_token: Lease::Work { secret: work.secret, id: work.id }.text(),
                attempt_count: work.attempts,
                orchestration: work.orchestration,
                now_ms: Some(work.now),
            })
            .collect())
    }

    async fn bury(&self, damaged: &[(&RawWork, String)]) -> Result<()> {
        for (work, _) in damaged {
            // The reason may quote the activity, so it goes to the table and not to the log.
            tracing::warn!(
                target: "duroxide::providers::postgres",
                instance = work.instance, "an activity was set aside, see dead_letters"
            );
        }
        let db = &self.shared.db;
        db.counters.dead_letters.add(damaged.len());
        let ids: Vec<i64> = damaged.iter().map(|(work, _)| work.id).collect();
        let secrets: Vec<Vec<u8>> = damaged.iter().map(|(work, _)| work.secret.to_vec()).collect();
        let reasons: Vec<String> = damaged.iter().map(|(_, reason)| owned(reason)).collect();
        let params: [Param<'_>; 3] =
            [(&ids, Type::INT8_ARRAY), (&secrets, Type::BYTEA_ARRAY), (&reasons, Type::TEXT_ARRAY)];
        db.one(&db.statements.bury_work, &params).await?;
        Ok(())
    }
}

/// Most activities that one fetch is given: the others of its transaction want some too.
const MOST_ITEMS: usize = 256;

/// The activity of a row, or why there is none: it does not decode, or belongs to somebody else.
fn activity(work: &RawWork) -> std::result::Result<WorkItem, String> {
    let item = json::decode_work_item(&work.text).map_err(|error| error.to_string())?;
    match item {
        WorkItem::ActivityExecute { .. } if item.target_instance() == work.instance => Ok(item),
        other => Err(misplaced(&other, &work.instance)),
    }
}
