//! Sets messages aside: messages of leased instances leave the ready index, so that polls do not read them repeatedly.
//!
//! A poll reports that it has read many such messages. A task then sets them aside in transactions of its own: a lane would
//! keep the other requests of its transaction waiting, and could wait for a transaction that waits for it.

use crate::contain::contained;
use crate::db::{Db, ONLY, Result, cell};
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::types::Type;

/// The number of messages of one transaction. The commit of their turn waits for it.
const MOST: i32 = 1_000;

/// Whether a task of this store sets messages aside.
#[derive(Default)]
pub(crate) struct SettingAside(AtomicBool);

impl SettingAside {
    /// Notes that a task sets messages aside. Returns whether none did before.
    pub(crate) fn begin(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// Sets messages of leased instances aside. After an error the messages stay, and the next poll that reads them reports them again.
pub(crate) async fn run(shared: Arc<Shared>) {
    let all = async {
        while set_aside(&shared.db).await? == MOST && !shared.is_closed() {}
        Ok::<_, crate::PostgresError>(())
    };
    match contained(all).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(target: "duroxide::providers::postgres", %error, "messages of leased instances could not be set aside")
        }
        Err(panic) => shared.panicked("setting messages aside", &panic),
    }
    shared.setting_aside.0.store(false, Ordering::Release);
}

/// Sets messages aside; returns their number.
async fn set_aside(db: &Db) -> Result<i32> {
    let row = db.one(&db.statements.set_aside, &[(&MOST, Type::INT4)]).await?;
    row.map_or(Ok(0), |row| cell(&row, ONLY))
}
