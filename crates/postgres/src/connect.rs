//! Opening and closing connections.
//!
//! A connection is a client and the task that speaks with the server for it. The task is ended together with the client: a task
//! that waits for a server that never answers would wait for ever.

use crate::PostgresError;
use crate::db::{Param, Result};
use crate::password::PasswordSource;
use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{CancelToken, Client, Config, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The idle time before the system probes a silent server, the interval of its probes, and their number.
const KEEPALIVES: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);

/// The idle time of keepalives that the driver takes if the URL gives none.
const DRIVER_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// Sets the keepalives of a connection, and the time for which sent data may stay unacknowledged, unless the URL gives them.
pub(crate) fn keep_alive(config: &mut Config, url: &str, unacknowledged: Duration) {
    if config.get_keepalives() {
        let (idle, interval, retries) = KEEPALIVES;
        if config.get_keepalives_idle() == DRIVER_IDLE && !url.contains("keepalives_idle") {
            config.keepalives_idle(idle);
        }
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(interval);
        }
        if config.get_keepalives_retries().is_none() {
            config.keepalives_retries(retries);
        }
    }
    // The driver does not distinguish a 0 in the URL, which asks for the system's default, from a URL without the parameter.
    if config.get_tcp_user_timeout().is_none() && !url.contains("tcp_user_timeout") {
        config.tcp_user_timeout(unacknowledged);
    }
}

/// The oldest major version of PostgreSQL that the store works on.
pub(crate) const OLDEST: u32 = 13;

/// The driver's part of a connection that is polled by its task.
pub(crate) type Driver =
    tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Opens connections to the first host that accepts one.
pub(crate) struct Connector {
    /// The configuration for each host.
    hosts: Vec<Config>,
    is_random: bool,
    /// The host that accepted the last connection. If only one host at a time can be the primary, the connector tries it first.
    last: AtomicUsize,
    remembers: bool,
    tls: MakeRustlsConnect,
    password: Option<PasswordSource>,
    /// The time in which one host must accept a connection, encrypt it and accept the login.
    per_host: Duration,
}

impl Connector {
    pub(crate) fn new(
        config: &Config,
        tls: MakeRustlsConnect,
        password: Option<PasswordSource>,
        timeout: Duration,
    ) -> Self {
        let hosts = one_by_one(config);
        let is_random = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
        let remembers = config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite;
        // The driver waits without end for a host that accepts a connection and then sends nothing, and tries no other host.
        let share = timeout / u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
        let per_host = config.get_connect_timeout().map_or(share, |given| share.min(*given));
        Self { hosts, is_random, last: AtomicUsize::new(0), remembers, tls, password, per_host }
    }

    pub(crate) fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// A connection whose task is not started yet.
    pub(crate) async fn connect(&self) -> Result<(Client, Driver)> {
        match self.connect_once().await {
            // The callback may have returned a password that was replaced meanwhile: the second attempt calls the callback again.
            Err(PostgresError::Login { code, .. })
                if self.password.is_some() && code == SqlState::INVALID_PASSWORD.code() =>
            {
                self.connect_once().await
            }
            connected => connected,
        }
    }

    /// Asks for the password, and tries the hosts in their order. Returns the last error if no host accepts.
    async fn connect_once(&self) -> Result<(Client, Driver)> {
        let password = match &self.password {
            Some(source) => Some(source.ask(self.per_host).await?),
            None => None,
        };
        let mut last_error = PostgresError::Disconnected { details: "the URL names no host".to_string() };
        for place in self.order() {
            let mut config = self.hosts[place].clone();
            if let Some(password) = &password {
                config.password(password);
            }
            match tokio::time::timeout(self.per_host, config.connect(self.tls.clone())).await {
                Ok(Ok((client, driver))) => match new_enough(driver.parameter("server_version")) {
                    Ok(()) => {
                        self.last.store(place, Ordering::Relaxed);
                        return Ok((client, driver));
                    }
                    Err(error) => last_error = error,
                },
                Ok(Err(error)) => last_error = PostgresError::from(error).of_connecting(),
                Err(_) => {
                    let details = format!("the server did not answer in time ({:?})", self.per_host);
                    last_error = PostgresError::Disconnected { details };
                }
            }
        }
        Err(last_error)
    }

