//! The error messages, verbatim in `messages.txt`: each says what happened, to which instance, and what to do.
//!
//! After an intended change: `OUTLAST_TEST_BLESS=1 cargo test -p outlast --all-features --test it messages`, then read
//! the diff.

use crate::support::{Cluster, Kind, Node, activities, orchestrations};
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::limits::Limits;
use outlast::{ActivityContext, OrchestrationContext, RuntimeOptions};
use std::fmt::{Display, Write};
use std::time::Duration;

/// The messages in the order in which they occurred.
#[derive(Default)]
struct Messages(String);

impl Messages {
    fn add(&mut self, when: &str, message: impl Display) {
        writeln!(self.0, "{when}\n    {}\n", without_places(&message.to_string())).unwrap();
    }
}

/// Removes line and column numbers, which change with every edit, and folders, which change with every run.
fn without_places(message: &str) -> String {
    let words = message.split(' ').map(|word| match word.find(".rs:") {
        Some(at) => {
            let file = word[..at].rsplit(['/', '\\']).next().unwrap_or_default();
            let digits = |text: &str| text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
            let column = &word[at + 4..][digits(&word[at + 4..])..];
            let after = column.strip_prefix(':').map_or(column, |column| &column[digits(column)..]);
            format!("{file}.rs{after}")
        }
        None => word.to_string(),
    });
    let text = words.collect::<Vec<_>>().join(" ");
    text.replace(std::env::temp_dir().to_str().unwrap(), "<temp>")
}

fn limits() -> Limits {
    Limits {
        payload_bytes: 300,
        name_bytes: 20,
        custom_status_bytes: 10,
        tag_bytes: 10,
        kv_value_bytes: 10,
        kv_keys: 2,
        decisions_per_turn: 10,
        history_events: 20,
        history_events_warning: 10,
        mailbox_messages: 2,
        ..Limits::default()
    }
}

/// Fails in the way that its input names.
async fn wrong(ctx: OrchestrationContext, how: String) -> Result<String, String> {
    match how.as_str() {
        "input of an activity" => return ctx.schedule_activity("Echo", "x".repeat(301)).await,
        "name of an activity" => return ctx.schedule_activity("x".repeat(21), "").await,
        "tag of an activity" => return ctx.schedule_activity("Echo", "").with_tag("x".repeat(11)).await,
        "result of an activity" => return ctx.schedule_activity("Large", "").await,
        "custom status" => ctx.set_custom_status("x".repeat(11)),
        "value of a key" => ctx.set_kv_value("key", "x".repeat(11)),
        "number of keys" => (0..3).for_each(|n| ctx.set_kv_value(n.to_string(), "")),
        "decisions" => (0..11).for_each(|_| ctx.reset_custom_status()),
        "output" => return Ok("x".repeat(301)),
        "history" => loop {
            ctx.schedule_timer(Duration::ZERO).await;
        },
        "panic" => panic!("the author's words"),
        "await of something that is not durable" => {
            let (_kept, answer) = tokio::sync::oneshot::channel::<String>();
            return answer.await.map_err(|error| error.to_string());
        }
        "unknown activity" => return ctx.schedule_activity("Nobody", "").await,
        _ => {}
    }
    Ok(String::new())
}

const WRONG: [&str; 13] = [
    "input of an activity",
    "name of an activity",
    "tag of an activity",
    "result of an activity",
    "custom status",
    "value of a key",
    "number of keys",
    "decisions",
    "output",
    "history",
    "panic",
    "await of something that is not durable",
    "unknown activity",
];

fn node() -> Node {
    let child = |ctx: OrchestrationContext, _: String| async move { Ok(ctx.schedule_wait("never").await) };
    let parent = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_sub_orchestration_with_id("Child", "child", "").await
    };
    Node::new(
        orchestrations().register("Wrong", wrong).register("Child", child).register("Parent", parent),
        activities()
            .register("Echo", |_: ActivityContext, input: String| async move { Ok(input) })
            .register("Large", |_: ActivityContext, _: String| async move { Ok("x".repeat(301)) }),
    )
    .with(|options| {
        options.limits = limits();
        options.max_attempts = 2;
        options.worker_node_id = Some("worker-1".to_string());
        options.unregistered_backoff.base_delay = Duration::from_millis(1);
        options.unregistered_backoff.max_delay = Duration::from_millis(1);
    })
}

