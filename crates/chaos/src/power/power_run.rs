//! A power run: one store through several power cuts, verified after each.

use super::call_log::CallLog;
use super::clients::Clients;
use super::cut_counts::CutCounts;
use super::disk::{CutTime, Disk, Images, Preallocations, folder, restore};
use super::recording_store::RecordingStore;
use super::verify::verify;
use super::{drivers, stored};
use outlast_provider::{Clock, Provider, SystemClock};
use outlast_sqlite::{PreallocWrites, SqliteError, SqliteOptions, SqliteProvider, Synchronous};
use outlast_testkit::rng::Rng;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The settings of a run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The store's own setting.
    pub synchronous: Synchronous,
    /// A defect that the verification must find.
    pub sabotage: Option<Sabotage>,
    /// Number of power cuts.
    pub cuts: u64,
}

/// A defect of a disk or of the store on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The disk reports syncs as done without doing them.
    IgnoresSyncs,
    /// On the disk, a preallocation of the write-ahead log overwrites the end of the last commit.
    PreallocatesTooEarly,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Counts.
    pub tally: CutCounts,
    /// Acknowledged calls that were lost, one line each.
    pub lost: Vec<String>,
    /// Findings that no setting excuses: damage, partly stored turns, errors while the power was on, instances that
    /// cannot be finished.
    pub broken: Vec<String>,
}

const FILE: &str = "store.db";
/// Largest number of instances that are started in one boot. Usually the power is cut earlier.
const ORDERS_PER_BOOT: u64 = 60;
/// Typical number of changes in one boot.
const LONG_BOOT: u64 = 2_500;

/// A log limit that one preallocation reaches.
const SMALL_LOG: u64 = 512 << 10;
/// Largest number of writes of preallocations before a cut in one of them. A megabyte takes 128 writes.
const PREALLOCATION_WRITES: u64 = 300;
/// The number of bytes that [`Sabotage::PreallocatesTooEarly`] overwrites: one page, with which the last frame of the log ends.
const PAGE: usize = 4096;

/// Time after a cut during which answers of the store are still recorded.
const LATE_ANSWERS: Duration = Duration::from_millis(10);

struct PowerRun {
    settings: Settings,
    rng: Rng,
    /// A small log is checkpointed all the time. With the limit 0 it is not preallocated.
    wal_limit_bytes: u64,
    /// Whether the shipped runtime runs turns and activities, instead of direct loops.
    has_runtime: bool,
    /// Whether activities use a second store on the same file, as another process would.
    has_second_store: bool,
    images: Images,
    call_log: Arc<CallLog>,
    next: Arc<AtomicU64>,
    boots: u64,
    unexpected_errors: Arc<Mutex<Vec<String>>>,
    outcome: Outcome,
}

/// Runs a seed. The seed decides when the power is cut and which unsynced changes remain; the timing of the store
/// threads is real.
pub fn run(seed: u64, settings: Settings) -> Outcome {
    let mut rng = Rng::new(seed);
    let defaults = SqliteOptions::default();
    let mut power_run = PowerRun {
        settings,
        wal_limit_bytes: rng.pick(&[0, SMALL_LOG, defaults.wal_limit_bytes]),
        has_runtime: rng.per_mille(350),
        has_second_store: rng.per_mille(150),
        rng,
        images: Images::new(),
        call_log: Arc::default(),
        next: Arc::default(),
        boots: 0,
        unexpected_errors: Arc::default(),
        outcome: Outcome { seed, ..Outcome::default() },
    };
    if let Err(error) = power_run.run() {
        power_run.outcome.broken.push(error);
    }
    power_run.outcome.tally.acknowledged = power_run.call_log.acknowledged_count();
    let unexpected_errors =
        std::mem::take(&mut *power_run.unexpected_errors.lock().unwrap_or_else(PoisonError::into_inner));
    power_run.outcome.broken.extend(unexpected_errors);
    power_run.outcome
}