    /// The indexes of the hosts, in the order in which they are tried.
    fn order(&self) -> Vec<usize> {
        let count = self.hosts.len();
        let first = match (self.remembers, self.is_random) {
            (true, _) => self.last.load(Ordering::Relaxed),
            // Any host may be the first: the store spreads its connections over the hosts.
            (false, true) => self.last.load(Ordering::Relaxed) + 1,
            (false, false) => 0,
        };
        (0..count).map(|place| (first + place) % count).collect()
    }

    /// A connection with its task.
    pub(crate) async fn open(&self) -> Result<Connection> {
        let (client, driver) = self.connect().await?;
        let task = tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(target: "duroxide::providers::postgres", %error, "a connection was lost");
            }
        });
        Ok(Connection::new(client, task.abort_handle(), self.tls.clone()))
    }
}

/// Refuses a server whose version, as it announces it to each client, is too old. Its statements would fail later and say less. A
/// version that is not understood is not refused.
fn new_enough(announced: Option<&str>) -> Result<()> {
    let Some(version) = announced else { return Ok(()) };
    let digits = version.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    match digits.parse::<u32>() {
        Ok(major) if major < OLDEST => Err(PostgresError::TooOld { version: version.to_string() }),
        _ => Ok(()),
    }
}

/// The same configuration for each host alone.
fn one_by_one(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let uneven = !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len();
    if count < 2 || uneven || (ports.len() > 1 && ports.len() != count) {
        // One host, or a list that the driver refuses with a reason.
        return vec![config.clone()];
    }
    let alone = |place: usize| {
        let mut one = without_hosts(config);
        match hosts.get(place) {
            Some(Host::Tcp(name)) => {
                one.host(name);
            }
            #[cfg(unix)]
            Some(Host::Unix(path)) => {
                one.host_path(path);
            }
            None => {}
        }
        if let Some(address) = addresses.get(place) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(place).or(ports.first()) {
            one.port(*port);
        }
        one
    };
    (0..count).map(alone).collect()
}

/// The configuration without hosts, addresses and ports: the driver can add hosts to a configuration but not remove them.
fn without_hosts(config: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(database) = config.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        one.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs())
        .load_balance_hosts(config.get_load_balance_hosts());
    one
}

/// A connection of a pool, with the statements that it keeps.
pub(crate) struct Connection {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
    closer: Closer,
}

/// Closes a connection that is in use.
#[derive(Clone)]
pub(crate) struct Closer(Arc<Closing>);

struct Closing {
    is_closed: AtomicBool,
    task: AbortHandle,
    cancel: CancelToken,
    tls: MakeRustlsConnect,
}

impl Closer {
    /// Ends the task of the connection, and with it every request that waits for an answer. The pool does not lend it again.
    pub(crate) fn close(&self) {
        self.0.is_closed.store(true, Ordering::Relaxed);
        self.0.task.abort();
    }

    /// Closes the connection, and cancels its running statement if the server can be reached.
    pub(crate) fn close_and_cancel(&self) {
        const PATIENCE: Duration = Duration::from_secs(5);
        self.close();
        let (cancel, tls) = (self.0.cancel.clone(), self.0.tls.clone());
        tokio::spawn(async move { tokio::time::timeout(PATIENCE, cancel.cancel_query(tls)).await });
    }
}

impl Connection {
    pub(crate) fn new(client: Client, task: AbortHandle, tls: MakeRustlsConnect) -> Self {
        let cancel = client.cancel_token();
        let closing = Closing { is_closed: AtomicBool::new(false), task, cancel, tls };
        Self { client, statements: Mutex::default(), closer: Closer(Arc::new(closing)) }
    }

    pub(crate) fn closer(&self) -> Closer {
        self.closer.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closer.0.is_closed.load(Ordering::Relaxed) || self.client.is_closed()
    }

