//! The programs of docs/guide/messages.md.

// guide: program
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

/// The answer is the new total.
#[derive(Clone, Serialize, Deserialize, outlast::Message)]
#[message(reply = u64)]
struct Add {
    item: String,
    cents: u64,
}

#[derive(Serialize, Deserialize, outlast::Message)]
struct Checkout;

#[outlast::orchestration(accepts(Add, Checkout))]
async fn cart(ctx: OrchestrationContext) -> Result<Vec<String>, String> {
    let (mut items, mut total) = (Vec::new(), 0);
    loop {
        match ctx.select2(ctx.next_request::<Add>(), ctx.next::<Checkout>()).await {
            Either2::First(add) => {
                let add = add?;
                total += add.cents;
                items.push(add.item.clone());
                add.answer(&total)?;
            }
            Either2::Second(checkout) => {
                let Checkout = checkout?;
                return Ok(items);
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::builder().store(store.clone()).register(outlast::module![cart]).start().await?;
    let client = Client::new(store);

    let tea = Add { item: "tea".into(), cents: 400 };
    let milk = Add { item: "milk".into(), cents: 120 };
    // The start and the message are stored in one step.
    let cart = cart::start(&client).id("cart-of-ada").or_existing().with(&tea).await?;
    let total = cart.ask(milk).await?;
    assert_eq!(total, 520);
    cart.send(Checkout).await?;
    assert_eq!(cart.result().await?, ["tea", "milk"]);

    // A message that no instance can read is an error.
    let late = cart.send(Checkout).await;
    assert!(matches!(late, Err(InstanceError::Ended { .. })));
    let misspelt = cart::handle(&client, "cart-of-eda").send(Checkout).await;
    assert!(matches!(misspelt, Err(InstanceError::NotFound { .. })));
    runtime.shutdown(None).await;
    Ok(())
}
// guide: end

#[test]
fn the_program_runs() {
    main().unwrap();
}

// guide: timeout
#[tokio::test]
async fn a_wait_that_times_out_says_why() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::builder().store(store.clone()).register(outlast::module![cart]).start().await?;
    let client = Client::new(store);
    let cart = cart::start(&client).id("cart-1").await?;
    cart.ask(Add { item: "tea".into(), cents: 400 }).await?;
    let result = cart.result().within(std::time::Duration::from_millis(20)).await;
    let Err(CallError::TimedOut(text)) = result else { return Err("it waits for more messages".into()) };
    assert!(text.contains("for a message of queue 'add'"), "{text}");
    runtime.shutdown(None).await;
    Ok(())
}
// guide: end
