//! Recorded histories against changed code.

use outlast::prelude::*;
use outlast::testing::{ReplayCheck, Test, days};
use std::path::PathBuf;

#[outlast::activity]
async fn step(_ctx: ActivityContext, name: String) -> Result<String, String> {
    if name == "b" { Err("b fails".to_string()) } else { Ok(name) }
}

mod first {
    use super::*;
    #[outlast::orchestration(name = "flow")]
    pub(crate) async fn flow(ctx: OrchestrationContext, last: String) -> Result<String, String> {
        ctx.set_kv_value("seen", "a");
        let a = step::call(&ctx, "a".into()).await?;
        ctx.sleep(days(1)).await;
        // The timer is dropped, and its note is in the history.
        let b = step::call(&ctx, last).timeout(days(2)).await?;
        Ok(a + &b)
    }
}

mod second {
    use super::*;
    #[outlast::orchestration(name = "flow")]
    pub(crate) async fn flow(ctx: OrchestrationContext, last: String) -> Result<String, String> {
        ctx.set_kv_value("seen", "a");
        let a = step::call(&ctx, "a".into()).await?;
        let b = step::call(&ctx, last).timeout(days(2)).await?;
        Ok(a + &b)
    }
}

mod third {
    use super::*;
    #[outlast::orchestration(name = "flow")]
    pub(crate) async fn flow(ctx: OrchestrationContext, last: String) -> Result<String, String> {
        ctx.set_kv_value("seen", "a");
        let a = step::call(&ctx, "a".into()).await?;
        ctx.sleep(days(1)).await;
        let b = step::call(&ctx, last).timeout(days(2)).await?;
        Ok(format!("{a}, {b}"))
    }
}

fn exported(name: &str, last: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{last}.json"));
    Test::<first::flow>::new(outlast::module![step, first::flow]).run(last.into()).export(&path);
    path
}

#[test]
fn unchanged_code_repeats_its_histories() {
    exported("same", "c");
    exported("same", "b");
    let pattern = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("same-*.json");
    let report = ReplayCheck::new(outlast::module![step, first::flow]).files(pattern).run();
    report.safe();
    assert_eq!(report.checked, 2);
}

#[test]
fn a_removed_decision_is_reported_with_its_event_and_the_new_decision() {
    let file = exported("removed", "c");
    let report = ReplayCheck::new(outlast::module![second::flow]).files(file).run();
    let [divergence] = &report.divergences[..] else { panic!("{report}") };
    assert_eq!((divergence.event_id, divergence.recorded.as_str()), (5, "timer 1d"));
    assert!(
        divergence.now.contains("the code now asks for") && divergence.now.contains("replay.rs:"),
        "{divergence}"
    );
    let text = crate::panic_of(|| report.safe());
    assert!(text.contains("removed-c.json: instance 'flow-1' execution 1: event 5 is `timer 1d`"), "{text}");
}

#[test]
fn another_result_is_reported() {
    let file = exported("result", "c");
    let report = ReplayCheck::new(outlast::module![third::flow]).files(file).run();
    let [divergence] = &report.divergences[..] else { panic!("{report}") };
    assert_eq!(
        (divergence.recorded.as_str(), divergence.now.as_str()),
        ("return ac", "the code decides `return a, c`")
    );
}

#[test]
fn files_without_histories_and_code_are_no_success() {
    let file = exported("none", "c");
    let report = ReplayCheck::new(outlast::module![step]).files(file).run();
    assert!(
        report.divergences[0].to_string().contains("no orchestration of the module has this name"),
        "{report}"
    );
    let report = ReplayCheck::new(outlast::module![step]).files("tests/no-such-folder/*.json").run();
    assert!(!report.is_safe() && report.to_string().contains("is the path right?"), "{report}");
    let report = ReplayCheck::new(outlast::module![step]).files("Cargo.toml").run();
    assert_eq!(report.unreadable.len(), 1, "{report}");
}

#[test]
fn running_instances_of_a_store_are_checked() {
    use outlast::providers::memory::MemoryProvider;
    let tokio =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    tokio.block_on(async {
        let store = std::sync::Arc::new(MemoryProvider::new());
        let module = outlast::module![step, first::flow];
        let runtime = Runtime::builder().store(store.clone()).register(module.clone()).start().await.unwrap();
        let client = Client::new(store.clone());
        first::flow::start(&client, "c".into()).id("f-1").await.unwrap();
        // It waits for its timer now.
        tokio::time::timeout(days(1) / 2, std::future::pending::<()>()).await.unwrap_err();
        runtime.shutdown(None).await;
        ReplayCheck::new(module).run_on(store.as_ref()).await.safe();
        let report = ReplayCheck::new(outlast::module![second::flow]).run_on(store.as_ref()).await;
        assert_eq!(report.divergences.len(), 1, "{report}");
        assert_eq!(report.divergences[0].event_id, 5, "{report}");
    });
}
