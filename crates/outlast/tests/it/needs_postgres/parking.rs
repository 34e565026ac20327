//! Parked instances on PostgreSQL.

use crate::parking::a_build_that_does_not_fit_parks_and_the_next_build_goes_on;
use crate::support::{Cluster, Kind};

#[tokio::test]
async fn a_build_that_does_not_fit_parks_and_the_next_build_goes_on_with_postgres() {
    a_build_that_does_not_fit_parks_and_the_next_build_goes_on(&*Cluster::real(Kind::Postgres).await).await;
}
