//! The meaning of notifications: which process the server notifies of a commit, and how a process uses a notification.
//!
//! A process registers the notifications that it wants. The server notifies one process of each commit that makes an item
//! fetchable, chosen from those that want it, and all processes with watches of each ended instance. This module does no I/O:
//! `listener.rs` holds the connection.
//!
//! | a process | registers | so that |
//! |---|---|---|
//! | has had idle fetches for [`IDLE_AFTER`] | the queue, and polls it | one process with idle fetches is notified, and none while all are busy |
//! | watches instances | watches, at once | it is notified of every instance that ends |
//! | has had no idle fetches or watches for [`LINGER`] | nothing | commits need not notify it |
//!
//! | a commit makes an item fetchable in a process that | another process is notified |
//! |---|---|
//! | takes no items of the queue at the moment, or gives the item back | with the commit |
//! | has a parked fetch or a running poll, or was served within [`IDLE_AFTER`] | if the item still waits after [`PATIENCE`]: the process nearly always takes it itself, holds its instance warm, and needs no second lease ([`PutOff`]) |
//!
//! | a notified process | forwards the notification |
//! |---|---|
//! | has no parked fetch and no running poll | with one hop more |
//! | polled and served a fetch | with no hops: there may be more |
//! | polled and found nothing | with one hop more |
//!
//! The server forwards a notification only to a process that is eligible for a fetchable item. With no such process the
//! notification is dropped; it is also dropped after [`Forward::MOST_HOPS`] processes that found nothing.

use crate::eligibility::Eligibility;
use crate::parked::Idleness;
use outlast_provider_kit::queue::PerQueue;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// The number of processes, one after the other, that polled because of a notification and found nothing.
pub(crate) type Hops = u32;

/// The duration of a registration, unless it is repeated.
pub(crate) const LIFE: Duration = Duration::from_secs(60);
/// Fetches that no poll has served for this time are idle.
pub(crate) const IDLE_AFTER: Duration = Duration::from_millis(20);
/// The time for which a process keeps a registration that it no longer needs: it often needs the registration again soon.
const LINGER: Duration = Duration::from_secs(1);

/// The time for which an item waits for the fetches of its own process before another process is notified of it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(25);

/// The notification of one queue that a process has put off. It covers items that became fetchable at least [`PATIENCE`] before: the
/// server forwards it only if such an item still waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PutOff {
    due_at: Option<Instant>,
    /// The time at which an item was last stored whose notification was put off.
    last_at: Option<Instant>,
}

impl PutOff {
    /// The times of the server are whole milliseconds.
    const AFTER: Duration = PATIENCE.saturating_add(Duration::from_millis(1));

    /// Notes that an item became fetchable.
    pub(crate) fn on_item(&mut self, now: Instant) {
        self.last_at = Some(now);
        self.due_at.get_or_insert(now + Self::AFTER);
    }

    /// The time at which the notification is due.
    pub(crate) fn due_at(self) -> Option<Instant> {
        self.due_at
    }

    /// Whether the notification is due. If it is due, the notification is put off again for items that became fetchable too late
    /// for this one.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        let is_due = self.due_at.is_some_and(|due| due <= now);
        if is_due {
            self.due_at = self.last_at.map(|last| last + Self::AFTER).filter(|due| *due > now);
        }
        is_due
    }
}

/// The notifications that one process wants, or that all processes together want.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) queues: PerQueue<bool>,
    pub(crate) watches: bool,
}

impl Wants {
    pub(crate) const EVERYTHING: Self = Self { queues: PerQueue::BOTH, watches: true };

    pub(crate) fn or(self, other: Self) -> Self {
        Self { queues: self.queues.or(other.queues), watches: self.watches || other.watches }
    }
}

/// Notifications to forward to another process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Forward {
    pub(crate) queues: PerQueue<bool>,
    pub(crate) hops: Hops,
}

