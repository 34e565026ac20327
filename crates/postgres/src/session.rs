//! Sessions: activities that stay with one owner.

use crate::db::{Db, Param, Result, span, unsigned};
use crate::text::owned;
use outlast_provider::saturating_ms;
use outlast_provider_kit::token::Owner;
use std::time::Duration;
use tokio_postgres::types::Type;

/// Extends the sessions of these workers. The owner holds these sessions from then on.
pub(crate) async fn renew(
    db: &Db,
    owners: &[&str],
    extend_for: Duration,
    idle: Duration,
    own: Option<Owner>,
) -> Result<usize> {
    let own = own.map(|own| own.bytes().to_vec());
    let owners: Vec<String> = owners.iter().map(|owner| owned(owner)).collect();
    let (extend, idle) = (span(saturating_ms(extend_for)), span(saturating_ms(idle)));
    let wanted: [Param<'_>; 4] =
        [(&owners, Type::TEXT_ARRAY), (&extend, Type::INT8), (&idle, Type::INT8), (&own, Type::BYTEA)];
    count(db, &db.statements.renew_sessions, &wanted).await
}

pub(crate) async fn cleanup(db: &Db) -> Result<usize> {
    count(db, &db.statements.cleanup_sessions, &[]).await
}

async fn count(db: &Db, sql: &str, params: &[Param<'_>]) -> Result<usize> {
    let row = db.one(sql, params).await?;
    row.map_or(Ok(0), |row| Ok(usize::try_from(unsigned(&row, crate::db::ONLY)?).unwrap_or(usize::MAX)))
}
