//! Reads connection strings: the location of the server, and the protection of the connection to it.
//!
//! The parser of the driver does not know the modes that check certificates. So this module sets each value of the driver's
//! configuration, and passes no text to the driver that two parsers could read differently. `url/syntax.rs` splits the text into
//! parameters, and turns `ssl=true` and `requiressl` into `sslmode`; `url/names.rs` lists the parameters.

mod names;
mod syntax;
#[cfg(test)]
mod tests;

use crate::PostgresError;
use crate::tls::Mode;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs};

/// The location of the server, and the settings of connections to it.
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) mode: Mode,
    /// A file with the trusted authorities. Without one, the authorities of the operating system are trusted.
    pub(crate) root_file: Option<String>,
}

/// Reads a URL or a list of `key=value` pairs.
///
/// **Invariant:** the mode is at least as strict as the one that libpq takes from the same text, or the text is refused.
pub(crate) fn parse(text: &str) -> Result<Target, PostgresError> {
    let form = match syntax::is_url(text) {
        true => "postgres://...",
        false => "key=value pairs",
    };
    let refusal = |url: String| move |reason: String| PostgresError::InvalidUrl { url, reason };
    // A text that is not understood may have its password anywhere.
    let params = syntax::read(text).map_err(refusal(form.to_string()))?;
    let url = match syntax::is_url(text) {
        true => syntax::shown_place(text),
        false => form.to_string(),
    };
    Values::collect(params).and_then(|values| values.target()).map_err(refusal(url))
}

/// Reads a connection string, and connects to nothing (feature `test-hooks`).
///
/// # Errors
///
/// The error with which the store refuses the text.
#[cfg(feature = "test-hooks")]
pub fn check_url(text: &str) -> Result<(), PostgresError> {
    parse(text).map(drop)
}

/// Parameters that decide on the protection of a connection.
const PROTECTION: [&str; 4] = ["channel_binding", "sslmode", "sslnegotiation", "sslrootcert"];

/// Parameters for which libpq takes an empty value as none.
const MAY_BE_EMPTY: [&str; 9] =
    ["application_name", "dbname", "host", "hostaddr", "options", "password", "port", "sslrootcert", "user"];

