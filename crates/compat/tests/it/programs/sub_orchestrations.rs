//! Children and detached orchestrations; `SUB_ORCH_AUTO_PREFIX`, `build_child_instance_id`.

use super::{output, started};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{OrchestrationContext, OrchestrationRegistry};

#[tokio::test]
async fn every_form_of_a_child_call_completes() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Child", |_: OrchestrationContext, input: String| async move { Ok(format!("one {input}")) })
        .register_versioned("Child", "2.0.0", |_: OrchestrationContext, input: String| async move {
            Ok(format!("two {input}"))
        })
        .register_typed::<u32, u32, _, _>("Double", |_, n| async move { Ok(n * 2) })
        .register("Parent", |ctx: OrchestrationContext, _: String| async move {
            let a = ctx.schedule_sub_orchestration("Child", "a").await?;
            let b = ctx.schedule_sub_orchestration_with_id("Child", "child-b", "b").await?;
            let c = ctx.schedule_sub_orchestration_versioned("Child", Some("1.0.0".to_string()), "c").await?;
            let d = ctx.schedule_sub_orchestration_versioned_with_id("Child", None, "child-d", "d").await?;
            let e: u32 = ctx.schedule_sub_orchestration_typed("Double", &21).await?;
            let f = ctx.schedule_sub_orchestration_with_id_typed::<u32, u32>("Double", "child-f", &4).await?;
            ctx.schedule_orchestration("Child", "free-1", "x");
            ctx.schedule_orchestration_typed("Double", "free-2", &5_u32);
            ctx.schedule_orchestration_versioned("Child", Some("1.0.0".into()), "free-3", "y");
            ctx.schedule_orchestration_versioned_typed("Double", None, "free-4", &6_u32);
            Ok(format!("{a}, {b}, {c}, {d}, {e}, {f}"))
        })
        .build();
    let (_store, rt, client) = started(ActivityRegistry::builder().build(), orchestrations).await;
    client.start_orchestration("parent", "Parent", "").await.unwrap();
    assert_eq!(output(&client, "parent").await, "two a, two b, one c, two d, 42, 8");
    for (instance, expected) in [("free-1", "two x"), ("free-2", "10"), ("free-3", "one y"), ("free-4", "12")]
    {
        assert_eq!(output(&client, instance).await, expected);
    }
    let first = duroxide::build_child_instance_id("parent", &format!("{}2", duroxide::SUB_ORCH_AUTO_PREFIX));
    assert_eq!(first, "parent::sub::2");
    assert_eq!(output(&client, &first).await, "two a");
    let descriptor = rt.get_orchestration_descriptor(&first).await.unwrap();
    assert_eq!((descriptor.name.as_str(), descriptor.version.as_str()), ("Child", "2.0.0"));
    assert_eq!((descriptor.parent_instance.as_deref(), descriptor.parent_id), (Some("parent"), Some(2)));
    rt.shutdown(None).await;
}
