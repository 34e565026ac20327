//! Hearing of what other processes commit, and telling them what is waited for here.
//!
//! | what is here | is entered | so that |
//! |---|---|---|
//! | fetches that nobody could serve for a while | when that while is over, then they look once more | one process with idle fetches is told of activities, and nobody while all are busy |
//! | watches | at once | all processes with watches are told which instances ended |
//!
//! An entry is told to the others by a notification, so that a commit need not look whether there are any.

use crate::PostgresError;
use crate::connect::Connection;
use crate::contain::contained;
use crate::db::{Db, Param, cell};
use crate::eligibility::{Columns, Eligibility};
use crate::shared::{PassOn, Shared};
use crate::steps::Step;
use crate::transaction::Others;
use futures::StreamExt;
use futures::future::{Either, select};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

/// How long it may take until the others have heard of an entry.
const UNHEARD: Duration = Duration::from_millis(100);
/// How long an entry stays unless it is made again.
const LIFE: Duration = Duration::from_secs(60);
/// Fetches that have not been served for this long are idle.
const IDLE_AFTER: Duration = Duration::from_millis(20);
/// An entry that is not true any more is taken back after this long: what is idle may be idle again soon.
const LINGER: Duration = Duration::from_secs(1);
/// Most notifications that wait to be acted on. If there are more, the listener reads how things stand instead.
const MOST_NOTIFICATIONS: usize = 1_024;
/// How soon a lost listener connects again, at first and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

pub(crate) fn start(shared: &Arc<Shared>) {
    tokio::spawn(run(Arc::clone(shared)));
}

async fn run(shared: Arc<Shared>) {
    let mut pause = BACKOFF.0;
    while !shared.is_closed() {
        let begun = Instant::now();
        match contained(listen(&shared)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(
                target: "duroxide::providers::postgres",
                %error, "nothing can be heard of other processes: waiting fetches poll"
            ),
            Err(panic) => shared.panicked("listening", &panic),
        }
        // Whatever was missed is found by polling, from now on.
        shared.state().others = None;
        shared.tell(true, true);
        shared.watches.resolve_all();
        if begun.elapsed() > BACKOFF.1 {
            pause = BACKOFF.0;
        }
        let closed = pin!(async {
            while !shared.is_closed() {
                shared.changed.notified().await;
            }
        });
        select(closed, pin!(tokio::time::sleep(pause))).await;
        pause = (pause * 2).min(BACKOFF.1);
    }
}

/// What another process waits for, and until when that is believed.
type Entries = HashMap<String, (Others, Instant)>;

/// Listens until the connection is lost or the store is closed.
async fn listen(shared: &Arc<Shared>) -> Result<(), PostgresError> {
    let db = &shared.db;
    let (client, mut connection) = db.connector.connect().await?;
    let (heard, mut notifications) = mpsc::channel(MOST_NOTIFICATIONS);
    let missed = Arc::new(AtomicBool::new(false));
    let missing = Arc::clone(&missed);
    let task = tokio::spawn(async move {
        let mut messages = futures::stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                match heard.try_send(notification.payload().to_string()) {
                    Ok(()) => {}
                    // This task must not wait: the answers that the listener waits for come the same way.
                    Err(TrySendError::Full(_)) => missing.store(true, Ordering::Release),
                    Err(TrySendError::Closed(_)) => break,
                }
            }
        }
    });
    // Its task ends with it.
    let client = Connection::new(client, task.abort_handle(), db.connector.tls());
    asked(db, client.batch_execute(&db.statements.listen)).await?;
    let mut entries = catch_up(shared, &client).await?;
    let mut entered = Entered::default();
    let mut answered_at = Instant::now();
    loop {
        shared.fault(Step::Listen, Vec::new);
        if missed.swap(false, Ordering::Acquire) {
            entries = catch_up(shared, &client).await?;
            shared.watches.resolve_all();
        }
        if answered_at.elapsed() >= db.deadline / 2 {
            // A server that has gone silent tells nothing and breaks no connection.
            asked(db, client.batch_execute("")).await?;
            answered_at = Instant::now();
        }
        pass_on(shared, &client).await?;
        let now = Instant::now();
        let (wanted, look_again) = wants(shared, &entered, now);
        let is_old = wanted != Others::default() && now >= entered.at + LIFE / 2;
        let admitted = admitted(shared, &entered, wanted, is_old);
        if wanted != entered.wants || is_old || admitted.is_some() {
            let eligibility = admitted.unwrap_or_else(|| entered.eligibility.clone());
            enter(shared, &client, wanted, &eligibility).await?;
            let more = (wanted.turns && !entered.wants.turns, wanted.activities && !entered.wants.activities);
            entered = Entered { wants: wanted, eligibility, at: now };
            // What was committed before the others knew: those who have not heard of the entry yet tell nobody.
            shared.tell(more.0, more.1);
            if more.0 || more.1 {
                tokio::spawn(look_later(Arc::downgrade(shared), more));
            }
        }
        let asks_in = (db.deadline / 2).saturating_sub(answered_at.elapsed());
        let pause = pin!(tokio::time::sleep(look_again.min(LIFE / 2).min(asks_in)));
        let changed = pin!(shared.changed.notified());
        match select(pin!(notifications.recv()), select(changed, pause)).await {
            Either::Left((Some(payload), _)) => {
                answered_at = Instant::now();
                hear(shared, &payload, &mut entries);
                publish(shared, &mut entries);
            }
            Either::Left((None, _)) => {
                return Err(PostgresError::Disconnected { details: "the listener was cut off".to_string() });
            }
            Either::Right(_) => publish(shared, &mut entries),
        }
        if shared.is_closed() {
            let id: [Param<'_>; 1] = [(&shared.id, Type::TEXT)];
            asked(db, client.query_typed(&db.statements.unregister_listener, &id)).await?;
            return Ok(());
        }
    }
}

