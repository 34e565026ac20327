//! The requests of one transaction, by kind.

use crate::request::{Abandon, Activity, Commit, Fence, Lease, Message, ReadTexts, Renew, Request, Start};
use outlast_provider_kit::CommitPlan;

/// The requests of one transaction.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) commits: Vec<Commit>,
    pub(crate) messages: Vec<Message>,
    pub(crate) activities: Vec<Activity>,
    pub(crate) starts: Vec<Start>,
    pub(crate) renewals: Vec<Renew>,
    pub(crate) abandons: Vec<Abandon>,
    pub(crate) reads: Vec<ReadTexts>,
}

impl Batch {
    pub(crate) fn push(&mut self, request: Request) {
        match request {
            Request::Commit(commit) => self.commits.push(*commit),
            Request::Message(message) => self.messages.push(message),
            Request::Activity(activity) => self.activities.push(activity),
            Request::Start(start) => self.starts.push(start),
            Request::Renew(renew) => self.renewals.push(renew),
            Request::Abandon(abandon) => self.abandons.push(abandon),
            Request::ReadTexts(read) => self.reads.push(read),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.commits.len()
            + self.messages.len()
            + self.activities.len()
            + self.starts.len()
            + self.renewals.len()
            + self.abandons.len()
            + self.reads.len()
    }

    /// The operation of each request.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &'static str> + '_ {
        let commits = self.commits.iter().map(|commit| commit.reply.operation);
        let messages = self.messages.iter().map(|message| message.reply.operation);
        let activities = self.activities.iter().map(|activity| activity.reply.operation);
        let starts = self.starts.iter().map(|start| start.reply.operation);
        let renewals = self.renewals.iter().map(|renew| renew.reply.operation);
        let abandons = self.abandons.iter().map(|abandon| abandon.reply.operation);
        let reads = self.reads.iter().map(|read| read.reply.operation);
        commits.chain(messages).chain(activities).chain(starts).chain(renewals).chain(abandons).chain(reads)
    }

    /// Each request in a batch of its own.
    pub(crate) fn split(self) -> Vec<Self> {
        let alone = |request| {
            let mut batch = Self::default();
            batch.push(request);
            batch
        };
        self.requests().map(alone).collect()
    }

    /// Each request.
    fn requests(self) -> impl Iterator<Item = Request> {
        let commits = self.commits.into_iter().map(|commit| Request::Commit(Box::new(commit)));
        commits
            .chain(self.messages.into_iter().map(Request::Message))
            .chain(self.activities.into_iter().map(Request::Activity))
            .chain(self.starts.into_iter().map(Request::Start))
            .chain(self.renewals.into_iter().map(Request::Renew))
            .chain(self.abandons.into_iter().map(Request::Abandon))
            .chain(self.reads.into_iter().map(Request::ReadTexts))
    }

    /// Whether the batch has client requests, which no lease fences.
    pub(crate) fn has_client_requests(&self) -> bool {
        !(self.messages.is_empty() && self.activities.is_empty() && self.starts.is_empty())
            || self.commits.iter().any(|commit| matches!(commit.fence, Fence::Unknown { .. }))
    }

    /// Marks the requests as sent before with an unknown result.
    pub(crate) fn mark_unknown(&mut self) {
        self.commits.iter_mut().for_each(|commit| commit.attempts = commit.attempts.mark_unknown());
        self.abandons.iter_mut().for_each(|abandon| abandon.attempts = abandon.attempts.mark_unknown());
    }

    /// The client requests, and the requests that a lease fences.
    pub(crate) fn into_parts(self) -> (Vec<Request>, Vec<Request>) {
        self.requests().partition(Request::is_client_request)
    }

    /// The instance of each request.
    pub(crate) fn all_subjects(&self) -> Vec<String> {
        let commits = self.commits.iter().map(Commit::subject);
        commits
            .chain(self.messages.iter().map(|message| message.row.instance_id.clone()))
            .chain(self.activities.iter().map(|activity| activity.row.instance_id.clone()))
            .chain(self.starts.iter().map(|start| start.start.instance_id.clone()))
            .chain(self.renewals.iter().map(|renew| renew.lease.subject()))
            .chain(self.abandons.iter().map(|abandon| abandon.lease.subject()))
            .chain(self.reads.iter().map(|read| read.lease.subject()))
            .collect()
    }

    /// The instances as a short text.
    pub(crate) fn subjects(&self) -> String {
        let all = self.all_subjects();
        match all.as_slice() {
            [first, _, ..] => format!("{first} and {} others", all.len() - 1),
            all => all.concat(),
        }
    }

    /// Whether the batch ends leases of turns. A start with the first turn keeps fetches off its instance, as a lease does.
    pub(crate) fn ends_turns(&self) -> bool {
        let is_turn = |lease: &Lease| matches!(lease, Lease::Turn { .. });
        let ends = |commit: &Commit| match &commit.fence {
            Fence::Lease(lease) => is_turn(lease),
            Fence::Fused { .. } => false,
            Fence::Unknown { .. } => true,
        };
        self.commits.iter().any(ends) || self.abandons.iter().any(|abandon| is_turn(&abandon.lease))
    }

    /// Instances that end if the server accepts every commit.
    pub(crate) fn ends(&self) -> Vec<String> {
        let ended =
            self.commits.iter().filter(|commit| commit.plan.as_ref().is_some_and(CommitPlan::ends_instance));
        ended.map(|commit| instance_of(commit).to_string()).collect()
    }

    /// The time from `now` until the first delayed message or activity becomes visible.
    pub(crate) fn visible_in_ms(&self, now: u64) -> Option<u64> {
        let planned = self.commits.iter().filter_map(|commit| commit.plan.as_ref());
        let timers = planned.flat_map(|plan| &plan.messages).map(|row| row.not_before.saturating_sub(now));
        let messages = self
            .messages
            .iter()
            .map(|message| message.delay_ms.max(message.row.not_before.saturating_sub(now)));
        let starts = self.starts.iter().map(|start| start.delay_ms);
        let abandons = self.abandons.iter().filter_map(|abandon| abandon.delay_ms);
        timers.chain(messages).chain(starts).chain(abandons).filter(|ms| *ms > 0).min()
    }
}

/// The instance of a commit.
pub(crate) fn instance_of(commit: &Commit) -> &str {
    match (&commit.fence, &commit.completion) {
        (Fence::Lease(Lease::Turn { at_fetch, .. }), _) => &at_fetch.instance,
        (Fence::Fused { instance, .. } | Fence::Unknown { instance }, _) => instance,
        (Fence::Lease(Lease::Activity { .. }), Some(row)) => &row.instance_id,
        (Fence::Lease(Lease::Activity { .. }), None) => "",
    }
}
