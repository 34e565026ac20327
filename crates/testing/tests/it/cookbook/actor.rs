//! An instance that owns state and answers requests one after the other.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::Test;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, outlast::Message)]
#[message(reply = Result<u32, String>)]
enum Stock {
    Add(u32),
    Take(u32),
    Close,
}

const ON_HAND: Key<u32> = Key::new("on hand");

/// The stock of one article. The id of the instance is the number of the article.
#[outlast::orchestration(accepts(Stock))]
async fn article(ctx: OrchestrationContext, mut on_hand: u32) -> Result<u32, String> {
    // A history must not grow without end: after 100 messages the next execution begins with an empty one.
    for _ in 0..100 {
        let request = ctx.next_request::<Stock>().await?;
        let answer = match *request {
            Stock::Add(count) => Ok(on_hand + count),
            Stock::Take(count) => on_hand.checked_sub(count).ok_or(format!("only {on_hand} on hand")),
            Stock::Close => return Ok(on_hand),
        };
        if let Ok(left) = answer {
            on_hand = left;
        }
        ctx.set(ON_HAND, &on_hand);
        request.answer(&answer)?;
    }
    article::continue_as_new(&ctx, on_hand).await
}

#[test]
fn an_article_is_never_sold_twice() {
    let mut running = Test::<article>::new(outlast::module![article]).start(0);
    let lamp = running.handle();
    let ask = |running: &mut outlast::testing::Running<article>, request| {
        running.block_on(async { lamp.ask(request).await.unwrap() })
    };
    assert_eq!(ask(&mut running, Stock::Add(5)), Ok(5));
    assert_eq!(ask(&mut running, Stock::Take(3)), Ok(2));
    running.crash();
    let lamp = running.handle();
    let answer = running.block_on(async { lamp.ask(Stock::Take(3)).await.unwrap() });
    assert_eq!(answer, Err("only 2 on hand".to_string()));
    assert_eq!(running.block_on(async { lamp.get(ON_HAND).await.unwrap() }), Some(2));
    running.send(Stock::Close);
    assert_eq!(running.finish().output(), &2);
}

#[test]
fn messages_are_kept_when_the_next_execution_begins() {
    let mut running = Test::<article>::new(outlast::module![article]).start(0);
    for _ in 0..250 {
        running.send(Stock::Add(1));
    }
    running.send(Stock::Close);
    let run = running.finish();
    assert_eq!(run.output(), &250);
    assert_eq!(run.history_of(run.id()).len(), 3);
}
// guide: end
