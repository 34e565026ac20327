//! `outlast demo`: a shop that loses no order and charges no customer twice.
//!
//! `order.rs` has the orchestrations, `shop.rs` and `gateway.rs` their activities, `ledger.rs` and `books.rs` the record of effects,
//! `floor.rs` the simulated users, and `proof.rs` the check of the record.

mod board;
mod books;
mod dice;
mod entry;
mod files;
mod floor;
mod gateway;
mod goods;
mod ledger;
mod order;
mod past;
mod proof;
mod screen;
mod shop;

use crate::args::DemoArgs;
use crate::failure::Failure;
use board::Board;
use books::Books;
use entry::Entry;
use files::Files;
use floor::Floor;
use goods::{Batch, some};
use outlast::client::Client;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::{Runtime, RuntimeOptions};
use past::Past;
use proof::Proof;
use screen::Screen;
use shop::Shop;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// The grace period after Ctrl-C.
const GRACE_MS: u64 = 2_000;

pub(crate) async fn run(args: DemoArgs) -> Result<(), Failure> {
    let mut screen = Screen::new();
    let files = Files::in_dir(&args.dir);
    let (books, lines) = Books::open(files.open(args.fresh)?)?;
    let past = Past::of(&lines);
    files.refuse_missing_store(past.as_ref())?;
    screen.print(&files.text())?;

    let store = SqliteProvider::new(&files.store_url()?, None).await;
    let store = Arc::new(store.map_err(|error| Failure::new(error.to_string()))?);
    let client = Client::new(store.clone());
    let board = board(&args, past, &client, &books, &mut screen).await?;
    books.note(Entry::Opened { process: std::process::id() }).await?;

    let shop = Shop::new(books.clone(), board.batch);
    let runtime = Runtime::builder()
        .store(store)
        .register(order::module())
        .state(shop)
        .options(options())
        .start()
        .await
        .map_err(|error| Failure::new(error.to_string()))?;

    let floor = Floor { client: &client, books: &books, board: RefCell::new(board) };
    let stopped = tokio::select! {
        biased;
        stopped = stop_signal() => Some(stopped?),
        over = floor.run(&mut screen) => { over?; None }
    };
    let mut board = floor.board.into_inner();
    if let Some(signal) = stopped {
        screen.print(&format!("\n{signal}: finishing what has begun ..."))?;
    }
    runtime.shutdown(Some(GRACE_MS)).await;
    match stopped {
        None => prove(&books, &board, &files, &mut screen).await,
        Some(_) => {
            board.refresh(&client).await?;
            screen.print(&format!(
                "Stopped with {} of {} orders ended and {} open. Nothing is lost: start it again to go on.\n  {}",
                board.ended.len(),
                board.batch.orders,
                board.open.len(),
                files.again()
            ))?;
            Err(Failure::stopped())
        }
    }
}

/// The batch to run: the unfinished one, or a new one. Prints which.
async fn board(
    args: &DemoArgs,
    past: Option<Past>,
    client: &Client,
    books: &Books,
    screen: &mut Screen,
) -> Result<Board, Failure> {
    let number = match past {
        Some(past) if !past.proven => return resume(past, client, screen).await,
        Some(past) => {
            screen.print(&format!(
                "The last run is finished: batch {} of {} orders, proven. This is a new batch; --fresh starts over.",
                past.batch.number, past.batch.orders
            ))?;
            past.batch.number + 1
        }
        None => 1,
    };
    let batch = Batch { number, orders: args.orders, seed: args.seed, pace: args.pace };
    books.note(Entry::Batch(batch)).await?;
    screen.print(&format!(
        "Batch {number}: {} orders. Stop it at any time (Ctrl-C, or kill -9 {}) and start it again.\n",
        batch.orders,
        std::process::id()
    ))?;
    Ok(Board::new(batch))
}

async fn resume(past: Past, client: &Client, screen: &mut Screen) -> Result<Board, Failure> {
    let mut board = Board::new(past.batch);
    past.placed.iter().for_each(|id| board.placed(id));
    board.refresh(client).await?;
    let (ended, open) = (board.ended.len(), board.open.len());
    let to_come = (board.batch.orders as usize).saturating_sub(ended + open);
    screen.print(&match (open, to_come) {
        (0, 0) => {
            format!("Found that all {ended} orders of the last run have ended; what is missing is the proof.")
        }
        _ => format!(
            "Found {} of the last run, going on. ({ended} had ended, {to_come} are still to come.)\n",
            some(open, "unfinished order")
        ),
    })?;
    Ok(board)
}

async fn prove(books: &Books, board: &Board, files: &Files, screen: &mut Screen) -> Result<(), Failure> {
    let proof = Proof::of(&books.read_back()?, board);
    screen.print(&format!("\n{}\n", proof.text()))?;
    if !proof.holds() {
        return Err(Failure::reported());
    }
    books.note(Entry::Proven { batch: board.batch.number }).await?;
    screen.print(&files.closing(&format!("{}001", board.batch.prefix())))?;
    Ok(())
}

/// Short leases, so that the activities of a killed process soon run again, and a high `max_attempts`, so that many kills do not
/// poison them.
fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 32,
        orchestrator_lock_timeout: Duration::from_secs(1),
        worker_lock_timeout: Duration::from_secs(1),
        max_attempts: 10_000,
        ..RuntimeOptions::default()
    }
}

/// Waits for Ctrl-C or a termination signal.
async fn stop_signal() -> Result<&'static str, Failure> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed.map(|()| "Ctrl-C").map_err(Failure::from),
            _ = terminate.recv() => Ok("Terminated"),
        }
    }
    #[cfg(not(unix))]
    {
        tokio::signal::ctrl_c().await?;
        Ok("Ctrl-C")
    }
}
