//! Tests of every route with every kind of caller. The tables here name the expected scopes, so that a route that becomes public, or
//! gets another scope, is noticed.

use crate::access::{Scope, Tokens};
use crate::app::App;
use crate::options::Options;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use axum::response::Response;
use axum::routing::get;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use outlast::Client;
use outlast::providers::memory::MemoryProvider;
use serde_json::Value;
use std::fs;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

/// The routes that need no token, with the status of a request without one.
const OPEN: [(&str, &str, u16); 8] = [
    ("GET", "/api/v1/openapi.json", 200),
    ("GET", "/assets/{name}", 200),
    ("GET", "/healthz", 200),
    ("GET", "/login", 200),
    // The body has no token.
    ("POST", "/login", 400),
    ("POST", "/logout", 204),
    ("GET", "/problems", 200),
    ("GET", "/readyz", 200),
];

/// The routes whose scope does not follow from their method.
const SPECIAL: [(&str, &str, Scope); 5] = [
    ("GET", "/api/v1/instances/{id}/executions/{execution}/history", Scope::Payloads),
    ("GET", "/api/v1/instances/{id}/executions/{execution}/payloads/{event}", Scope::Payloads),
    ("POST", "/api/v1/instances/{id}/prune", Scope::Admin),
    ("DELETE", "/api/v1/instances/{id}", Scope::Admin),
    ("POST", "/own", Scope::Admin),
];

/// The scope that a route must require: GET reads, other methods operate. `None` for a route that needs no token.
fn required(method: &str, path: &str) -> Option<Scope> {
    if OPEN.iter().any(|open| (open.0, open.1) == (method, path)) {
        return None;
    }
    let special = SPECIAL.iter().find(|special| (special.0, special.1) == (method, path));
    let usual = if method == "GET" { Scope::Read } else { Scope::Operate };
    Some(special.map_or(usual, |special| special.2))
}

fn token(scope: Scope) -> String {
    format!("{scope:_>40}")
}

/// Options with a token per scope, and without a limit for the rate.
fn options(operate: bool) -> Options {
    let tokens = Scope::ALL
        .into_iter()
        .fold(Tokens::default(), |tokens, scope| tokens.with(scope.as_str(), [scope], &token(scope)));
    Options {
        operate,
        tokens: Some(tokens),
        request_rate: 1e9,
        request_burst: u32::MAX,
        ..Options::default()
    }
}

fn client() -> Client {
    Client::new(Arc::new(MemoryProvider::new()))
}

/// The router with a route of an application.
fn router(operate: bool) -> Router {
    let own = Router::new().route("/own", get(|| ready("own")).post(|| ready("own")));
    crate::router_with(client(), options(operate), own)
}

/// Method and path of every route.
fn routes() -> Vec<(Method, String)> {
    let app = App::new(client(), options(true));
    let mut routes: Vec<_> =
        crate::all_routes(&app).into_iter().map(|route| (route.method, route.path)).collect();
    routes.extend([Method::GET, Method::POST].map(|method| (method, "/own".to_string())));
    assert!(routes.len() > 50, "{}", routes.len());
    routes
}

/// Sends a request with an empty object. A wait ends at once.
async fn send(router: &Router, method: &Method, path: &str, token: Option<&str>) -> Response {
    let mut address = path.replace("{name}", "style.css");
    for segment in ["id", "execution", "event", "queue", "n", "op", "orchestration"] {
        address = address.replace(&format!("{{{segment}}}"), "1");
    }
    if address.ends_with("/wait") {
        address.push_str("?timeout=0");
    }
    let mut request = Request::builder().method(method).uri(&address);
    request = request.header("host", "localhost").header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Body::from("{}")).unwrap();
    TowerToHyperService::new(router.clone()).call(request).await.unwrap()
}

/// The code of a problem.
async fn code(answer: Response) -> String {
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    let problem: Value = serde_json::from_slice(&body).unwrap();
    problem["code"].as_str().unwrap_or_default().to_string()
}

#[tokio::test]
async fn every_route_requires_its_scope() {
    let (router, routes) = (router(true), routes());
    for (method, path) in
        OPEN.map(|open| (open.0, open.1)).into_iter().chain(SPECIAL.map(|one| (one.0, one.1)))
    {
        assert!(routes.iter().any(|route| route.0 == method && route.1 == path), "no route {method} {path}");
    }
    for (method, path) in &routes {
        let required = required(method.as_str(), path);
        for stranger in [None, Some("wrong")] {
            let answer = send(&router, method, path, stranger).await;
            let open = OPEN.iter().find(|open| open.0 == method.as_str() && open.1 == path);
            let expected = open.map_or(401, |open| open.2);
            assert_eq!(answer.status().as_u16(), expected, "{method} {path} with the token {stranger:?}");
            if expected == 401 && path.starts_with("/api/") {
                assert_eq!(
                    code(answer).await,
                    "unauthenticated",
                    "{method} {path} with the token {stranger:?}"
                );
            }
        }
        let Some(required) = required else { continue };
        for scope in Scope::ALL {
            let status = send(&router, method, path, Some(&token(scope))).await.status().as_u16();
            let is_included = scope == required || scope == Scope::Admin || required == Scope::Read;
            match is_included {
                true => assert!(
                    ![401, 403, 405].contains(&status) && status < 500,
                    "{method} {path} with {scope}: {status}"
                ),
                false => assert_eq!(status, 403, "{method} {path} with {scope}"),
            }
        }
    }
}

#[tokio::test]
async fn without_operate_every_changing_route_is_refused() {
    let (router, admin) = (router(false), token(Scope::Admin));
    for (method, path) in routes() {
        let is_change = method != Method::GET && required(method.as_str(), &path).is_some();
        let answer = send(&router, &method, &path, Some(&admin)).await;
        let status = answer.status().as_u16();
        assert_eq!(status == 403, is_change, "{method} {path}: {status}");
        if is_change && path.starts_with("/api/") {
            assert_eq!(code(answer).await, "read_only", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn document_names_the_scope_of_every_route_of_the_api() {
    let answer = send(&router(true), &Method::GET, "/api/v1/openapi.json", None).await;
    let document: Value =
        serde_json::from_slice(&to_bytes(answer.into_body(), usize::MAX).await.unwrap()).unwrap();
    for (method, path) in routes() {
        if path.starts_with("/api/") && path != "/api/v1/openapi.json" {
            let described = &document["paths"][&path][method.as_str().to_lowercase()]["x-scope"];
            let expected = required(method.as_str(), &path).map(Scope::as_str);
            assert_eq!(described.as_str(), expected, "{method} {path}");
        }
    }
}

/// The files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if fs::read_to_string(&path).unwrap().contains(text) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn routes_outside_of_the_list_only_redirect() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // `serve.rs` redirects from the base path to the list of instances.
    assert_eq!(files_with(&sources, ".route("), ["matrix.rs", "routes.rs", "serve.rs"]);
}