impl PowerRun {
    fn run(&mut self) -> Result<(), String> {
        for _ in 0..self.settings.cuts {
            self.boot_and_cut()?;
            self.verify()?;
            // A defect is detected as soon as a call is lost, so later cuts are not needed.
            let is_detected = self.settings.sabotage.is_some() && !self.outcome.lost.is_empty();
            if is_detected || !self.outcome.broken.is_empty() {
                return Ok(());
            }
        }
        self.finish()
    }

    /// Runs one boot until the power cut.
    fn boot_and_cut(&mut self) -> Result<(), String> {
        self.boots += 1;
        let folder = folder().map_err(|error| error.to_string())?;
        let cut_time = self.cut_time();
        let ignores_sync = self.settings.sabotage == Some(Sabotage::IgnoresSyncs);
        let disk = Disk::boot(folder.path(), &self.images, cut_time, ignores_sync)
            .map_err(|error| error.to_string())?;
        let was_opened = self.run_boot(folder.path(), Some(&disk))?;
        let disk_call = disk.cut_power();
        self.outcome.tally.cut(disk_call, was_opened, self.boots == 1);
        let after_power_cut = disk.after_power_cut(&mut self.rng);
        self.outcome.tally.unsynced(after_power_cut.unsynced);
        self.images = after_power_cut.images;
        Ok(())
    }

    fn cut_time(&mut self) -> CutTime {
        match self.rng.below(13) {
            // While the store is created, migrated, or recovered from the last cut.
            0 | 1 => CutTime::Call(self.rng.magnitude(120)),
            2 => CutTime::Change(self.rng.magnitude(60)),
            3 => CutTime::OnRequest,
            4 | 5 => CutTime::DatabaseChange(self.rng.magnitude(250)),
            6 | 7 => CutTime::Change(1 + self.rng.below(LONG_BOOT)),
            8 if self.wal_limit_bytes > 0 => CutTime::Preallocation(1 + self.rng.below(PREALLOCATION_WRITES)),
            _ => CutTime::Change(self.rng.magnitude(LONG_BOOT)),
        }
    }

    /// Opens the store, runs clients and drivers, and closes it. Returns whether the store could be opened.
    fn run_boot(&mut self, folder: &Path, disk: Option<&Arc<Disk>>) -> Result<bool, String> {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let tokio = tokio.map_err(|error| error.to_string())?;
        let opened = tokio.block_on(async {
            let first = self.open(folder, disk).await?;
            let second =
                if self.has_second_store { self.open(folder, disk).await? } else { Arc::clone(&first) };
            Ok::<_, SqliteError>((first, second))
        });
        let (first, second) = match opened {
            Ok(stores) => stores,
            Err(_) if disk.is_some_and(|disk| disk.is_off()) => return Ok(false),
            Err(error) => return Err(format!("the store cannot be opened: {error}")),
        };
        tokio.block_on(self.work(first, second, disk));
        // Some idle boots are shut down in order, and in some of these the power is cut during the shutdown.
        if let Some(disk) = disk {
            match self.rng.below(4) {
                0 => disk.cut_after(self.rng.magnitude(300)),
                1 => {}
                _ => drop(disk.cut_power()),
            }
        }
        // This drops every task, and with the last task the stores.
        drop(tokio);
        Ok(true)
    }

    async fn open(
        &self,
        folder: &Path,
        disk: Option<&Arc<Disk>>,
    ) -> Result<Arc<SqliteProvider>, SqliteError> {
        let sabotage = self.settings.sabotage;
        let bytes_early = if sabotage == Some(Sabotage::PreallocatesTooEarly) { PAGE } else { 0 };
        let seen = |disk| Arc::new(Preallocations { disk, bytes_early }) as Arc<dyn PreallocWrites>;
        let options = SqliteOptions {
            synchronous: self.settings.synchronous,
            wal_limit_bytes: self.wal_limit_bytes,
            foreign_poll_interval: Duration::from_millis(10),
            clock: Arc::new(LaterClock(self.boots)),
            prealloc_writes: disk.cloned().map(seen),
            ..SqliteOptions::default()
        };
        let url = format!("sqlite:{}", folder.join(FILE).display());
        Ok(Arc::new(SqliteProvider::new(&url, Some(options)).await?))
    }