/// An answer to the listener. The connection of one that fails is closed by its caller.
async fn asked<T>(
    db: &Db,
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, PostgresError> {
    match tokio::time::timeout(db.deadline, asked).await {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            db.counters.silent.add(1);
            Err(PostgresError::Silent { limit: db.deadline })
        }
    }
}

/// Reads what the others wait for, and has fetches look for what was committed before anything could be heard.
async fn catch_up(shared: &Shared, client: &Client) -> Result<Entries, PostgresError> {
    let mut entries = Entries::new();
    for row in asked(&shared.db, client.query_typed(&shared.db.statements.idle_listeners, &[])).await? {
        let wants = Others { turns: cell(&row, 1)?, activities: cell(&row, 2)?, watches: cell(&row, 3)? };
        let life = Duration::from_millis(u64::try_from(cell::<i64>(&row, 4)?).unwrap_or(0));
        entries.insert(cell(&row, 0)?, (wants, Instant::now() + life));
    }
    entries.remove(&shared.id);
    publish(shared, &mut entries);
    shared.tell(true, true);
    Ok(entries)
}

/// Looks once more when all have heard of an entry.
async fn look_later(shared: Weak<Shared>, (turns, activities): (bool, bool)) {
    tokio::time::sleep(UNHEARD).await;
    if let Some(shared) = shared.upgrade() {
        shared.tell(turns, activities);
    }
}

/// What the others believe that this process waits for.
struct Entered {
    wants: Others,
    /// What it may have, and perhaps more.
    eligibility: Eligibility,
    at: Instant,
}

impl Default for Entered {
    fn default() -> Self {
        Self { wants: Others::default(), eligibility: Eligibility::default(), at: Instant::now() }
    }
}

/// What this process waits for, and how soon that may be different without anything being told.
fn wants(shared: &Shared, entered: &Entered, now: Instant) -> (Others, Duration) {
    let state = shared.state();
    let idle = |waits: bool, served_at: Option<Instant>, before: bool| {
        let quiet = served_at.map_or(Duration::MAX, |at| now.saturating_duration_since(at));
        match (waits, before) {
            (true, false) => (quiet >= IDLE_AFTER, IDLE_AFTER.saturating_sub(quiet)),
            (true, true) => (true, Duration::MAX),
            (false, true) => (now < entered.at + LINGER, LINGER),
            (false, false) => (false, Duration::MAX),
        }
    };
    let (turns, turns_in) = idle(!state.turns.waiters.is_empty(), state.turns.served_at, entered.wants.turns);
    let (activities, work_in) =
        idle(!state.activities.waiters.is_empty(), state.activities.served_at, entered.wants.activities);
    drop(state);
    let (watches, watches_in) = match (shared.watches.is_watched(), entered.wants.watches) {
        (true, _) => (true, Duration::MAX),
        (false, true) => (now < entered.at + LINGER, LINGER),
        (false, false) => (false, Duration::MAX),
    };
    let next = turns_in.min(work_in).min(watches_in).max(Duration::from_millis(1));
    (Others { turns, activities, watches }, next)
}

