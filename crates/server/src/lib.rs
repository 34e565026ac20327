//! The HTTP API and the dashboard of Outlast.
//!
//! [`router`] makes a router for an application of your own; [`serve()`] runs it alone, as `outlast serve` does.
//!
//! ```
//! use outlast::Client;
//! use outlast::providers::memory::MemoryProvider;
//! use std::sync::Arc;
//!
//! let client = Client::new(Arc::new(MemoryProvider::new()));
//! let mut options = outlast_server::Options::default();
//! options.base_path = "/outlast".to_string();
//! let app: axum::Router = axum::Router::new().nest("/outlast", outlast_server::router(client, options));
//! # drop(app);
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `access` | which requests are admitted: host, origin, tokens, scopes, limits |
//! | `routes` | the list of routes, from which router and OpenAPI document are made |
//! | `view` | the answers: one value per screen, for JSON and for pages |
//! | `api` | the handlers of `/api/v1` |
//! | `operations` | changes of many instances, which run beside the requests |
//! | `metrics` | the figures for Prometheus |
//! | `ui` | the pages, their templates and assets |
//!
//! The server keeps no state of instances: every answer is read from the store. Operations alone are kept in memory, and end with it. No payload is in an answer unless the request asks for it
//! and its token has the scope `payloads`.

mod access;
mod api;
mod app;
mod connection;
mod extract;
mod kept;
mod link;
mod log;
#[cfg(test)]
mod matrix;
mod metrics;
mod openapi;
mod operations;
mod options;
mod problem;
mod routes;
mod serve;
mod streams;
mod tls;
mod ui;
mod unread;
mod view;

pub use access::{Scope, Scopes, TokenError, Tokens};
pub use options::Options;
pub use serve::{serve, serve_with};
pub use tls::{Tls, TlsError};

use app::App;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use outlast::Client;
use routes::{Route, Routes};

/// The API under `/api/v1`, the pages, `/metrics`, `/healthz` and `/readyz`.
///
/// Mount it with `Router::nest` under the path of [`Options::base_path`]. Without [`Options::tokens`] it admits every request that reaches
/// it: put your own authentication in front, or give it tokens.
pub fn router(client: Client, options: Options) -> Router {
    router_with(client, options, Router::new())
}

/// [`router`] with routes of your own, behind the same checks of host, origin and token: a GET needs the scope `read`, every other method
/// needs `admin` and [`Options::operate`].
pub fn router_with(client: Client, options: Options, own: Router) -> Router {
    let app = App::new(client, options);
    let own = own.layer(from_fn_with_state(app.clone(), access::protect_own)).with_state(());
    let router = routes::router(all_routes(&app)).merge(own);
    router
        .layer(DefaultBodyLimit::max(app.options.body_bytes))
        .layer(from_fn_with_state(app.clone(), access::enter))
        .with_state(app)
}

/// Every route of this crate.
fn all_routes(app: &app::Shared) -> Vec<Route> {
    let routes = ui::add(api::add(Routes::new(app)));
    routes.text("/metrics", Some(Scope::Read), metrics::metrics).document().all()
}
