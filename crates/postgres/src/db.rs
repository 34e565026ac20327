//! Connections, and reads outside of lanes.

use crate::connect::{Connection, Connector, Opener, keep_alive};
use crate::counters::Counters;
use crate::deadline::{self, BeginStatements, within};
use crate::names::SchemaName;
use crate::row::Cells;
use crate::sql::Statements;
use crate::{PostgresError, ProviderConfig, options, schema, tls, url};
use bytes::BytesMut;
use deadpool::Runtime;
use deadpool::managed::{Object, Pool, QueueMode};
use futures::TryStreamExt;
use outlast_provider_kit::migrations::Migration;
use std::error::Error;
use std::fmt;
use std::fmt::Display;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

pub(crate) type Result<T> = std::result::Result<T, PostgresError>;
/// The result of a statement.
pub(crate) type Asked = std::result::Result<Vec<Row>, tokio_postgres::Error>;

/// A parameter with its type. With the types, a read needs no round trip to be prepared, and no prepared statement that a pool in
/// front of the server could lose.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// The connections to the server.
pub(crate) struct Db {
    /// For reads and management.
    pool: Pool<Opener>,
    /// For lanes, which must not wait for connections behind reads.
    lanes: Pool<Opener>,
    pub(crate) statements: Statements,
    /// Whether connections keep statements.
    pub(crate) prepares: bool,
    pub(crate) schema: SchemaName,
    /// The migrations of this release.
    pub(crate) migrations: Vec<Migration>,
    pub(crate) counters: Arc<Counters>,
    /// For connections beside the pool.
    pub(crate) connector: Arc<Connector>,
    /// The longest duration of a transaction or a read.
    pub(crate) deadline: Duration,
    /// The longest duration of a migration or a transaction that removes instances.
    pub(crate) long_deadline: Duration,
    /// The statements that begin transactions, after the server has been asked for the limits in force.
    begin_statements: OnceLock<BeginStatements>,
    /// Whether sessions begin transactions as lanes do, so that a call may be a transaction of its own.
    pub(crate) calls_are_transactions: AtomicBool,
    sets_limits: bool,
    has_statement_timeout: bool,
    /// In simulated worlds, the link to the model that takes the server's place.
    #[cfg(feature = "test-hooks")]
    pub(crate) modelled: Option<crate::modelled::Link>,
}

impl Db {
    /// Reads the configuration and makes both pools. Opens no connection.
    pub(crate) fn new(config: &ProviderConfig, counters: Arc<Counters>) -> Result<Self> {
        let options::ConnectionConfig::Url(text) = &config.connection;
        let schema = SchemaName::checked(config.schema_name.as_deref().unwrap_or(crate::names::DEFAULT))?;
        let target = url::parse(text)?;
        let tls = tls::connector(target.mode, target.root_file.as_deref())?;
        let mut server = target.config;
        if server.get_application_name().is_none() {
            server.application_name(&config.application_name);
        }
        if server.get_connect_timeout().is_none() {
            server.connect_timeout(config.acquire_timeout);
        }
        keep_alive(&mut server, text, config.deadline);
        if let Some(timeout) = config.statement_timeout {
            let set = format!("-c statement_timeout={}", timeout.as_millis());
            let all = server.get_options().map_or(set.clone(), |given| format!("{given} {set}"));
            server.options(all);
        }
        let has_statement_timeout =
            server.get_options().is_some_and(|options| options.contains("statement_timeout"));
        let connector =
            Arc::new(Connector::new(&server, tls, config.password.clone(), config.acquire_timeout));
        let pool = |size| {
            let pool = Pool::builder(Opener(Arc::clone(&connector)))
                .max_size(size)
                // The pool lends the connection that was used last, because its server process has filled caches.
                .queue_mode(QueueMode::Lifo)
                .runtime(Runtime::Tokio1)
                .wait_timeout(Some(config.acquire_timeout))
                .create_timeout(Some(config.acquire_timeout))
                .build();
            pool.map_err(|error| PostgresError::Other {
                code: "pool".to_string(),
                details: error.to_string(),
            })
        };
        let lanes = config.lanes_in_force() + usize::from(config.has_client_lane());
        let (pool, lanes) = (pool(config.connections() - lanes)?, pool(lanes)?);
        let statements = Statements::of(&schema);
        Ok(Self {
            pool,
            lanes,
            statements,
            prepares: config.prepare,
            schema,
            migrations: schema::bundled(config),
            counters,
            connector,
            deadline: config.deadline,
            long_deadline: config.long_deadline.max(config.deadline),
            begin_statements: OnceLock::new(),
            calls_are_transactions: AtomicBool::new(true),
            sets_limits: config.session_limits,
            has_statement_timeout,
            #[cfg(feature = "test-hooks")]
            modelled: None,
        })
    }

    pub(crate) async fn connection(&self) -> Result<Object<Opener>> {
        Ok(self.pool.get().await?)
    }

