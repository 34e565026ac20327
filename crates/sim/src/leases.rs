//! I6 and I14: the leases that the store granted, by the clock of the store.

use std::collections::{BTreeMap, BTreeSet};

/// All leases, by lock token.
#[derive(Default)]
pub(crate) struct Leases {
    leases: BTreeMap<String, Lease>,
    /// The tokens of commits.
    committed: BTreeSet<String>,
}

struct Lease {
    /// The leased instance or activity.
    subject: String,
    ends: u64,
    holder: Holder,
    /// A call under this lease failed, and may have been committed.
    in_doubt: bool,
    /// A task of the store has a call under this lease, which may be committed.
    is_in_flight: bool,
    /// Another node has leased the same subject since.
    is_taken_over: bool,
}

impl Lease {
    fn is_known(&self) -> bool {
        !self.in_doubt && !self.is_in_flight && !self.is_taken_over
    }
}

/// The node that holds a lease, and its number of disturbances when the lease was granted.
#[derive(Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) node: usize,
    pub(crate) disturbances: u64,
}

impl Leases {
    /// Records a new lease. Fails if another lease on the subject is live, or if its holder lost it without a
    /// disturbance. `disturbances` returns the current number for a node.
    pub(crate) fn granted(
        &mut self,
        token: &str,
        lease: (String, Holder),
        now: u64,
        ms: u64,
        disturbances: impl Fn(usize) -> u64,
    ) -> Result<(), String> {
        let (subject, holder) = lease;
        let mut problem = Ok(());
        let others = self.leases.values_mut().filter(|other| other.subject == subject);
        for other in others.filter(|other| other.is_known()) {
            if other.ends > now {
                let left = other.ends - now;
                problem = Err(format!("I6: {subject} is leased twice; the other lease has {left} ms left"));
            } else if disturbances(other.holder.node) == other.holder.disturbances {
                let node = other.holder.node;
                problem = Err(format!(
                    "I14: node{node} lost its lease on {subject}, although the node was not disturbed since"
                ));
            }
            // It stays taken over, even if the clock is set back.
            other.is_taken_over = true;
        }
        let ends = now.saturating_add(ms);
        let lease =
            Lease { subject, ends, holder, in_doubt: false, is_in_flight: false, is_taken_over: false };
        self.leases.insert(token.to_string(), lease);
        problem
    }

    /// Records a lease whose holder was disturbed during the fetch, so that its start is unknown.
    pub(crate) fn granted_at_unknown_time(&mut self, token: &str, (subject, holder): (String, Holder)) {
        for other in self.leases.values_mut().filter(|other| other.subject == subject) {
            other.in_doubt = true;
        }
        let lease =
            Lease { subject, ends: 0, holder, in_doubt: true, is_in_flight: false, is_taken_over: true };
        self.leases.insert(token.to_string(), lease);
    }

    /// Records a renewal. Fails if the lease had ended.
    pub(crate) fn renewed(&mut self, token: &str, now: u64, ms: u64) -> Result<(), String> {
        self.check_use(token, now, "renewed")?;
        if let Some(lease) = self.leases.get_mut(token) {
            lease.ends = lease.ends.max(now.saturating_add(ms));
        }
        Ok(())
    }

    /// Records a commit, which ends the lease. Fails if the lease had ended before. `may_repeat`: a store that is asked again recognises its
    /// own commit.
    pub(crate) fn committed(&mut self, token: &str, now: u64, may_repeat: bool) -> Result<(), String> {
        if !self.committed.insert(token.to_string()) && may_repeat {
            return Ok(());
        }
        let check_use = self.check_use(token, now, "committed under");
        self.leases.remove(token);
        check_use
    }

    /// Checks a commit that was made without a lease. Fails if the subject is leased.
    pub(crate) fn committed_without_lease(&self, subject: &str, now: u64) -> Result<(), String> {
        let held = self.leases.values().filter(|lease| lease.subject == subject && lease.ends > now);
        match held.filter(|lease| lease.is_known()).count() {
            0 => Ok(()),
            _ => Err(format!("I6: {subject} was committed without a lease while a node held its lease")),
        }
    }

    pub(crate) fn given_back(&mut self, token: &str) {
        self.leases.remove(token);
    }

    /// The tokens of the leases of a node, as far as they are known.
    pub(crate) fn of_node(&self, node: usize) -> Vec<String> {
        let known = |lease: &Lease| lease.holder.node == node && lease.is_known();
        self.leases.iter().filter(|(_, lease)| known(lease)).map(|(token, _)| token.clone()).collect()
    }

    /// Marks a lease while a task of the store has a call under it.
    pub(crate) fn in_flight(&mut self, token: &str, is_in_flight: bool) {
        if let Some(lease) = self.leases.get_mut(token) {
            lease.is_in_flight = is_in_flight;
        }
    }

    /// Marks a lease after a failed call: the lease may be extended or gone.
    pub(crate) fn mark_in_doubt(&mut self, token: &str) {
        if let Some(lease) = self.leases.get_mut(token) {
            lease.in_doubt = true;
        }
    }

    /// The clock was set back. A lease that had ended may have been taken over by a node that never received the answer
    /// to its fetch, so it is in doubt.
    pub(crate) fn clock_set_back(&mut self, now: u64) {
        for lease in self.leases.values_mut().filter(|lease| lease.ends <= now) {
            lease.in_doubt = true;
        }
    }

    /// Checks that the lease of a token is live when it is used.
    fn check_use(&self, token: &str, now: u64, what: &str) -> Result<(), String> {
        match self.leases.get(token) {
            None => Err(format!("I6: {token} was {what}, but no lease has this token")),
            Some(lease) if lease.in_doubt => Ok(()),
            Some(lease) if lease.is_taken_over => {
                Err(format!("I6: the lease on {} was {what} after it was taken over", lease.subject))
            }
            Some(lease) if lease.ends <= now => Err(format!(
                "I6: the lease on {} was {what} {} ms after its end",
                lease.subject,
                now - lease.ends
            )),
            Some(_) => Ok(()),
        }
    }
}
