//! A shop with instances in every state, and the server that shows them.

use crate::kit::PATIENCE;
use outlast::BackoffStrategy;
use outlast::prelude::*;
use outlast::providers::sqlite::SqliteProvider;
use outlast::providers::{NodeLease, NodeLoad, NodeReport, NodeTags, ProviderAdmin};
use outlast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_server::Options;
use std::collections::HashMap;
use std::future::pending;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// An id as long as programs make them.
pub(crate) const LONG_ID: &str = "tenant-8f14e45fceea167a5a36dedd4bea2543/region-eu-central-1/order-2026-11-18T06:45:00.000Z/\
                                  line-item-000000000000000042/fulfilment/attempt-3";

/// The orders of the shop, in the order of their starts.
const ORDERS: &[(&str, &str)] = &[
    ("order-1038", r#"{"customer":"Ada","total":4200,"items":["lamp","desk","chair"]}"#),
    ("order-1039", r#"{"customer":"Grace","total":12900,"card":"declined","items":["sofa"]}"#),
    ("order-1040", r#"{"customer":"Edsger","total":990,"card":"flaky","items":["mug","mug","teapot"]}"#),
    ("order-1041", r#"{"customer":"Barbara","total":64000,"card":"flaky","items":["piano","stool"]}"#),
    ("order-1042", r#"{"customer":"Tony","total":310,"items":["pencil"]}"#),
];

/// A server, a runtime and a store.
pub(crate) struct Shop {
    /// The address of the dashboard, with its base path, without `/` at the end.
    pub(crate) address: String,
    pub(crate) store: Client,
    provider: Arc<SqliteProvider>,
    runtime: Arc<Runtime>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
    folder: tempfile::TempDir,
}

/// The path of the dashboard in most tests, as behind a proxy: a link, a form, a script or a cookie that leaves it out is noticed by the
/// test of its screen.
pub(crate) const BASE: &str = "/a/b";

/// Options with which the dashboard changes instances, below a path.
pub(crate) fn options() -> Options {
    let mut options = root_options();
    options.base_path = BASE.to_string();
    options
}

/// The same without a path.
pub(crate) fn root_options() -> Options {
    let mut options = Options::default();
    options.operate = true;
    options.store = "sqlite:shop.db".to_string();
    options
}

impl Shop {
    /// A shop without orders.
    pub(crate) async fn open(options: Options) -> Self {
        Self::with(options, activities(), orchestrations()).await
    }

    /// A store with handlers of the test.
    pub(crate) async fn with(
        options: Options,
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", folder.path().join("shop.db").display());
        let store = Arc::new(SqliteProvider::new(&url, None).await.unwrap());
        let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
        let client = Client::new(store.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}{}", listener.local_addr().unwrap(), options.base_path);
        let serving = outlast_server::serve(listener, client.clone(), options, pending());
        Self { address, store: client, provider: store, runtime, serving: tokio::spawn(serving), folder }
    }

    /// A shop with instances that run, wait, are paused, have failed and have ended, with a dead letter and an audit.
    pub(crate) async fn busy(options: Options) -> Self {
        let shop = Self::open(options).await;
        let client = &shop.store;
        shop.make_dead_letter().await;
        client.start_orchestration("report-2026-11", "Report", "40").await.unwrap();
        client.start_orchestration("monitor-eu", "Monitor", "0").await.unwrap();
        for &(id, input) in ORDERS {
            client.start_orchestration(id, "Order", input).await.unwrap();
        }
        client.start_orchestration("render-7", "Render", r#"{"scene":"forest"}"#).await.unwrap();
        client.start_orchestration(LONG_ID, "Order", ORDERS[0].1).await.unwrap();
        client.wait_for_orchestration("report-2026-11", PATIENCE).await.unwrap();
        client.wait_for_orchestration("order-1039", PATIENCE).await.unwrap();
        for id in ["order-1038", "order-1040", "order-1041", "order-1042", LONG_ID] {
            client.wait_for_kv_value(id, "paid", PATIENCE).await.unwrap();
        }
        client.wait_for_kv_value("monitor-eu", "watches", PATIENCE).await.unwrap();
        client.raise_event("order-1038", "approval", "granted").await.unwrap();
        client.wait_for_orchestration("order-1038", PATIENCE).await.unwrap();
        client.pause_instance("order-1042", "ada", "the address is wrong").await.unwrap();
        shop
    }

    /// The reports of a live and of a lost node beside the node of the test.
    pub(crate) async fn report_nodes(&self) {
        let day = Duration::from_secs(86_400);
        let mut live = NodeReport::new("worker-eu-1");
        (live.host, live.pid, live.build) = ("10.2.0.17".to_string(), 811, "9f3c1d7".to_string());
        live.running_turns = NodeLoad { running: 2, limit: 16 };
        live.running_activities = NodeLoad { running: 31, limit: 64 };
        let lease = |(number, id): (usize, &&str)| NodeLease {
            instance: id.to_string(),
            activity: (number > 0).then_some((1, 2)),
        };
        live.leases =
            ["order-1041", LONG_ID, "render-7", "order-1040"].iter().enumerate().map(lease).collect();
        live.omitted_leases = 29;
        live.tags =
            NodeTags { untagged: true, any: false, named: vec!["eu".to_string(), "fast".to_string()] };
        let mut lost = NodeReport::new("worker-eu-2");
        (lost.host, lost.pid, lost.build) = ("10.2.0.18".to_string(), 40_112, "9f3c1d7".to_string());
        lost.running_activities.limit = 64;
        for (report, time) in [(live, day), (lost, Duration::ZERO)] {
            assert!(self.provider.announce_node(&report, time, day).await.unwrap());
        }
    }

    /// A message that does not decode, as another program may write it.
    async fn make_dead_letter(&self) {
        let file = rusqlite::Connection::open(self.file()).unwrap();
        file.busy_timeout(PATIENCE).unwrap();
        let receipt = self
            .store
            .start_request("Order")
            .instance("order-0977")
            .delay(PATIENCE * 120)
            .input("{}")
            .send()
            .await;
        assert!(receipt.unwrap().is_started());
        let changed = file.execute(
            "UPDATE orchestrator_queue SET work_item = '{\"NoSuchMessage\":{}}', visible_at = 0",
            (),
        );
        assert_eq!(changed.unwrap(), 1);
        // The next start wakes the runtime, which then finds the damaged message too.
        self.store.start_orchestration("order-0978", "Order", ORDERS[1].1).await.unwrap();
        while self.store.list_dead_letters(1).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("shop.db")
    }

    /// The address of a screen.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// The address of an instance.
    pub(crate) fn instance(&self, id: &str, rest: &str) -> String {
        let id: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
        self.at(&format!("/instances/{id}{rest}"))
    }

    pub(crate) async fn stop(self) {
        self.runtime.shutdown(None).await;
        self.serving.abort();
    }
}

/// Takes the time of a call to another service.
async fn works(ms: u64) {
    let _ = timeout(Duration::from_millis(ms), pending::<()>()).await;
}

fn activities() -> ActivityRegistry {
    let tries: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    ActivityRegistry::builder()
        .register("Reserve", |_: ActivityContext, _: String| async move {
            works(90).await;
            Ok("reserved".to_string())
        })
        .register("Charge", move |ctx: ActivityContext, input: String| {
            let tries = Arc::clone(&tries);
            async move {
                works(70).await;
                let count = {
                    let mut tries = tries.lock().unwrap();
                    let count = tries.entry(ctx.instance_id().to_string()).or_default();
                    *count += 1;
                    *count
                };
                match () {
                    () if input.contains("declined") => {
                        Err("the bank declined the card ending in 4711".to_string())
                    }
                    () if input.contains("flaky") && count < 3 => Err("503: the gateway is busy".to_string()),
                    () => Ok(r#"{"payment":9007199254740993}"#.to_string()),
                }
            }
        })
        .register("Pack", |_: ActivityContext, item: String| async move {
            works(20 + 17 * item.len() as u64).await;
            Ok(item)
        })
        .register("Ship", |_: ActivityContext, _: String| async move {
            works(60).await;
            Ok("1Z-999".to_string())
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", order)
        .register("Delivery", |ctx: OrchestrationContext, input: String| async move {
            let tracking = ctx.schedule_activity("Ship", input).await?;
            ctx.schedule_timer(Duration::from_millis(150)).await;
            Ok(tracking)
        })
        .register("Report", |ctx: OrchestrationContext, count: String| async move {
            let count: usize = count.parse().unwrap_or_default();
            let pages: Vec<_> =
                (0..count).map(|page| ctx.schedule_activity("Pack", format!("page {page}"))).collect();
            let pages = ctx.join(pages).await;
            Ok(format!("{} pages", pages.len()))
        })
        .register("Monitor", |ctx: OrchestrationContext, round: String| async move {
            let round: u32 = round.parse().unwrap_or_default();
            if round < 3 {
                ctx.schedule_activity("Reserve", "probe").await?;
                return ctx.continue_as_new((round + 1).to_string()).await;
            }
            ctx.set_kv_value("watches", "eu-central-1");
            ctx.schedule_timer(Duration::from_secs(3_600)).await;
            Ok(String::new())
        })
        .register("Archive", |ctx: OrchestrationContext, count: String| async move {
            for number in 0..count.parse().unwrap_or(0) {
                ctx.set_kv_value(format!("page {}", number % 100), format!("{{\"number\":{number}}}"));
                if number % 5_000 == 4_999 {
                    ctx.schedule_timer(Duration::from_millis(1)).await;
                }
            }
            ctx.set_kv_value("archived", &count);
            ctx.schedule_wait("more").await;
            ctx.set_kv_value("archived", "more");
            Ok(count)
        })
        .register("Render", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Render", input).with_tag("gpu").await
        })
        .build()
}

/// Reserves, charges with retries, packs, waits for an approval, and has it delivered by a child.
async fn order(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.set_custom_status("reserves stock");
    ctx.schedule_activity("Reserve", input.clone()).await?;
    ctx.set_custom_status("pays");
    let backoff = BackoffStrategy::Fixed { delay: Duration::from_millis(60) };
    let paid = ctx
        .schedule_activity_with_retry("Charge", input.clone(), RetryPolicy::new(4).with_backoff(backoff))
        .await?;
    ctx.set_custom_status("packs");
    let items: Vec<String> = serde_json::from_str::<serde_json::Value>(&input)
        .ok()
        .and_then(|order| Some(order["items"].as_array()?.iter().map(ToString::to_string).collect()))
        .unwrap_or_default();
    let packed = ctx.join(items.into_iter().map(|item| ctx.schedule_activity("Pack", item)).collect()).await;
    ctx.set_kv_value("packed", packed.len().to_string());
    ctx.set_kv_value("paid", &paid);
    ctx.set_custom_status("waits for approval");
    let answer = ctx.schedule_wait("approval").await;
    ctx.set_custom_status("is on its way");
    let tracking = ctx.schedule_sub_orchestration("Delivery", input).await?;
    Ok(format!(r#"{{"answer":"{answer}","tracking":"{tracking}","paid":{paid}}}"#))
}
