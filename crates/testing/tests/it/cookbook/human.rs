//! A dialogue with a person: drafts, changes, reminders and an escalation.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::{Test, hours};
use outlast::time::days;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, outlast::Message)]
enum Review {
    Change(String),
    Accept,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Stage {
    Writing,
    AwaitsReview { draft: String, reviewer: String },
    Published,
}

#[outlast::activity(retry = 3)]
async fn write(_ctx: ActivityContext, topic: String, wishes: Vec<String>) -> Result<String, String> {
    Ok(format!("{topic}, {} wishes", wishes.len()))
}

#[outlast::activity(retry = 5)]
async fn notify(_ctx: ActivityContext, who: String, text: String) -> Result<(), String> {
    Err(format!("'{text}' to {who} is a mock in the tests"))
}

#[outlast::orchestration(accepts(Review), status = Stage)]
async fn article(ctx: OrchestrationContext, topic: String) -> Result<String, String> {
    let mut wishes = Vec::new();
    loop {
        article::set_status(&ctx, &Stage::Writing);
        let draft = write::call(&ctx, topic.clone(), wishes.clone()).await?;
        match review(&ctx, &draft).await? {
            Review::Change(wish) => wishes.push(wish),
            Review::Accept => {
                article::set_status(&ctx, &Stage::Published);
                return Ok(draft);
            }
        }
    }
}

/// Asks the author's editor, reminds her after a day, and asks the chief after two.
#[outlast::deterministic]
async fn review(ctx: &OrchestrationContext, draft: &str) -> Result<Review, String> {
    for reviewer in ["editor", "editor", "chief"] {
        let stage = Stage::AwaitsReview { draft: draft.into(), reviewer: reviewer.into() };
        article::set_status(ctx, &stage);
        notify::call(ctx, reviewer.into(), format!("please review '{draft}'")).await?;
        if let Some(review) = ctx.next::<Review>().within(days(1)).await? {
            return Ok(review);
        }
    }
    Err(format!("nobody reviewed '{draft}'"))
}

#[test]
fn a_draft_is_changed_until_it_is_accepted() {
    let test = Test::<article>::new(outlast::module![article, write]).mock::<notify>(|_| Ok(()));
    let mut running = test.start("Tea".into());
    let stage = Stage::AwaitsReview { draft: "Tea, 0 wishes".into(), reviewer: "editor".into() };
    assert_eq!(running.status(), Some(stage));
    running.advance(hours(30));
    running.send(Review::Change("shorter".into()));
    running.advance(hours(1));
    running.send(Review::Accept);
    let run = running.finish();
    assert_eq!(run.output(), "Tea, 1 wishes");
    assert_eq!(run.status(), Some(&Stage::Published));
    // The first draft was sent twice, because nobody answered on the first day.
    run.calls::<notify>().times(3);
}

#[test]
fn a_draft_without_a_review_fails_after_three_days() {
    let test = Test::<article>::new(outlast::module![article, write]).mock::<notify>(|_| Ok(()));
    let run = test.run("Tea".into());
    assert_eq!((run.failure().as_str(), run.elapsed()), ("nobody reviewed 'Tea, 0 wishes'", days(3)));
}
// guide: end
