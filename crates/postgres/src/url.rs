//! What a database URL says, beyond what the driver reads.

use crate::PostgresError;
use crate::options::shown_pairs;
use crate::tls::Mode;
use std::error::Error as _;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// Where the server is, and how to speak to it.
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) mode: Mode,
    pub(crate) root_file: Option<String>,
}

/// Reads a URL or a list of `key=value` pairs. The driver does not know the modes that check certificates, so they are taken
/// out first.
pub(crate) fn parse(url: &str) -> Result<Target, PostgresError> {
    let refuse = |reason: String| PostgresError::InvalidUrl { url: shown_pairs(url), reason };
    let (mut mode, mut root_file) = (Mode::Prefer, None);
    let mut is_unknown = false;
    let mut keep = |pair: &str| match pair.split_once('=') {
        Some(("sslmode", value)) => {
            match Mode::parse(value) {
                Some(known) => mode = known,
                None => is_unknown = true,
            }
            false
        }
        Some(("sslrootcert", value)) => {
            root_file = Some(value.to_string());
            false
        }
        _ => true,
    };
    let rest = match url.split_once('?') {
        Some((place, query)) if url.contains("://") => {
            let kept: Vec<&str> = query.split('&').filter(|pair| keep(pair)).collect();
            match kept.is_empty() {
                true => place.to_string(),
                false => format!("{place}?{}", kept.join("&")),
            }
        }
        _ if url.contains("://") => url.to_string(),
        _ => url.split_whitespace().filter(|pair| keep(pair)).collect::<Vec<_>>().join(" "),
    };
    if is_unknown {
        let modes = "disable, prefer, require, verify-ca or verify-full";
        return Err(refuse(format!("its sslmode is unknown: use {modes}")));
    }
    let mut config: Config = rest.parse().map_err(|error| refuse(told(&error)))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(refuse("it names no host: write postgres://user:password@host/database".to_string()));
    }
    config.ssl_mode(match mode {
        Mode::Disable => SslMode::Disable,
        Mode::Prefer => SslMode::Prefer,
        Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
    });
    Ok(Target { config, mode, root_file })
}

/// What the driver says about a URL, if it is about the value of an option. It also quotes what it does not know, which may be
/// a part of a password that should have been written with `%`.
fn told(error: &tokio_postgres::Error) -> String {
    let said = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    match said.split('`').nth(1).is_some_and(|word| OPTIONS.contains(&word)) {
        true => said,
        false => "write postgres://user:password@host/database?option=value, letters with a meaning in URLs as %XX, \
                  and only options that are known"
            .to_string(),
    }
}

/// Options that the driver names when their value is wrong.
const OPTIONS: [&str; 12] = [
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
    "sslnegotiation",
    "hostaddr",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_from_both_forms() {
        let cases = [
            ("postgres://u:p@h/d", Mode::Prefer),
            ("postgres://u:p@h/d?sslmode=verify-full&application_name=x", Mode::VerifyFull),
            ("postgres://u:p@h/d?application_name=x&sslmode=disable", Mode::Disable),
            ("host=h sslmode=verify-ca user=u", Mode::VerifyCa),
            ("host=h sslmode=require", Mode::Require),
        ];
        for (url, expected) in cases {
            assert_eq!(parse(url).ok().unwrap().mode, expected, "{url}");
        }
        let target = parse("postgres://h/d?sslmode=verify-ca&sslrootcert=/a/b.pem").ok().unwrap();
        assert_eq!(target.root_file.as_deref(), Some("/a/b.pem"));
    }

    #[test]
    fn what_is_refused_is_told_without_secrets() {
        for url in [
            "postgres://me:s3cret@h/d?sslmode=perhaps",
            "postgres://me:s3cret@/d?port=x",
            "host=h password=s3cret port=none",
            "password=s3cret",
            "mysql://me:s3cret@h/d",
            "postgres://h/d?sslmode=s3cret",
            "host=h password=a s3cret=b",
            "host=h password=a s3cret",
            "",
        ] {
            let refusal = parse(url).err().unwrap().to_string();
            assert!(!refusal.contains("s3cret"), "{refusal}");
            let advice = ["write postgres://user:password@", "use disable, prefer,", "option `port`"];
            assert!(advice.iter().any(|advice| refusal.contains(advice)), "{refusal}");
        }
        let refusal = parse("postgres://h/d?port=many").err().unwrap().to_string();
        assert!(refusal.contains("invalid value for option `port`"), "{refusal}");
    }
}