    pub(crate) async fn lane(&self) -> Result<Object<Opener>> {
        Ok(self.lanes.get().await?)
    }

    /// Closes the idle connections.
    pub(crate) fn close_idle(&self) {
        self.pool.retain(|_, _| false);
        self.lanes.retain(|_, _| false);
    }

    /// The statements that begin transactions. Asks the server once for the limits in force.
    pub(crate) async fn begin_statements(&self, client: &Client) -> Result<&BeginStatements> {
        if let Some(known) = self.begin_statements.get() {
            return Ok(known);
        }
        let asked = match self.sets_limits {
            true => {
                let in_force = deadline::limits_in_force(self, client).await?;
                let keeps_statement = self.has_statement_timeout;
                BeginStatements::within(self.deadline, self.long_deadline, in_force, keeps_statement)
            }
            false => BeginStatements::without_limits(),
        };
        Ok(self.begin_statements.get_or_init(|| asked))
    }

    /// All rows of a read.
    pub(crate) async fn all(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.read(sql, params, false).await
    }

    /// The rows of a frequent read: each connection prepares its statement once.
    pub(crate) async fn all_prepared(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.read(sql, params, self.prepares).await
    }

    /// A read that was lost with its connection, or was not answered in time, is tried once more on a new connection.
    async fn read(&self, sql: &str, params: &[Param<'_>], prepares: bool) -> Result<Vec<Row>> {
        let client = self.connection().await?;
        match self.read_on(&client, sql, params, prepares).await {
            Err(error) if error.is_away() && client.is_closed() => {
                drop(client);
                let client = self.connection().await?;
                self.read_on(&client, sql, params, prepares).await
            }
            read => read,
        }
    }

    /// Runs a read on a connection, within the deadline.
    async fn read_on(
        &self,
        client: &Connection,
        sql: &str,
        params: &[Param<'_>],
        prepares: bool,
    ) -> Result<Vec<Row>> {
        self.counters.round_trips.add(1);
        let asked = async {
            match prepares {
                true => ask(client, &client.prepared(sql, params).await?, params).await,
                false => client.query_typed(sql, params).await,
            }
        };
        within(self, &client.closer(), self.deadline, asked).await
    }

    /// The first row of a read.
    pub(crate) async fn one(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>> {
        Ok(self.all(sql, params).await?.into_iter().next())
    }
}

/// The rows of a prepared statement.
pub(crate) async fn ask(client: &Client, statement: &Statement, params: &[Param<'_>]) -> Asked {
    let values = params.iter().map(|(value, _)| Unlogged(*value));
    client.query_raw(statement, values).await?.try_collect().await
}

/// A parameter of a prepared statement. The driver logs parameters, and payloads are not logged.
struct Unlogged<'a>(&'a (dyn ToSql + Sync));

impl fmt::Debug for Unlogged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl ToSql for Unlogged<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Encoded {
        self.0.to_sql_checked(ty, out)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Encoded {
        self.0.to_sql_checked(ty, out)
    }
}

type Encoded = std::result::Result<IsNull, Box<dyn Error + Sync + Send>>;

/// A column of a row: its name, or for rows of the server's functions its constant in `functions.rs`.
pub(crate) trait Column: RowIndex + Display {}

impl<C: RowIndex + Display> Column for C {}

/// The only column of a row.
pub(crate) const ONLY: usize = 0;

/// The value of a column. A value of another type than expected is an error, not a panic.
pub(crate) fn cell<'a, T: FromSql<'a>>(row: &'a impl Cells, column: impl Column) -> Result<T> {
    row.cell(column)
}

/// A number that is never negative.
pub(crate) fn unsigned(row: &impl Cells, column: impl Column) -> Result<u64> {
    Ok(u64::try_from(cell::<i64>(row, column)?).unwrap_or(0))
}

/// A text that was stored by [`crate::text`].
pub(crate) fn text(row: &impl Cells, column: impl Column) -> Result<String> {
    Ok(crate::text::read(cell(row, column)?))
}

/// A text that may be absent.
pub(crate) fn text_option(row: &impl Cells, column: impl Column) -> Result<Option<String>> {
    Ok(cell::<Option<String>>(row, column)?.map(crate::text::read))
}

/// A time or a size as a column, at most the largest that a column can hold.
pub(crate) fn column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A duration that is added to a time by the server, which does not saturate.
pub(crate) fn span(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX).min(i64::MAX / 2)
}

/// An id as a column; one that does not fit is refused.
pub(crate) fn id_column(what: &str, value: u64) -> Result<i64> {
    i64::try_from(value)
        .map_err(|_| PostgresError::Refused(format!("{what} {value} is too large to be stored")))
}

/// A number that is only ever compared for equality, as a column: the same bits.
pub(crate) fn key_column(value: u64) -> i64 {
    value.cast_signed()
}
