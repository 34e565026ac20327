//! The URL of a store. It may hold a password, and is shown without it.

use outlast::providers::shown_url;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// The text that names a store. `Display` and `Debug` omit secrets.
#[derive(Clone)]
pub(crate) struct StoreUrl(String);

impl StoreUrl {
    /// The whole URL, for the store.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for StoreUrl {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for StoreUrl {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_string()))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A path has no secrets, and may hold characters with a meaning in URLs.
        match is_url(&self.0) {
            true => f.write_str(&shown_url(&self.0)),
            false => f.write_str(&self.0),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

fn is_url(text: &str) -> bool {
    let kinds = ["sqlite:", "postgres:", "postgresql:", "cosmos:"];
    text.contains("://") || kinds.iter().any(|kind| text.starts_with(kind))
}

/// Removes the secrets of arguments from a message about the command line: a URL may be at a wrong place.
pub(crate) fn hide_secrets(message: String, args: impl IntoIterator<Item = String>) -> String {
    args.into_iter().fold(message, |message, arg| {
        // `--stroe=postgres://..`: the message may quote only the value.
        let (name, value) = match arg.strip_prefix("--").and_then(|_| arg.split_once('=')) {
            Some((name, value)) if is_url(value) => (format!("{name}="), value),
            _ => (String::new(), arg.as_str()),
        };
        match is_url(value) || value.contains("password=") {
            true => {
                let shown = if is_url(value) { shown_url(value) } else { "...".to_string() };
                message.replace(&arg, &format!("{name}{shown}")).replace(value, &shown)
            }
            false => message,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_printed_without_secrets() {
        for (url, expected) in [
            ("postgres://me:s3cret@host/db?sslmode=require", "postgres://...@host/db?sslmode=..."),
            ("postgres:me:s3cret@host", "...@host"),
            ("cosmos://s3cret@host/db", "cosmos://...@host/db"),
            ("cosmos://a.example/db/jobs", "cosmos://a.example/db/jobs"),
            ("sqlite:a.db", "sqlite:a.db"),
            ("what?.db", "what?.db"),
        ] {
            let url = StoreUrl::from(url.to_string());
            assert_eq!(url.to_string(), expected);
            assert_eq!(format!("{url:?}"), format!("\"{expected}\""));
        }
    }

    #[test]
    fn messages_about_arguments_are_without_secrets() {
        for arg in [
            "postgres://me:s3cret@host/db",
            "--stroe=postgres://me:s3cret@host/db",
            "password=s3cret host=h",
            "--pg=postgres://h/db?password=s3cret",
            "cosmos://s3/cret+s3cret==@host/db",
        ] {
            let message =
                hide_secrets(format!("error: unexpected argument '{arg}' found"), [arg.to_string()]);
            assert!(
                message.starts_with("error: unexpected argument '") && !message.contains("s3cret"),
                "{message}"
            );
        }
        let untouched = "error: unexpected argument 'nonsense' found".to_string();
        assert_eq!(hide_secrets(untouched.clone(), ["nonsense".to_string()]), untouched);
    }
}
