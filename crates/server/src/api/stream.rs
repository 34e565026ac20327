//! Server-sent events. They are hints: a client reads the changed data with the other requests.

use crate::access::Counted;
use crate::app::{App, Shared};
use crate::extract::Params;
use crate::problem::Problem;
use crate::streams::StreamPermit;
use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;
use outlast::providers::InstanceQuery;
use serde_json::json;
use std::convert::Infallible;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The pause between two reads of the store.
const PAUSE: Duration = Duration::from_millis(500);
/// The age up to which the marks of the whole store serve further streams.
const FRESH_MS: u64 = 400;
/// The instances whose changes the hint `instances` reports: the first page of the list.
const NEWEST: u32 = 50;
/// The most instances that a stream watches.
const MOST_WATCHED: usize = 16;

/// The subject of a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Hint {
    /// The client reads everything: the stream has begun.
    Resync,
    /// An instance has changed, was created or was deleted.
    Instance(String),
    /// One of the newest instances, or the number of running ones, has changed.
    Instances,
    /// The queues or the dead letters have changed.
    System,
}

/// A number that differs after a change of the subject.
type Mark = (Hint, u64);

/// The marks of the whole store, which all streams share.
#[derive(Clone)]
pub(crate) struct StoreMarks(Vec<Mark>);

/// The instances and the store that a stream watches.
struct Watched {
    instances: Vec<String>,
    store: bool,
}

impl Watched {
    /// Reads `instance`, which may be repeated, and `store`. Without an instance the stream watches the store.
    fn of(params: Vec<(String, String)>) -> Result<Self, Problem> {
        let mut watched = Self { instances: Vec::new(), store: false };
        for (name, value) in params {
            match name.as_str() {
                "instance" if !watched.instances.contains(&value) => watched.instances.push(value),
                "store" => watched.store = value == "true",
                _ => {}
            }
        }
        watched.store |= watched.instances.is_empty();
        match watched.instances.len() > MOST_WATCHED {
            true => Err(Problem::invalid(format!("a stream watches at most {MOST_WATCHED} instances"))),
            false => Ok(watched),
        }
    }

    async fn marks(&self, app: &App) -> Result<Vec<Mark>, Problem> {
        let mut marks = match self.store {
            true => app.marks.get(FRESH_MS, of_store(app)).await?.1.0,
            false => Vec::new(),
        };
        for id in &self.instances {
            let stats = app.client.get_orchestration_stats(id).await?;
            let status = app.client.get_orchestration_status(id).await?;
            marks.push((Hint::Instance(id.clone()), mark(&(stats, status))));
        }
        Ok(marks)
    }
}

/// The state of one stream.
struct Watch {
    app: Shared,
    watched: Watched,
    /// The marks of the last read.
    seen: Vec<Mark>,
    /// Hints that are not sent yet.
    due: Vec<Hint>,
    count: u64,
    _permit: StreamPermit,
}

type Unbuffered = [(&'static str, &'static str); 1];

/// Sends hints when the store has changed, and `resync` first.
pub(super) async fn stream(
    State(app): State<Shared>,
    Extension(Counted(caller)): Extension<Counted>,
    Params(params): Params<Vec<(String, String)>>,
) -> Result<(Unbuffered, Sse<impl Stream<Item = Result<Event, Infallible>>>), Problem> {
    let watched = Watched::of(params)?;
    let permit = app.streams.take(&caller)?;
    let seen = watched.marks(&app).await?;
    let watch = Watch { app, watched, seen, due: vec![Hint::Resync], count: 0, _permit: permit };
    let events = unfold(watch, |mut watch| async move {
        let hint = watch.next().await;
        Some((Ok(event(&hint, watch.count)), watch))
    });
    // A proxy that gathers an answer would keep the hints back.
    Ok(([("x-accel-buffering", "no")], Sse::new(events).keep_alive(KeepAlive::default())))
}

fn event(hint: &Hint, count: u64) -> Event {
    let (name, data) = match hint {
        Hint::Resync => ("resync", json!({})),
        Hint::Instance(id) => ("instance", json!({ "instance": id })),
        Hint::Instances => ("instances", json!({})),
        Hint::System => ("system", json!({})),
    };
    Event::default().event(name).id(count.to_string()).data(data.to_string())
}

impl Watch {
    async fn next(&mut self) -> Hint {
        loop {
            if let Some(hint) = self.due.pop() {
                self.count += 1;
                return hint;
            }
            tokio::time::sleep(PAUSE).await;
            // A store that does not answer now is read again: hints may be late.
            if let Ok(marks) = self.watched.marks(&self.app).await {
                let changed = marks.iter().filter(|mark| !self.seen.contains(mark));
                self.due.extend(changed.map(|(hint, _)| hint.clone()));
                self.seen = marks;
            }
        }
    }
}

async fn of_store(app: &App) -> Result<StoreMarks, Problem> {
    let client = &app.client;
    let newest = InstanceQuery { limit: Some(NEWEST), ..InstanceQuery::default() };
    let newest = client.list_instances_page(newest).await?.instances;
    let newest: Vec<_> = newest
        .iter()
        .map(|info| (&info.instance_id, info.current_execution_id, &info.status, info.updated_at))
        .collect();
    let gauges = client.get_gauges().await?;
    let held = client.count_held().await?;
    let last_letter = client.list_dead_letters(1).await?;
    Ok(StoreMarks(vec![
        (Hint::Instances, mark(&(newest, gauges.running_instances))),
        (Hint::System, mark(&(gauges, held, last_letter))),
    ]))
}

/// A digest of the whole value, so that no stream keeps payloads.
fn mark(value: &impl Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(pairs: &[(&str, &str)]) -> Result<Watched, Problem> {
        Watched::of(pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    #[test]
    fn stream_without_an_instance_watches_the_store() {
        for (pairs, instances, store) in [
            (&[][..], 0, true),
            (&[("instance", "a")], 1, false),
            (&[("instance", "a"), ("instance", "a"), ("instance", "b"), ("store", "true")], 2, true),
        ] {
            let found = watched(pairs).unwrap();
            assert_eq!((found.instances.len(), found.store), (instances, store), "{pairs:?}");
        }
    }

    #[test]
    fn number_of_watched_instances_is_bounded() {
        let ids: Vec<String> = (0..=MOST_WATCHED).map(|id| id.to_string()).collect();
        let pairs: Vec<(&str, &str)> = ids.iter().map(|id| ("instance", id.as_str())).collect();
        assert!(watched(&pairs).is_err() && watched(&pairs[1..]).is_ok());
    }
}
