//! The page of the demo, beside the dashboard: its state, its script, and its three buttons.

use super::crew::Kills;
use super::order::{Approval, order};
use super::stage::Stage;
use super::worker::MAX_ATTEMPTS;
use axum::Router;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use outlast::prelude::{Client, InstanceError};
use outlast_server::Options;
use serde::Deserialize;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The number of ports that are tried one after another.
const PORTS: u16 = 20;

/// The actions of the page.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) client: Client,
    pub(super) stage: Stage,
    pub(super) kills: Kills,
    /// The request for another batch.
    pub(super) again: Arc<Notify>,
}

/// The running server. It stops when the value is dropped.
pub(super) struct Serving {
    pub(super) address: SocketAddr,
    _task: JoinSet<io::Result<()>>,
}

impl Page {
    /// Serves the page and the dashboard on the port, or on the next free one.
    pub(super) async fn serve(self, port: u16, store: String) -> io::Result<Serving> {
        let listener = listen(port).await?;
        let address = listener.local_addr()?;
        let mut options = Options::default();
        options.store = store;
        options.operate = true;
        options.max_attempts = MAX_ATTEMPTS;
        options.links = vec![("Demo".to_string(), "/demo".to_string())];
        let client = self.client.clone();
        let mut task = JoinSet::new();
        task.spawn(outlast_server::serve_with(listener, client, options, self.routes(), pending()));
        Ok(Serving { address, _task: task })
    }

    fn routes(self) -> Router {
        let text = |kind: &'static str, text: &'static str| {
            get(move || async move { ([(CONTENT_TYPE, kind)], text) })
        };
        Router::new()
            .route("/demo", text("text/html; charset=utf-8", include_str!("page/demo.html")))
            .route("/demo/demo.css", text("text/css; charset=utf-8", include_str!("page/demo.css")))
            .route("/demo/demo.js", text("text/javascript; charset=utf-8", include_str!("page/demo.js")))
            .route("/demo/state", get(state))
            .route("/demo/kill", post(kill))
            .route("/demo/answer", post(answer))
            .route("/demo/again", post(again))
            .with_state(self)
    }
}

/// The first free port of the loopback from `port` on, or any free port.
async fn listen(port: u16) -> io::Result<TcpListener> {
    for port in (port..=u16::MAX).take(usize::from(PORTS)) {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            other => return other,
        }
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

async fn state(State(page): State<Page>) -> Response {
    ([(CONTENT_TYPE, "application/json")], page.stage.read()).into_response()
}

#[derive(Deserialize)]
struct Kill {
    worker: u32,
}

async fn kill(State(page): State<Page>, Json(kill): Json<Kill>) -> Response {
    if !page.stage.is_alive(kill.worker) {
        return refused(format!("worker {} has no process at the moment", kill.worker));
    }
    page.kills.kill(kill.worker);
    StatusCode::ACCEPTED.into_response()
}

#[derive(Deserialize)]
struct Answer {
    order: String,
    approve: bool,
}

async fn answer(State(page): State<Page>, Json(answer): Json<Answer>) -> Response {
    let approval = match answer.approve {
        true => Approval::Granted,
        false => Approval::Refused { reason: "the visitor refused it".to_string() },
    };
    match order::handle(&page.client, &answer.order).send(approval).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(InstanceError::Ended { .. }) => refused(format!("{} has ended already", answer.order)),
        Err(error) => refused(error.to_string()),
    }
}

async fn again(State(page): State<Page>) -> Response {
    if !page.stage.is_over() {
        return refused("the batch still runs, or the demo ends with it".to_string());
    }
    page.again.notify_one();
    StatusCode::ACCEPTED.into_response()
}

fn refused(detail: String) -> Response {
    (StatusCode::CONFLICT, detail).into_response()
}

/// How to reach the port from the machine of an SSH session. `connection` is the variable SSH_CONNECTION: the addresses and ports of
/// both ends.
pub(super) fn forward(port: u16, connection: &str, user: Option<&str>) -> Option<String> {
    let mut parts = connection.split_whitespace().skip(2);
    let (host, ssh_port) = (parts.next()?, parts.next()?);
    let host = user.map_or_else(|| host.to_string(), |user| format!("{user}@{host}"));
    let ssh_port = if ssh_port == "22" { String::new() } else { format!(" -p {ssh_port}") };
    Some(format!("ssh -L {port}:127.0.0.1:{port}{ssh_port} {host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn next_free_port_is_taken() {
        let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = busy.local_addr().unwrap().port();
        let other = listen(port).await.unwrap().local_addr().unwrap();
        assert_ne!(other.port(), port);
        assert!(other.ip().is_loopback());
    }

    #[test]
    fn ssh_sessions_get_the_command_that_forwards_the_port() {
        let of = |connection, user| forward(7411, connection, user);
        assert_eq!(
            of("10.0.0.9 50000 10.0.0.5 22", Some("ada")).unwrap(),
            "ssh -L 7411:127.0.0.1:7411 ada@10.0.0.5"
        );
        assert_eq!(
            of("10.0.0.9 50000 10.0.0.5 2222", None).unwrap(),
            "ssh -L 7411:127.0.0.1:7411 -p 2222 10.0.0.5"
        );
        assert_eq!(of("", None), None);
    }
}
