//! The notifications of the modelled server, as `notify_1`, `forward_notification_1` and `register_listener_1` send them.

use super::{Link, LinkFaults, ModelledServer, at_once};
use crate::db::Result;
use crate::notify::{Hops, LIFE, Wants, named_in_notification};
use outlast_provider::saturating_ms;
use outlast_provider_kit::queue::PerQueue;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

/// A notification, and the time at which it arrives.
type Delivery = (Instant, String);

/// The listeners of all processes.
#[derive(Default)]
pub(super) struct Wires {
    /// The registrations, and when each ends.
    registered: BTreeMap<String, (Wants, Instant)>,
    /// The connections, with the time of the last delivery: the notifications of a connection keep their order.
    connections: BTreeMap<String, (UnboundedSender<Delivery>, Instant)>,
}

impl Wires {
    /// Sends a notification to all connections of the channel.
    fn send(&mut self, payload: &serde_json::Value, faults: &dyn LinkFaults) {
        for (connection, last) in self.connections.values_mut() {
            *last = (*last).max(Instant::now() + faults.delay());
            // A connection that was lost meanwhile is replaced when its listener connects again.
            let _ = connection.send((*last, payload.to_string()));
        }
    }

    /// A process that is registered for a queue, other than the sender.
    fn chosen(
        &self,
        sender: &str,
        wants: impl Fn(Wants) -> bool,
        faults: &dyn LinkFaults,
    ) -> Option<&String> {
        let now = Instant::now();
        let is_wanted = |(id, (registered, until)): &(&String, &(Wants, Instant))| {
            id.as_str() != sender && *until > now && wants(*registered)
        };
        let all: Vec<&String> = self.registered.iter().filter(is_wanted).map(|(id, _)| id).collect();
        let nth = if all.len() > 1 { faults.choose(all.len()) } else { 0 };
        all.get(nth).copied()
    }

    /// Notifies one process of each of these queues, and all that watch instances of those that ended.
    pub(super) fn notify(
        &mut self,
        sender: &str,
        queues: PerQueue<bool>,
        ended: Vec<String>,
        hops: Hops,
        faults: &dyn LinkFaults,
    ) {
        let chosen = |is_due: bool, wants: fn(Wants) -> bool| {
            if is_due { self.chosen(sender, wants, faults) } else { None }
        };
        let turns = chosen(queues.turns, |wants| wants.queues.turns);
        let activities = chosen(queues.activities, |wants| wants.queues.activities);
        let is_watched = self.registered.iter().any(|(id, (wants, _))| id != sender && wants.watches);
        let ended = if is_watched { named_in_notification(ended) } else { Vec::new() };
        if turns.is_some() || activities.is_some() || !ended.is_empty() {
            let payload = json!([sender, turns, activities, ended, hops]);
            self.send(&payload, faults);
        }
    }
}

impl ModelledServer {
    /// A process has ended. The processes that look for items are notified of those that it left, as when its leases are ended.
    pub(super) fn process_ended(&self, id: &str) {
        let mut state = self.state();
        state.wires.registered.remove(id);
        state.wires.connections.remove(id);
        let left: Vec<String> = state.wires.registered.keys().cloned().collect();
        for listener in left {
            state.wires.send(&json!([id, listener, listener, [], 0]), &*self.faults);
        }
    }

    /// Notifies other processes of a change that was made beside the lanes.
    pub(super) fn changed(&self, sender: &str) {
        self.state().wires.notify(sender, PerQueue::BOTH, Vec::new(), 0, &*self.faults);
    }
}

impl Link {
    /// Opens the connection of the listener.
    pub(crate) async fn listen(&self) -> Result<(ModelledLine, ModelledNotifications)> {
        self.arrives().await;
        let (sender, received) = unbounded_channel();
        self.server.state().wires.connections.insert(self.id().to_string(), (sender, Instant::now()));
        let (server, id) = (Arc::clone(&self.server), self.id().to_string());
        let notifications = ModelledNotifications { server: Arc::clone(&server), received, next: None };
        Ok((ModelledLine { server, id }, notifications))
    }

    /// The process has ended.
    pub(super) fn end(&self) {
        if !self.is_cut.load(Ordering::Acquire) {
            self.cut();
            self.server.process_ended(self.id());
        }
    }
}

/// The connection of a listener.
pub(crate) struct ModelledLine {
    server: Arc<ModelledServer>,
    id: String,
}

impl ModelledLine {
    pub(crate) fn registrations(&self) -> Vec<(String, Wants, Duration)> {
        let now = Instant::now();
        let state = self.server.state();
        let all = state.wires.registered.iter().filter(|(_, (_, until))| *until > now);
        all.map(|(id, (wants, until))| (id.clone(), *wants, *until - now)).collect()
    }

    /// Stores the registration, unless the process has ended.
    pub(crate) async fn register(&self, wants: Wants) -> Result<()> {
        let mut state = self.server.state();
        if state.wires.connections.contains_key(&self.id) {
            state.wires.registered.insert(self.id.clone(), (wants, Instant::now() + LIFE));
            let PerQueue { turns, activities } = wants.queues;
            let payload = json!([self.id, turns, activities, wants.watches, saturating_ms(LIFE)]);
            state.wires.send(&payload, &*self.server.faults);
        }
        Ok(())
    }

    /// Forwards a notification to another process, if an item of the queue is due.
    pub(crate) async fn forward(&self, queues: PerQueue<bool>, hops: Hops) -> Result<()> {
        let due = match self.server.store().as_management_capability() {
            Some(admin) => at_once(admin.oldest_due()).ok().flatten(),
            None => None,
        };
        let is_due = PerQueue {
            turns: due.is_some_and(|due| due.message_ms.is_some()),
            activities: due.is_some_and(|due| due.activity_ms.is_some()),
        };
        let queues = queues.and(is_due);
        if queues.is_any() {
            let faults = &*self.server.faults;
            self.server.state().wires.notify(&self.id, queues, Vec::new(), hops, faults);
        }
        Ok(())
    }

    pub(crate) async fn leave(&self) -> Result<()> {
        let mut state = self.server.state();
        state.wires.registered.remove(&self.id);
        state.wires.connections.remove(&self.id);
        Ok(())
    }
}

/// The notifications that the connection of a listener receives.
pub(crate) struct ModelledNotifications {
    server: Arc<ModelledServer>,
    received: UnboundedReceiver<Delivery>,
    /// The notification that arrives next.
    next: Option<Delivery>,
}

impl ModelledNotifications {
    /// The next notification; `None` when the connection is lost, with all that it did not deliver.
    pub(crate) async fn next(&mut self) -> Option<String> {
        if self.next.is_none() {
            self.next = Some(self.received.recv().await?);
        }
        if let Some((at, _)) = &self.next {
            sleep_until(*at).await;
        }
        let (_, payload) = self.next.take()?;
        (!self.server.faults.loses_listener()).then_some(payload)
    }
}
