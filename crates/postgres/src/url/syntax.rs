//! Reads the two forms of a connection string, as the chapter "Connection Strings" of libpq's documentation describes them. A text
//! with two readings, of which one asks for more protection, is refused. `ssl=true` and `requiressl` become `sslmode` here.

use super::names::{self, ESCAPES};
use outlast_provider_kit::url::shown;

/// A connection parameter, with its escapes resolved.
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) value: Vec<u8>,
}

/// Whether the text is a URL. Any other text is a list of `key=value` pairs.
pub(super) fn is_url(text: &str) -> bool {
    after_scheme(text).is_some()
}

fn after_scheme(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(is_space);
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

/// The parameters of a connection string, in their order.
pub(super) fn read(text: &str) -> Result<Vec<Param>, String> {
    if text.contains('\0') {
        return Err("it holds a NUL character".to_string());
    }
    match after_scheme(text) {
        Some(rest) => read_url(rest.trim_end_matches(is_space)),
        None => Pairs { rest: text }.read(),
    }
}

/// The text of a URL that a message may show, once its place has been read.
pub(super) fn shown_place(text: &str) -> String {
    shown(text.trim_matches(is_space))
}

/// The white space of C, which libpq splits `key=value` pairs at.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Reads the part of a URL after its scheme: credentials, servers, database and parameters.
fn read_url(rest: &str) -> Result<Vec<Param>, String> {
    if rest.contains(|c: char| is_space(c) || c.is_control()) {
        return Err("it holds a space or a control character: write it as %XX".to_string());
    }
    let mut params = Vec::new();
    let mut add = |name: &'static str, value: Vec<u8>| {
        if !value.is_empty() {
            params.push(Param { name, value });
        }
    };
    // An '@' behind a '/' ends no credentials.
    let rest = match rest.find(['@', '/']) {
        Some(at) if rest[at..].starts_with('@') => {
            let (user, password) = read_credentials(&rest[..at])?;
            add("user", user);
            add("password", password);
            &rest[at + 1..]
        }
        _ => rest,
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    if place.contains('@') {
        return Err(
            "it holds a second @ before its parameters: write @ in a password or a name as %40".to_string()
        );
    }
    let (servers, database) = place.split_once('/').unwrap_or((place, ""));
    let (hosts, ports) = read_servers(servers)?;
    add("host", hosts);
    add("port", ports);
    add("dbname", decode(database, "dbname")?);
    for (index, pair) in query.strip_suffix('&').unwrap_or(query).split('&').enumerate() {
        if !query.is_empty() {
            params.push(read_pair(pair, index + 1)?);
        }
    }
    Ok(params)
}

/// User and password. libpq reads a '?' here as a letter; other parsers of URLs read it as the begin of the parameters.
fn read_credentials(text: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    if let Some(name) = text.split(['?', '&']).skip(1).find_map(names::at_start) {
        return Err(format!(
            "its parameter {name} stands before an @: write @ behind the ? as %40, and ? before the @ as %3F"
        ));
    }
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    match user.contains('?') {
        true => Err("its user holds a ?: write it as %3F".to_string()),
        false => Ok((decode(user, "user")?, decode(password, "password")?)),
    }
}

/// Hosts and ports, each as the list that the parameters `host` and `port` hold. Either is empty if no server has one.
fn read_servers(text: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for server in text.split(',') {
        let (host, port) = match server.strip_prefix('[') {
            Some(address) => {
                let (address, port) =
                    address.split_once(']').ok_or("its host lacks the ] of an IPv6 address")?;
                if address.is_empty() || !(port.is_empty() || port.starts_with(':')) {
                    return Err("its host is no IPv6 address in brackets: write [::1]:5432".to_string());
                }
                (address, port.strip_prefix(':').unwrap_or(""))
            }
            None => server.split_once(':').unwrap_or((server, "")),
        };
        let port = decode(port, "port")?;
        if !port.iter().all(u8::is_ascii_digit) {
            return Err(format!("its port is no number; {ESCAPES}"));
        }
        hosts.push(decode(host, "host")?);
        ports.push(port);
    }
    let list = |items: Vec<Vec<u8>>| match items.iter().all(Vec::is_empty) {
        true => Vec::new(),
        false => items.join(&b','),
    };
    Ok((list(hosts), list(ports)))
}

/// A parameter behind the '?'.
fn read_pair(pair: &str, number: usize) -> Result<Param, String> {
    let Some((name, value)) = pair.split_once('=') else {
        return Err(format!("its parameter number {number} has no value: write name=value; {ESCAPES}"));
    };
    let name = String::from_utf8(decode(name, "name of a parameter")?).unwrap_or_default();
    let name = names::supported(&name, number)?;
    if value.contains('=') {
        return Err(format!("its parameter {name} has a second '=': write it as %3D"));
    }
    let value = decode(value, name)?;
    match (name, value.as_slice()) {
        ("ssl", b"true") => Ok(Param { name: "sslmode", value: b"require".to_vec() }),
        ("ssl", _) => Err("its parameter ssl accepts true only: write sslmode".to_string()),
        _ => required(name, value),
    }
}

/// Replaces `ssl` and `requiressl`, the parameters that preceded `sslmode`, by `sslmode`.
fn required(name: &'static str, value: Vec<u8>) -> Result<Param, String> {
    let mode: &[u8] = match (name, value.as_slice()) {
        ("requiressl", b"1") => b"require",
        ("requiressl", b"0") => b"prefer",
        ("requiressl", _) => return Err("its parameter requiressl accepts 0 or 1: write sslmode".to_string()),
        _ => return Ok(Param { name, value }),
    };
    Ok(Param { name: "sslmode", value: mode.to_vec() })
}

/// Resolves percent escapes.
fn decode(text: &str, part: &str) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        match (digit(), digit()) {
            (Some(0), Some(0)) => return Err(format!("its {part} holds %00")),
            (Some(high), Some(low)) => decoded.push((high * 16 + low) as u8),
            _ => return Err(format!("its {part} holds a % without two hexadecimal digits: write % as %25")),
        }
    }
    Ok(decoded)
}

