//! Authorization: the emulator accepts every request, so the rig checks keys and Entra tokens itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use azure_core::credentials::Secret;
use azure_core::{hmac, time};
use outlast_model::wall_clock_ms;
use serde_json::json;

use crate::Kind;
use crate::call::{Call, percent_decode};
use crate::reply::Reply;

/// The key of Microsoft's emulators, which is published and opens nothing else.
pub const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
/// A key that only reads. It opens nothing but a rig.
pub const READ_ONLY_KEY: &str =
    "cmlnLXJlYWQtb25seS1rZXktcmlnLXJlYWQtb25seS1rZXktcmlnLXJlYWQtb25seS1rZXktcmlnLXJlYWQtbw==";

/// The tenant, client and secret that the token endpoint accepts.
pub const TENANT: &str = "rig-tenant";
/// See [`TENANT`].
pub const CLIENT_ID: &str = "rig-client";
/// See [`TENANT`].
pub const CLIENT_SECRET: &str = "rig-secret";
/// The scope that the SDK asks for.
const SCOPE: &str = "https://cosmos.azure.com/.default";

/// Azure refuses a signature whose date differs by more from its clock.
const DATE_TOLERANCE: Duration = Duration::from_secs(15 * 60);

pub(crate) struct Auth {
    is_on: bool,
    token_lifetime: Duration,
    tokens: Mutex<Tokens>,
}

#[derive(Default)]
struct Tokens {
    issued: u64,
    /// When the tokens expire, by the rig's clock.
    valid_until_ms: HashMap<String, u64>,
}

impl Auth {
    pub(crate) fn new(is_on: bool, token_lifetime: Duration) -> Self {
        Self { is_on, token_lifetime, tokens: Mutex::default() }
    }

    /// Checks the signature or the token of a request.
    pub(crate) fn check(&self, call: &Call, now_ms: u64) -> Result<(), Reply> {
        if !self.is_on {
            return Ok(());
        }
        let header = call.header("authorization");
        let header = header.ok_or_else(|| unauthorized("Required Header authorization is missing."))?;
        let header = percent_decode(header);
        if let Some(signature) = header.strip_prefix("type=master&ver=1.0&sig=") {
            check_signature(call, signature)
        } else if let Some(token) = header.strip_prefix("type=aad&ver=1.0&sig=") {
            self.check_token(token, now_ms)
        } else {
            Err(unauthorized("The format of the authorization header is not known."))
        }
    }

    fn check_token(&self, token: &str, now_ms: u64) -> Result<(), Reply> {
        match self.lock().valid_until_ms.get(token) {
            Some(until_ms) if now_ms < *until_ms => Ok(()),
            Some(_) => Err(unauthorized("The token has expired.")),
            None => Err(unauthorized("The token was not issued by the token endpoint, or was revoked.")),
        }
    }

    /// Answers `POST /<tenant>/oauth2/v2.0/token` with the client credentials flow.
    pub(crate) fn token(&self, path: &str, body: &[u8], now_ms: u64) -> Reply {
        let form: HashMap<String, String> = String::from_utf8_lossy(body)
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_string(), percent_decode(&value.replace('+', " "))))
            .collect();
        let field = |name: &str| form.get(name).map_or("", String::as_str);
        let refuse = |status: u16, error: &str| {
            Reply::new(status, json!({ "error": error, "error_description": error }).to_string())
        };
        if path != format!("/{TENANT}/oauth2/v2.0/token") {
            return refuse(400, "invalid_tenant");
        }
        if field("grant_type") != "client_credentials" {
            return refuse(400, "unsupported_grant_type");
        }
        if (field("client_id"), field("client_secret")) != (CLIENT_ID, CLIENT_SECRET) {
            return refuse(401, "invalid_client");
        }
        if field("scope") != SCOPE {
            return refuse(400, "invalid_scope");
        }
        let mut tokens = self.lock();
        tokens.issued += 1;
        let token = format!("rig-token-{}", tokens.issued);
        let lifetime_ms = u64::try_from(self.token_lifetime.as_millis()).unwrap_or(u64::MAX);
        tokens.valid_until_ms.insert(token.clone(), now_ms.saturating_add(lifetime_ms));
        let seconds = self.token_lifetime.as_secs();
        let answer = json!({
            "token_type": "Bearer",
            "expires_in": seconds,
            "ext_expires_in": seconds,
            "access_token": token,
        });
        Reply::new(200, answer.to_string())
    }

    pub(crate) fn revoke_tokens(&self) {
        self.lock().valid_until_ms.clear();
    }

    pub(crate) fn tokens_issued(&self) -> u64 {
        self.lock().issued
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_signature(call: &Call, signature: &str) -> Result<(), Reply> {
    let date =
        call.header("x-ms-date").ok_or_else(|| unauthorized("Required Header x-ms-date is missing."))?;
    let sent = time::parse_rfc7231(date).map_err(|_| unauthorized("The date header is not valid."))?;
    let sent_ms = u64::try_from(sent.unix_timestamp()).unwrap_or(0).saturating_mul(1000);
    // The client signs with the machine's clock, whatever the clock of the rig says.
    if u128::from(wall_clock_ms().abs_diff(sent_ms)) > DATE_TOLERANCE.as_millis() {
        return Err(Reply::refusal(403, 0, "The authorization token is not valid at the current time."));
    }
    let text = text_to_sign(call, date);
    if is_signature(&text, KEY, signature) {
        return Ok(());
    }
    if !is_signature(&text, READ_ONLY_KEY, signature) {
        return Err(unauthorized(
            "The input authorization token can't serve the request. Please check that the expected payload is built \
             as per the protocol, and check the key being used.",
        ));
    }
    let reads = !call.kind.is_write() && (call.kind.is_data() || call.method == hyper::Method::GET);
    if reads || call.kind == Kind::Account {
        return Ok(());
    }
    Err(Reply::refusal(403, 0, "The given request cannot be served with a read-only key."))
}

/// The text that a client signs. Its link is the resource itself, or the parent of a feed.
fn text_to_sign(call: &Call, date: &str) -> String {
    let segments = &call.segments;
    let (resource, link) = match segments.len() {
        0 => ("", String::new()),
        n if n % 2 == 1 => (segments[n - 1].as_str(), segments[..n - 1].join("/")),
        n => (segments[n - 2].as_str(), segments.join("/")),
    };
    let method = call.method.as_str().to_lowercase();
    format!("{method}\n{}\n{link}\n{}\n\n", resource.to_lowercase(), date.to_lowercase())
}

fn is_signature(text: &str, key: &'static str, signature: &str) -> bool {
    hmac::hmac_sha256(text, &Secret::new(key)).is_ok_and(|expected| expected == signature)
}

fn unauthorized(message: &str) -> Reply {
    Reply::refusal(401, 0, message)
}
