//! Retention: deletes ended instances, records of the audit and dead letters after an age, in bounded steps.
//!
//! A pass examines instances in order of creation, 500 at a time, and stops at the first page whose instances are all younger than
//! the shortest age: an instance cannot have ended before it was created. A pass with nothing to delete therefore reads the instances
//! that are older than the age, and one page of younger ones, however many there are. Each deletion is checked again by the store in
//! the transaction that deletes, so any number of processes may make passes at once.

mod policy;
mod task;

pub use policy::{Keep, Retention};
pub(crate) use task::apply_regularly;

use outlast_provider::{AuditEntry, OldInstance, OldestPage, ProviderAdmin, ProviderError};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Instances that a step examines.
const PAGE: usize = 500;
/// Records and dead letters that a dry run reads at a time.
const COUNT_PAGE: usize = 1_000;
/// The longest pause between two steps.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const ACTION: &str = "retention.run";

/// The counts of one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetentionReport {
    /// Instances that were examined.
    pub examined: u64,
    /// Ended roots that are older than their age. A dry run deletes none of them; a pass leaves those that are in use.
    pub matched: u64,
    /// Deleted instances, descendants of the roots included.
    pub instances: u64,
    /// Deleted executions of these instances.
    pub executions: u64,
    /// Deleted events of these instances.
    pub events: u64,
    /// Deleted records of the audit; in a dry run, those that would be deleted.
    pub audit_records: u64,
    /// Deleted dead letters; in a dry run, those that would be deleted.
    pub dead_letters: u64,
    /// The parts of the policy that the store does not support: `instances`, `audit`, `dead_letters`.
    pub unsupported: Vec<&'static str>,
}

impl RetentionReport {
    /// Whether the pass deleted an instance, a record or a dead letter.
    pub fn has_deleted(&self) -> bool {
        self.instances + self.audit_records + self.dead_letters > 0
    }
}

/// One pass over a store.
pub(crate) struct Pass<'a> {
    pub(crate) admin: &'a dyn ProviderAdmin,
    pub(crate) policy: &'a Retention,
    pub(crate) now_ms: u64,
    /// Ends the pass after its current step.
    pub(crate) stop: &'a CancellationToken,
    pub(crate) report: RetentionReport,
}