/// The rest of a list of `key=value` pairs.
struct Pairs<'a> {
    rest: &'a str,
}

impl Pairs<'_> {
    /// Reads all pairs.
    fn read(mut self) -> Result<Vec<Param>, String> {
        let mut params = Vec::new();
        self.skip_spaces();
        while !self.rest.is_empty() {
            params.push(self.pair(params.len() + 1)?);
            self.skip_spaces();
        }
        Ok(params)
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    /// Reads the next pair, which is the `number`th.
    fn pair(&mut self, number: usize) -> Result<Param, String> {
        let end = self.rest.find(|c| c == '=' || is_space(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.skip_spaces();
        let Some(rest) = self.rest.strip_prefix('=') else {
            return Err(format!(
                "its parameter number {number} has no '=': write postgres://user:password@host/database?name=value or \
                 host=name user=name password='word' dbname=name; {ESCAPES}"
            ));
        };
        let name = match names::supported(name, number)? {
            "ssl" => return Err("its parameter ssl is known in URLs only: write sslmode=require".to_string()),
            name => name,
        };
        self.rest = rest;
        self.skip_spaces();
        let is_apart = self.rest.len() < rest.len();
        let value = match self.rest.strip_prefix('\'') {
            Some(rest) => {
                self.rest = rest;
                self.quoted().ok_or_else(|| format!("the quotes of its parameter {name} are not closed"))?
            }
            // An empty value without quotes takes the pair behind it for its value.
            None if is_apart && names::at_start(self.rest).is_some() => {
                return Err(format!("its parameter {name} has no value: write {name}=''"));
            }
            None => self.plain(),
        };
        required(name, value)
    }

    /// A value up to white space.
    fn plain(&mut self) -> Vec<u8> {
        let mut value = String::new();
        let mut letters = self.rest.chars();
        loop {
            let rest = letters.as_str();
            match letters.next() {
                Some('\\') => value.extend(letters.next()),
                Some(letter) if !is_space(letter) => value.push(letter),
                _ => {
                    self.rest = rest;
                    return value.into_bytes();
                }
            }
        }
    }

    /// A value up to the quote that closes it, if there is one.
    fn quoted(&mut self) -> Option<Vec<u8>> {
        let mut value = String::new();
        let mut letters = self.rest.chars();
        loop {
            match letters.next()? {
                '\'' => {
                    self.rest = letters.as_str();
                    return Some(value.into_bytes());
                }
                '\\' => value.push(letters.next()?),
                letter => value.push(letter),
            }
        }
    }
}
