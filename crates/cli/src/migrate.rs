//! `outlast migrate`: applies the migrations of this release to a store.

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent, Kind, Place};
use clap::Args as ClapArgs;
use outlast::lens::counted;
use outlast::providers::SchemaState;
use serde::Serialize;

/// Bring the schema of a store up to date.
///
/// A program of this release applies the migrations that are due when it opens a store. This command is for stores whose programs
/// may not change tables, and for deployments that migrate first. All migrations that are due are applied in one transaction: all
/// of them or none. Programs of the release before this one go on.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast migrate --check --store shop.db
  OUTLAST_STORE=postgres://owner@db.example.com/shop outlast migrate --create

Exit status: 0 if the schema is up to date, 1 if --check finds migrations that are due, 7 if a newer release wrote the store.")]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    common: Common,
    /// Show the migrations that are due, and apply none; also --check
    #[arg(long, alias = "check")]
    dry_run: bool,
    /// Create the store if it does not exist
    #[arg(long, conflicts_with = "dry_run")]
    create: bool,
}

pub(crate) async fn run(args: MigrateArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let migrated = match Kind::of(&place.url)? {
        Kind::Cosmos => Migrated::without_migrations(&place),
        _ => migrate(&place, args.dry_run, args.create).await?,
    };
    print(args.common.output, &migrated, Migrated::text)?;
    match migrated.dry_run && !migrated.migrations.is_empty() {
        true => Err(Failure::reported()),
        false => Ok(()),
    }
}

async fn migrate(place: &Place, dry_run: bool, create: bool) -> Result<Migrated, Failure> {
    let before = match create {
        true => store::schema_state_or_none(place).await?,
        false => Some(store::schema_state(place).await?),
    };
    if let Some(before) = before.as_ref().filter(|before| dry_run || before.due.is_empty()) {
        return Ok(Migrated::of(place, before, before, dry_run));
    }
    if !create && before.as_ref().is_some_and(|before| before.applied == 0) {
        return Err(Failure::new(format!("there is no store in {place}: --create creates it")));
    }
    // Opening the store applies the migrations.
    drop(store::open_provider(place, Intent::Create).await?);
    let after = store::schema_state(place).await?;
    match before {
        Some(before) => Ok(Migrated::of(place, &before, &after, dry_run)),
        None => Ok(Migrated { before: Some(0), ..Migrated::of(place, &after, &after, dry_run) }),
    }
}

#[derive(Serialize)]
struct Migrated {
    store: String,
    /// The version before the command; 0 without a store. Null for Cosmos DB, which has no versions.
    before: Option<u32>,
    /// The version after the command.
    after: Option<u32>,
    /// The newest version of this release.
    known: Option<u32>,
    /// The migrations that were applied, or would be.
    migrations: Vec<Listed>,
    dry_run: bool,
}

#[derive(Serialize)]
struct Listed {
    version: u32,
    name: &'static str,
}

impl Migrated {
    fn of(place: &Place, before: &SchemaState, after: &SchemaState, dry_run: bool) -> Self {
        let migrations = before.due.iter().map(|(version, name)| Listed { version: *version, name });
        Self {
            store: place.to_string(),
            before: Some(before.applied),
            after: Some(after.applied),
            known: Some(after.known),
            migrations: migrations.collect(),
            dry_run,
        }
    }

    fn without_migrations(place: &Place) -> Self {
        Self {
            store: place.to_string(),
            before: None,
            after: None,
            known: None,
            migrations: Vec::new(),
            dry_run: false,
        }
    }

    fn text(&self) -> String {
        let store = plain(&self.store);
        let (Some(before), Some(after), Some(known)) = (self.before, self.after, self.known) else {
            return format!("{store} is a Cosmos DB store, which has no migrations.\n");
        };
        let list: String =
            self.migrations.iter().map(|due| format!("  {} {}\n", due.version, due.name)).collect();
        let count = counted(self.migrations.len(), "migration");
        let are = if self.migrations.len() == 1 { "is" } else { "are" };
        match (self.dry_run, before == after) {
            _ if before > known => {
                format!(
                    "{store} has schema version {after} of a newer release. This release has {known}, and can use it.\n"
                )
            }
            (false, true) if before == known => {
                format!("{store} has schema version {after}, which is that of this release.\n")
            }
            (true, _) if self.migrations.is_empty() => {
                format!("{store} has schema version {after}, which is that of this release.\n")
            }
            (true, _) => format!(
                "{store} has schema version {before}, this release has {known}: {count} {are} due. Nothing was changed.\n{list}"
            ),
            (false, _) if before == 0 => format!("Created {store} with schema version {after}.\n"),
            (false, _) => {
                format!("{store}: schema version {before} before, {after} now. Applied {count}.\n{list}")
            }
        }
    }
}