/// The parameters of a connection string. Of several values of a name, the last one is used.
struct Values(BTreeMap<&'static str, Vec<u8>>);

impl Values {
    fn collect(params: Vec<syntax::Param>) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for syntax::Param { name, value } in params {
            let before = values.insert(name, value);
            if PROTECTION.contains(&name) && before.is_some_and(|before| before != values[name]) {
                return Err(format!("its parameter {name} has two values: keep one"));
            }
        }
        values.retain(|name, value: &mut Vec<u8>| !value.is_empty() || !MAY_BE_EMPTY.contains(name));
        Ok(Self(values))
    }

    /// The text of a parameter, if it is given.
    fn text(&self, name: &str) -> Result<Option<&str>, String> {
        let text = self.0.get(name).map(|value| std::str::from_utf8(value)).transpose();
        text.map_err(|_| format!("its parameter {name} is not UTF-8"))
    }

    /// The whole number that a parameter holds.
    fn number(&self, name: &str) -> Result<Option<i64>, String> {
        let number = self.text(name)?.map(|text| text.trim_ascii().parse::<i32>().map(i64::from)).transpose();
        number.map_err(|_| format!("its parameter {name} is no whole number"))
    }

    /// The meaning of a parameter with few values.
    fn one_of<T: Copy>(&self, name: &str, all: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let meant = all.iter().find(|(word, _)| *word == text);
        let words = || all.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        meant
            .map(|(_, value)| Some(*value))
            .ok_or_else(|| format!("the value of its parameter {name} is unknown: use one of {}", words()))
    }

    fn target(&self) -> Result<Target, String> {
        let mut config = Config::new();
        self.set_names(&mut config)?;
        self.set_servers(&mut config)?;
        self.set_waits(&mut config)?;
        let (mode, root_file) = self.protection()?;
        self.set_protection(&mut config, mode)?;
        Ok(Target { config, mode, root_file })
    }

    fn set_names(&self, config: &mut Config) -> Result<(), String> {
        if let Some(user) = self.text("user")? {
            config.user(user);
        }
        if let Some(password) = self.0.get("password") {
            config.password(password);
        }
        if let Some(dbname) = self.text("dbname")? {
            // psql takes the parameters of such a name, its sslmode too.
            if syntax::is_url(dbname) {
                return Err("its parameter dbname is a URL: give that URL instead".to_string());
            }
            config.dbname(dbname);
        }
        if let Some(options) = self.text("options")? {
            config.options(options);
        }
        if let Some(name) = self.text("application_name")? {
            config.application_name(name);
        }
        Ok(())
    }

    fn set_servers(&self, config: &mut Config) -> Result<(), String> {
        let hosts: Vec<&str> = self.text("host")?.map_or(Vec::new(), |hosts| hosts.split(',').collect());
        let addresses = self.text("hostaddr")?.map_or(Vec::new(), |list| list.split(',').collect());
        let addresses: Vec<IpAddr> = addresses
            .into_iter()
            .map(|address| address.parse().map_err(|_| "its parameter hostaddr is no IP address".to_string()))
            .collect::<Result<_, _>>()?;
        let servers = hosts.len().max(addresses.len());
        if servers == 0 {
            return Err("it names no host: write postgres://user:password@host/database".to_string());
        }
        if hosts.iter().any(|host| host.is_empty() || host.contains('@')) {
            return Err("its parameter host is empty or holds an @: name each host".to_string());
        }
        if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
            return Err("its parameters host and hostaddr differ in length".to_string());
        }
        let ports = self.ports()?;
        if ports.len() > 1 && ports.len() != servers {
            return Err("its parameter port needs one port, or one for each host".to_string());
        }
        // Without a host, the certificate must be for the address.
        let names = match hosts.is_empty() {
            true => addresses.iter().map(IpAddr::to_string).collect(),
            false => hosts.into_iter().map(str::to_string).collect::<Vec<_>>(),
        };
        for name in names {
            config.host(name);
        }
        for address in addresses {
            config.hostaddr(address);
        }
        for port in ports {
            config.port(port);
        }
        Ok(())
    }

    fn ports(&self) -> Result<Vec<u16>, String> {
        let Some(ports) = self.text("port")? else { return Ok(Vec::new()) };
        let port = |text: &str| match text.trim_ascii() {
            "" => Some(5432),
            text => text.parse::<u16>().ok().filter(|port| *port > 0),
        };
        ports
            .split(',')
            .map(|text| port(text).ok_or_else(|| "its parameter port is no port from 1 to 65535".to_string()))
            .collect()
    }

    /// Times and counts. A value of zero or below leaves them to the store or to the operating system.
    fn set_waits(&self, config: &mut Config) -> Result<(), String> {
        let positive =
            |name| Ok::<_, String>(self.number(name)?.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0));
        let seconds = |name| Ok::<_, String>(positive(name)?.map(|n| Duration::from_secs(n.into())));
        if let Some(timeout) = seconds("connect_timeout")? {
            config.connect_timeout(timeout);
        }
        if let Some(timeout) = positive("tcp_user_timeout")? {
            config.tcp_user_timeout(Duration::from_millis(timeout.into()));
        }
        if let Some(keepalives) = self.number("keepalives")? {
            config.keepalives(keepalives != 0);
        }
        if let Some(idle) = seconds("keepalives_idle")? {
            config.keepalives_idle(idle);
        }
        if let Some(interval) = seconds("keepalives_interval")? {
            config.keepalives_interval(interval);
        }
        for name in ["keepalives_retries", "keepalives_count"] {
            if let Some(count) = positive(name)? {
                config.keepalives_retries(count);
            }
        }
        let attributes = [
            ("any", TargetSessionAttrs::Any),
            ("read-write", TargetSessionAttrs::ReadWrite),
            ("read-only", TargetSessionAttrs::ReadOnly),
        ];
        // libpq takes any host. A store writes, so of several hosts it needs the primary.
        let is_choice = config.get_hosts().len() > 1;
        let default = is_choice.then_some(TargetSessionAttrs::ReadWrite);
        if let Some(attributes) = self.one_of("target_session_attrs", &attributes)?.or(default) {
            config.target_session_attrs(attributes);
        }
        let orders = [("disable", LoadBalanceHosts::Disable), ("random", LoadBalanceHosts::Random)];
        if let Some(order) = self.one_of("load_balance_hosts", &orders)? {
            config.load_balance_hosts(order);
        }
        Ok(())
    }

    /// The mode in force, and the file with the authorities.
    fn protection(&self) -> Result<(Mode, Option<String>), String> {
        let modes = [
            ("disable", Mode::Disable),
            // libpq begins such a connection without TLS. This store does not: it tries TLS first.
            ("allow", Mode::Prefer),
            ("prefer", Mode::Prefer),
            ("require", Mode::Require),
            ("verify-ca", Mode::VerifyCa),
            ("verify-full", Mode::VerifyFull),
        ];
        let asked = self.one_of("sslmode", &modes)?;
        let root_file = self.text("sslrootcert")?.map(str::to_string);
        match (asked, root_file.as_deref()) {
            (None | Some(Mode::VerifyFull), Some("system")) => Ok((Mode::VerifyFull, None)),
            (Some(_), Some("system")) => Err("its sslrootcert=system needs sslmode=verify-full".to_string()),
            (None | Some(Mode::Prefer), Some(_)) => {
                Err("its sslrootcert needs sslmode=verify-ca or sslmode=verify-full".to_string())
            }
            // As libpq does.
            (Some(Mode::Require), Some(_)) => Ok((Mode::VerifyCa, root_file)),
            // The authorities of an operating system sign for the owner of any name.
            (Some(Mode::VerifyCa), None) => Ok((Mode::VerifyFull, None)),
            (asked, _) => Ok((asked.unwrap_or(Mode::Prefer), root_file)),
        }
    }

    fn set_protection(&self, config: &mut Config, mode: Mode) -> Result<(), String> {
        config.ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        if mode == Mode::VerifyFull && self.text("host")?.is_none() {
            return Err("its sslmode=verify-full needs the parameter host beside hostaddr".to_string());
        }
        let bindings = [
            ("disable", ChannelBinding::Disable),
            ("prefer", ChannelBinding::Prefer),
            ("require", ChannelBinding::Require),
        ];
        if let Some(binding) = self.one_of("channel_binding", &bindings)? {
            config.channel_binding(binding);
        }
        let negotiations = [("postgres", SslNegotiation::Postgres), ("direct", SslNegotiation::Direct)];
        if let Some(negotiation) = self.one_of("sslnegotiation", &negotiations)? {
            if negotiation == SslNegotiation::Direct && matches!(mode, Mode::Disable | Mode::Prefer) {
                return Err("its sslnegotiation=direct needs sslmode=require or stricter".to_string());
            }
            config.ssl_negotiation(negotiation);
        }
        // The driver knows no GSSAPI. `require` would ask for an encryption that it cannot give.
        self.one_of("gssencmode", &[("disable", ()), ("prefer", ())])?;
        Ok(())
    }
}
