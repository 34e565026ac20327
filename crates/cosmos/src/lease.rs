//! Leases of turns that are given back or extended.

use crate::document::{Address, Instance, Versioned};
use crate::error::{contended, lost};
use crate::fetch::GRACE_MS;
use crate::ids::Uid;
use crate::instance::Written;
use crate::store::Store;
use outlast_provider::{ProviderError, saturating_ms};
use std::time::Duration;

/// Attempts to write an instance that others change.
const ATTEMPTS: usize = 8;

impl Store {
    /// Releases the lease of a turn and makes its messages visible again. The lease may be over.
    pub(crate) async fn abandon_turn(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        const ABANDON: &str = "abandon_orchestration_item";
        let Some((secret, address, held)) = self.turn_of(token) else {
            return Err(lost(ABANDON, token));
        };
        let mut held = held.lock().await;
        for _ in 0..ATTEMPTS {
            let current = self.held_instance(ABANDON, token, secret, &address, held.take()).await?;
            let (etag, mut instance) = (current.etag, current.document);
            let Some(lock) = instance.lock.take() else { return Err(lost(ABANDON, token)) };
            let now = self.now();
            let until = delay.map(|delay| now.saturating_add(saturating_ms(delay)));
            for id in &lock.covers {
                let found = instance.overrides.entry(id.clone()).or_default();
                found.attempts = found.attempts.saturating_sub(u32::from(ignore_attempt));
                if until.is_some() {
                    found.at = until;
                }
                if *found == crate::document::Override::default() {
                    instance.overrides.remove(id);
                }
            }
            instance.rest = until.filter(|_| lock.is_partial);
            let rest = instance.rest.unwrap_or(0);
            let written = self
                .write_instance(ABANDON, Some(&etag), &mut instance, self.uid(), Vec::new(), None)
                .await?;
            if let Written::Done { .. } = written {
                self.drop_turn(secret);
                if let Some(until) = until {
                    // Another runtime may be able to run the instance: it tries first.
                    let is_offered = self.offer_later(&address, &lock.covers, until).await;
                    let own = until.saturating_add(if is_offered { GRACE_MS } else { 0 });
                    self.ready.delayed(&address.id, &lock.covers, own);
                }
                self.ready.locked(&address.id, rest);
                return Ok(());
            }
        }
        Err(contended(ABANDON, &address.id))
    }

    /// Extends the lease of a turn.
    pub(crate) async fn renew_turn(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        const RENEW: &str = "renew_orchestration_item_lock";
        let Some((secret, address, held)) = self.turn_of(token) else {
            return Err(lost(RENEW, token));
        };
        let mut held = held.lock().await;
        for _ in 0..ATTEMPTS {
            let current = self.held_instance(RENEW, token, secret, &address, held.take()).await?;
            let (etag, mut instance) = (current.etag, current.document);
            let now = self.now();
            let until = match &mut instance.lock {
                Some(lock) if lock.until > now => {
                    lock.until = lock.until.max(now.saturating_add(saturating_ms(extend_for)));
                    lock.until
                }
                _ => return Err(lost(RENEW, token)),
            };
            let written =
                self.write_instance(RENEW, Some(&etag), &mut instance, self.uid(), Vec::new(), None).await?;
            if let Written::Done { etag, is_last, .. } = written {
                *held = is_last.then_some(Versioned { etag, document: instance });
                self.lease_lasts(secret, extend_for);
                self.ready.locked(&address.id, until);
                return Ok(());
            }
        }
        Err(contended(RENEW, &address.id))
    }

    /// The instance under the lease of a token: as this process wrote it, or read. An error if the token does not hold it.
    pub(crate) async fn held_instance(
        &self,
        operation: &str,
        token: &str,
        secret: Uid,
        address: &Address,
        held: Option<Versioned<Instance>>,
    ) -> Result<Versioned<Instance>, ProviderError> {
        let current = match held {
            Some(held) => Some(held),
            None => self.read_instance(operation, address).await?,
        };
        let holds = |instance: &Instance| instance.lock.as_ref().is_some_and(|lock| lock.secret == secret);
        match current.filter(|current| holds(&current.document)) {
            Some(current) => Ok(current),
            None => {
                self.drop_turn(secret);
                Err(lost(operation, token))
            }
        }
    }
}
