//! `outlast dead-letter`: items that the store no longer delivers.

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print, print_list, table};
use crate::store::{self, Intent};
use clap::{Args as ClapArgs, Subcommand};
use outlast::lens::moment;
use outlast::providers::{DeadLetter, DeadLetterOutcome};
use serde::Serialize;

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadLetterArgs {
    #[command(subcommand)]
    command: DeadLetterCommand,
}

const EXAMPLES: &str = "Examples:
  outlast dead-letter list --store shop.db
  outlast dead-letter show 12 --payloads --store shop.db
  outlast dead-letter requeue 12 --by ada --reason 'the instance exists now' --store shop.db";

#[derive(Debug, Subcommand)]
enum DeadLetterCommand {
    /// List dead letters, newest first, with the number of those that have the same reason
    #[command(after_help = EXAMPLES)]
    List(ListArgs),
    /// Show a dead letter
    Show(ShowArgs),
    /// Put a dead letter back into its queue
    ///
    /// The item returns behind the items that wait there, as if it had never been delivered. An item that this build cannot deliver
    /// either stays a dead letter. The audit records the change in the same step.
    Requeue(ChangeArgs),
    /// Delete a dead letter
    ///
    /// The audit records the change in the same step.
    Drop(ChangeArgs),
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    #[command(flatten)]
    common: Common,
    /// The most dead letters, from 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Only dead letters with lower numbers
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
}

#[derive(Debug, ClapArgs)]
struct ShowArgs {
    #[command(flatten)]
    common: Common,
    /// The number of the dead letter
    number: u64,
    /// Show the stored text, which may hold payloads
    #[arg(long)]
    payloads: bool,
}

#[derive(Debug, ClapArgs)]
struct ChangeArgs {
    #[command(flatten)]
    common: Common,
    /// The number of the dead letter
    number: u64,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(crate) async fn run(args: DeadLetterArgs) -> Result<(), Failure> {
    match args.command {
        DeadLetterCommand::List(args) => list(args).await,
        DeadLetterCommand::Show(args) => show(args).await,
        DeadLetterCommand::Requeue(args) => requeue(args).await,
        DeadLetterCommand::Drop(args) => remove(args).await,
    }
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Read).await?;
    let limit = usize::from(args.limit);
    let numbered = client.dead_letter_page(args.before, limit).await?;
    let letters: Vec<Letter> = match numbered {
        Some(page) => page.into_iter().map(|record| Letter::of(Some(record.id), record.letter)).collect(),
        None => {
            let letters = client.list_dead_letters(limit).await?;
            letters.into_iter().map(|letter| Letter::of(None, letter)).collect()
        }
    };
    let next = letters.last().filter(|_| letters.len() == limit).and_then(|last| last.number);
    let mut reasons: Vec<Reason> = Vec::new();
    for letter in &letters {
        match reasons.iter_mut().find(|known| known.reason == letter.reason) {
            Some(known) => known.count += 1,
            None => reasons.push(Reason { reason: letter.reason.clone(), count: 1 }),
        }
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    let letters = Letters { dead_letters: letters, reasons, next };
    let next = letters.next.map(|next| next.to_string());
    print_list(args.common.output, &letters, &letters.dead_letters, next.as_deref(), Letters::text)
}

async fn show(args: ShowArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Read).await?;
    let Some(record) = client.dead_letter(args.number).await? else { return Err(unknown(args.number)) };
    let text = args.payloads.then(|| record.letter.work_item.clone());
    let shown = Shown { letter: Letter::of(Some(record.id), record.letter), item: text };
    print(args.common.output, &shown, Shown::text)
}

async fn requeue(args: ChangeArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Write).await?;
    let outcome = client.requeue_dead_letter(args.number, &args.by, &args.reason, None).await?;
    settled(args.number, outcome)?;
    print(args.common.output, &Changed { number: args.number, requeued: true }, |changed| {
        format!("Dead letter {} is back in its queue.\n", changed.number)
    })
}

