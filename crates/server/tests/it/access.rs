//! Hosts, origins, tokens and limits. `src/matrix.rs` tries every route with every scope.

use crate::kit::{Server, operating, token, with_tokens};
use outlast_server::{Options, Scope};

#[tokio::test]
async fn every_schema_that_the_document_names_exists() {
    let server = Server::start(Options::default()).await;
    let document = server.get("/api/v1/openapi.json").await;
    let schemas = &document.json()["components"]["schemas"];
    let named =
        document.body.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
    let missing: Vec<&str> = named.filter(|name| schemas[name].is_null()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    server.stop().await;
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let server = Server::start(operating()).await;
    let host = server.send("GET", "/api/v1/queues", &[("host", "evil.example")], "").await;
    assert_eq!(host.problem(), (421, "host_not_allowed".to_string()));
    for header in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
        let headers = [header, ("content-type", "application/json")];
        let answer = server.send("POST", "/api/v1/instances", &headers, "{}").await;
        assert_eq!(answer.problem(), (403, "cross_site".to_string()), "{header:?}");
        let page = server.send("GET", "/instances", &[header], "").await;
        assert_eq!(page.status, 200, "a link on another site opens a page");
    }
    // A probe of an orchestrator of containers names the address of the machine.
    assert_eq!(server.send("GET", "/healthz", &[("host", "10.0.0.7:7411")], "").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn bodies_must_be_json_and_small() {
    let mut options = operating();
    options.body_bytes = 1_000;
    let server = Server::start(options).await;
    let form = server.send("POST", "/api/v1/instances", &[("content-type", "text/plain")], "{}").await;
    assert_eq!(form.problem(), (415, "media_type".to_string()));
    // The body was not read, so the connection ends with the answer, and the client must know.
    let unread =
        server.keep_alive("POST", "/api/v1/instances", &[("content-type", "text/plain")], "{}").await;
    assert!(unread.headers.contains("connection: close"), "{unread:?}");
    let large =
        server.post("/api/v1/instances", &format!("{{\"orchestration\":\"{}\"}}", "x".repeat(2_000))).await;
    assert_eq!(large.problem(), (413, "too_large".to_string()));
    // The client writes its whole body before it reads: the refusal must not be lost.
    for _ in 0..20 {
        let huge = server.post("/api/v1/instances", &"x".repeat(8 * 1024 * 1024)).await;
        assert_eq!(huge.problem(), (413, "too_large".to_string()));
    }
    let broken = server.post("/api/v1/instances", "{\"secret").await;
    assert_eq!(broken.problem().0, 400);
    assert!(!broken.body.contains("secret"), "{broken:?}");
    server.stop().await;
}

#[tokio::test]
async fn requests_above_the_limit_are_refused() {
    let mut options = operating();
    options.requests = 0;
    let server = Server::start(options).await;
    let busy = server.get("/api/v1/queues").await;
    assert_eq!(busy.problem(), (503, "busy".to_string()));
    assert_eq!(busy.json()["retryable"], true);
    server.stop().await;
}

#[tokio::test]
async fn every_answer_has_the_headers_of_the_policy() {
    let server = Server::start(operating()).await;
    for path in ["/instances", "/api/v1/queues", "/missing", "/assets/main.js", "/instances/missing"] {
        let answer = server.get(path).await;
        for part in [
            "content-security-policy: default-src 'none'",
            "nosniff",
            "x-request-id: ",
            "frame-ancestors 'none'",
        ] {
            assert!(answer.headers.contains(part), "{part} at {path}: {answer:?}");
        }
        assert!(!answer.headers.contains("unsafe"), "{path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn other_addresses_need_tokens() {
    use outlast::{Client, providers::memory::MemoryProvider};
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let client = Client::new(std::sync::Arc::new(MemoryProvider::new()));
    let refused = outlast_server::serve(listener, client, Options::default(), std::future::pending()).await;
    assert!(refused.unwrap_err().to_string().contains("needs tokens"));
}

#[tokio::test]
async fn login_sets_a_cookie_that_admits_pages() {
    let server = Server::start(with_tokens(Options::default())).await;
    let page = server.get("/instances").await;
    assert_eq!(page.status, 401);
    assert!(page.body.contains("data-login"), "{page:?}");
    assert_eq!(server.post("/login", "{\"token\":\"wrong\"}").await.status, 401);
    let login = server.post("/login", &format!("{{\"token\":\"{}\"}}", token(Scope::Read))).await;
    assert_eq!(login.status, 204);
    assert!(login.headers.contains("httponly; samesite=strict"), "{login:?}");
    assert!(!login.headers.contains("; secure"), "{login:?}");
    let headers = [("content-type", "application/json"), ("x-forwarded-proto", "https")];
    let body = format!("{{\"token\":\"{}\"}}", token(Scope::Read));
    let over_tls = server.send("POST", "/login", &headers, &body).await;
    assert!(over_tls.headers.contains("httponly; samesite=strict; secure"), "{over_tls:?}");
    let cookie = format!("outlast_token={}", token(Scope::Read));
    let page = server.send("GET", "/instances", &[("cookie", &cookie)], "").await;
    assert_eq!(page.status, 200);
    server.stop().await;
}
