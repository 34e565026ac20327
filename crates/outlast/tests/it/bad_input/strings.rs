//! Any text is valid as an id, a name, a queue, a key, a tag or a session: it is returned unchanged, and is never confused with a
//! similar text by a statement, a pattern or a collation.

use crate::support::{ALL, Cluster, Kind, Node, activities, orchestrations};
use outlast::providers::{InstanceQuery, TagFilter};
use outlast::{ActivityContext, OrchestrationContext, OrchestrationStatus};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Characters with a meaning in statements, patterns, paths, URLs and JSON.
const MEANING: &[&str] = &[
    "%", "_", "\\", "'", "\"", ";", "--", "?1", ":a", "$1", "[", "]", "*", "/", ".", "{", "}", "`", "(", ")",
    "a", "A", "ä", "a\u{308}", "🦀", " ", "\u{202e}", "NULL", "::", "@", "#", "\u{feff}", "0", "1",
];

fn word() -> impl Strategy<Value = String> {
    let hostile = prop::collection::vec(prop::sample::select(MEANING), 1..6).prop_map(|parts| parts.concat());
    prop_oneof![3 => hostile, 1 => "\\PC{1,12}"]
}

/// Names may hold control characters; ids may not.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => word(), 1 => "[\\x00-\\x1f]{1,3}a"]
}

/// Texts that a pattern, a collation or a trim could confuse with this text.
fn near(text: &str) -> Vec<String> {
    let mut chars: Vec<char> = text.chars().collect();
    chars.pop();
    let shorter: String = chars.iter().collect();
    let all = [
        format!("{text}%"),
        format!("{text} "),
        format!(" {text}"),
        format!("{shorter}_"),
        text.to_uppercase(),
        text.to_lowercase(),
        format!("{text}'"),
        format!("{text}a"),
    ];
    let different: BTreeSet<String> =
        all.into_iter().filter(|other| other != text && !other.is_empty()).collect();
    different.into_iter().collect()
}

#[derive(Debug, Clone)]
struct Case {
    id: String,
    orchestration: String,
    activity: String,
    queue: String,
    key: String,
    tag: String,
    session: String,
}

fn case() -> impl Strategy<Value = Case> {
    (word(), name(), name(), name(), name(), name(), name()).prop_map(
        |(id, orchestration, activity, queue, key, tag, session)| Case {
            id,
            orchestration,
            activity,
            queue,
            key,
            tag,
            session,
        },
    )
}

/// Uses every name once and returns the results as one text.
async fn uses(ctx: OrchestrationContext, case: Case) -> Result<String, String> {
    for key in near(&case.key) {
        ctx.set_kv_value(key, "a neighbour's");
    }
    ctx.set_kv_value(&case.key, ctx.instance_id());
    let tagged = ctx.schedule_activity(&case.activity, "tagged").with_tag(&case.tag).await?;
    let bound = ctx.schedule_activity_on_session(&case.activity, "bound", &case.session).await?;
    let message = ctx.dequeue_event(&case.queue).await;
    Ok(format!("{tagged} {bound} {message}"))
}

fn node(case: &Case) -> Node {
    let (mut all, mut work) = (orchestrations(), activities());
    for name in near(&case.orchestration) {
        all =
            all.register(name, |_: OrchestrationContext, _: String| async { Err("a neighbour".to_string()) });
    }
    for name in near(&case.activity) {
        work = work.register(name, |_: ActivityContext, _: String| async { Err("a neighbour".to_string()) });
    }
    let uses_case = case.clone();
    let all = all.register(&case.orchestration, move |ctx: OrchestrationContext, _: String| {
        uses(ctx, uses_case.clone())
    });
    let work = work.register(&case.activity, |ctx: ActivityContext, what: String| async move {
        Ok(format!("{what}: {:?} {:?} {:?}", ctx.activity_name(), ctx.tag(), ctx.session_id()))
    });
    Node::new(all, work).with(|options| options.worker_tag_filter = TagFilter::any())
}

async fn check(kind: Kind, case: &Case) {
    let cluster = Cluster::real(kind).await;
    cluster.start(&node(case)).await;
    let client = &cluster.client;
    let mut ids = near(&case.id);
    ids.push(case.id.clone());
    for id in &ids {
        cluster.begin(id, &case.orchestration, "").await;
    }
    for id in &ids {
        for queue in near(&case.queue) {
            client.enqueue_event(id, queue, "a neighbour's").await.unwrap();
        }
        client.enqueue_event(id, &case.queue, format!("for {id}")).await.unwrap();
    }
    for id in &ids {
        let Case { activity, tag, session, .. } = case;
        let expected = format!(
            "tagged: {activity:?} {:?} None bound: {activity:?} None {:?} for {id}",
            Some(tag),
            Some(session)
        );
        assert_eq!(cluster.output(id).await, expected, "{kind:?} {id:?}");
        assert_eq!(client.get_kv_value(id, &case.key).await.unwrap().as_ref(), Some(id));
        let info = client.get_instance_info(id).await.unwrap();
        assert_eq!((&info.instance_id, &info.orchestration_name), (id, &case.orchestration));
    }
    let found = async |query: InstanceQuery| {
        let page = client.list_instances_page(query).await.unwrap();
        page.instances.into_iter().map(|info| info.instance_id).collect::<BTreeSet<_>>()
    };
    let (id_prefix, everybody) = (Some(case.id.clone()), ids.iter().cloned().collect::<BTreeSet<_>>());
    let prefixed = ids.iter().filter(|id| id.starts_with(&case.id)).cloned().collect::<BTreeSet<_>>();
    assert_eq!(found(InstanceQuery { id_prefix, ..Default::default() }).await, prefixed, "{kind:?}");
    let named =
        |name: &String| InstanceQuery { orchestration_name: Some(name.clone()), ..Default::default() };
    assert_eq!(found(named(&case.orchestration)).await, everybody);
    for name in near(&case.orchestration) {
        assert_eq!(found(named(&name)).await, BTreeSet::new());
    }
    // The deletion removes only the rows of this instance.
    client.delete_instance(&case.id, false).await.unwrap();
    let gone = client.get_orchestration_status(&case.id).await.unwrap();
    assert!(matches!(gone, OrchestrationStatus::NotFound), "{gone:?}");
    assert_eq!(client.get_kv_all_values(&case.id).await.unwrap().len(), 0);
    for id in ids.iter().filter(|id| **id != case.id) {
        assert!(cluster.output(id).await.ends_with(id.as_str()));
        assert_eq!(client.get_kv_value(id, &case.key).await.unwrap().as_ref(), Some(id));
        assert_eq!(client.read_execution_history(id, 1).await.unwrap()[0].instance_id, *id);
    }
    cluster.end().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn similar_texts_are_never_confused(case in case()) {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio.block_on(async {
            for kind in ALL {
                check(kind, &case).await;
            }
        });
    }
}
