//! Recorded histories against changed code.

use async_trait::async_trait;
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{
    LoadedTurn, Provider, ProviderAdmin, ProviderError, PruneOptions, forward_provider,
};
use outlast::testing::{ReplayCheck, Test, days};
use std::path::PathBuf;
use std::sync::Arc;

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

/// Runs a test of a store under paused time.
fn under_paused_time(test: impl Future<Output = ()>) {
    let tokio =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    tokio.block_on(test);
}

/// Half a day passes. Instances that sleep for a day sleep then.
async fn half_a_day() {
    tokio::time::timeout(days(1) / 2, std::future::pending::<()>()).await.unwrap_err();
}

#[test]
fn running_instances_of_a_store_are_checked() {
    under_paused_time(async {
        let store = Arc::new(MemoryProvider::new());
        let module = outlast::module![step, first::flow];
        let runtime = Runtime::builder().store(store.clone()).register(module.clone()).start().await.unwrap();
        let client = Client::new(store.clone());
        first::flow::start(&client, "c".into()).id("f-1").await.unwrap();
        half_a_day().await;
        runtime.shutdown(None).await;
        ReplayCheck::new(module).run_on(store.as_ref()).await.safe();
        let report = ReplayCheck::new(outlast::module![second::flow]).run_on(store.as_ref()).await;
        assert_eq!(report.divergences.len(), 1, "{report}");
        assert_eq!(report.divergences[0].event_id, 5, "{report}");
    });
}

/// Sleeps for a day in its second execution.
#[outlast::orchestration]
async fn two_rounds(ctx: OrchestrationContext, round: u32) -> Result<String, String> {
    if round == 1 {
        return two_rounds::continue_as_new(&ctx, 2).await;
    }
    ctx.sleep(days(1)).await;
    Ok("over".to_string())
}

/// A store in which one call fails for the instance `torn`.
struct Failing {
    store: Arc<MemoryProvider>,
    call: &'static str,
}

impl Failing {
    fn check(&self, call: &'static str, instance: &str) -> Result<(), ProviderError> {
        match call == self.call && instance == "torn" {
            true => Err(ProviderError::permanent(call, "the page is torn")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Provider for Failing {
    forward_provider!(
        Provider,
        |this| this.store,
        except(as_management_capability, load_turn, read_with_execution)
    );

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        self.check("load_turn", instance)?;
        self.store.load_turn(instance, execution_id).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<outlast::Event>, ProviderError> {
        self.check("read_with_execution", instance)?;
        self.store.read_with_execution(instance, execution_id).await
    }
}

#[async_trait]
impl ProviderAdmin for Failing {
    forward_provider!(ProviderAdmin, |this| this.store, except(list_executions));

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        self.check("list_executions", instance)?;
        self.store.list_executions(instance).await
    }
}

#[test]
fn an_instance_that_the_store_cannot_read_is_unreadable_and_the_others_are_checked() {
    under_paused_time(async {
        let inner = Arc::new(MemoryProvider::new());
        let mut store = Failing { store: inner.clone(), call: "" };
        let module = outlast::module![two_rounds];
        let runtime = Runtime::builder().store(inner.clone()).register(module.clone()).start().await.unwrap();
        let client = Client::new(inner.clone());
        for id in ["torn", "whole"] {
            two_rounds::start(&client, 1).id(id).await.unwrap();
        }
        half_a_day().await;
        runtime.shutdown(None).await;
        // Without its first execution, the keys of an instance come from `load_turn`.
        let newest = PruneOptions { keep_last: Some(1), completed_before: None };
        inner.prune_executions("torn", newest).await.unwrap();
        for (call, checked) in [("", 3), ("list_executions", 2), ("read_with_execution", 2), ("load_turn", 2)]
        {
            store.call = call;
            let report = ReplayCheck::new(module.clone()).run_on(&store).await;
            assert_eq!((report.checked, report.divergences.len()), (checked, 0), "{report}");
            let unreadable = (!call.is_empty()).then(|| format!("instance 'torn': {call}: the page is torn"));
            assert_eq!(report.unreadable, Vec::from_iter(unreadable));
            assert_eq!(report.is_safe(), call.is_empty(), "{report}");
        }
    });
}
