//! Scripts and style sheets, which are part of the program.

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::fmt::Write;

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! assets {
    ($($name:literal: $kind:expr),* $(,)?) => {
        &[$(($name, $kind, include_bytes!(concat!("../../assets/", $name)))),*]
    };
}

const ASSETS: &[(&str, &str, &[u8])] = assets! {
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "main.js": SCRIPT,
    "act.js": SCRIPT,
    "bulk.js": SCRIPT,
    "events.js": SCRIPT,
    "hints.js": SCRIPT,
    "keys.js": SCRIPT,
    "live.js": SCRIPT,
    "login.js": SCRIPT,
    "morph.js": SCRIPT,
    "time.js": SCRIPT,
    "why.js": SCRIPT,
};

/// An asset; a browser that has it already gets no body.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some((_, kind, bytes)) = ASSETS.iter().find(|(known, ..)| *known == name) else {
        return crate::problem::Problem::of_status(StatusCode::NOT_FOUND).into_response();
    };
    let tag = tag(bytes);
    let known = headers.get(IF_NONE_MATCH).is_some_and(|sent| sent.as_bytes() == tag.as_bytes());
    let cache = [(CACHE_CONTROL, "no-cache".to_string()), (ETAG, tag)];
    match known {
        true => (StatusCode::NOT_MODIFIED, cache).into_response(),
        false => (cache, [(CONTENT_TYPE, *kind)], *bytes).into_response(),
    }
}

fn tag(bytes: &[u8]) -> String {
    let mut tag = String::from("\"");
    for byte in Sha256::digest(bytes).iter().take(12) {
        // Writing to a String cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag + "\""
}