impl Forward {
    /// Limits the hops: processes that are registered for an item and cannot get it would forward its notification for ever.
    pub(crate) const MOST_HOPS: Hops = 32;

    /// Adds the notifications of queues that have hops here.
    pub(crate) fn add(&mut self, hops: PerQueue<Option<Hops>>) {
        let hops = hops.map(|hops| hops.filter(|hops| *hops <= Self::MOST_HOPS));
        let known = self.queues.is_any().then_some(self.hops);
        self.hops = [known, hops.turns, hops.activities].into_iter().flatten().min().unwrap_or(0);
        self.queues = self.queues.or(hops.map(|hops| hops.is_some()));
    }
}

/// The parts of a notification that concern this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Notification {
    /// Another process registers the notifications that it wants.
    Registered { listener: String, wants: Wants, lasts: Duration },
    /// Another process committed.
    Committed { polls: PerQueue<bool>, hops: Hops, ended: Ended },
}

/// Instances that ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Instances(Vec<String>),
    /// More instances than a notification can name.
    TooMany,
}

impl Notification {
    /// Reads the payload of a notification. `None`: this process sent it, or it is no notification of a store.
    ///
    /// | payload | from |
    /// |---|---|
    /// | `[sender, turns?, activities?, watches?, lasts_ms]` | `register_listener_1` |
    /// | `[sender, listener for turns, listener for activities, [ended instances], hops]` | `notify_1`, `forward_notification_1` |
    pub(crate) fn read(payload: &str, own_id: &str) -> Option<Self> {
        let Ok(Value::Array(parts)) = serde_json::from_str(payload) else { return None };
        let mut parts = parts.into_iter().chain(std::iter::repeat(Value::Null));
        let [sender, turns, activities, last, number] =
            std::array::from_fn(|_| parts.next().unwrap_or_default());
        let sender = sender.as_str().filter(|sender| *sender != own_id)?;
        let number = number.as_u64().unwrap_or(0);
        let queues = PerQueue { turns, activities };
        if let (Some(turns), Some(activities), Some(watches)) =
            (queues.turns.as_bool(), queues.activities.as_bool(), last.as_bool())
        {
            let wants = Wants { queues: PerQueue { turns, activities }, watches };
            let lasts = Duration::from_millis(number);
            return Some(Self::Registered { listener: sender.to_string(), wants, lasts });
        }
        let polls = queues.map(|listener| listener.as_str() == Some(own_id));
        let hops = u32::try_from(number).unwrap_or(u32::MAX);
        let ended: Vec<&str> = last.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let ended = match ended.contains(&TOO_MANY) {
            true => Ended::TooMany,
            false => Ended::Instances(ended.into_iter().map(str::to_string).collect()),
        };
        Some(Self::Committed { polls, hops, ended })
    }
}

/// The payload in place of more ended instances than a notification can name.
const TOO_MANY: &str = "";

/// The ended instances that a notification names, whose size is bounded.
pub(crate) fn named_in_notification(ended: Vec<String>) -> Vec<String> {
    const MOST_BYTES: usize = 3_000;
    let bytes: usize = ended.iter().map(|id| id.len() + 8).sum();
    if bytes > MOST_BYTES { vec![TOO_MANY.to_string()] } else { ended }
}

/// The registrations of the other processes.
#[derive(Debug, Default)]
pub(crate) struct Listeners(HashMap<String, (Wants, Instant)>);

impl Listeners {
    pub(crate) fn register(&mut self, listener: String, wants: Wants, until: Instant) {
        self.0.insert(listener, (wants, until));
    }

    pub(crate) fn remove(&mut self, listener: &str) {
        self.0.remove(listener);
    }

    /// The notifications that the registered processes want together. Drops expired registrations.
    pub(crate) fn wants(&mut self, now: Instant) -> Wants {
        self.0.retain(|_, (_, until)| *until > now);
        self.0.values().fold(Wants::default(), |all, (wants, _)| all.or(*wants))
    }
}

