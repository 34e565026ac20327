//! `outlast doctor`: looks for states that do not mend themselves.

mod file;
mod holds;
mod instances;
mod nodes;
mod report;
mod server;

use crate::args::Format;
use crate::duration::duration;
use crate::failure::Failure;
use crate::output::print;
use crate::store::{self, Intent, Kind, StoreArgs};
use clap::Args as ClapArgs;
use instances::Look;
use outlast::client::Client;
use outlast::providers::{Clock, SystemClock, saturating_ms};
use outlast::runtime::RuntimeOptions;
use report::{Check, Report};
use std::sync::Arc;
use std::time::Duration;

/// The number of dead letters that are counted.
const DEAD_LETTERS: usize = 1_000;
/// The difference between two clocks that is a finding.
const SKEW_MS: u64 = 1_000;

/// Look for states of a store that do not mend themselves.
///
/// Checks the schema, the settings and the space of a SQLite file, clocks, leases that have ended, operations whose queue row is
/// missing, rows without an instance, version, settings and connections of a PostgreSQL server with the rights of the role, dead letters, instances that cannot go on, with the sentence of `instance why`, instances that are parked or paused for long, nodes
/// that are lost or run different builds, and versions that no live node registers or no process seems to run. It only reads, unless --fix is given. Payloads are not read.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast doctor --store shop.db
  outlast doctor --store shop.db --fix
  OUTLAST_STORE=postgres://ada@db.example.com/shop outlast doctor -o json

Exit status: 0 without findings, 1 with findings, without a store or on a server that is too old, 7 if the store cannot be reached, is locked
or was written by a newer release.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Remove rows without an instance (SQLite); nothing else is changed
    #[arg(long)]
    fix: bool,
    /// The most running instances to check, newest first
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    instances: usize,
    /// A turn, or an activity, that is due for this time, and that no process takes, is a finding
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    overdue_after: Duration,
    /// Less free space than this on the disk of a SQLite file is a finding, in MB
    #[arg(long, value_name = "MB", default_value_t = 512)]
    min_free: u64,
    /// The option `max_attempts` of the runtimes: the most deliveries of a message
    #[arg(long, value_name = "N", default_value_t = RuntimeOptions::default().max_attempts)]
    max_attempts: u32,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

pub(crate) async fn run(args: DoctorArgs) -> Result<(), Failure> {
    let place = args.store.place()?;
    let mut report = Report::new(place.to_string());
    let overdue_ms = saturating_ms(args.overdue_after);
    let client = match Kind::of(&place.url)? {
        Kind::Sqlite => {
            let intent = if args.fix { Intent::Write } else { Intent::Read };
            let file = Arc::new(store::sqlite::open_file(&place, intent).await?);
            report.checks.extend(file::check(&file, args.fix, args.min_free, overdue_ms).await?);
            Client::new(file)
        }
        _ if args.fix => {
            return Err(Failure::usage(
                "--fix is for SQLite stores: other stores keep no rows without an instance",
            ));
        }
        Kind::Postgres => {
            let server = Arc::new(store::postgres::open_server(&place, Intent::Read).await?);
            report.checks.extend(server::check(&server).await?);
            Client::new(server)
        }
        Kind::Cosmos => {
            let client = store::open(&place, Intent::Read).await?;
            // The opening refuses an account or a container that does not keep what the store needs.
            let container = "has the partition key and the time to live that the store needs; its account writes in one region";
            report.checks.push(Check::fine("container", container));
            report.checks.push(Check::fine("schema", "is the one of this command"));
            client
        }
    };
    let look = Look { most: args.instances, overdue_ms, max_attempts: args.max_attempts };
    let seen = instances::look(&client, &look).await?;
    report.checks.push(nodes::check(&client).await?);
    report.checks.push(clocks(&client, seen.newest_ms).await?);
    report.checks.extend(seen.checks);
    report.checks.push(holds::check(&client).await?);
    report.checks.push(dead_letters(&client).await?);
    print(args.output, &report, Report::text)?;
    match report.has_findings() {
        true => Err(Failure::reported()),
        false => Ok(()),
    }
}

/// The clocks of this machine, of the store, and of the processes that committed the newest turns.
async fn clocks(client: &Client, newest: Option<(String, u64)>) -> Result<Check, Failure> {
    let mut check = Check::fine("clocks", "agree");
    // An id that no instance has: only the time of the answer is used.
    let now_ms = client.pending_work("outlast doctor", 1).await?.map(|pending| pending.now_ms);
    let here_ms = SystemClock.now_ms();
    if let Some(now_ms) = now_ms.filter(|now_ms| now_ms.abs_diff(here_ms) > SKEW_MS) {
        let by = outlast::lens::span(now_ms.abs_diff(here_ms));
        check.found(format!("the clock of the store differs by {by} from the clock of this machine"));
    }
    let now_ms = now_ms.unwrap_or(here_ms);
    if let Some((instance, at_ms)) = newest.filter(|(_, at_ms)| *at_ms > now_ms + SKEW_MS) {
        let by = outlast::lens::span(at_ms - now_ms);
        check.found_in(
            &instance,
            format!("instance '{instance}' was updated {by} in the future: the clock of a machine that runs turns is ahead"),
        );
    }
    Ok(check)
}

async fn dead_letters(client: &Client) -> Result<Check, Failure> {
    let letters = client.list_dead_letters(DEAD_LETTERS).await?;
    let mut check = Check::fine("dead_letters", "none");
    if let Some(newest) = letters.first() {
        let count = match letters.len() {
            1 => "1 dead letter is kept".to_string(),
            DEAD_LETTERS => format!("{DEAD_LETTERS} dead letters or more are kept"),
            count => format!("{count} dead letters are kept"),
        };
        let of = newest.instance_id.as_deref().map(|id| format!(" of instance '{id}'")).unwrap_or_default();
        check.found(format!(
            "{count}; the newest{of} was set aside at {} (UTC)",
            outlast::lens::moment(newest.dead_at)
        ));
    }
    Ok(check)
}
