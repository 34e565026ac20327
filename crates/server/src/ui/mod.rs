//! The pages of the dashboard. They render the values of `view`; the scripts only make them more comfortable.

mod assets;
mod axis;
mod chart;
mod instance;
mod list;
mod login;
mod plot;
mod store;

use crate::access::{Caller, Scope, cookie};
use crate::app::{App, Shared};
use crate::problem::{Code, Problem};
use crate::routes::Routes;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
pub(crate) use login::login_page;

/// Adds the pages.
pub(crate) fn add(routes: Routes) -> Routes {
    let read = Some(Scope::Read);
    routes
        .page("/", read, home)
        .page("/instances", read, list::page)
        .page("/instances/{id}", read, instance::page)
        .page("/queues", read, store::queues)
        .page("/dead-letters", read, store::dead_letters)
        .page("/audit", read, store::audit)
        .page("/system", read, store::system)
        .page("/problems", None, problems)
        .page("/login", None, login::page)
        .post("/login", login::login)
        .post("/logout", login::logout)
        .page("/assets/{name}", None, assets::asset)
}

/// The frame of a page.
struct Frame {
    base: String,
    store: String,
    /// The store in a few characters: of a file, its name.
    store_name: String,
    title: String,
    /// Further entries of the navigation.
    links: Vec<(String, String)>,
    /// The active entry of the navigation.
    tab: &'static str,
    /// Whether the caller may change instances.
    operate: bool,
    /// Whether the caller may see payloads.
    payloads: bool,
    /// The name of the caller's token.
    who: Option<String>,
    /// `light`, `dark`, or empty for the choice of the system.
    theme: &'static str,
    /// The command that shows the same.
    command: String,
    /// The hint of the stream after which the page reads itself again; empty if the page does not change.
    live: &'static str,
    /// The instance of the hint `instance`.
    watched: String,
}

impl Frame {
    fn new(
        app: &App,
        caller: &Caller,
        headers: &HeaderMap,
        tab: &'static str,
        title: impl Into<String>,
    ) -> Self {
        Self {
            base: app.options.base_path.clone(),
            store_name: store_name(&app.options.store).to_string(),
            store: app.options.store.clone(),
            title: title.into(),
            links: app.options.links.clone(),
            tab,
            operate: app.options.operate && caller.scopes.allow(Scope::Operate),
            payloads: caller.scopes.allow(Scope::Payloads),
            who: app.options.tokens.as_ref().map(|_| caller.name.clone()),
            theme: match cookie(headers, "outlast_theme") {
                Some("dark") => "dark",
                Some("light") => "light",
                _ => "",
            },
            command: String::new(),
            live: "",
            watched: String::new(),
        }
    }

    fn with_command(self, command: impl Into<String>) -> Self {
        Self { command: format!("outlast {}", command.into()), ..self }
    }

    fn live(self, hint: &'static str) -> Self {
        Self { live: hint, ..self }
    }

    fn live_instance(self, id: &str) -> Self {
        Self { watched: id.to_string(), ..self.live("instance") }
    }

    /// The frame of a page for callers without a token.
    fn bare(app: &App, title: &str) -> Self {
        let nobody = Caller { name: String::new(), scopes: crate::access::Scopes::default() };
        Self { who: None, ..Self::new(app, &nobody, &HeaderMap::new(), "", title) }
    }
}

fn store_name(store: &str) -> &str {
    let file = store.strip_prefix("sqlite:").and_then(|path| path.rsplit(['/', '\\']).next());
    file.filter(|name| !name.is_empty()).unwrap_or(store)
}

/// A time for people: the script shows it in the zone of the browser.
struct Moment {
    iso: String,
    ms: u64,
}

impl Moment {
    fn of(ms: u64) -> Self {
        Self { iso: crate::view::rfc3339(ms), ms }
    }

    /// The time in UTC, for browsers without scripts.
    fn text(&self) -> String {
        outlast::lens::moment(self.ms).chars().take(19).collect()
    }
}

/// A page.
fn html(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn home(State(app): State<Shared>) -> Redirect {
    Redirect::to(&format!("{}/instances", app.options.base_path))
}

#[derive(Template)]
#[template(path = "failed.html")]
struct Failed {
    frame: Frame,
    code: Code,
    detail: String,
    request_id: String,
}

/// The page of an error.
pub(crate) fn failed(app: &App, problem: Problem, request_id: &str) -> Response {
    let page = Failed {
        frame: Frame::bare(app, problem.code.title),
        code: problem.code,
        detail: problem.detail,
        request_id: request_id.to_string(),
    };
    html(problem.code.status, &page)
}

#[derive(Template)]
#[template(path = "problems.html")]
struct Problems {
    frame: Frame,
    codes: &'static [Code],
}

/// The page that the `type` of a problem names.
async fn problems(State(app): State<Shared>) -> Response {
    html(StatusCode::OK, &Problems { frame: Frame::bare(&app, "Problems"), codes: Code::ALL })
}

#[cfg(test)]
mod tests {
    use super::store_name;

    #[test]
    fn file_is_shown_by_its_name() {
        for (store, name) in [
            ("sqlite:/var/lib/shop.db", "shop.db"),
            ("sqlite:shop.db", "shop.db"),
            ("sqlite:", "sqlite:"),
            ("schema 'a' of postgres://...@db/shop", "schema 'a' of postgres://...@db/shop"),
        ] {
            assert_eq!(store_name(store), name);
        }
    }
}