    /// Runs clients and drivers until the power is cut or all orders are done.
    async fn work(&self, first: Arc<SqliteProvider>, second: Arc<SqliteProvider>, disk: Option<&Arc<Disk>>) {
        let watched = |inner: Arc<dyn Provider>| -> Arc<dyn Provider> {
            Arc::new(RecordingStore { inner, call_log: Arc::clone(&self.call_log) })
        };
        let sqlite = Arc::clone(&first);
        let (first, second) = (watched(first), watched(second));
        let clients = Arc::new(Clients {
            store: Arc::clone(&first),
            sqlite,
            call_log: Arc::clone(&self.call_log),
            disk: disk.cloned(),
            next: Arc::clone(&self.next),
            orders_left: AtomicU64::new(if disk.is_some() { ORDERS_PER_BOOT } else { 0 }),
            seed: self.outcome.seed,
            unexpected_errors: Arc::clone(&self.unexpected_errors),
        });
        if self.has_runtime {
            // It runs until tokio stops, as in a process.
            let _ = drivers::start_runtime(Arc::clone(&first), Arc::new(LaterClock(self.boots))).await;
        }
        tokio::select! {
            () = clients.run(4) => {}
            () = self.run_loops(first, second, disk), if !self.has_runtime => {}
            () = wait_for_cut(disk) => {}
        }
    }

    /// Runs the direct loops. Returns only if a loop ends while the power is on, which is an error.
    async fn run_loops(&self, first: Arc<dyn Provider>, second: Arc<dyn Provider>, disk: Option<&Arc<Disk>>) {
        let error = drivers::run_loops(first, second).await;
        if disk.is_some_and(|disk| disk.is_off()) {
            std::future::pending::<()>().await;
        }
        self.unexpected_errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    }

    /// Verifies a copy of the files with the ordinary VFS. The next boot recovers the files themselves.
    fn verify(&mut self) -> Result<(), String> {
        let folder = folder().map_err(|error| error.to_string())?;
        restore(&self.images, folder.path()).map_err(|error| error.to_string())?;
        let path = folder.path().join(FILE);
        let rows = if path.exists() { stored::read(&path)? } else { Default::default() };
        self.outcome.tally.looked_for += self.call_log.must_be_stored();
        let findings = verify(&self.call_log, &rows);
        self.outcome.tally.lost += findings.lost.len() as u64;
        self.outcome.lost.extend(findings.lost);
        self.outcome.broken.extend(findings.broken);
        Ok(())
    }

    /// Boots without a power cut and with the ordinary VFS; every started instance must end.
    fn finish(&mut self) -> Result<(), String> {
        self.boots += 1;
        let folder = folder().map_err(|error| error.to_string())?;
        restore(&self.images, folder.path()).map_err(|error| error.to_string())?;
        self.run_boot(folder.path(), None)?;
        self.images.clear();
        let entries = std::fs::read_dir(folder.path()).map_err(|error| error.to_string())?;
        // The folder of lock files is not part of the store.
        for entry in entries.flatten().filter(|entry| entry.path().is_file()) {
            let bytes = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
            self.images.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
        }
        self.verify()?;
        for (instance, calls) in self.call_log.instances().iter() {
            self.outcome.tally.instances += 1;
            if calls.client_output.is_none() {
                self.outcome.broken.push(format!("{instance} did not end"));
            }
        }
        Ok(())
    }
}

/// Waits until some time after the cut. A real machine answers no call after the cut; here answers can still
/// arrive, and every acknowledgement among them must be true.
async fn wait_for_cut(disk: Option<&Arc<Disk>>) {
    match disk {
        Some(disk) => disk.wait_for_cut().await,
        None => std::future::pending().await,
    }
    tokio::time::sleep(LATE_ANSWERS).await;
}

/// A clock that advances by an hour with every boot, so that every lease of the last boot has ended.
struct LaterClock(u64);

impl Clock for LaterClock {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms() + self.0 * 3_600_000
    }
}
