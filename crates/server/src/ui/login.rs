//! The login of the dashboard: a token becomes a cookie that scripts cannot read.

use super::{Frame, html};
use crate::access::COOKIE;
use crate::app::{App, Shared};
use crate::extract::Body;
use crate::problem::{Code, Problem};
use askama::Template;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "login.html")]
struct Login {
    frame: Frame,
}

/// The page that asks for a token. Its address may have the token after `#`, which browsers do not send.
pub(crate) fn login_page(app: &App) -> Response {
    html(StatusCode::UNAUTHORIZED, &Login { frame: Frame::bare(app, "Log in") })
}

pub(super) async fn page(State(app): State<Shared>) -> Response {
    html(StatusCode::OK, &Login { frame: Frame::bare(&app, "Log in") })
}

#[derive(Deserialize)]
pub(super) struct LoginBody {
    token: String,
}

pub(super) async fn login(
    State(app): State<Shared>,
    headers: HeaderMap,
    Body(body): Body<LoginBody>,
) -> Result<Response, Problem> {
    let is_known = app.options.tokens.as_ref().is_some_and(|tokens| tokens.find(&body.token).is_some());
    // Characters that end a cookie are in no token of a file.
    let is_plain =
        body.token.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b';' | b',' | b'"' | b'\\'));
    match is_known && is_plain {
        true => Ok(set_cookie(&app, &body.token, secure(&app, &headers))),
        false => Err(Problem::new(Code::UNAUTHENTICATED, "the server does not know this token")),
    }
}

pub(super) async fn logout(State(app): State<Shared>) -> Response {
    set_cookie(&app, "", "; Max-Age=0")
}

/// A browser sends the cookie over TLS only, if the server has TLS, or if the login came through a proxy with TLS. A client that lies
/// gets a stricter cookie.
fn secure(app: &App, headers: &HeaderMap) -> &'static str {
    match app.options.tls.is_some()
        || headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https")
    {
        true => "; Secure",
        false => "",
    }
}

fn set_cookie(app: &App, token: &str, end: &str) -> Response {
    let path = if app.options.base_path.is_empty() { "/" } else { app.options.base_path.as_str() };
    let cookie = format!("{COOKIE}={token}; Path={path}; HttpOnly; SameSite=Strict{end}");
    (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response()
}
