//! Server-sent events. They are hints: a client reads the changed data with the other requests.

use crate::access::Caller;
use crate::app::{App, Shared};
use crate::extract::Params;
use crate::problem::Problem;
use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;
use outlast::providers::InstanceQuery;
use serde::Deserialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// The pause between two reads of the store.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
pub(super) struct Watched {
    instance: Option<String>,
}

/// The state of one stream.
struct Watch {
    app: Shared,
    instance: Option<String>,
    /// The marks of the last read, by the name of their event.
    seen: Vec<(&'static str, String)>,
    /// Events that are not sent yet.
    due: Vec<&'static str>,
    count: u64,
    _permit: OwnedSemaphorePermit,
}

/// Sends `instance`, or `instances` and `system`, when the store has changed, and `resync` first: the client reads everything then.
pub(super) async fn stream(
    State(app): State<Shared>,
    Extension(_caller): Extension<Caller>,
    Params(watched): Params<Watched>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let permit = app.stream_permit()?;
    let seen = marks(&app, watched.instance.as_deref()).await?;
    let watch =
        Watch { app, instance: watched.instance, seen, due: vec!["resync"], count: 0, _permit: permit };
    let events = unfold(watch, |mut watch| async move {
        let name = watch.next().await;
        let event = Event::default().event(name).id(watch.count.to_string()).data("{}");
        Some((Ok(event), watch))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

impl Watch {
    async fn next(&mut self) -> &'static str {
        loop {
            if let Some(name) = self.due.pop() {
                self.count += 1;
                return name;
            }
            tokio::time::sleep(PAUSE).await;
            // A store that does not answer now is read again: hints may be late.
            if let Ok(marks) = marks(&self.app, self.instance.as_deref()).await {
                let changed = marks.iter().filter(|mark| !self.seen.contains(mark)).map(|(name, _)| *name);
                self.due.extend(changed);
                self.seen = marks;
            }
        }
    }
}

/// Texts that differ after a change.
async fn marks(app: &App, instance: Option<&str>) -> Result<Vec<(&'static str, String)>, Problem> {
    let client = &app.client;
    if let Some(id) = instance {
        let stats = client.get_orchestration_stats(id).await?;
        let status = client.get_orchestration_status(id).await?;
        return Ok(vec![("instance", format!("{stats:?} {status:?}"))]);
    }
    let newest = InstanceQuery { limit: Some(1), ..InstanceQuery::default() };
    let newest = client.list_instances_page(newest).await?.instances;
    let newest = newest.first().map(|info| (info.instance_id.clone(), info.updated_at));
    let gauges = client.get_gauges().await?;
    Ok(vec![
        ("instances", format!("{newest:?} {}", gauges.running_instances)),
        ("system", format!("{gauges:?}")),
    ])
}
