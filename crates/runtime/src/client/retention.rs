//! Retention by a client.

use super::{Client, ClientError};
use crate::retention::{Pass, Retention, RetentionReport};
use tokio_util::sync::CancellationToken;

/// Retention. Both methods return [`ClientError::ManagementNotAvailable`] if the store has no management interface.
impl Client {
    /// Makes one pass of retention at this time, as a runtime with [`RuntimeOptions::retention`](crate::RuntimeOptions::retention)
    /// does, and records the counts in the audit unless all are zero. Any number of processes may make passes at once.
    ///
    /// Cancellation safety: when the future is dropped, each tree of instances is deleted or not. The record in the audit may be
    /// missing.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for a policy with a batch or load of 0. After an error of the store the audit has a record of the
    /// deletions before it.
    pub async fn apply_retention(
        &self,
        policy: &Retention,
        now_ms: u64,
        actor: &str,
    ) -> Result<RetentionReport, ClientError> {
        let never = CancellationToken::new();
        let mut pass = self.pass(policy, now_ms, &never)?;
        pass.run(actor).await?;
        Ok(pass.report)
    }

    /// Counts what [`Client::apply_retention`] would delete: [`RetentionReport::matched`] roots, records and dead letters.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn preview_retention(
        &self,
        policy: &Retention,
        now_ms: u64,
    ) -> Result<RetentionReport, ClientError> {
        let never = CancellationToken::new();
        let mut pass = self.pass(policy, now_ms, &never)?;
        pass.preview().await?;
        Ok(pass.report)
    }

    /// A pass of retention, after a check of the policy.
    fn pass<'a>(
        &'a self,
        policy: &'a Retention,
        now_ms: u64,
        stop: &'a CancellationToken,
    ) -> Result<Pass<'a>, ClientError> {
        match policy.problem() {
            Some(problem) => Err(ClientError::invalid(format!("the policy of the retention {problem}"))),
            None => {
                Ok(Pass { admin: self.admin()?, policy, now_ms, stop, report: RetentionReport::default() })
            }
        }
    }
}
