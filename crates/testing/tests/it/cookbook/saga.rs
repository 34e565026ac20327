//! Steps that are undone when a later one fails.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::Test;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum TripError {
    #[error("no {0} left")]
    #[failure(permanent)]
    SoldOut(String),
    #[error("{0}")]
    #[failure(call, unknown)]
    Broken(String),
}

/// The id of a booking comes from the orchestration, so that a booking can be cancelled whose answer was lost.
#[derive(Clone, Serialize, Deserialize)]
struct Booking {
    id: String,
    part: String,
}

/// A fake of the booking service: whether a booking is open, by its id. A cancelled id is closed: it is not booked any more.
#[derive(Clone, Default)]
struct Bookings(Arc<Mutex<BTreeMap<String, bool>>>);

impl Bookings {
    async fn book(&self, id: String) {
        // The way to the service, as of a real request: a crash or a request to cancel can come here.
        tokio::task::yield_now().await;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_insert(true);
    }

    async fn cancel(&self, id: String) {
        tokio::task::yield_now().await;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, false);
    }

    fn open(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(_, is_open)| **is_open).map(|(id, _)| id.clone()).collect()
    }
}

#[outlast::activity(retry = 3)]
async fn book(
    _ctx: ActivityContext,
    State(bookings): State<Bookings>,
    booking: Booking,
) -> Result<(), TripError> {
    if booking.part == "rocket" {
        return Err(TripError::SoldOut(booking.part));
    }
    bookings.book(booking.id).await;
    Ok(())
}

#[outlast::activity(retry = 20, max_backoff = "10m")]
async fn cancel(
    _ctx: ActivityContext,
    State(bookings): State<Bookings>,
    id: String,
) -> Result<(), TripError> {
    bookings.cancel(id).await;
    Ok(())
}

#[outlast::orchestration(on_cancel = undo)]
async fn trip(ctx: OrchestrationContext, parts: Vec<String>) -> Result<Vec<String>, TripError> {
    let mut undo = Undo::new(&ctx);
    let mut booked = Vec::new();
    for part in parts {
        let id = format!("{}/{part}", ctx.instance_id());
        undo.push::<cancel>(id.clone());
        match book::call(&ctx, Booking { id: id.clone(), part }).await {
            Ok(()) => booked.push(id),
            Err(error) => return undo.fail(error.into()).await,
        }
    }
    undo.forget();
    Ok(booked)
}

#[cfg(test)]
fn agency() -> Test<trip> {
    Test::<trip>::new(outlast::module![book, cancel, trip]).world(Bookings::default, Bookings::open)
}

#[cfg(test)]
fn parts(parts: [&str; 3]) -> Vec<String> {
    parts.map(String::from).to_vec()
}

#[test]
fn a_trip_is_booked() {
    let run = agency().run(parts(["train", "hotel", "boat"]));
    assert_eq!(run.output(), &["trip-1/train", "trip-1/hotel", "trip-1/boat"]);
}

#[test]
fn a_trip_without_a_rocket_leaves_no_booking_at_every_crash() {
    let run = agency().run(parts(["train", "hotel", "rocket"]));
    assert_eq!(run.failure(), &TripError::SoldOut("rocket".into()));
    assert_eq!(run.observed(), ["[]"]);
    agency().crash_everywhere(parts(["train", "hotel", "rocket"])).holds();
    agency().fail_everywhere(parts(["train", "hotel", "boat"])).holds();
}

#[test]
fn a_cancelled_trip_leaves_no_booking_wherever_the_request_comes() {
    agency().cancel_everywhere(parts(["train", "hotel", "boat"])).holds();
}
// guide: end