/// What this process may have, if that is more than was entered. Fetches come and go, so what was entered stays until the entry
/// is made anew.
fn admitted(shared: &Shared, entered: &Entered, wants: Others, anew: bool) -> Option<Eligibility> {
    if !(wants.turns || wants.activities) {
        return None;
    }
    let now = shared.state().eligibility();
    let all = if anew { now } else { now.or(entered.eligibility.clone()) };
    (all != entered.eligibility).then_some(all)
}

async fn enter(
    shared: &Shared,
    client: &Client,
    wants: Others,
    eligibility: &Eligibility,
) -> Result<(), PostgresError> {
    let db = &shared.db;
    let channel = db.schema.channel();
    let life = i64::try_from(LIFE.as_millis()).unwrap_or(i64::MAX);
    let Columns { lowest, highest, tags, owners } = eligibility.columns();
    let entry: [Param<'_>; 10] = [
        (&channel, Type::TEXT),
        (&shared.id, Type::TEXT),
        (&wants.turns, Type::BOOL),
        (&wants.activities, Type::BOOL),
        (&wants.watches, Type::BOOL),
        (&lowest, Type::TEXT_ARRAY),
        (&highest, Type::TEXT_ARRAY),
        (&tags, Type::TEXT_ARRAY),
        (&owners, Type::TEXT_ARRAY),
        (&life, Type::INT8),
    ];
    asked(db, client.query_typed(&db.statements.register_listener, &entry)).await?;
    Ok(())
}

/// Tells somebody else what this process was told of and needs no more of, or may not have. One is told of each thing: if it
/// was served meanwhile, or there is more than it can take, the others would not hear of it.
async fn pass_on(shared: &Shared, client: &Client) -> Result<(), PostgresError> {
    let PassOn { turns, activities, hops } = std::mem::take(&mut shared.state().pass_on);
    if !(turns || activities) {
        return Ok(());
    }
    let (channel, hops) = (shared.db.schema.channel(), hops.cast_signed());
    let news: [Param<'_>; 5] = [
        (&channel, Type::TEXT),
        (&shared.id, Type::TEXT),
        (&turns, Type::BOOL),
        (&activities, Type::BOOL),
        (&hops, Type::INT4),
    ];
    asked(&shared.db, client.query_typed(&shared.db.statements.forward_notification, &news)).await?;
    Ok(())
}

/// Acts on a notification: an entry of another process, or news.
fn hear(shared: &Shared, payload: &str, entries: &mut Entries) {
    let Ok(serde_json::Value::Array(parts)) = serde_json::from_str(payload) else { return };
    let text = |index: usize| parts.get(index).and_then(serde_json::Value::as_str);
    let flag = |index: usize| parts.get(index).and_then(serde_json::Value::as_bool);
    let number = parts.get(4).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let Some(sender) = text(0).filter(|sender| *sender != shared.id) else { return };
    if let (Some(turns), Some(activities), Some(watches)) = (flag(1), flag(2), flag(3)) {
        let until = Instant::now() + Duration::from_millis(number);
        entries.insert(sender.to_string(), (Others { turns, activities, watches }, until));
        return;
    }
    let (turns, activities) = (text(1) == Some(&shared.id), text(2) == Some(&shared.id));
    if turns || activities {
        shared.db.counters.heard.add(1);
        shared.hear(turns, activities, u32::try_from(number).unwrap_or(u32::MAX));
    }
    for ended in parts.get(3).and_then(serde_json::Value::as_array).into_iter().flatten() {
        match ended.as_str() {
            // More than a notification can name.
            Some("") => shared.watches.resolve_all(),
            Some(instance) => shared.watches.committed(instance, true),
            None => {}
        }
    }
}

/// What lanes are to know of the others.
fn publish(shared: &Shared, entries: &mut Entries) {
    let now = Instant::now();
    entries.retain(|_, (_, until)| *until > now);
    let mut all = Others::default();
    for (wants, _) in entries.values() {
        all.turns |= wants.turns;
        all.activities |= wants.activities;
        all.watches |= wants.watches;
    }
    shared.state().others = Some(all);
}
