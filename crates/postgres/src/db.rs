//! Connections, and reads that need no lane.

use crate::counters::Counters;
use crate::names::SchemaName;
use crate::sql::Statements;
use crate::{PostgresError, ProviderConfig, options, tls, url};
use bytes::BytesMut;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime};
use futures::TryStreamExt;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Client, Config, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) type Result<T> = std::result::Result<T, PostgresError>;
/// What the driver answers.
pub(crate) type Asked = std::result::Result<Vec<Row>, tokio_postgres::Error>;

/// A parameter with its type: with it a read needs no round trip to be prepared, and nothing that a pool between us and the
/// server could lose.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// The way to the server.
pub(crate) struct Db {
    /// For reads and management.
    pool: Pool,
    /// For lanes: they must not wait behind reads, which wait for what lanes do.
    lanes: Pool,
    pub(crate) statements: Statements,
    /// Whether connections keep statements.
    pub(crate) prepares: bool,
    pub(crate) schema: SchemaName,
    pub(crate) counters: Arc<Counters>,
    /// For connections beside the pool.
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
}

impl Db {
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
        if let Some(timeout) = config.statement_timeout {
            let set = format!("-c statement_timeout={}", timeout.as_millis());
            let all = server.get_options().map_or(set.clone(), |given| format!("{given} {set}"));
            server.options(all);
        }
        let pool = |size| {
            let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            let manager = Manager::from_config(server.clone(), tls.clone(), recycling);
            let pool = Pool::builder(manager)
                .max_size(size)
                // The one that was used last: its server process has everything at hand.
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
        let lanes = config.lanes_in_force() + usize::from(config.has_lane_for_arrivals());
        let (pool, lanes) = (pool(config.connections() - lanes)?, pool(lanes)?);
        let statements = Statements::of(&schema);
        let prepares = config.prepare;
        Ok(Self { pool, lanes, statements, prepares, schema, counters, config: server, tls })
    }

    pub(crate) async fn connection(&self) -> Result<Object> {
        Ok(self.pool.get().await?)
    }

    pub(crate) async fn lane(&self) -> Result<Object> {
        Ok(self.lanes.get().await?)
    }

    /// All rows of a read.
    pub(crate) async fn all(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.read(sql, params, false).await
    }

    /// The rows of a read that is made all the time: each connection prepares it once.
    pub(crate) async fn all_prepared(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.read(sql, params, self.prepares).await
    }

    /// A read that was lost with its connection is tried once more.
    async fn read(&self, sql: &str, params: &[Param<'_>], prepares: bool) -> Result<Vec<Row>> {
        let client = self.connection().await?;
        match self.read_on(&client, sql, params, prepares).await {
            Err(error) if error.as_db_error().is_none() && client.is_closed() => {
                drop(client);
                let client = self.connection().await?;
                Ok(self.read_on(&client, sql, params, prepares).await?)
            }
            read => Ok(read?),
        }
    }

    async fn read_on(&self, client: &Object, sql: &str, params: &[Param<'_>], prepares: bool) -> Asked {
        self.counters.round_trips.add(1);
        match prepares {
            true => ask(client, &prepared(client, sql, params).await?, params).await,
            false => client.query_typed(sql, params).await,
        }
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

/// A parameter of a prepared statement. The driver logs those, and payloads are nobody's business.
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

/// A statement that the connection keeps.
pub(crate) async fn prepared(
    client: &Object,
    sql: &str,
    params: &[Param<'_>],
) -> std::result::Result<Statement, tokio_postgres::Error> {
    let types: Vec<Type> = params.iter().map(|(_, ty)| ty.clone()).collect();
    client.prepare_typed_cached(sql, &types).await
}

/// A cell. One of another type than expected is damage, not a panic.
pub(crate) fn cell<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T> {
    row.try_get(index).map_err(|error| PostgresError::Damaged { details: error.to_string() })
}

/// A number that is never negative.
pub(crate) fn unsigned(row: &Row, index: usize) -> Result<u64> {
    Ok(u64::try_from(cell::<i64>(row, index)?).unwrap_or(0))
}

/// A text that was stored by [`crate::text`].
pub(crate) fn text(row: &Row, index: usize) -> Result<String> {
    Ok(crate::text::read(cell(row, index)?))
}

/// The same for what may be absent.
pub(crate) fn text_option(row: &Row, index: usize) -> Result<Option<String>> {
    Ok(cell::<Option<String>>(row, index)?.map(crate::text::read))
}

/// A time or a size as a column. Nothing real is beyond the limit.
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
