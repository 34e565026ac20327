//! A world: one store, carried from power cut to power cut, and judged after each.

use super::clients::Clients;
use super::disk::{Disk, Images, Moment, folder, restore};
use super::judge::judge;
use super::ledger::Ledger;
use super::tally::Tally;
use super::witness::Witness;
use super::{hands, stored};
use outlast_provider::{Clock, Provider, SystemClock};
use outlast_sqlite::{SqliteError, SqliteOptions, SqliteProvider, Synchronous};
use outlast_testkit::rng::Rng;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What sort of world.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The store's own setting.
    pub synchronous: Synchronous,
    /// A disk that says "synced" and has done nothing: the sabotage that must be found.
    pub disk_ignores_sync: bool,
    /// How often the power goes.
    pub cuts: u64,
}

/// How a world went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Counts.
    pub tally: Tally,
    /// Acknowledged and gone, one line each.
    pub lost: Vec<String>,
    /// What no setting excuses: damage, half-applied turns, errors without a reason, work that cannot be finished.
    pub broken: Vec<String>,
}

const FILE: &str = "store.db";
/// Instances of one boot at most. The power usually goes before.
const BUDGET: u64 = 60;
/// Changes of one boot, about.
const LONG_BOOT: u64 = 2_500;

/// How long answers are still listened to.
const LINGER: Duration = Duration::from_millis(10);

struct World {
    settings: Settings,
    rng: Rng,
    /// A small log is emptied all the time.
    wal_limit_bytes: u64,
    /// The shipped runtime does the work, instead of loops by hand.
    has_runtime: bool,
    /// Activities are done by a second store on the same file, as another process has one.
    has_second_store: bool,
    images: Images,
    ledger: Arc<Ledger>,
    next: Arc<AtomicU64>,
    boots: u64,
    complaints: Arc<Mutex<Vec<String>>>,
    outcome: Outcome,
}

/// Runs a world. The seed says when the power goes and what is left; the threads of the store are as they are.
pub fn run(seed: u64, settings: Settings) -> Outcome {
    let mut rng = Rng::new(seed);
    let defaults = SqliteOptions::default();
    let mut world = World {
        settings,
        wal_limit_bytes: rng.pick(&[0, 0, defaults.wal_limit_bytes]),
        has_runtime: rng.per_mille(350),
        has_second_store: rng.per_mille(150),
        rng,
        images: Images::new(),
        ledger: Arc::default(),
        next: Arc::default(),
        boots: 0,
        complaints: Arc::default(),
        outcome: Outcome { seed, ..Outcome::default() },
    };
    if let Err(error) = world.live() {
        world.outcome.broken.push(error);
    }
    world.outcome.tally.acknowledged = world.ledger.heard();
    let complaints = std::mem::take(&mut *world.complaints.lock().unwrap_or_else(PoisonError::into_inner));
    world.outcome.broken.extend(complaints);
    world.outcome
}

impl World {
    fn live(&mut self) -> Result<(), String> {
        for _ in 0..self.settings.cuts {
            self.boot_and_cut()?;
            self.judge()?;
            // A disk that lies has been found out as soon as anything is gone; what comes after that shows nothing.
            let is_found_out = self.settings.disk_ignores_sync && !self.outcome.lost.is_empty();
            if is_found_out || !self.outcome.broken.is_empty() {
                return Ok(());
            }
        }
        self.finish()
    }

    /// One life of the machine, from power to no power.
    fn boot_and_cut(&mut self) -> Result<(), String> {
        self.boots += 1;
        let folder = folder().map_err(|error| error.to_string())?;
        let moment = self.moment();
        let disk = Disk::boot(folder.path(), &self.images, moment, self.settings.disk_ignores_sync)
            .map_err(|error| error.to_string())?;
        let has_opened = self.machine(folder.path(), Some(&disk))?;
        let place = disk.pull_plug();
        self.outcome.tally.cut(place, has_opened, self.boots == 1);
        let wreck = disk.wreck(&mut self.rng);
        self.outcome.tally.fates(wreck.fates);
        self.images = wreck.images;
        Ok(())
    }

    fn moment(&mut self) -> Moment {
        match self.rng.below(12) {
            // While the store is opened: made, migrated, or recovered after the cut before.
            0 | 1 => Moment::Call(self.rng.magnitude(120)),
            2 => Moment::Change(self.rng.magnitude(60)),
            3 => Moment::Unplanned,
            4 | 5 => Moment::DatabaseChange(self.rng.magnitude(250)),
            6 | 7 => Moment::Change(1 + self.rng.below(LONG_BOOT)),
            _ => Moment::Change(self.rng.magnitude(LONG_BOOT)),
        }
    }