async fn remove(args: ChangeArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store.place()?, Intent::Write).await?;
    let outcome = client.drop_dead_letter(args.number, &args.by, &args.reason, None).await?;
    settled(args.number, outcome)?;
    print(args.common.output, &Changed { number: args.number, requeued: false }, |changed| {
        format!("Dead letter {} is deleted.\n", changed.number)
    })
}

fn unknown(number: u64) -> Failure {
    Failure::not_found(format!(
        "there is no dead letter {number}: `outlast dead-letter list` shows the numbers"
    ))
}

fn settled(number: u64, outcome: DeadLetterOutcome) -> Result<(), Failure> {
    match outcome {
        DeadLetterOutcome::Done => Ok(()),
        DeadLetterOutcome::NotFound => Err(unknown(number)),
        DeadLetterOutcome::Undeliverable { reason } => Err(Failure::refused(format!(
            "dead letter {number} stays: {}; requeue it with a build that delivers it, or drop it",
            plain(&reason)
        ))),
        _ => Err(Failure::refused("this store cannot requeue or drop dead letters")),
    }
}

#[derive(Serialize)]
struct Letters {
    dead_letters: Vec<Letter>,
    /// The reasons of these dead letters, most frequent first.
    reasons: Vec<Reason>,
    /// The value of `--before` for the next page.
    next: Option<u64>,
}

#[derive(Serialize)]
struct Reason {
    reason: String,
    count: usize,
}

#[derive(Serialize)]
struct Letter {
    /// Null if the store does not number dead letters.
    number: Option<u64>,
    queue: &'static str,
    instance: Option<String>,
    reason: String,
    deliveries: u32,
    at_ms: u64,
    bytes: usize,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    letter: Letter,
    /// The stored text; null without `--payloads`.
    item: Option<String>,
}

#[derive(Serialize)]
struct Changed {
    number: u64,
    /// False if the dead letter was deleted.
    requeued: bool,
}

impl Letter {
    fn of(number: Option<u64>, letter: DeadLetter) -> Self {
        Self {
            number,
            queue: letter.queue.as_str(),
            instance: letter.instance_id,
            reason: letter.reason,
            deliveries: letter.attempt_count,
            at_ms: letter.dead_at,
            bytes: letter.work_item.len(),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.number.map_or_else(|| "-".to_string(), |number| number.to_string()),
            moment(self.at_ms),
            self.queue.to_string(),
            self.instance.as_deref().map_or_else(|| "-".to_string(), plain),
            self.deliveries.to_string(),
            plain(&self.reason),
        ]
    }
}

impl Letters {
    fn text(&self) -> String {
        if self.dead_letters.is_empty() {
            return "There are no dead letters.\n".to_string();
        }
        let rows: Vec<Vec<String>> = self.dead_letters.iter().map(Letter::cells).collect();
        let mut text = table(&["NUMBER", "SINCE (UTC)", "QUEUE", "INSTANCE", "DELIVERIES", "REASON"], &rows);
        for Reason { reason, count } in self.reasons.iter().filter(|reason| reason.count > 1) {
            text.push_str(&format!("{count} x {}\n", plain(reason)));
        }
        if let Some(next) = self.next {
            text.push_str(&format!("There may be more: --before {next}\n"));
        }
        text
    }
}

impl Shown {
    fn text(&self) -> String {
        let Letter { queue, instance, reason, deliveries, at_ms, bytes, .. } = &self.letter;
        let number = self.letter.number.unwrap_or_default();
        let instance = instance.as_deref().map_or_else(|| "-".to_string(), plain);
        let item = match &self.item {
            Some(item) => format!("\n{}\n", plain(item)),
            None => String::new(),
        };
        format!(
            "Number:      {number}\nQueue:       {queue}\nInstance:    {instance}\nSince (UTC): {}\nDeliveries:  {deliveries}\nBytes:       {bytes}\nReason:      {}\n{item}",
            moment(*at_ms),
            plain(reason)
        )
    }
}