impl Pass<'_> {
    /// Deletes by the policy. If the pass has deleted anything, also before an error, records the counts in the audit.
    pub(crate) async fn run(&mut self, actor: &str) -> Result<(), ProviderError> {
        let done = self.delete().await;
        if self.report.has_deleted() {
            self.admin.append_audit(&self.entry(actor)).await?;
        }
        done
    }

    /// Deletes instances, then records of the audit, then dead letters, in steps.
    async fn delete(&mut self) -> Result<(), ProviderError> {
        self.delete_instances().await?;
        while let Some(before) = self.before(self.policy.audit_for) {
            let (begun, limit) = (Instant::now(), self.policy.batch);
            let Some(count) = self.admin.prune_audit(before, limit).await? else {
                self.report.unsupported.push("audit");
                break;
            };
            self.report.audit_records += count;
            if count < limit as u64 || self.pause(begun).await {
                break;
            }
        }
        while let Some(before) = self.before(self.policy.dead_letters_for) {
            let (begun, limit) = (Instant::now(), self.policy.batch);
            let Some(count) = self.admin.prune_dead_letters(before, limit).await? else {
                self.report.unsupported.push("dead_letters");
                break;
            };
            self.report.dead_letters += count;
            if count < limit as u64 || self.pause(begun).await {
                break;
            }
        }
        Ok(())
    }

    /// Deletes ended trees page by page, until a page has younger instances only.
    async fn delete_instances(&mut self) -> Result<(), ProviderError> {
        let Some(youngest) = self.before(self.policy.shortest_age()) else { return Ok(()) };
        let mut after = None;
        loop {
            let begun = Instant::now();
            let Some(page) = self.admin.oldest_instances(after, PAGE).await? else {
                self.report.unsupported.push("instances");
                return Ok(());
            };
            self.report.examined += page.instances.len() as u64;
            for (before, roots) in self.matching(&page.instances) {
                self.report.matched += roots.len() as u64;
                for roots in roots.chunks(self.policy.batch.max(1)) {
                    let begun = Instant::now();
                    let Some(deleted) = self.admin.delete_ended(roots, before).await? else {
                        self.report.unsupported.push("instances");
                        return Ok(());
                    };
                    self.report.instances += deleted.instances_deleted;
                    self.report.executions += deleted.executions_deleted;
                    self.report.events += deleted.events_deleted;
                    if self.pause(begun).await {
                        return Ok(());
                    }
                }
            }
            after = Self::next_page(&page, youngest);
            if after.is_none() {
                return Ok(());
            }
            if self.pause(begun).await {
                return Ok(());
            }
        }
    }

    /// The position of the next page; `None` if this page is the last one, or has younger instances only. A page without instances,
    /// which a store may return before its last page, does not end the pass.
    fn next_page(page: &OldestPage, youngest: u64) -> Option<u64> {
        let is_old = |instance: &OldInstance| instance.created_at < youngest;
        page.next.filter(|_| page.instances.is_empty() || page.instances.iter().any(is_old))
    }

    /// Counts without deleting.
    pub(crate) async fn preview(&mut self) -> Result<(), ProviderError> {
        if let Some(youngest) = self.before(self.policy.shortest_age()) {
            let mut after = None;
            loop {
                let Some(page) = self.admin.oldest_instances(after, PAGE).await? else {
                    self.report.unsupported.push("instances");
                    break;
                };
                self.report.examined += page.instances.len() as u64;
                self.report.matched +=
                    self.matching(&page.instances).values().map(|roots| roots.len() as u64).sum::<u64>();
                after = Self::next_page(&page, youngest);
                if after.is_none() {
                    break;
                }
            }
        }
        self.count_records().await?;
        self.count_dead_letters().await
    }

    /// Counts the records of the audit that a pass would delete.
    async fn count_records(&mut self) -> Result<(), ProviderError> {
        let Some(before) = self.before(self.policy.audit_for) else { return Ok(()) };
        let mut last = None;
        let mut is_newest = true;
        loop {
            let Some(page) = self.admin.audit_page(last, COUNT_PAGE).await? else {
                self.report.unsupported.push("audit");
                return Ok(());
            };
            // The newest record stays.
            let old = page.iter().skip(usize::from(is_newest)).filter(|record| record.at_ms < before);
            self.report.audit_records += old.count() as u64;
            is_newest = false;
            match page.last().filter(|_| page.len() == COUNT_PAGE) {
                Some(record) => last = Some(record.id),
                None => return Ok(()),
            }
        }
    }

    /// Counts the dead letters that a pass would delete.
    async fn count_dead_letters(&mut self) -> Result<(), ProviderError> {
        let Some(before) = self.before(self.policy.dead_letters_for) else { return Ok(()) };
        let mut last = None;
        loop {
            let Some(page) = self.admin.dead_letter_page(last, COUNT_PAGE).await? else {
                self.report.unsupported.push("dead_letters");
                return Ok(());
            };
            self.report.dead_letters +=
                page.iter().filter(|record| record.letter.dead_at < before).count() as u64;
            match page.last().filter(|_| page.len() == COUNT_PAGE) {
                Some(record) => last = Some(record.id),
                None => return Ok(()),
            }
        }
    }

    /// The ended roots of a page that are older than their age, by the time before which they must have ended.
    fn matching(&self, page: &[OldInstance]) -> BTreeMap<u64, Vec<String>> {
        let mut matching: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for instance in page.iter().filter(|instance| instance.is_root) {
            let age = self.policy.age_of(&instance.orchestration_name, &instance.status);
            if let (Some(before), Some(ended)) = (self.before(age), instance.ended_at)
                && ended < before
            {
                matching.entry(before).or_default().push(instance.instance_id.clone());
            }
        }
        matching
    }

    /// The time that is this long ago.
    fn before(&self, age: Option<Duration>) -> Option<u64> {
        let age = u64::try_from(age?.as_millis()).unwrap_or(u64::MAX);
        Some(self.now_ms.saturating_sub(age))
    }

    /// Pauses after a step, so that steps take at most the policy's share of the time. True if the pass must end.
    async fn pause(&self, begun: Instant) -> bool {
        let share = u32::from(self.policy.load_percent.clamp(1, 100));
        let pause = (begun.elapsed() * (100 - share) / share).min(LONGEST_PAUSE);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => true,
            () = tokio::time::sleep(pause) => false,
        }
    }

    fn entry(&self, actor: &str) -> AuditEntry {
        let RetentionReport { instances, audit_records, dead_letters, .. } = &self.report;
        AuditEntry {
            actor: actor.to_string(),
            action: ACTION.to_string(),
            target: "store".to_string(),
            reason: self.policy.to_string(),
            request: None,
            result: format!(
                "deleted {instances} instances, {audit_records} records of the audit, {dead_letters} dead letters"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_ends_at_the_last_page_and_at_a_page_of_younger_instances() {
        let created = |at: u64| OldInstance {
            instance_id: at.to_string(),
            orchestration_name: "Order".to_string(),
            status: "Completed".to_string(),
            is_root: true,
            created_at: at,
            ended_at: None,
        };
        let page = |times: &[u64], next| OldestPage {
            instances: times.iter().map(|at| created(*at)).collect(),
            next,
        };
        assert_eq!(Pass::next_page(&page(&[1, 9], Some(7)), 5), Some(7));
        assert_eq!(Pass::next_page(&page(&[5, 9], Some(7)), 5), None, "all are younger");
        assert_eq!(Pass::next_page(&page(&[1, 2], None), 5), None, "the last page");
        assert_eq!(Pass::next_page(&page(&[], Some(7)), 5), Some(7), "an empty page before the last one");
    }
}
