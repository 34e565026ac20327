//! The programs of docs/upgrading.md. Every block of Rust code of the page is a part of this file.

use outlast::prelude::*;
use outlast::providers::HoldKind;
use outlast::providers::memory::MemoryProvider;
use outlast::testing::Test;
use outlast::time::hours;
use std::sync::Arc;
use std::time::Duration;

const PAGE: &str = include_str!("../../../../docs/upgrading.md");
const SOURCE: &str = include_str!("upgrading.rs");

#[test]
fn every_block_of_the_page_is_code_of_this_file() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let source = lines(SOURCE);
    let blocks: Vec<&str> =
        PAGE.split("```rust\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        assert!(
            source.contains(&lines(block)),
            "this block of docs/upgrading.md is not in tests/it/upgrading.rs:\n{block}"
        );
    }
}

#[outlast::activity]
async fn reserve(_ctx: ActivityContext, _goods: String) -> Result<(), String> {
    Ok(())
}

#[outlast::activity]
async fn check_fraud(_ctx: ActivityContext, _goods: String) -> Result<(), String> {
    Ok(())
}

#[outlast::activity]
async fn charge(_ctx: ActivityContext, goods: String) -> Result<String, String> {
    Ok(format!("charged for {goods}"))
}

#[allow(unreachable_pub, reason = "as the page shows it")]
mod old {
    use super::*;

    #[outlast::orchestration]
    pub async fn order(ctx: OrchestrationContext, goods: String) -> Result<String, String> {
        reserve::call(&ctx, goods.clone()).await?;
        ctx.sleep(hours(24)).await;
        Ok(charge::call(&ctx, goods).await?)
    }
}

#[allow(unreachable_pub, reason = "as the page shows it")]
mod new {
    use super::*;

    #[outlast::orchestration]
    pub async fn order(ctx: OrchestrationContext, goods: String) -> Result<String, String> {
        reserve::call(&ctx, goods.clone()).await?;
        if ctx.patched("check fraud") {
            check_fraud::call(&ctx, goods.clone()).await?;
        }
        ctx.sleep(hours(24)).await;
        Ok(charge::call(&ctx, goods).await?)
    }
}

#[test]
fn both_programs_of_the_page_charge() {
    let run = Test::<old::order>::new(outlast::module![reserve, charge, old::order]).run("tea".into());
    assert_eq!(run.output(), "charged for tea");
    let module = outlast::module![reserve, check_fraud, charge, new::order];
    let run = Test::<new::order>::new(module).run("tea".into());
    assert_eq!(run.output(), "charged for tea");
    run.calls::<check_fraud>().once();
}

#[tokio::test]
async fn the_program_of_the_page_starts_when_it_is_not_checked() -> Result<(), Box<dyn std::error::Error>> {
    use old::order;
    let builder = Runtime::builder().register(outlast::module![reserve, charge, order]).answer_check();
    let store = Arc::new(MemoryProvider::new());
    let runtime = builder.store(store.clone()).start().await?;
    runtime.shutdown(None).await;
    Ok(())
}

#[outlast::orchestration]
async fn broken(_ctx: OrchestrationContext) -> Result<(), String> {
    panic!("a defect of this build")
}

#[tokio::test]
async fn an_instance_is_parked_with_the_options_of_the_page() -> Result<(), Box<dyn std::error::Error>> {
    use outlast::{OnMisfit, RuntimeOptions};

    let options = RuntimeOptions {
        on_misfit: OnMisfit::Park,
        build_id: option_env!("GIT_COMMIT").unwrap_or_default().to_string(),
        ..RuntimeOptions::default()
    };
    let commit = options.build_id.clone();
    let store = Arc::new(MemoryProvider::new());
    let builder = Runtime::builder().register(outlast::module![broken]).options(options);
    let runtime = builder.store(store.clone()).start().await?;
    let client = Client::new(store);
    broken::start(&client).id("b-1").await?;
    let parked = async {
        loop {
            match client.held_instance("b-1").await {
                Ok(None) => tokio::task::yield_now().await,
                Ok(Some(held)) => break Ok(held),
                Err(error) => break Err(error),
            }
        }
    };
    let held = tokio::time::timeout(Duration::from_secs(60), parked).await??;
    assert_eq!(held.hold.kind, HoldKind::Parked);
    let expected = if commit.is_empty() { "a runtime".to_string() } else { format!("build {commit}") };
    assert_eq!(held.hold.actor, expected);
    runtime.shutdown(None).await;
    Ok(())
}
