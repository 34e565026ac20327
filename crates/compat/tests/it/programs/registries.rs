//! `runtime::registry::{Registry, ActivityRegistry, OrchestrationRegistry}`, `VersionPolicy`, builders: registering,
//! merging, resolving.

use duroxide::runtime::registry::{ActivityRegistry, OrchestrationRegistry, Registry};
use duroxide::runtime::{ActivityHandler, OrchestrationHandler, VersionPolicy};
use duroxide::{ActivityContext, OrchestrationContext};
use semver::Version;

async fn plain(_ctx: OrchestrationContext, input: String) -> Result<String, String> {
    Ok(input)
}

fn library() -> Registry<dyn ActivityHandler> {
    ActivityRegistry::builder()
        .register("lib::echo", |_ctx: ActivityContext, input: String| async move { Ok(input) })
        .register_typed::<u32, String, _, _>("lib::show", |_ctx, n| async move { Ok(n.to_string()) })
        .build()
}

#[test]
fn activity_registry_lists_and_merges_handlers() {
    let more = ActivityRegistry::builder()
        .register_all(vec![("one", |_ctx: ActivityContext, _: String| async move { Ok("1".to_string()) })])
        .merge(library())
        .build_result()
        .unwrap();
    let mut names = more.list_names();
    names.sort();
    assert_eq!(names, ["lib::echo", "lib::show", "one"]);
    assert!(more.has("one") && !more.has("two"));
    assert_eq!(more.count(), 3);
    let copied: Registry<dyn ActivityHandler> =
        ActivityRegistry::builder_from(&more).register("two", |_, input| async move { Ok(input) }).build();
    assert_eq!((copied.count(), more.count()), (4, 3));
    let _ = duroxide::runtime::registry::ActivityRegistryBuilder::from_registry(&more).build();
}

#[test]
fn orchestration_registry_resolves_versions_by_policy() {
    let registry: OrchestrationRegistry = OrchestrationRegistry::builder()
        .register("flow", plain)
        .register_versioned("flow", "1.1.0", plain)
        .register_versioned_typed::<u32, u32, _, _>("flow", "2.0.0", |_ctx, n| async move { Ok(n + 1) })
        .register_typed::<u32, u32, _, _>("typed", |_ctx, n| async move { Ok(n + 1) })
        .register_all(vec![("a", plain), ("b", plain)])
        .set_policy("flow", VersionPolicy::Exact(Version::new(1, 1, 0)))
        .build();
    assert_eq!(
        registry.list_versions("flow"),
        [Version::new(1, 0, 0), Version::new(1, 1, 0), Version::new(2, 0, 0)]
    );
    assert_eq!(registry.resolve_version("flow"), Some(Version::new(1, 1, 0)));
    registry.set_version_policy("flow", VersionPolicy::Latest);
    assert_eq!(registry.resolve_version("flow"), Some(Version::new(2, 0, 0)));
    registry.set_version_policy("flow", VersionPolicy::Exact("9.0.0".parse().unwrap()));
    assert!(registry.resolve_handler("flow").is_none());
    assert!(registry.resolve_handler_exact("flow", &Version::new(1, 0, 0)).is_some());
    assert!(registry.list_versions("unknown").is_empty());
    let shared = registry.clone();
    shared.set_version_policy("flow", VersionPolicy::Latest);
    assert_eq!(registry.resolve_version("flow"), Some(Version::new(2, 0, 0)), "clones share their policies");
    let _: Registry<dyn OrchestrationHandler> = Registry::default();
}

#[test]
fn duplicate_registrations_are_errors_of_build_result() {
    let twice = OrchestrationRegistry::builder().register("flow", plain).register("flow", plain);
    assert_eq!(twice.build_result().err().unwrap(), "duplicate orchestration registration: flow@1.0.0");
    let merged = ActivityRegistry::builder().merge(library()).merge_registry(library(), "activity from lib");
    let errors = merged.build_result().err().unwrap();
    assert!(errors.contains("duplicate activity from lib in merge: lib::echo@1.0.0"), "{errors}");
    let reserved = ActivityRegistry::builder()
        .register("__duroxide_syscall:mine", |_, input: String| async move { Ok(input) })
        .build_result();
    assert!(reserved.err().unwrap().contains("reserved prefix"));
    let handlers = vec![("x", 1), ("y", 2)];
    let built = ActivityRegistry::builder()
        .register_all_handlers(handlers, |builder, name, n| {
            builder.register(name, move |_, _| async move { Ok(n.to_string()) })
        })
        .build();
    assert_eq!(built.count(), 2);
}

#[test]
#[should_panic(expected = "non-monotonic orchestration version for flow")]
fn versions_only_rise() {
    let _ = OrchestrationRegistry::builder()
        .register_versioned("flow", "2.0.0", plain)
        .register_versioned("flow", "1.5.0", plain);
}
