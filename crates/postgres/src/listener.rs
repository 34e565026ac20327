//! The listener: a task that holds the connection for notifications.
//!
//! The listener registers the notifications that this process wants, tells the scheduler which notifications other processes want,
//! and passes received notifications to the scheduler and the watches. `notify.rs` has the meaning of notifications. The server
//! sends each registration to the other processes as a notification, so that a commit need not read the registrations.

use crate::PostgresError;
use crate::connect::Connection;
use crate::contain::contained;
use crate::db::{Db, Param, cell, span};
use crate::eligibility::Columns;
#[cfg(feature = "test-hooks")]
use crate::modelled::{ModelledLine, ModelledNotifications};
use crate::notify::{Ended, Forward, Hops, LIFE, Listeners, Notification, PATIENCE, Registration, Wants};
use crate::owner::Looks;
use crate::shared::Shared;
use crate::steps::Step;
use futures::StreamExt;
use futures::future::{Either, select};
use outlast_provider::saturating_ms;
use outlast_provider_kit::queue::PerQueue;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

/// The time in which the other processes receive the notification of a registration.
const REGISTRATION_DELAY: Duration = Duration::from_millis(100);
/// Most notifications that wait for the listener. If there are more, the listener reads the registrations instead.
const MOST_NOTIFICATIONS: usize = 1_024;
/// The pause before a lost listener connects again, at first and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

pub(crate) fn start(shared: &Arc<Shared>) {
    tokio::spawn(run(Arc::clone(shared)));
}

/// The task of the listener: listens, and connects again after a lost connection, until the store is closed.
async fn run(shared: Arc<Shared>) {
    let mut pause = BACKOFF.0;
    while !shared.is_closed() {
        let begun = Instant::now();
        match contained(listen(&shared)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(
                target: "duroxide::providers::postgres",
                %error, "notifications of other processes cannot be received: waiting fetches poll"
            ),
            Err(panic) => shared.panicked("listening", &panic),
        }
        shared.secrets.on_lost();
        // From now on, polls find the items of missed commits.
        shared.update(|scheduler, _| scheduler.on_listeners(None));
        shared.on_remote_change(PerQueue::BOTH);
        shared.watches.resolve_all();
        if begun.elapsed() > BACKOFF.1 {
            pause = BACKOFF.0;
        }
        let closed = pin!(async {
            while !shared.is_closed() {
                shared.listener_woken().await;
            }
        });
        select(closed, pin!(tokio::time::sleep(pause))).await;
        pause = (pause * 2).min(BACKOFF.1);
    }
}

/// The connection of the listener: to the server, or to its model in simulated worlds.
enum Line {
    OfServer(Connection),
    #[cfg(feature = "test-hooks")]
    OfModel(ModelledLine),
}

/// The notifications that the connection of the listener has received.
enum Notifications {
    OfServer(mpsc::Receiver<String>),
    #[cfg(feature = "test-hooks")]
    OfModel(ModelledNotifications),
}

impl Notifications {
    /// The next notification; `None` when the connection is lost.
    async fn next(&mut self) -> Option<String> {
        match self {
            Self::OfServer(received) => received.recv().await,
            #[cfg(feature = "test-hooks")]
            Self::OfModel(received) => received.next().await,
        }
    }
}

/// Connects, and lets notifications come in. `missed` is set when there are more of them than the listener reads.
async fn connect(db: &Db, missed: &Arc<AtomicBool>) -> Result<(Line, Notifications), PostgresError> {
    #[cfg(feature = "test-hooks")]
    if let Some(link) = &db.modelled {
        let (line, notifications) = link.listen().await?;
        return Ok((Line::OfModel(line), Notifications::OfModel(notifications)));
    }
    let (client, mut connection) = db.connector.connect().await?;
    let (received, notifications) = mpsc::channel(MOST_NOTIFICATIONS);
    let missing = Arc::clone(missed);
    let task = tokio::spawn(async move {
        let mut messages = futures::stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                match received.try_send(notification.payload().to_string()) {
                    Ok(()) => {}
                    // This task must not wait for the listener: the task also receives the answers for which the listener waits.
                    Err(TrySendError::Full(_)) => missing.store(true, Ordering::Release),
                    Err(TrySendError::Closed(_)) => break,
                }
            }
        }
    });
    // The task of the connection ends with the connection.
    let client = Connection::new(client, task.abort_handle(), db.connector.tls());
    asked(db, client.batch_execute(&db.statements.listen)).await?;
    Ok((Line::OfServer(client), Notifications::OfServer(notifications)))
}