async fn from_clients(messages: &mut Messages) {
    let cluster = Cluster::real(Kind::SqliteMemory).await;
    let client = cluster.client.clone().with_limits(limits());
    let start = async |id: &str, name: &str, input: String| {
        client.start_orchestration(id, name, input).await.unwrap_err()
    };
    messages.add("a start without an id", start("", "Wrong", String::new()).await);
    messages.add("a start with a long id", start(&"x".repeat(513), "Wrong", String::new()).await);
    messages.add("a start with a line break in its id", start("a\nb", "Wrong", String::new()).await);
    messages.add("a start with the id of a child", start("a::sub::1", "Wrong", String::new()).await);
    messages.add("a start with a long name", start("order-7", &"x".repeat(21), String::new()).await);
    messages.add("a start with a large input", start("order-7", "Wrong", "x".repeat(301)).await);
    let request = client.start_request("Wrong").send().await.unwrap_err();
    messages.add("a request to start nothing", request);
    client.start_request("Wrong").instance("order-7").send().await.unwrap().started().unwrap();
    let again = client.start_request("Wrong").instance("order-7").send().await.unwrap();
    messages.add("a second start", again.started().unwrap_err());
    client.enqueue_event("order-7", "queue", "").await.unwrap();
    messages.add("a full mailbox", client.enqueue_event("order-7", "queue", "").await.unwrap_err());
    messages.add("the deletion of nothing", client.delete_instance("nobody", false).await.unwrap_err());
    cluster.end().await;
}

async fn from_instances(messages: &mut Messages) {
    let cluster = Cluster::real(Kind::SqliteMemory).await;
    cluster.start(&node()).await;
    for how in WRONG {
        cluster.begin(&format!("order: {how}"), "Wrong", how).await;
        messages.add(how, cluster.failure(&format!("order: {how}")).await);
    }
    cluster.begin("order-8", "Nobody", "").await;
    messages.add("unknown orchestration", cluster.failure("order-8").await);
    cluster.begin("parent", "Parent", "").await;
    let until = tokio::time::Instant::now() + crate::support::LONGEST_WAIT;
    while cluster.client.get_instance_info("child").await.is_err() {
        assert!(tokio::time::Instant::now() < until);
        tokio::task::yield_now().await;
    }
    let delete = async |id: &str| cluster.client.delete_instance(id, false).await.unwrap_err();
    messages.add("the deletion of a running instance", delete("parent").await);
    messages.add("the deletion of a child", delete("child").await);
    cluster.client.cancel_instance("parent", "the customer left").await.unwrap();
    messages.add("cancelled", cluster.failure("parent").await);
    changed(&cluster, messages).await;
    cluster.end().await;
}

/// Restarts an instance with code that does not match its history.
async fn changed(cluster: &Cluster, messages: &mut Messages) {
    let node = |activity: &'static str| {
        let code = move |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity(activity, "").await?;
            Ok(ctx.schedule_wait("go").await)
        };
        let ship = |_: ActivityContext, _: String| async { Ok(String::new()) };
        Node::new(orchestrations().register("Changes", code), activities().register("Ship", ship))
    };
    cluster.end().await;
    let first = cluster.start(&node("Ship")).await;
    cluster.begin("order-9", "Changes", "").await;
    let until = tokio::time::Instant::now() + crate::support::LONGEST_WAIT;
    while cluster.history("order-9").await.len() < 4 {
        assert!(tokio::time::Instant::now() < until);
        tokio::task::yield_now().await;
    }
    cluster.stop(first).await;
    cluster.start(&node("Bill")).await;
    cluster.client.raise_event("order-9", "go", "").await.unwrap();
    messages.add("changed code", cluster.failure("order-9").await);
}

async fn from_stores(messages: &mut Messages) {
    let folder = tempfile::Builder::new().prefix("messages").rand_bytes(0).tempdir().unwrap();
    let open = async |path: &str, options: &str| {
        let url = format!("sqlite:{}{options}", folder.path().join(path).display());
        SqliteProvider::new(&url, None).await.err().unwrap()
    };
    std::fs::write(folder.path().join("letter.txt"), "Dear Sir or Madam, ".repeat(100)).unwrap();
    messages.add("a store that is another file", open("letter.txt", "").await);
    messages.add("a store that is missing", open("no.db", "?mode=rw").await);
    messages.add("a store with an unknown option", open("a.db", "?sync=off").await);
    let url = "postgres://user:password@host/database";
    messages.add("a store of another kind", SqliteProvider::new(url, None).await.err().unwrap());
}

#[tokio::test]
async fn error_messages_match_messages_txt() {
    let mut messages = Messages::default();
    from_clients(&mut messages).await;
    from_instances(&mut messages).await;
    from_stores(&mut messages).await;
    let options = RuntimeOptions { max_attempts: 0, ..RuntimeOptions::default() };
    messages.add("options that cannot work", &options.validate().unwrap_err()[0]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/messages.txt");
    if std::env::var_os("OUTLAST_TEST_BLESS").is_some() {
        std::fs::write(path, &messages.0).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    assert!(messages.0 == expected, "messages.txt differs:\n{}", differences(&expected, &messages.0));
}

fn differences(expected: &str, messages: &str) -> String {
    let known: Vec<&str> = expected.lines().collect();
    let new = messages.lines().filter(|line| !known.contains(line)).map(|line| format!("+ {line}"));
    let gone = known.iter().filter(|line| !messages.contains(*line)).map(|line| format!("- {line}"));
    gone.chain(new).collect::<Vec<_>>().join("\n")
}
