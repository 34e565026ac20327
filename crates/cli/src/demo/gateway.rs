//! The payment gateway: charges once per payment, over an unreliable connection.
//!
//! It fails before it charges, or charges and loses the answer. The caller repeats the call with the same payment id, which the order
//! created once and keeps in its history. The gateway finds that id in its books.

use super::books::Open;
use super::dice::Dice;
use super::entry::Entry;
use super::shop::Shop;
use outlast::prelude::*;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;

/// Percentages: of invalid cards, of failed calls, of lost answers.
const DECLINES: u64 = 3;
const UNAVAILABLE: u64 = 20;
const LOST: u64 = 10;

/// A request to the gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Payment {
    /// The payment id, created once by the order.
    pub(super) id: String,
    pub(super) order: String,
    pub(super) cents: u64,
}

/// The answer of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    Charged,
    Declined,
}

#[outlast::activity(name = "Charge")]
pub(super) async fn charge(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    payment: Payment,
) -> Result<Answer, String> {
    let batch = *shop.batch();
    // The outcome is random per call; whether a card is invalid is random per card.
    let card = batch.dice(&format!("card/{}", payment.order));
    let luck = move |call: u64, order: &str| batch.dice(&format!("call/{order}/{call}"));
    shop.perform(&ctx, move |books| take(books, &payment, card, luck)).await?
}

fn take(
    books: &mut Open,
    payment: &Payment,
    mut card: Dice,
    luck: impl FnOnce(u64, &str) -> Dice,
) -> io::Result<Result<Answer, String>> {
    let order = payment.order.clone();
    let rolled = luck(books.calls(&payment.id), &order).below(100);
    if rolled < UNAVAILABLE {
        books.note(Entry::Unavailable { order, payment: payment.id.clone() })?;
        return Ok(Err("503: the gateway is busy".to_string()));
    }
    let answer_lost = rolled < UNAVAILABLE + LOST;
    let entry = match card.below(100) < DECLINES {
        true => Entry::Declined { order },
        false => Entry::Charged { order, cents: payment.cents, answer_lost },
    };
    let is_first = books.done(&payment.id).is_none();
    Ok(match books.once(&payment.id, |_| entry)? {
        Entry::Declined { .. } => Ok(Answer::Declined),
        // The charge has happened.
        _ if is_first && answer_lost => Err("the connection was lost before the answer came".to_string()),
        _ => Ok(Answer::Charged),
    })
}

/// Refunds a payment if it was charged: the answer to the caller may have been lost.
#[outlast::activity(name = "Refund")]
pub(super) async fn refund(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    payment: Payment,
) -> Result<bool, String> {
    let key = format!("{}/refund", payment.id);
    let deed = move |books: &mut Open| match books.done(&payment.id) {
        Some(Entry::Charged { cents, .. }) => {
            let refund = Entry::Refunded { order: payment.order, cents: *cents };
            books.once(&key, |_| refund).map(|_| true)
        }
        _ => Ok(false),
    };
    shop.perform(&ctx, deed).await
}