    /// Opens the store, works on it and closes it, with or without power. Says whether it could be opened.
    fn machine(&mut self, folder: &Path, disk: Option<&Arc<Disk>>) -> Result<bool, String> {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let tokio = tokio.map_err(|error| error.to_string())?;
        let opened = tokio.block_on(async {
            let first = self.open(folder).await?;
            let second = if self.has_second_store { self.open(folder).await? } else { Arc::clone(&first) };
            Ok::<_, SqliteError>((first, second))
        });
        let (first, second) = match opened {
            Ok(stores) => stores,
            Err(_) if disk.is_some_and(|disk| disk.is_dead()) => return Ok(false),
            Err(error) => return Err(format!("the store cannot be opened: {error}")),
        };
        tokio.block_on(self.work(first, second, disk));
        // Some machines that are idle now are shut down in order, and some of these lose their power meanwhile.
        if let Some(disk) = disk {
            match self.rng.below(4) {
                0 => disk.cut_after(self.rng.magnitude(300)),
                1 => {}
                _ => drop(disk.pull_plug()),
            }
        }
        // Every task goes with it, and with the last of them the stores.
        drop(tokio);
        Ok(true)
    }

    async fn open(&self, folder: &Path) -> Result<Arc<SqliteProvider>, SqliteError> {
        let options = SqliteOptions {
            synchronous: self.settings.synchronous,
            wal_limit_bytes: self.wal_limit_bytes,
            foreign_poll_interval: Duration::from_millis(10),
            clock: Arc::new(Later(self.boots)),
            ..SqliteOptions::default()
        };
        let url = format!("sqlite:{}", folder.join(FILE).display());
        Ok(Arc::new(SqliteProvider::new(&url, Some(options)).await?))
    }

    /// Until the power goes, or there is nothing left to do.
    async fn work(&self, first: Arc<SqliteProvider>, second: Arc<SqliteProvider>, disk: Option<&Arc<Disk>>) {
        let watched = |inner: Arc<dyn Provider>| -> Arc<dyn Provider> {
            Arc::new(Witness { inner, ledger: Arc::clone(&self.ledger) })
        };
        let upkeep = Arc::clone(&first);
        let (first, second) = (watched(first), watched(second));
        let clients = Arc::new(Clients {
            store: Arc::clone(&first),
            upkeep,
            ledger: Arc::clone(&self.ledger),
            disk: disk.cloned(),
            next: Arc::clone(&self.next),
            budget: AtomicU64::new(if disk.is_some() { BUDGET } else { 0 }),
            seed: self.outcome.seed,
            complaints: Arc::clone(&self.complaints),
        });
        if self.has_runtime {
            // It lives until tokio stops, as a process does.
            let _ = hands::runtime(Arc::clone(&first), Arc::new(Later(self.boots))).await;
        }
        tokio::select! {
            () = clients.run(4) => {}
            () = self.by_hand(first, second, disk), if !self.has_runtime => {}
            () = died(disk) => {}
        }
    }

    /// Returns when the work ends though the power is on, which it must not.
    async fn by_hand(&self, first: Arc<dyn Provider>, second: Arc<dyn Provider>, disk: Option<&Arc<Disk>>) {
        let error = hands::by_hand(first, second).await;
        if disk.is_some_and(|disk| disk.is_dead()) {
            std::future::pending::<()>().await;
        }
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    }

    /// Looks at the files with nothing in between, and at a copy: recovery is the next boot's business.
    fn judge(&mut self) -> Result<(), String> {
        let folder = folder().map_err(|error| error.to_string())?;
        restore(&self.images, folder.path()).map_err(|error| error.to_string())?;
        let path = folder.path().join(FILE);
        let rows = if path.exists() { stored::read(&path)? } else { Default::default() };
        self.outcome.tally.looked_for += self.ledger.standing();
        let verdict = judge(&self.ledger, &rows);
        self.outcome.tally.lost += verdict.lost.len() as u64;
        self.outcome.lost.extend(verdict.lost);
        self.outcome.broken.extend(verdict.broken);
        Ok(())
    }

    /// With power that stays, and the ordinary VFS, everything that was started comes to its end.
    fn finish(&mut self) -> Result<(), String> {
        self.boots += 1;
        let folder = folder().map_err(|error| error.to_string())?;
        restore(&self.images, folder.path()).map_err(|error| error.to_string())?;
        self.machine(folder.path(), None)?;
        self.images.clear();
        for entry in std::fs::read_dir(folder.path()).map_err(|error| error.to_string())?.flatten() {
            let bytes = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
            self.images.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
        }
        self.judge()?;
        for (instance, story) in self.ledger.stories().iter() {
            self.outcome.tally.instances += 1;
            if story.told.is_none() {
                self.outcome.broken.push(format!("{instance} did not come to its end"));
            }
        }
        Ok(())
    }
}

/// Some time after the power went. A dead machine answers nobody, but ours still can: whoever is told then that something is
/// stored must have been told the truth.
async fn died(disk: Option<&Arc<Disk>>) {
    match disk {
        Some(disk) => disk.died().await,
        None => std::future::pending().await,
    }
    tokio::time::sleep(LINGER).await;
}

/// An hour passes from boot to boot, so that every lease of the boot before is over.
struct Later(u64);

impl Clock for Later {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms() + self.0 * 3_600_000
    }
}
