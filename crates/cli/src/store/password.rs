//! Passwords outside of the URL, as in `psql`: `PGPASSWORD`, then the file of `PGPASSFILE`, then `~/.pgpass`.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// The URL, completed with a password from the environment if it has none.
pub(super) fn complete(url: &str) -> Result<String, Failure> {
    let Some(login) = Login::without_password(url) else { return Ok(url.to_string()) };
    if let Some(password) = variable("PGPASSWORD") {
        return Ok(login.with(&password));
    }
    let named = variable("PGPASSFILE").map(PathBuf::from);
    let usual = || variable("HOME").map(|home| Path::new(&home).join(".pgpass"));
    let is_named = named.is_some();
    let Some(file) = named.or_else(usual) else { return Ok(url.to_string()) };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(_) if !is_named => return Ok(url.to_string()),
        Err(error) => {
            return Err(Failure::new(format!(
                "the file of PGPASSFILE, '{}', cannot be read: {error}",
                file.display()
            )));
        }
    };
    if is_open_to_others(&file) {
        return Err(Failure::new(format!(
            "the password file '{0}' can be read by other users: `chmod 600 '{0}'`",
            file.display()
        )));
    }
    Ok(login.found_in(&text).map_or_else(|| url.to_string(), |password| login.with(&password)))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(unix)]
fn is_open_to_others(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

/// The parts of `postgres://USER@HOST:PORT/DATABASE?OPTIONS` that select a line of a password file.
struct Login<'a> {
    /// The URL up to `USER`, which follows unchanged.
    scheme: &'a str,
    user_as_written: &'a str,
    /// From `@` on.
    rest: &'a str,
    user: String,
    host: String,
    port: String,
    database: String,
}

impl<'a> Login<'a> {
    /// `None` for a URL that has a password, names no user, or has a form that only the store understands.
    fn without_password(url: &'a str) -> Option<Self> {
        let (scheme, place) = url.split_once("://")?;
        let (login, rest) = place.split_once('@')?;
        let is_plain = !login.contains(':') && !login.contains('/') && !rest.contains('@');
        let (address, options) = rest.split_once('?').unwrap_or((rest, ""));
        let is_overridden = options.split('&').any(|option| {
            ["password=", "user=", "host=", "port=", "dbname="].iter().any(|name| option.starts_with(name))
        });
        // A list of hosts may need a password per host: it must be in the URL.
        if !is_plain || is_overridden || address.contains(',') || login.is_empty() {
            return None;
        }
        let (server, database) = address.split_once('/').unwrap_or((address, ""));
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (server, "5432"),
        };
        let user = decoded(login)?;
        let database = if database.is_empty() { user.clone() } else { decoded(database)? };
        Some(Self {
            scheme,
            user_as_written: login,
            rest,
            user,
            host: decoded(host.trim_start_matches('[').trim_end_matches(']'))?,
            port: port.to_string(),
            database,
        })
    }

    fn with(&self, password: &str) -> String {
        format!("{}://{}:{}@{}", self.scheme, self.user_as_written, encoded(password), self.rest)
    }

    /// The password of the first line that matches: `host:port:database:user:password`, where each of the first four may be `*`.
    fn found_in(&self, file: &str) -> Option<String> {
        let wanted = [&self.host, &self.port, &self.database, &self.user];
        file.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let fields = fields(line);
            let [host, port, database, user, password] = fields.as_slice() else { return None };
            let fits = [host, port, database, user]
                .iter()
                .zip(wanted)
                .all(|(field, wanted)| field.as_str() == "*" || *field == wanted);
            (fits && !password.is_empty()).then(|| password.clone())
        })
    }
}

/// The fields of a line. A backslash escapes the next character.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let taken = match letter {
            // Colons after the fourth belong to the password.
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => letters.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(field) = fields.last_mut() {
            field.push(taken);
        }
    }
    fields
}

/// A part of a URL without its escapes.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn encoded(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# comment\nhost:5432:shop:ada:first\n*:6000:*:ada:a\\:b@c/d\nother:*:*:*:x:y\nshort:line\n";

    #[test]
    fn passwords_are_found_by_host_port_database_and_user() {
        for (url, expected) in [
            ("postgres://ada@host/shop", Some("postgres://ada:first@host/shop")),
            (
                "postgresql://ada@h:6000/x?sslmode=require",
                Some("postgresql://ada:a%3Ab%40c%2Fd@h:6000/x?sslmode=require"),
            ),
            ("postgres://bob@other", Some("postgres://bob:x%3Ay@other")),
            ("postgres://a%64a@host/shop", Some("postgres://a%64a:first@host/shop")),
            ("postgres://bob@host/shop", None),
            ("postgres://ada@host/elsewhere", None),
            ("postgres://ada@short/line", None),
        ] {
            let login = Login::without_password(url).unwrap();
            let completed = login.found_in(FILE).map(|password| login.with(&password));
            assert_eq!(completed.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn urls_with_a_password_are_not_changed() {
        for url in [
            "postgres://ada:own@host/shop",
            "postgres://ada:o@wn@host/shop",
            "postgres://ada@host/shop?password=own",
            "postgres://host/shop",
            "postgres://@host/shop",
            "postgres://ada@one,two/shop",
            "host=h user=ada",
        ] {
            assert!(Login::without_password(url).is_none(), "{url}");
        }
    }
}
