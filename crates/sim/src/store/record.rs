//! Faults and records around the calls of a [`FaultyStore`]: draws the fault of a call, and records leases and accepted
//! messages for the invariants.

use super::{FaultyStore, sabotage};
use crate::bug::Bug;
use crate::call::Call;
use crate::fault::Fault;
use crate::leases::Holder;
use outlast_model::WorkItem;
use outlast_provider::{Clock, Hold, ProviderError, saturating_ms};
use std::time::Duration;

impl FaultyStore {
    /// Describes a call and draws its fault.
    pub(super) fn begin_call(&self, op: &'static str, detail: impl Into<String>) -> Call {
        Call { op, detail: detail.into(), fault: self.shared.draw_fault(op, &self.caller) }
    }

    /// Makes a call that returns nothing.
    pub(super) async fn call(
        &self,
        call_spec: Call,
        call: impl Future<Output = Result<(), ProviderError>>,
    ) -> Result<(), ProviderError> {
        self.shared.call(&self.caller, call_spec, |()| Some("ok".to_string()), call).await
    }

    /// Makes a call that changes nothing.
    pub(super) async fn read_call<T>(
        &self,
        op: &'static str,
        detail: &str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let call_spec = self.begin_call(op, detail);
        self.shared.call(&self.caller, call_spec, |_| Some("read".to_string()), call).await
    }

    /// The real duration of a lease, which a fault or a defect changes.
    pub(super) fn lease(&self, requested: Duration, fault: Option<Fault>) -> Duration {
        match fault {
            Some(Fault::ShortLease) => requested / 20,
            _ => sabotage::lease(&self.shared, requested),
        }
    }

    /// The number of disturbances of the caller so far.
    pub(super) fn disturbances(&self) -> u64 {
        self.caller.node.map_or(0, |node| self.shared.disturbances(node))
    }

    /// Records a lease. A second delivery means that the lease of the first was lost. `disturbances_before` is the
    /// number of disturbances of the caller when it began the fetch: a caller that was disturbed since does not know
    /// when its lease began.
    pub(super) fn record_lease(
        &self,
        token: &str,
        subject: String,
        lock_timeout: Duration,
        attempts: u32,
        disturbances_before: u64,
    ) {
        self.shared.tally().leases_lost += u64::from(attempts > 1);
        let Some(node) = self.caller.node else { return };
        let holder = Holder { node, disturbances: self.shared.disturbances(node) };
        if self.disturbances() != disturbances_before {
            return self.shared.performed().leases.granted_at_unknown_time(token, (subject, holder));
        }
        let (now, ms) = (self.shared.clock.now_ms(), saturating_ms(lock_timeout));
        let disturbances = |node| self.shared.disturbances(node);
        let granted = self.shared.performed().leases.granted(token, (subject, holder), now, ms, disturbances);
        self.shared.require(granted);
    }

    pub(super) fn record_renewal(&self, token: &str, extend_for: Duration) {
        let now = self.shared.clock.now_ms();
        let renewed = self.shared.performed().leases.renewed(token, now, saturating_ms(extend_for));
        self.shared.require(renewed);
    }

    pub(super) fn record_commit(&self, token: &str) {
        let now = self.shared.clock.now_ms();
        let committed = self.shared.performed().leases.committed(token, now, self.shared.backend.has_tasks());
        self.shared.require(committed);
    }

    /// Only a broken build parks instances, and only those that do not match its code: parking another instance would hide a replay
    /// that differs.
    pub(super) fn must_be_parked(&self, token: &str, hold: &Hold) -> Result<(), String> {
        let instance = self.shared.performed().turns.get(token).map(|turn| turn.instance.clone());
        let is_misfit = instance.as_ref().is_some_and(|id| self.shared.plan.misfits.contains(id));
        match is_misfit && hold.actor == "build broken" {
            true => Ok(()),
            false => {
                Err(format!("I9: {} parked {}", hold.actor, instance.as_deref().unwrap_or(short(token))))
            }
        }
    }

    pub(super) fn abandoned(&self, token: &str) {
        let mut performed = self.shared.performed();
        performed.turns.remove(token);
        performed.leases.given_back(token);
    }

    /// Makes a call under leases. If statements can fail, an error does not mean that nothing was
    /// committed, so the leases are in doubt.
    ///
    /// Tasks of a store commit a call before its caller knows: until then others may take the lease.
    pub(super) async fn under_leases<T>(
        &self,
        tokens: &[&str],
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let (backend, disturbances_before) = (&self.shared.backend, self.disturbances());
        if backend.has_tasks() {
            let mut performed = self.shared.performed();
            tokens.iter().for_each(|token| performed.leases.in_flight(token, true));
        }
        let answer = call.await;
        let mut performed = self.shared.performed();
        let is_late = backend.has_tasks() && self.disturbances() != disturbances_before;
        for token in tokens {
            performed.leases.in_flight(token, false);
            if is_late || answer.is_err() && backend.may_hide_commits() {
                performed.leases.mark_in_doubt(token);
            }
        }
        answer
    }

    /// Records an accepted outcome of an activity. A store with tasks recognises an outcome that it is asked to store again.
    pub(super) fn record_outcome(&self, completion: &WorkItem) {
        let may_repeat = self.shared.backend.has_tasks();
        let known = self.shared.performed().completed(completion, may_repeat);
        self.shared.require(known);
    }

    /// Makes a call under one lease.
    pub(super) async fn under_lease<T>(
        &self,
        token: &str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.under_leases(&[token], call).await
    }

    /// Enqueues a message again, as a queue with at-least-once delivery may.
    pub(super) async fn duplicate(&self, item: &WorkItem) {
        let delay = match item {
            WorkItem::TimerFired { fire_at_ms, .. } => {
                Some(Duration::from_millis(fire_at_ms.saturating_sub(self.shared.clock.now_ms())))
            }
            _ => None,
        };
        let _ = self.inner().enqueue_for_orchestrator(item.clone(), delay).await;
    }

    /// Enqueues a message of a client. Returns whether the instance had room for it.
    pub(super) async fn enqueue(
        &self,
        item: &WorkItem,
        enqueue: impl Future<Output = Result<bool, ProviderError>>,
    ) -> Result<bool, ProviderError> {
        let call_spec =
            self.begin_call("enqueue", format!("{} for {}", item.kind_name(), item.target_instance()));
        let call = async {
            let is_taken = self.shared.has_sometimes(Bug::AcknowledgedNotDurable) || enqueue.await?;
            if is_taken && self.shared.has_sometimes(Bug::MessageTwice) {
                self.inner().enqueue_for_orchestrator(item.clone(), None).await?;
            }
            if is_taken {
                self.shared.performed().enqueued(item);
            }
            Ok(is_taken)
        };
        self.shared.call(&self.caller, call_spec, |_| Some("ok".to_string()), call).await
    }
}

/// The first part of a token, for the trace.
pub(super) fn short(token: &str) -> &str {
    token.get(..11).unwrap_or(token)
}

pub(super) fn kinds(items: &[WorkItem]) -> String {
    let kinds: Vec<&str> = items.iter().map(WorkItem::kind_name).collect();
    kinds.join(",")
}
