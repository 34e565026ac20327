//! The programs of docs/guide/activities.md.

// guide: program
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    customer: String,
    cents: u64,
}

/// The client of a payment service. The service ignores a second request with the same key.
#[derive(Clone, Default)]
struct Gateway(Arc<Mutex<BTreeMap<String, u64>>>);

impl Gateway {
    async fn charge(&self, key: &str, cents: u64) -> Result<String, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_string(), cents);
        Ok(format!("receipt for {cents} cents"))
    }
}

#[outlast::activity(retry = 5, backoff = "1s", timeout = "30s")]
async fn charge(
    ctx: ActivityContext,
    State(gateway): State<Gateway>,
    order: Order,
) -> Result<String, String> {
    gateway.charge(ctx.idempotency_key(), order.cents).await
}

#[outlast::activity]
async fn mail(_ctx: ActivityContext, to: String, text: String) -> Result<(), String> {
    println!("to {to}: {text}");
    Ok(())
}

#[outlast::orchestration]
async fn pay(ctx: OrchestrationContext, order: Order) -> Result<String, String> {
    let receipt = charge::call(&ctx, order.clone()).await?;
    mail::call(&ctx, order.customer, receipt.clone()).await?;
    Ok(receipt)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::builder()
        .store(store.clone())
        .register(outlast::module![charge, mail, pay])
        .state(Gateway::default())
        .start()
        .await?;
    let client = Client::new(store);

    let order = Order { customer: "Ada".into(), cents: 700 };
    let receipt = pay::start(&client, order).id("order-7").await?.result().await?;
    println!("{receipt}");
    assert_eq!(receipt, "receipt for 700 cents");
    runtime.shutdown(None).await;
    Ok(())
}
// guide: end

#[test]
fn the_program_runs() {
    main().unwrap();
}

// guide: unit
#[tokio::test]
async fn a_second_delivery_charges_nothing() {
    let gateway = Gateway::default();
    let order = Order { customer: "Ada".into(), cents: 700 };
    for _ in 0..2 {
        charge(ActivityContext::for_test(), State(gateway.clone()), order.clone()).await.unwrap();
    }
    assert_eq!(gateway.0.lock().unwrap().len(), 1);
}
// guide: end

// guide: cancelled
#[outlast::activity(tag = "video")]
async fn transcode(ctx: ActivityContext, film: String) -> Result<String, String> {
    for _part in 0..100 {
        if ctx.is_cancelled() {
            return Err(format!("{film} is not needed any more"));
        }
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    }
    Ok(format!("{film}.webm"))
}
// guide: end

// guide: options
#[outlast::orchestration]
async fn publish(ctx: OrchestrationContext, film: String) -> Result<String, String> {
    let transcoded = transcode::call(&ctx, film.clone())
        .retry(3)
        .timeout(std::time::Duration::from_secs(4 * 3_600))
        .session(film)
        .await?;
    Ok(transcoded)
}
// guide: end

#[test]
fn an_activity_with_a_tag_runs_on_workers_of_that_tag() {
    let run = outlast::testing::Test::<publish>::new(outlast::module![transcode, publish])
        .configure(|options| outlast::RuntimeOptions {
            worker_tag_filter: outlast::TagFilter::tags(["video"]),
            ..options
        })
        .run("holiday".into());
    assert_eq!(run.output(), "holiday.webm");
    assert_eq!(run.elapsed(), outlast::testing::minutes(100));
}