/// The registration of this process.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    pub(crate) wants: Wants,
    /// The eligibility of the process at the registration or since.
    pub(crate) eligibility: Eligibility,
    pub(crate) at: Instant,
}

impl Registration {
    pub(crate) fn none(now: Instant) -> Self {
        Self { wants: Wants::default(), eligibility: Eligibility::default(), at: now }
    }

    /// The notifications that the process wants now, and the time until this value may change without an event.
    pub(crate) fn wants_next(
        &self,
        queues: PerQueue<Idleness>,
        is_watched: bool,
        now: Instant,
    ) -> (Wants, Duration) {
        let lingers = (now < self.at + LINGER, LINGER);
        let idle = |(queue, registered): (Idleness, bool)| {
            let unserved = queue.served_at.map_or(Duration::MAX, |at| now.saturating_duration_since(at));
            match (queue.has_fetches, registered) {
                (true, false) => (unserved >= IDLE_AFTER, IDLE_AFTER.saturating_sub(unserved)),
                (true, true) => (true, Duration::MAX),
                (false, true) => lingers,
                (false, false) => (false, Duration::MAX),
            }
        };
        let queues = queues.zip(self.wants.queues).map(idle);
        let (watches, watches_in) = match (is_watched, self.wants.watches) {
            (true, _) => (true, Duration::MAX),
            (false, true) => lingers,
            (false, false) => (false, Duration::MAX),
        };
        let changes_in = queues.turns.1.min(queues.activities.1).min(watches_in);
        let wants = Wants { queues: queues.map(|(wants, _)| wants), watches };
        (wants, changes_in.max(Duration::from_millis(1)))
    }

    /// The queues for which the process wants notifications, or is eligible for items, that `before` did not cover.
    pub(crate) fn extends(&self, before: &Self) -> PerQueue<bool> {
        let added = self.wants.queues.without(before.wants.queues);
        added.or(self.wants.queues.and(self.eligibility.extends(&before.eligibility)))
    }

