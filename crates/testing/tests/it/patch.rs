//! `ctx.patched` in the typed layer: instances that are older and newer than a change.

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Module;
use outlast::testing::{ReplayCheck, Test, days};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[outlast::activity]
async fn reserve(_ctx: ActivityContext) -> Result<String, String> {
    Ok("reserved".to_string())
}

#[outlast::activity]
async fn check_fraud(_ctx: ActivityContext) -> Result<String, String> {
    Ok("checked".to_string())
}

#[outlast::activity]
async fn charge(_ctx: ActivityContext) -> Result<String, String> {
    Ok("charged".to_string())
}

mod before {
    use super::*;
    #[outlast::orchestration(name = "order", accepts(Go))]
    pub(crate) async fn order(ctx: OrchestrationContext) -> Result<Vec<String>, String> {
        let mut done = vec![reserve::call(&ctx).await?];
        wait(&ctx).await?;
        done.push(charge::call(&ctx).await?);
        Ok(done)
    }
}

mod both {
    use super::*;
    #[outlast::orchestration(name = "order", accepts(Go))]
    pub(crate) async fn order(ctx: OrchestrationContext) -> Result<Vec<String>, String> {
        let mut done = vec![reserve::call(&ctx).await?];
        if ctx.patched("check fraud") {
            done.push(check_fraud::call(&ctx).await?);
        }
        wait(&ctx).await?;
        done.push(charge::call(&ctx).await?);
        Ok(done)
    }
}

mod after {
    use super::*;
    #[outlast::orchestration(name = "order", accepts(Go))]
    pub(crate) async fn order(ctx: OrchestrationContext) -> Result<Vec<String>, String> {
        let mut done = vec![reserve::call(&ctx).await?];
        done.push(check_fraud::call(&ctx).await?);
        wait(&ctx).await?;
        done.push(charge::call(&ctx).await?);
        Ok(done)
    }
}

#[derive(Serialize, Deserialize, outlast::Message)]
struct Go;

/// Says that it waits, and waits.
async fn wait(ctx: &OrchestrationContext) -> Result<Go, String> {
    let go = ctx.next::<Go>();
    ctx.set_custom_status("waits");
    Ok(go.await?)
}

/// Starts a build on the store.
async fn deploy(store: &Arc<MemoryProvider>, module: Module) -> Arc<Runtime> {
    let module = outlast::module![reserve, check_fraud, charge].with(module);
    Runtime::builder().store(store.clone()).register(module).start().await.unwrap()
}

/// Starts an order, and returns when it waits.
async fn start(store: &Arc<MemoryProvider>, instance: &str) {
    let client = Client::new(store.clone());
    before::order::start(&client).id(instance).await.unwrap();
    client.wait_for_status_change(instance, 0, Duration::from_millis(1), LONG).await.unwrap();
}

/// Lets an order go on, and returns its result.
async fn finish(store: &Arc<MemoryProvider>, instance: &str) -> Result<Vec<String>, String> {
    let order = before::order::handle(&Client::new(store.clone()), instance);
    order.send(Go).await.unwrap();
    order.result().within(LONG).await.map_err(|error| error.to_string())
}

const LONG: Duration = Duration::from_secs(60);

fn words(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split(' ').map(str::to_string).collect())
}

#[tokio::test]
async fn each_instance_keeps_the_code_that_it_began_with() {
    let store = Arc::new(MemoryProvider::new());
    let runtime = deploy(&store, outlast::module![before::order]).await;
    start(&store, "old").await;
    runtime.shutdown(None).await;
    ReplayCheck::new(outlast::module![both::order]).run_on(store.as_ref()).await.safe();
    let runtime = deploy(&store, outlast::module![both::order]).await;
    start(&store, "new").await;
    assert_eq!(finish(&store, "old").await, words("reserved charged"));
    runtime.shutdown(None).await;
    // No instance is older than the patch any more.
    let runtime = deploy(&store, outlast::module![after::order]).await;
    assert_eq!(finish(&store, "new").await, words("reserved checked charged"));
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn a_patch_that_is_removed_too_early_breaks_the_old_instance_and_the_check_says_so() {
    let store = Arc::new(MemoryProvider::new());
    let runtime = deploy(&store, outlast::module![before::order]).await;
    start(&store, "old").await;
    runtime.shutdown(None).await;
    let check = ReplayCheck::new(outlast::module![after::order]).run_on(store.as_ref()).await;
    let [divergence] = &check.divergences[..] else { panic!("{check}") };
    assert_eq!((divergence.event_id, divergence.recorded.as_str()), (4, "wait for a message of queue go"));
    let runtime = deploy(&store, outlast::module![after::order]).await;
    let error = finish(&store, "old").await.unwrap_err();
    assert!(error.contains("the code now asks for activity 'check_fraud' at"), "{error}");
    assert!(error.contains("keep its way for running instances with ctx.patched(..)"), "{error}");
    runtime.shutdown(None).await;
}

#[test]
fn a_patched_orchestration_survives_a_crash_at_every_moment() {
    let module = outlast::module![reserve, check_fraud, charge, both::order];
    let test = Test::<both::order>::new(module).send_at(days(1), Go);
    let run = test.run(());
    assert_eq!(run.output(), &["reserved", "checked", "charged"]);
    test.crash_everywhere(()).holds();
}

#[test]
fn finished_histories_of_the_old_code_are_repeated() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("patch-finished.json");
    let old = outlast::module![reserve, charge, last_step_before::order];
    Test::<last_step_before::order>::new(old).run(()).export(&path);
    let report = ReplayCheck::new(outlast::module![last_step_both::order]).files(&path).run();
    report.safe();
}

mod last_step_before {
    use super::*;
    #[outlast::orchestration(name = "order")]
    pub(crate) async fn order(ctx: OrchestrationContext) -> Result<String, String> {
        Ok(reserve::call(&ctx).await?)
    }
}

mod last_step_both {
    use super::*;
    #[outlast::orchestration(name = "order")]
    pub(crate) async fn order(ctx: OrchestrationContext) -> Result<String, String> {
        let reserved = reserve::call(&ctx).await?;
        if ctx.patched("charge at the end") {
            return Ok(charge::call(&ctx).await?);
        }
        Ok(reserved)
    }
}
