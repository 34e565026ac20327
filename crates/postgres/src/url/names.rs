//! The connection parameters of libpq, and which of them this store supports.

/// Parameters whose value this store uses. `keepalives_retries` is the driver's name for `keepalives_count`.
pub(super) const SUPPORTED: [&str; 22] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "gssencmode",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// Parameters that libpq replaces by `sslmode`.
const ALIASES: [&str; 2] = ["requiressl", "ssl"];

/// Parameters of libpq that this store refuses: to ignore one could weaken the protection for which the connection string asks.
const UNSUPPORTED: [&str; 31] = [
    "authtype",
    "client_encoding",
    "fallback_application_name",
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_issuer",
    "oauth_scope",
    "passfile",
    "replication",
    "require_auth",
    "requirepeer",
    "scram_client_key",
    "scram_server_key",
    "service",
    "servicefile",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslkeylogfile",
    "sslpassword",
    "sslsni",
];

/// The supported parameter of this name, which is the `number`th of its connection string. The refusal repeats names of
/// libpq's parameters only: any other word can be a part of a password with a character that is not escaped.
pub(super) fn supported(name: &str, number: usize) -> Result<&'static str, String> {
    let find = |names: &[&'static str], name: &str| names.iter().copied().find(|known| *known == name);
    if let Some(known) = find(&SUPPORTED, name).or_else(|| find(&ALIASES, name)) {
        return Ok(known);
    }
    let lower = name.to_ascii_lowercase();
    let refusal = if let Some(known) = find(&UNSUPPORTED, &lower) {
        format!("the store does not support the parameter {known} of libpq: leave it out")
    } else if let Some(known) = find(&SUPPORTED, &lower).or_else(|| find(&ALIASES, &lower)) {
        format!("write the name of the parameter {known} in lower case")
    } else {
        format!(
            "the name of its parameter number {number} is unknown: known are {}; {ESCAPES}",
            SUPPORTED.join(", ")
        )
    };
    Err(refusal)
}

/// The supported parameter whose `name=` begins the text.
pub(super) fn at_start(text: &str) -> Option<&'static str> {
    let (name, _) = text.split_once('=')?;
    let name = name.trim_end().to_ascii_lowercase();
    SUPPORTED.iter().chain(&ALIASES).copied().find(|known| *known == name)
}

/// How to write characters that have a meaning in a connection string.
pub(super) const ESCAPES: &str =
    "in a URL, write characters with a meaning as %XX; in key=value pairs, quote a value with spaces";
