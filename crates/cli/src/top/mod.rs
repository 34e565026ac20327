//! `outlast top`: a screen that shows a store while it works.

mod figures;
mod keys;
mod view;

use crate::duration::duration;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::store::{self, Intent, StoreArgs};
use clap::Args as ClapArgs;
use figures::Figures;
use keys::{Key, Keys};
use outlast::client::Client;
use ratatui::DefaultTerminal;
use std::io::{self, IsTerminal};
use std::time::Duration;
use view::{LEAST_COLUMNS, LEAST_ROWS, Look};

/// The shortest time between two reads.
const SHORTEST: Duration = Duration::from_millis(250);

/// Show a store while it works: instances, queues, throughput, and the instances that wait longest.
///
/// The screen is for a terminal. q or Esc ends it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast top --store shop.db
  OUTLAST_STORE=postgres://ada@db.example.com/shop outlast top --every 5s

`outlast metrics` prints the figures once, for programs.")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The time between two reads, at least 250ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = every)]
    every: Duration,
}

fn every(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        long if long >= SHORTEST => Ok(long),
        _ => Err("give at least 250ms".to_string()),
    }
}

pub(crate) async fn run(args: TopArgs) -> Result<(), Failure> {
    check_terminal()?;
    let place = args.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    // The first read fails before the screen changes.
    let mut figures = Figures::new(place.to_string(), args.every);
    figures.read(&client).await?;
    let mut signals = Signals::new()?;
    let terminal = ratatui::try_init()
        .map_err(|error| Failure::new(format!("the terminal cannot show a screen: {error}")))?;
    let ended = show(terminal, &client, figures, &mut signals).await;
    ratatui::restore();
    ended
}

/// A failure if there is no terminal, or one that is too small.
fn check_terminal() -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::new(
            "outlast top needs a terminal for its input and output; `outlast metrics` prints the figures once",
        ));
    }
    match ratatui::crossterm::terminal::size() {
        Ok((columns, rows)) if columns < LEAST_COLUMNS || rows < LEAST_ROWS => Err(Failure::new(format!(
            "the terminal has {columns} columns and {rows} rows: outlast top needs at least {LEAST_COLUMNS} and {LEAST_ROWS}"
        ))),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!("the size of the terminal cannot be read: {error}"))),
    }
}

/// Draws until a key or a signal ends it. A read that takes long does not delay the keys.
async fn show(
    mut terminal: DefaultTerminal,
    client: &Client,
    mut figures: Figures,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let look = Look { colours: crate::terminal::has_colours() };
    let mut keys = Keys::start();
    loop {
        terminal.draw(|frame| view::draw(frame, &figures, &look))?;
        let next = async {
            tokio::time::sleep(figures.every).await;
            figures.read_or_note(client).await;
        };
        tokio::select! {
            biased;
            _ = signals.next() => return Err(Failure::stopped()),
            key = keys.next() => match key {
                Key::Quit => return Ok(()),
                Key::Stop => return Err(Failure::stopped()),
                Key::Resize => {}
                Key::Closed => return Err(Failure::new("the input of the terminal is closed")),
            },
            () = next => {}
        }
    }
}
