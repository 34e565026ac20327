//! A private PostgreSQL server for one command.

#[cfg(unix)]
mod certificates;
#[cfg(unix)]
mod cluster;
#[cfg(any(not(unix), test))]
mod elsewhere;
#[cfg(unix)]
mod keeper;
#[cfg(unix)]
mod pooler;
#[cfg(unix)]
mod programs;
#[cfg(unix)]
mod server_user;

#[cfg(unix)]
pub use self::cluster::{Cluster, Options, VARIABLES};
#[cfg(not(unix))]
pub use self::elsewhere::{Cluster, Options, VARIABLES};
