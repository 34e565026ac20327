//! The programs of docs/guide/testing.md.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::Test;
use outlast::time::days;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A fake mail server, which ignores a second mail with the same key.
#[derive(Clone, Default)]
struct Mails(Arc<Mutex<BTreeMap<String, String>>>);

impl Mails {
    async fn send(&self, key: &str, text: String) {
        // The way to the server, as of a real request: a crash can come here.
        tokio::task::yield_now().await;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_string(), text);
    }

    fn sent(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

#[outlast::activity]
async fn mail(ctx: ActivityContext, State(mails): State<Mails>, text: String) -> Result<(), String> {
    mails.send(ctx.idempotency_key(), text).await;
    Ok(())
}

#[outlast::orchestration]
async fn remind(ctx: OrchestrationContext, name: String) -> Result<(), String> {
    for day in 1..=3 {
        ctx.sleep(days(1)).await;
        mail::call(&ctx, format!("day {day}, {name}")).await?;
    }
    Ok(())
}

#[test]
fn three_mails_in_three_days() {
    let run = Test::<remind>::new(outlast::module![remind]).mock::<mail>(|_| Ok(())).run("Ada".into());
    assert_eq!(run.elapsed(), days(3));
    assert_eq!(run.calls::<mail>().inputs(), ["day 1, Ada", "day 2, Ada", "day 3, Ada"]);
}

#[test]
fn no_crash_sends_a_mail_twice() {
    let test = Test::<remind>::new(outlast::module![remind, mail]).world(Mails::default, Mails::sent);
    test.crash_everywhere("Ada".into()).holds();
}
// guide: end
