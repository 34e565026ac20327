//! Requests and fetches come in: a caller submits one, and waits for its result.

use super::Scheduler;
use super::large::LARGE_BYTES;
use crate::ask::{ActivityAsk, FETCH_ACTIVITIES, FETCH_TURN, TurnAsk};
use crate::leased::{ActivityFetch, Guarded, Leases, RawActivity, RawTurn, TurnFetch};
use crate::parked::Fetch;
use crate::reply::Awaited;
use crate::request::{Answer, Request};
use crate::shared::Shared;
use outlast_provider::ClassifiedError;
use outlast_provider_kit::fetch::answer_within;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

impl Shared {
    /// Submits a request when there is room for it, and waits for its result.
    pub(crate) async fn ask<T>(&self, mut request: Request, result: Awaited<T>) -> Answer<T> {
        let instance = request.subject();
        self.room.enter(&mut request).await;
        self.submit(request);
        let result = result.receive().await;
        Ok(result.unwrap_or_else(|operation| Err(self.dropped(&instance).classified(operation)))?)
    }

    /// Submits a request that no caller waits for here.
    pub(crate) fn submit(&self, request: Request) {
        self.update(|scheduler, now| scheduler.submit(request, now));
    }

    /// Parks a fetch of a turn, and waits for its lease.
    pub(crate) async fn fetch_turn(
        &self,
        ask: TurnAsk,
        patience: Duration,
    ) -> Answer<Option<Guarded<RawTurn>>> {
        self.secrets.want(|| self.wake_listener()).await;
        let (fetch, leased) = Fetch::new(ask, patience);
        self.update(|scheduler, _| scheduler.fetch_turn(fetch));
        self.leased_within(leased, patience, FETCH_TURN).await
    }

    /// Parks a fetch of activities, and waits for their leases.
    pub(crate) async fn fetch_activities(
        &self,
        ask: ActivityAsk,
        patience: Duration,
    ) -> Answer<Option<Guarded<Vec<RawActivity>>>> {
        self.secrets.want(|| self.wake_listener()).await;
        let (fetch, leased) = Fetch::new(ask, patience);
        self.update(|scheduler, _| scheduler.fetch_activities(fetch));
        self.leased_within(leased, patience, FETCH_ACTIVITIES).await
    }

    /// Waits for the leases of a fetch. If the fetch gives up while leases are in transit, their guard gives them back.
    async fn leased_within<L: Leases>(
        &self,
        leased: oneshot::Receiver<Result<Option<Guarded<L>>, ClassifiedError>>,
        patience: Duration,
        operation: &'static str,
    ) -> Answer<Option<Guarded<L>>> {
        match answer_within(leased, patience).await {
            Ok(None) => Ok(None),
            Ok(Some(leased)) => Ok(leased?),
            Err(_) => Err(self.dropped("of a fetch").during(operation)),
        }
    }
}

/// The transitions.
impl Scheduler {
    /// Queues a request, and wakes the lane that takes it.
    pub(super) fn submit(&mut self, request: Request, now: Instant) {
        if request.bytes() >= LARGE_BYTES {
            self.large.push(request, now);
            self.wake.lane = true;
            self.wake.client_lane |= self.large.concern_client_lane();
            return;
        }
        self.large.on_small_request(now);
        let is_client_request = request.is_client_request();
        self.waiting.push(request);
        // Client requests do not wait for lanes that are in use.
        let has_lane = self.limits.has_client_lane && !self.large.use_client_lane();
        let goes_ahead = is_client_request && has_lane && !self.has_free_lane(now);
        self.wake.lane |= !goes_ahead;
        self.wake.client_lane |= goes_ahead;
    }

    pub(super) fn fetch_turn(&mut self, fetch: TurnFetch) {
        self.parked.turns.on_fetch(fetch);
        self.wake.lane = true;
    }

    pub(super) fn fetch_activities(&mut self, fetch: ActivityFetch) {
        self.parked.activities.on_fetch(fetch);
        self.wake.lane = true;
    }
}
