//! `outlast demo`: a shop that loses no order and charges no customer twice.
//!
//! The process that the user starts is the supervisor: it places the orders (`floor.rs`), serves the page (`page.rs`), and starts two
//! workers (`crew.rs`), which are processes of the same program (`worker.rs`). `order.rs` has the orchestrations, `shop.rs` and
//! `gateway.rs` their activities, `ledger.rs` and `books.rs` the record of effects, which all three processes write, and `proof.rs` the
//! check of the record.

mod board;
mod books;
mod crew;
mod dice;
mod entry;
mod files;
mod floor;
mod gateway;
mod goods;
mod ledger;
mod lock;
mod order;
#[cfg(feature = "server")]
mod page;
mod past;
mod proof;
mod report;
mod screen;
mod shop;
mod stage;
mod worker;

use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::signals::Signals;
use board::Board;
use books::Books;
use crew::{Crew, Kills};
use entry::Entry;
use files::Files;
use floor::Floor;
use goods::{Batch, some};
use outlast::client::Client;
use outlast::providers::sqlite::SqliteProvider;
use past::Past;
use proof::Proof;
use screen::Screen;
use stage::Stage;
use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use tokio::sync::Notify;

pub(crate) async fn run(args: DemoArgs) -> Result<(), Failure> {
    match args.worker {
        Some(_) => worker::run(&args.dir).await,
        None => supervise(args).await,
    }
}

/// Runs batches until the user, or the end of the only batch, ends the demo.
async fn supervise(args: DemoArgs) -> Result<(), Failure> {
    let mut screen = Screen::new();
    let files = Files::in_dir(&args.dir);
    files.make_folder()?;
    let _lock = files.locks().supervise().await?;
    let mut ledger = files.open()?;
    if args.fresh {
        files.empty(&mut ledger)?;
    }
    let (books, lines) = Books::open(ledger)?;
    let mut past = Past::of(&lines);
    files.refuse_missing_store(past.as_ref())?;
    screen.print(&files.text())?;

    let store = SqliteProvider::new(&files.store_url()?, None).await;
    let client = Client::new(Arc::new(store.map_err(|error| Failure::new(error.to_string()))?));
    let stays = has_page(&args) && (args.stay || io::stdout().is_terminal());
    let demo = Demo {
        client,
        books,
        stage: Stage::new(stays),
        kills: Kills::default(),
        again: Arc::new(Notify::new()),
        files,
    };
    #[cfg(feature = "server")]
    let page = if has_page(&args) { demo.open_page(args.port, &mut screen).await? } else { None };
    // From here on no signal is lost, also while no future waits for it.
    let mut signals = Signals::new()?;
    loop {
        let board = board(&args, past, &demo.client, &demo.books, &mut screen).await?;
        demo.books.note(Entry::Opened { process: std::process::id() }).await?;
        let board = demo.batch(board, &mut signals, &mut screen).await?;
        demo.prove(&board, &mut screen).await?;
        #[cfg(feature = "server")]
        match (&page, stays) {
            (Some(page), true) => screen.print(&format!(
                "\nThe page stays open, also for another batch: http://{}/demo. Ctrl-C ends the demo.",
                page.address
            ))?,
            _ => return Ok(()),
        }
        if !stays {
            return Ok(());
        }
        tokio::select! {
            biased;
            _ = signals.next() => return Ok(()),
            () = demo.again.notified() => {}
        }
        past = Past::of(&demo.books.read_back()?);
    }
}

/// Whether the demo has a page.
fn has_page(args: &DemoArgs) -> bool {
    cfg!(feature = "server") && !args.no_dashboard
}

/// The parts of the supervisor.
struct Demo {
    client: Client,
    books: Books,
    stage: Stage,
    kills: Kills,
    /// The request for another batch.
    again: Arc<Notify>,
    files: Files,
}

impl Demo {
    /// Serves the page, and prints its address. A page that cannot be served does not stop the demo.
    #[cfg(feature = "server")]
    async fn open_page(&self, port: u16, screen: &mut Screen) -> Result<Option<page::Serving>, Failure> {
        let page = page::Page {
            client: self.client.clone(),
            stage: self.stage.clone(),
            kills: self.kills.clone(),
            again: Arc::clone(&self.again),
        };
        let serving = match page.serve(port, self.files.store_name()).await {
            Ok(serving) => serving,
            Err(error) => {
                screen.print(&format!("  page    none: no port of the loopback can be used ({error})"))?;
                return Ok(None);
            }
        };
        let found = serving.address.port();
        let note = match found == port || port == 0 {
            true => String::new(),
            false => format!("; port {port} is in use"),
        };
        screen.print(&format!(
            "  page    http://{}/demo  (orders, your approvals, and a button that kills a worker{note})",
            serving.address
        ))?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let connection = variable("SSH_CONNECTION").unwrap_or_default();
        if let Some(forward) = page::forward(found, &connection, variable("USER").as_deref()) {
            screen.print(&format!("          over SSH, run this on your own machine first: {forward}"))?;
        }
        Ok(Some(serving))
    }

    /// Runs one batch with two workers until all its orders have ended.
    async fn batch(
        &self,
        board: Board,
        signals: &mut Signals,
        screen: &mut Screen,
    ) -> Result<Board, Failure> {
        self.stage.opens();
        let mut crew = Crew::start(self.files.dir(), &self.stage, &self.books, &self.kills)?;
        let floor = Floor {
            client: &self.client,
            books: &self.books,
            stage: &self.stage,
            board: RefCell::new(board),
        };
        let stopped = tokio::select! {
            biased;
            signal = signals.next() => Some(signal),
            failure = crew.failed() => return Err(failure),
            over = floor.run(screen) => { over?; None }
        };
        let mut board = floor.board.into_inner();
        let Some(signal) = stopped else {
            crew.stop().await?;
            return Ok(board);
        };
        screen.print(&format!("\n{signal}: finishing what has begun ..."))?;
        crew.stop().await?;
        board.refresh(&self.client).await?;
        screen.print(&format!(
            "Stopped with {} of {} orders ended and {} open. Nothing is lost: start it again to go on.\n  {}",
            board.ended.len(),
            board.batch.orders,
            board.open.len(),
            self.files.again()
        ))?;
        Err(Failure::stopped())
    }

    async fn prove(&self, board: &Board, screen: &mut Screen) -> Result<(), Failure> {
        self.stage.shows(board);
        self.stage.counts(&self.books.tally().await?);
        let proof = Proof::of(&self.books.read_back()?, board);
        let text = proof.text();
        screen.print(&format!("\n{text}\n"))?;
        self.stage.proves(text, proof.holds());
        if !proof.holds() {
            return Err(Failure::reported());
        }
        self.books.note(Entry::Proven { batch: board.batch.number }).await?;
        screen.print(&self.files.closing(&format!("{}001", board.batch.prefix())))?;
        Ok(())
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