    /// The next registration, if the present one does not suffice. `parked`: the eligibility of the parked fetches. Fetches come
    /// and go, so the eligibility only grows until the registration is repeated.
    pub(crate) fn next(
        &self,
        wants: Wants,
        now: Instant,
        parked: impl FnOnce() -> Eligibility,
    ) -> Option<Self> {
        let repeats = wants != Wants::default() && now >= self.at + LIFE / 2;
        let eligibility = match (wants.queues.is_any(), repeats) {
            (false, _) => self.eligibility.clone(),
            (true, true) => parked(),
            (true, false) => parked().or(self.eligibility.clone()),
        };
        let is_needed = repeats || wants != self.wants || eligibility != self.eligibility;
        is_needed.then_some(Self { wants, eligibility, at: now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_other_processes_are_read_and_own_ones_are_not() {
        let committed = |polls, hops, ended: &[&str]| {
            let ended = Ended::Instances(ended.iter().map(ToString::to_string).collect());
            Some(Notification::Committed { polls, hops, ended })
        };
        let rows = [
            (r#"["other", "me", null, [], 3]"#, committed(PerQueue::TURNS, 3, &[])),
            (r#"["other", "third", "me", ["i", "j"], 0]"#, {
                committed(PerQueue { turns: false, activities: true }, 0, &["i", "j"])
            }),
            (r#"["other", null, null, ["i"]]"#, committed(PerQueue::default(), 0, &["i"])),
            (
                r#"["other", null, null, [""], 0]"#,
                Some(Notification::Committed { polls: PerQueue::default(), hops: 0, ended: Ended::TooMany }),
            ),
            (
                r#"["other", true, false, true, 60000]"#,
                Some(Notification::Registered {
                    listener: "other".to_string(),
                    wants: Wants { queues: PerQueue::TURNS, watches: true },
                    lasts: LIFE,
                }),
            ),
            (r#"["me", "me", "me", [], 0]"#, None),
            ("{}", None),
            ("no json", None),
        ];
        for (payload, expected) in rows {
            assert_eq!(Notification::read(payload, "me"), expected, "{payload}");
        }
    }

    #[test]
    fn forwarded_notifications_keep_the_fewest_hops_and_end_after_the_most() {
        let mut forward = Forward::default();
        forward.add(PerQueue { turns: Some(Forward::MOST_HOPS + 1), activities: None });
        assert_eq!(forward, Forward::default(), "too many hops");
        forward.add(PerQueue { turns: Some(5), activities: None });
        forward.add(PerQueue { turns: None, activities: Some(2) });
        assert_eq!(forward, Forward { queues: PerQueue::BOTH, hops: 2 });
        forward.add(PerQueue::default());
        assert_eq!(forward, Forward { queues: PerQueue::BOTH, hops: 2 });
    }

    #[test]
    fn a_queue_is_registered_once_idle_and_lingers() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let queue = |has_fetches, served_at| Idleness { has_fetches, served_at };
        let wants = |registered: bool, registered_ms, turns, now_ms| {
            let registered =
                Wants { queues: PerQueue { turns: registered, activities: false }, watches: false };
            let registration = Registration { wants: registered, ..Registration::none(at(registered_ms)) };
            let queues = PerQueue { turns, activities: queue(false, None) };
            let (wants, changes_in) = registration.wants_next(queues, false, at(now_ms));
            (wants.queues.turns, changes_in)
        };
        let ms = Duration::from_millis;
        assert_eq!(wants(false, 0, queue(false, None), 0), (false, Duration::MAX), "no fetch");
        assert_eq!(wants(false, 0, queue(true, None), 0), (true, ms(1)), "never served");
        assert_eq!(wants(false, 0, queue(true, Some(at(5))), 10), (false, ms(15)), "served 5 ms ago");
        assert_eq!(wants(false, 0, queue(true, Some(at(5))), 25), (true, ms(1)), "idle");
        assert_eq!(wants(true, 0, queue(true, Some(at(5))), 6), (true, Duration::MAX), "stays registered");
        assert_eq!(wants(true, 0, queue(false, None), 999), (true, LINGER), "lingers");
        assert_eq!(wants(true, 0, queue(false, None), 1_000), (false, LINGER), "no longer");
    }

    #[test]
    fn every_item_is_covered_by_a_notification_that_is_due_after_its_patience() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut put_off = PutOff::default();
        assert!(!put_off.take_due(at(0)), "no item");
        // Items at these times, and the times at which the notification is due.
        let (items, mut due) = ([0, 10, 26, 30], Vec::new());
        for ms in 0..200 {
            if items.contains(&ms) {
                put_off.on_item(at(ms));
            }
            if put_off.take_due(at(ms)) {
                due.push(ms);
            }
        }
        assert_eq!(due, [26, 52, 56], "the last one covers all that came before");
        assert_eq!(put_off.due_at(), None);
        let is_covered = |item: &u64| due.iter().any(|due| (item + 26..=item + 52).contains(due));
        assert!(items.iter().all(is_covered));
    }

    #[test]
    fn registrations_of_other_processes_add_up_until_they_are_over() {
        let now = Instant::now();
        let mut listeners = Listeners::default();
        listeners.register("a".to_string(), Wants { queues: PerQueue::TURNS, watches: false }, now + LIFE);
        listeners.register(
            "b".to_string(),
            Wants { queues: PerQueue::default(), watches: true },
            now + LIFE / 2,
        );
        assert_eq!(listeners.wants(now), Wants { queues: PerQueue::TURNS, watches: true });
        assert_eq!(listeners.wants(now + LIFE / 2), Wants { queues: PerQueue::TURNS, watches: false });
        listeners.remove("a");
        assert_eq!(listeners.wants(now), Wants::default());
    }
}
