//! The two layers around every route: the outer one for all requests, the inner one with the rule of the route.

use super::origin::{check_host, check_origin};
use super::rate::of_address;
use super::{Scope, Scopes};
use crate::app::Shared;
use crate::log;
use crate::problem::{Code, Problem};
use crate::ui;
use crate::unread::Unread;
use axum::Json;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use outlast::providers::{Clock, Entropy, OsEntropy, SystemClock};
use std::net::SocketAddr;

/// The name in audit records if the server has no tokens.
const ANONYMOUS: &str = "local";
/// The cookie of the dashboard with the token.
pub(crate) const COOKIE: &str = "outlast_token";

/// The id of a request, in its response and in audit records.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// The caller of an admitted request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) scopes: Scopes,
}

/// The name under which the requests and streams of a caller are counted.
#[derive(Debug, Clone)]
pub(crate) struct Counted(pub(crate) String);

/// The caller whose token a request presents, if the server knows the token.
#[derive(Debug, Clone)]
struct Presented(Option<Caller>);

/// The rule of a route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// The required scope; `None` for a route that needs no token.
    pub(crate) scope: Option<Scope>,
    /// Whether the route changes data.
    pub(crate) is_write: bool,
    /// Whether the route answers with a page.
    pub(crate) is_page: bool,
}

/// The outer layer: host, rate and number of requests, headers of the response, and the form of errors.
pub(crate) async fn enter(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let id = RequestId(format!("{:032x}", OsEntropy.next_u128()));
    let path = request.uri().path();
    let is_api = path.starts_with("/api/") || path == "/metrics";
    let is_probe = matches!(path, "/healthz" | "/readyz");
    let is_head = request.method() == axum::http::Method::HEAD;
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let began_ms = SystemClock.now_ms();
    let caller = known(&app, request.headers());
    let counted = counted(&app, caller.as_ref(), &request);
    let admitted = match is_probe {
        // A probe names the address of the machine, and the answer tells nothing.
        true => Ok(()),
        false => check_host(request.headers(), &app.options.hosts)
            .and_then(|()| check_rate(&app, &counted, began_ms)),
    };
    request.extensions_mut().insert(id.clone());
    request.extensions_mut().insert(Presented(caller));
    request.extensions_mut().insert(counted);
    let (request, unread) = Unread::watch(request);
    let permit = app.requests.try_acquire();
    let mut response = match (admitted, permit) {
        (Err(problem), _) => problem.into_response(),
        (Ok(()), Err(_)) => {
            Problem::later(Code::BUSY, "the server answers as many requests as it may: try again later", 1)
                .into_response()
        }
        (Ok(()), Ok(_permit)) => next.run(request).await,
    };
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        let made = response.extensions_mut().remove::<Problem>();
        if status.is_server_error() {
            let route = route.as_ref().map(MatchedPath::as_str);
            log::note(&id.0, &method, route, status, made.as_ref());
        }
        // A page that needs a token answers with the login page.
        if made.is_some() || (is_api && !is_head) {
            let problem = made.unwrap_or_else(|| Problem::of_status(status));
            response = shown(&app, problem, &id, is_api);
        }
    }
    unread.announce(&mut response);
    add_headers(response.headers_mut(), &id);
    app.seen.note(status, SystemClock.now_ms().saturating_sub(began_ms));
    response
}

fn shown(app: &Shared, problem: Problem, id: &RequestId, is_api: bool) -> Response {
    let (status, retry_after) = (problem.code.status, problem.retry_after);
    let mut response = match is_api {
        false => ui::failed(app, problem, &id.0),
        true => {
            let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"))];
            (status, kind, Json(problem.body(&app.options.base_path, &id.0))).into_response()
        }
    };
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if is_api && status == axum::http::StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; base-uri 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

fn add_headers(headers: &mut HeaderMap, id: &RequestId) {
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        headers.insert(HeaderName::from_static("x-request-id"), id);
    }
}

/// The inner layer: origin, token, scope and read-only mode.
pub(crate) async fn protect(
    State((app, rule)): State<(Shared, Rule)>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions_mut().remove::<Presented>().and_then(|Presented(caller)| caller);
    match admit(&app, rule, request.headers(), caller) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) if rule.is_page && problem.code == Code::UNAUTHENTICATED => ui::login_page(&app),
        Err(problem) => problem.into_response(),
    }
}

/// The caller of a request. Without tokens every request has all scopes.
fn known(app: &Shared, headers: &HeaderMap) -> Option<Caller> {
    let Some(tokens) = &app.options.tokens else {
        return Some(Caller { name: ANONYMOUS.to_string(), scopes: Scopes::all() });
    };
    let (name, scopes) = tokens.find(presented(headers)?)?;
    Some(Caller { name: name.to_string(), scopes })
}

/// The token of the caller, or its address if it has no valid token.
fn counted(app: &Shared, caller: Option<&Caller>, request: &Request) -> Counted {
    Counted(match caller {
        Some(caller) if app.options.tokens.is_some() => format!("token {}", caller.name),
        _ => of_address(request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip())),
    })
}

/// Counts the request for its caller.
fn check_rate(app: &Shared, Counted(caller): &Counted, now_ms: u64) -> Result<(), Problem> {
    app.rates.take(caller, now_ms).map_err(|seconds| {
        let detail = format!("this caller has made too many requests: try again after {seconds} s");
        Problem::later(Code::RATE, detail, seconds)
    })
}

/// The inner layer of routes that the application adds.
pub(crate) async fn protect_own(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let is_read = request.method().is_safe();
    let scope = Some(if is_read { Scope::Read } else { Scope::Admin });
    protect(State((app, Rule { scope, is_write: !is_read, is_page: is_read })), request, next).await
}

fn admit(app: &Shared, rule: Rule, headers: &HeaderMap, caller: Option<Caller>) -> Result<Caller, Problem> {
    if !rule.is_page {
        check_origin(headers)?;
    }
    let Some(scope) = rule.scope else {
        return Ok(caller.unwrap_or(Caller { name: ANONYMOUS.to_string(), scopes: Scopes::default() }));
    };
    let caller = caller.ok_or_else(|| {
        Problem::new(
            Code::UNAUTHENTICATED,
            "send a token of the server's token file as `Authorization: Bearer TOKEN`",
        )
    })?;
    if !caller.scopes.allow(scope) {
        return Err(Problem::new(Code::SCOPE, format!("this request needs a token with the scope {scope}")));
    }
    if rule.is_write && !app.options.operate {
        return Err(Problem::new(
            Code::READ_ONLY,
            "the server only reads: start it with --operate to change instances",
        ));
    }
    Ok(caller)
}

/// The token of a request: from the header, or from the cookie of the dashboard.
fn presented(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (kind, token) = value.to_str().ok()?.split_once(' ')?;
        return kind.eq_ignore_ascii_case("bearer").then(|| token.trim());
    }
    cookie(headers, COOKIE)
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';')).find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == wanted).then_some(value)
    })
}