    /// A statement that the connection keeps. The store has a fixed list of statements, each with its types.
    pub(crate) async fn prepared(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> std::result::Result<Statement, tokio_postgres::Error> {
        let kept = || self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = kept().get(sql) {
            return Ok(statement.clone());
        }
        let types: Vec<Type> = params.iter().map(|(_, ty)| ty.clone()).collect();
        let statement = self.client.prepare_typed(sql, &types).await?;
        kept().insert(sql.to_string(), statement.clone());
        Ok(statement)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closer.close();
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// Lets a pool open connections. The check before a connection is lent again needs no round trip.
pub(crate) struct Opener(pub(crate) Arc<Connector>);

impl Manager for Opener {
    type Type = Connection;
    type Error = PostgresError;

    async fn create(&self) -> Result<Connection> {
        // Boxed: every call of the store waits for a connection, and the state of a TLS handshake would be moved with each.
        Box::pin(self.0.open()).await
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<PostgresError> {
        match connection.is_closed() {
            true => Err(RecycleError::message("the connection is closed")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_alive(url: &str) -> Config {
        let mut config = crate::url::parse(url).ok().unwrap().config;
        keep_alive(&mut config, url, Duration::from_secs(10));
        config
    }

    #[test]
    fn server_is_refused_if_it_announces_a_version_that_is_too_old() {
        for version in ["8.0.2", "9.6.24", "12.22 (Debian 12.22-1.pgdg120+1)"] {
            let error = new_enough(Some(version)).unwrap_err();
            assert!(matches!(&error, PostgresError::TooOld { version: told } if told == version), "{error}");
            assert!(
                !error.is_retryable() && error.to_string().ends_with("the store needs 13 or later"),
                "{error}"
            );
        }
        for version in ["13.0", "13beta1", "15.18 (Debian 15.18-0+deb12u1)", "18devel", "", "unknown"] {
            assert!(new_enough(Some(version)).is_ok(), "{version}");
        }
        assert!(new_enough(None).is_ok());
    }

    #[test]
    fn connections_have_keepalives_in_seconds_unless_the_url_gives_them() {
        let config = kept_alive("postgres://u:p@h/d");
        assert!(config.get_keepalives());
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(5));
        assert_eq!(config.get_keepalives_interval(), Some(Duration::from_secs(2)));
        assert_eq!(config.get_keepalives_retries(), Some(3));
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(10)));

        let given = "keepalives_idle=7200&keepalives_interval=9&keepalives_retries=8&tcp_user_timeout=7000";
        let config = kept_alive(&format!("postgres://u:p@h/d?{given}"));
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(7_200));
        assert_eq!(config.get_keepalives_interval(), Some(Duration::from_secs(9)));
        assert_eq!(config.get_keepalives_retries(), Some(8));
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(7)));

        let none = kept_alive("postgres://u:p@h/d?keepalives=0&tcp_user_timeout=0");
        assert!(!none.get_keepalives() && none.get_tcp_user_timeout().is_none());
    }

    #[test]
    fn connections_of_a_store_have_keepalives_and_its_deadline_at_every_host() {
        let deadline = Duration::from_secs(7);
        let config = crate::ProviderConfig::url("postgres://u:p@a,b/d?sslmode=disable").deadline(deadline);
        let db = crate::db::Db::new(&config, Arc::default()).ok().unwrap();
        assert_eq!(db.connector.hosts.len(), 2);
        for host in &db.connector.hosts {
            assert_eq!(host.get_keepalives_idle(), Duration::from_secs(5));
            assert_eq!(host.get_tcp_user_timeout(), Some(&deadline));
        }
    }

    #[test]
    fn each_host_is_tried_with_all_settings_of_the_url() {
        let url = "host=a,b hostaddr=127.0.0.1,127.0.0.2 port=1,2 user=u password=p dbname=d connect_timeout=3 \
                   application_name=x target_session_attrs=read-write channel_binding=disable sslmode=require";
        let mut config = kept_alive(url);
        config.options("-c a=b");
        let alone = one_by_one(&config);
        assert_eq!(alone.len(), 2);
        for (place, one) in alone.iter().enumerate() {
            assert_eq!(one.get_hosts(), &config.get_hosts()[place..=place]);
            assert_eq!(one.get_hostaddrs(), &config.get_hostaddrs()[place..=place]);
            assert_eq!(one.get_ports(), &config.get_ports()[place..=place]);
            // The configurations differ in their hosts only, so they are equal after the hosts of one are put into the other.
            let mut whole = without_hosts(one);
            whole.host("a").host("b").port(1).port(2);
            config.get_hostaddrs().iter().for_each(|address| {
                whole.hostaddr(*address);
            });
            assert!(whole == config, "a value of the URL is lost");
        }
        let one_port = one_by_one(&kept_alive("postgres://a,b/d"));
        assert_eq!(one_port.len(), 2);
        assert_eq!(one_by_one(&kept_alive("postgres://a/d")).len(), 1);
    }
}
