//! The typed layer under the name `duroxide`.

use duroxide::prelude::*;
use duroxide::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

#[derive(Debug, PartialEq, Serialize, Deserialize, duroxide::Failure)]
#[failure(crate = duroxide)]
enum Refused {
    #[failure(permanent)]
    Odd(u64),
    #[failure(call, unknown)]
    Other(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

#[derive(Serialize, Deserialize, duroxide::Message)]
#[message(crate = duroxide, reply = u64)]
struct Add {
    number: u64,
}

#[duroxide::activity(crate = duroxide, timeout = "1m")]
async fn halve(
    _ctx: ActivityContext,
    State(by): State<u64>,
    number: u64,
    exact: bool,
) -> Result<u64, Refused> {
    if exact && !number.is_multiple_of(by) { Err(Refused::Odd(number)) } else { Ok(number / by) }
}

#[duroxide::orchestration(crate = duroxide, accepts(Add), status = u64)]
async fn total(ctx: OrchestrationContext, start: u64) -> Result<u64, Refused> {
    let add = ctx.next_request::<Add>().await?;
    let total = halve::call(&ctx, start + add.number, true).await;
    if let Err(CallError::Failed(refused)) = total {
        return Err(refused);
    }
    let total = total?;
    total::set_status(&ctx, &total);
    add.answer(&total)?;
    Ok(total)
}

#[tokio::test]
async fn attributes_and_derives_work_under_the_name_duroxide() {
    let store = Arc::new(MemoryProvider::new());
    let module = duroxide::module![halve, total];
    let runtime =
        Runtime::builder().store(store.clone()).register(module).state(2_u64).start().await.unwrap();
    let client = Client::new(store);
    let even = total::start(&client, 3).await.unwrap();
    assert_eq!(even.ask(Add { number: 5 }).await.unwrap(), 4);
    assert_eq!((even.result().await, even.status().await.unwrap()), (Ok(4), Some(4)));
    let odd = total::start(&client, 3).with(&Add { number: 4 }).await.unwrap();
    assert_eq!(odd.result().await, Err(CallError::Failed(Refused::Odd(7))));
    runtime.shutdown(None).await;
}
