//! Leasing ahead on PostgreSQL.

use crate::leasing_ahead::an_idle_node_gets_unstarted_activities;
use crate::support::Kind;

#[tokio::test]
async fn an_idle_process_gets_unstarted_activities_of_a_busy_one() {
    an_idle_node_gets_unstarted_activities(Kind::Postgres).await;
}
