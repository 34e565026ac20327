//! Database URLs.

use crate::SqliteError;
use outlast_provider_kit::url::shown;
use std::path::PathBuf;

/// The place of a store, and the access to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// In the memory of this process, until the provider is dropped.
    Memory,
    /// In a file.
    File { path: PathBuf, access: Access },
}

impl Location {
    /// The location for opening an open store again: the file must exist, and is not created.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::File { path, access: Access::Create } => {
                Self::File { path: path.clone(), access: Access::Existing }
            }
            other => other.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Create the file if it is missing.
    Create,
    /// Fail if the file is missing.
    Existing,
    /// Read only, for tools.
    ReadOnly,
}

/// `sqlite:PATH`, `sqlite://PATH`, with `?mode=rwc|rw|ro|memory`, or `sqlite::memory:`.
pub(crate) fn parse(url: &str) -> Result<Location, SqliteError> {
    let invalid = |reason: String| SqliteError::InvalidUrl { url: shown(url), reason };
    let Some(rest) = url.strip_prefix("sqlite:") else {
        return Err(invalid("write 'sqlite:PATH' or 'sqlite::memory:'".to_string()));
    };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut access = Access::Create;
    let mut memory = path == ":memory:";
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=').unwrap_or((option, "")) {
            ("mode", "rwc") => access = Access::Create,
            ("mode", "rw") => access = Access::Existing,
            ("mode", "ro") => access = Access::ReadOnly,
            ("mode", "memory") => memory = true,
            // Neither value has an effect: a store in memory belongs to one provider, and a file is always shared.
            ("cache", "shared" | "private") => {}
            ("mode", _) => {
                return Err(invalid("unknown mode: use rwc, rw, ro or memory".to_string()));
            }
            // The error does not name the option: it could be part of an unescaped secret.
            _ => return Err(invalid("unknown option: known are mode and cache".to_string())),
        }
    }
    if memory {
        return Ok(Location::Memory);
    }
    match decode(path) {
        Some(path) if path.contains('\0') => Err(invalid("the path holds a NUL character".to_string())),
        // SQLite would read the path as a URI, with options that were not checked here.
        Some(path) if path.starts_with("file:") => {
            Err(invalid("write the path itself, without 'file:'".to_string()))
        }
        Some(path) if !path.is_empty() => Ok(Location::File { path: path.into(), access }),
        Some(_) => Err(invalid("the path is empty: write 'sqlite:PATH' or 'sqlite::memory:'".to_string())),
        None => Err(invalid("a '%' must be followed by two hexadecimal digits of valid UTF-8".to_string())),
    }
}

/// Reads a database URL, and opens nothing (feature `test-hooks`).
///
/// # Errors
///
/// The error with which the store refuses the URL.
#[cfg(feature = "test-hooks")]
pub fn check_url(url: &str) -> Result<(), SqliteError> {
    parse(url).map(drop)
}

/// Resolves `%41` to `A`.
fn decode(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, access: Access) -> Location {
        Location::File { path: path.into(), access }
    }

    #[test]
    fn valid_urls_give_their_location() {
        let cases = [
            ("sqlite::memory:", Location::Memory),
            ("sqlite::memory:?cache=shared", Location::Memory),
            ("sqlite:x?mode=memory", Location::Memory),
            ("sqlite:a.db", file("a.db", Access::Create)),
            ("sqlite:///var/a.db", file("/var/a.db", Access::Create)),
            ("sqlite:a%20b.db?mode=rwc", file("a b.db", Access::Create)),
            ("sqlite:a.db?mode=rw&cache=private", file("a.db", Access::Existing)),
            ("sqlite:a.db?mode=ro", file("a.db", Access::ReadOnly)),
        ];
        for (url, expected) in cases {
            assert_eq!(parse(url).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn error_of_an_invalid_url_has_the_reason_and_no_secret() {
        let cases = [
            ("postgres://x", "write 'sqlite:PATH'"),
            ("a.db", "write 'sqlite:PATH'"),
            ("sqlite:", "the path is empty"),
            ("sqlite:a.db?mode=rx", "unknown mode: use"),
            ("sqlite:a.db?journal=off", "unknown option: known"),
            ("sqlite:a%2", "hexadecimal"),
            ("sqlite:a%00b", "NUL"),
            ("sqlite:file:a%3Fmode=memory", "without 'file:'"),
        ];
        for (url, expected) in cases {
            let text = parse(url).unwrap_err().to_string();
            assert!(text.contains(expected) && text.contains(&shown(url)), "{url}: {text}");
        }
        for url in ["postgres://me:s3cret@host/db", "sqlite:a.db?mode=s3cret", "sqlite:a.db?key=s3cret"] {
            let error = parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
    }
}