/// Listens until the connection is lost or the store is closed.
async fn listen(shared: &Arc<Shared>) -> Result<(), PostgresError> {
    let db = &shared.db;
    let missed = Arc::new(AtomicBool::new(false));
    let (line, mut notifications) = connect(db, &missed).await?;
    let mut listeners = catch_up(shared, &line).await?;
    let mut registered = Registration::none(Instant::now());
    let mut answered_at = Instant::now();
    let mut looks = Looks::default();
    loop {
        shared.fault(Step::Listen, Vec::new);
        if missed.swap(false, Ordering::Acquire) {
            listeners = catch_up(shared, &line).await?;
            shared.watches.resolve_all();
        }
        if answered_at.elapsed() >= db.deadline / 2 {
            // A silent server sends no notifications and breaks no connection.
            line.ping(db).await?;
            answered_at = Instant::now();
        }
        forward(shared, &line).await?;
        let looks_in = line.attend(&mut looks, shared).await?;
        let now = Instant::now();
        let idleness = shared.scheduler().idleness();
        let (wants, changes_in) = registered.wants_next(idleness, shared.watches.is_watched(), now);
        if let Some(next) = registered.next(wants, now, || shared.scheduler().eligibility()) {
            line.register(shared, &next).await?;
            let added = next.wants.queues.without(registered.wants.queues);
            // No process has forwarded notifications of items for which this process was not registered.
            shared.on_remote_change(next.extends(&registered));
            registered = next;
            if added.is_any() {
                // A process that has not received the registration yet does not notify this process of its commits.
                tokio::spawn(poll_after_registration_delay(Arc::downgrade(shared), added));
            }
        }
        let asks_in = (db.deadline / 2).saturating_sub(answered_at.elapsed());
        let overdue_at = shared.scheduler().overdue_at();
        let overdue_in = overdue_at.map_or(LIFE, |at| at.saturating_duration_since(Instant::now()));
        let pause = changes_in.min(LIFE / 2).min(asks_in).min(looks_in).min(overdue_in);
        let pause = pin!(tokio::time::sleep(pause));
        let woken = pin!(shared.listener_woken());
        match select(pin!(notifications.next()), select(woken, pause)).await {
            Either::Left((Some(payload), _)) => {
                answered_at = Instant::now();
                on_notification(shared, &payload, &mut listeners);
                publish(shared, &mut listeners);
            }
            Either::Left((None, _)) => {
                return Err(PostgresError::Disconnected {
                    details: "the connection of the listener was closed".to_string(),
                });
            }
            Either::Right(_) => publish(shared, &mut listeners),
        }
        if shared.is_closed() {
            forward(shared, &line).await?;
            return line.leave(looks, shared).await;
        }
    }
}

/// Waits for an answer of the server. After an error the caller closes the connection. If the server gives no answer within the
/// deadline, the store also closes its idle connections, as in [`within`](crate::deadline::within). Otherwise an idle process,
/// whose listener alone notices the silence, would poll on another dead connection and lose a second deadline.
pub(crate) async fn asked<T>(
    db: &Db,
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, PostgresError> {
    match tokio::time::timeout(db.deadline, asked).await {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            db.counters.silent.add(1);
            db.close_idle();
            Err(PostgresError::Silent { limit: db.deadline })
        }
    }
}

/// Reads the registrations of the other processes, and polls for items that were committed before notifications could be
/// received.
async fn catch_up(shared: &Shared, line: &Line) -> Result<Listeners, PostgresError> {
    let mut listeners = Listeners::default();
    for (id, wants, lasts) in line.registrations(&shared.db).await? {
        listeners.register(id, wants, Instant::now() + lasts);
    }
    listeners.remove(&shared.id);
    publish(shared, &mut listeners);
    shared.on_remote_change(PerQueue::BOTH);
    Ok(listeners)
}

/// Polls once more after all processes have received the notification of a registration.
async fn poll_after_registration_delay(shared: Weak<Shared>, queues: PerQueue<bool>) {
    tokio::time::sleep(REGISTRATION_DELAY).await;
    if let Some(shared) = shared.upgrade() {
        shared.on_remote_change(queues);
    }
}

impl Line {
    async fn ping(&self, db: &Db) -> Result<(), PostgresError> {
        match self {
            Self::OfServer(client) => asked(db, client.batch_execute("")).await,
            #[cfg(feature = "test-hooks")]
            Self::OfModel(_) => Ok(()),
        }
    }

    /// Looks for dead processes. The model has no locks of sessions: leases end by time.
    async fn attend(&self, looks: &mut Looks, shared: &Shared) -> Result<Duration, PostgresError> {
        match self {
            Self::OfServer(client) => looks.attend(shared, client).await,
            #[cfg(feature = "test-hooks")]
            Self::OfModel(_) => {
                shared.secrets.settle();
                Ok(LIFE)
            }
        }
    }

    /// The registrations of all processes, and for how long each lasts.
    async fn registrations(&self, db: &Db) -> Result<Vec<(String, Wants, Duration)>, PostgresError> {
        match self {
            Self::OfServer(client) => registrations(db, client).await,
            #[cfg(feature = "test-hooks")]
            Self::OfModel(line) => Ok(line.registrations()),
        }
    }

    /// Stores the registration of this process and notifies the other processes of the registration.
    async fn register(&self, shared: &Shared, registration: &Registration) -> Result<(), PostgresError> {
        match self {
            Self::OfServer(client) => register(shared, client, registration).await,
            #[cfg(feature = "test-hooks")]
            Self::OfModel(line) => line.register(registration.wants).await,
        }
    }

