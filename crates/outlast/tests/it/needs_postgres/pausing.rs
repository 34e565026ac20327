//! Paused orchestrations on PostgreSQL.

use crate::pausing::a_paused_orchestration_holds_all_its_instances;
use crate::support::{Cluster, Kind};

#[tokio::test]
async fn a_paused_orchestration_holds_all_its_instances_on_postgres() {
    a_paused_orchestration_holds_all_its_instances(&*Cluster::real(Kind::Postgres).await).await;
}
