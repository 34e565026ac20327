//! Checks of the headers `Host`, `Origin` and `Sec-Fetch-Site`: they stop requests that another site makes in a browser.

use crate::problem::{Code, Problem};
use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

/// The names under which a browser of this machine reaches the server.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Rejects a `Host` that is not listed: a name that an attacker points at this address reaches the server with that name.
pub(super) fn check_host(headers: &HeaderMap, allowed: &[String]) -> Result<(), Problem> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = without_port(host);
    let is_listed = LOOPBACK
        .into_iter()
        .chain(allowed.iter().map(String::as_str))
        .any(|known| known.eq_ignore_ascii_case(name));
    match is_listed {
        true => Ok(()),
        false => Err(Problem::new(
            Code::HOST,
            "the server does not know the Host of the request: name it with --allow-host, or in Options::hosts",
        )),
    }
}

/// Rejects a request that a page of another origin makes.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let site = text("sec-fetch-site");
    let is_same_site = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    let host = text(HOST.as_str()).unwrap_or_default();
    let is_same_origin = text(ORIGIN.as_str()).is_none_or(|origin| {
        origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
    });
    match is_same_site && is_same_origin {
        true => Ok(()),
        false => Err(Problem::new(
            Code::CROSS_SITE,
            "a page of another origin made the request: this API is for its own pages and for programs",
        )),
    }
}

/// The host name of an authority; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_listed_hosts_are_admitted() {
        let allowed = ["ops.example.com".to_string()];
        for (host, is_admitted) in [
            ("localhost:7411", true),
            ("LOCALHOST", true),
            ("127.0.0.1:7411", true),
            ("[::1]:7411", true),
            ("ops.example.com", true),
            ("evil.example:7411", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            assert_eq!(check_host(&headers(&[("host", host)]), &allowed).is_ok(), is_admitted, "{host}");
        }
        assert!(check_host(&HeaderMap::new(), &allowed).is_err());
    }

    #[test]
    fn only_the_own_origin_is_admitted() {
        let host = ("host", "localhost:7411");
        for (others, is_admitted) in [
            (&[][..], true),
            (&[("origin", "http://localhost:7411")], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("origin", "http://localhost:9999")], false),
            (&[("origin", "http://evil.example")], false),
            (&[("origin", "null")], false),
        ] {
            let mut all = vec![host];
            all.extend_from_slice(others);
            assert_eq!(check_origin(&headers(&all)).is_ok(), is_admitted, "{others:?}");
        }
    }
}