    /// Removes the registration of a closed store.
    async fn leave(&self, looks: Looks, shared: &Shared) -> Result<(), PostgresError> {
        match self {
            Self::OfServer(client) => {
                let db = &shared.db;
                let id: [Param<'_>; 1] = [(&shared.id, Type::TEXT)];
                asked(db, client.query_typed(&db.statements.unregister_listener, &id)).await?;
                looks.leave(shared, client).await
            }
            #[cfg(feature = "test-hooks")]
            Self::OfModel(line) => line.leave().await,
        }
    }
}

async fn registrations(db: &Db, client: &Client) -> Result<Vec<(String, Wants, Duration)>, PostgresError> {
    let mut all = Vec::new();
    for row in asked(db, client.query_typed(&db.statements.idle_listeners, &[])).await? {
        let queues = PerQueue { turns: cell(&row, "turns")?, activities: cell(&row, "activities")? };
        let wants = Wants { queues, watches: cell(&row, "watches")? };
        let lasts = Duration::from_millis(u64::try_from(cell::<i64>(&row, "lasts_ms")?).unwrap_or(0));
        all.push((cell(&row, "id")?, wants, lasts));
    }
    Ok(all)
}

async fn register(
    shared: &Shared,
    client: &Client,
    registration: &Registration,
) -> Result<(), PostgresError> {
    let db = &shared.db;
    let channel = db.schema.channel();
    let life = i64::try_from(LIFE.as_millis()).unwrap_or(i64::MAX);
    let Wants { queues, watches } = &registration.wants;
    let Columns { lowest, highest, tags, owners } = registration.eligibility.columns();
    let row: [Param<'_>; 10] = [
        (&channel, Type::TEXT),
        (&shared.id, Type::TEXT),
        (&queues.turns, Type::BOOL),
        (&queues.activities, Type::BOOL),
        (watches, Type::BOOL),
        (&lowest, Type::TEXT_ARRAY),
        (&highest, Type::TEXT_ARRAY),
        (&tags, Type::TEXT_ARRAY),
        (&owners, Type::TEXT_ARRAY),
        (&life, Type::INT8),
    ];
    asked(db, client.query_typed(&db.statements.register_listener, &row)).await?;
    Ok(())
}

/// Forwards notifications, and sends delayed notifications. The server notifies one process of each item. If that process was
/// served meanwhile, or has more items than it can take, only a forwarded notification reaches another process.
async fn forward(shared: &Shared, line: &Line) -> Result<(), PostgresError> {
    let (Forward { queues, hops }, overdue) =
        shared.update(|scheduler, now| (scheduler.take_forward(), scheduler.take_overdue(now)));
    if queues.is_any() {
        forward_one(shared, line, queues, hops, Duration::ZERO).await?;
    }
    let overdue = overdue.without(queues);
    if overdue.is_any() {
        let waited = if shared.is_closed() { Duration::ZERO } else { PATIENCE };
        forward_one(shared, line, overdue, 0, waited).await?;
    }
    Ok(())
}

/// Notifies another process of items that have waited for the given time.
async fn forward_one(
    shared: &Shared,
    line: &Line,
    queues: PerQueue<bool>,
    hops: Hops,
    waited: Duration,
) -> Result<(), PostgresError> {
    let client = match line {
        Line::OfServer(client) => client,
        #[cfg(feature = "test-hooks")]
        Line::OfModel(line) => return line.forward(queues, hops).await,
    };
    let (channel, hops) = (shared.db.schema.channel(), hops.cast_signed());
    let waited_ms = span(saturating_ms(waited));
    let notification: [Param<'_>; 6] = [
        (&channel, Type::TEXT),
        (&shared.id, Type::TEXT),
        (&queues.turns, Type::BOOL),
        (&queues.activities, Type::BOOL),
        (&hops, Type::INT4),
        (&waited_ms, Type::INT8),
    ];
    asked(&shared.db, client.query_typed(&shared.db.statements.forward_notification, &notification)).await?;
    Ok(())
}

/// Acts on a notification: a registration of another process, or a commit.
fn on_notification(shared: &Shared, payload: &str, listeners: &mut Listeners) {
    match Notification::read(payload, &shared.id) {
        None => {}
        Some(Notification::Registered { listener, wants, lasts }) => {
            listeners.register(listener, wants, Instant::now() + lasts);
        }
        Some(Notification::Committed { polls, hops, ended }) => {
            if polls.is_any() {
                shared.db.counters.notifications.add(1);
                shared.update(|scheduler, _| scheduler.on_notification(polls, hops));
            }
            match ended {
                Ended::TooMany => shared.watches.resolve_all(),
                Ended::Instances(ended) => {
                    ended.iter().for_each(|instance| shared.watches.committed(instance, true));
                }
            }
        }
    }
}

/// Tells the scheduler which notifications other processes want.
fn publish(shared: &Shared, listeners: &mut Listeners) {
    let wants = listeners.wants(Instant::now());
    shared.update(|scheduler, _| scheduler.on_listeners(Some(wants)));
}
