//! The rules of registration and resolution (api 6.2, 6.3), one test per row of their table.

use outlast_runtime::ActivityHandler;
use outlast_runtime::registry::{
    ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry, RegistrationError, Registry,
    VersionPolicy,
};
use semver::Version;
use std::sync::Arc;

/// A handler that is only compared by pointer.
macro_rules! nothing {
    () => {
        |_, _| async { Ok(String::new()) }
    };
}

fn v(text: &str) -> Version {
    text.parse().unwrap()
}

fn versions(registry: &OrchestrationRegistry, name: &str) -> Vec<String> {
    registry.list_versions(name).iter().map(Version::to_string).collect()
}

fn panic_text(f: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(f).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn resolution_follows_the_policy() {
    let registry = OrchestrationRegistry::builder()
        .register("A", nothing!())
        .register_versioned("A", "1.9.0", nothing!())
        .register_versioned("A", "1.10.0", nothing!())
        .build_result()
        .unwrap();
    assert_eq!(
        registry.resolve_version("A"),
        Some(v("1.10.0")),
        "absent policy is the highest, as semver orders"
    );
    registry.set_version_policy("A", VersionPolicy::Exact(v("1.9.0")));
    let (version, handler) = registry.resolve_handler("A").unwrap();
    assert_eq!(version, v("1.9.0"));
    assert!(Arc::ptr_eq(&handler, &registry.resolve_handler_exact("A", &version).unwrap()));
    registry.set_version_policy("A", VersionPolicy::Exact(v("3.0.0")));
    assert!(
        registry.resolve_handler("A").is_none() && registry.resolve_version("A").is_none(),
        "no fallback"
    );
    assert!(registry.resolve_handler_exact("A", &v("1.0.0")).is_some(), "exact lookup ignores the policy");
    registry.set_version_policy("A", VersionPolicy::Latest);
    assert_eq!(registry.resolve_version("A"), Some(v("1.10.0")));
    assert!(
        registry.resolve_handler("B").is_none() && registry.resolve_handler_exact("A", &v("2.0.0")).is_none()
    );
}

#[test]
fn names_and_versions_of_a_registry_are_listed() {
    let registry = OrchestrationRegistry::builder()
        .register("b::nested", nothing!())
        .register_versioned("b::nested", "2.0.0", nothing!())
        .register("a", nothing!())
        .build();
    let mut names = registry.list_names();
    names.sort();
    assert_eq!(names, ["a", "b::nested"]);
    assert_eq!(versions(&registry, "b::nested"), ["1.0.0", "2.0.0"]);
    assert_eq!(versions(&registry, "c"), [""; 0]);
    assert_eq!((registry.count(), registry.has("a"), registry.has("c")), (2, true, false));
    assert_eq!(OrchestrationRegistry::default().count(), 0);
    assert_eq!(format!("{registry:?}"), "Registry[a@1.0.0, b::nested@1.0.0, b::nested@2.0.0]");
}

#[test]
fn clones_share_policies_and_copies_do_not() {
    let registry = OrchestrationRegistry::builder()
        .register("A", nothing!())
        .register_versioned("A", "2.0.0", nothing!())
        .set_policy("A", VersionPolicy::Exact(v("1.0.0")))
        .build();
    let (clone, copy) =
        (registry.clone(), Registry::builder_from(&registry).register("B", nothing!()).build());
    assert_eq!(copy.resolve_version("A"), Some(v("1.0.0")), "a copy starts with the policies");
    clone.set_version_policy("A", VersionPolicy::Latest);
    assert_eq!(registry.resolve_version("A"), Some(v("2.0.0")));
    assert_eq!(copy.resolve_version("A"), Some(v("1.0.0")));
    assert!(copy.has("B") && !registry.has("B"), "the source is untouched");
}

#[test]
fn the_first_of_two_duplicates_is_kept_and_the_second_recorded() {
    let builder = || {
        OrchestrationRegistry::builder()
            .register("A", nothing!())
            .register("A", nothing!())
            .register_versioned("A", "2.0.0", nothing!())
            .register_versioned_typed::<String, String, _, _>("A", "2.0.0", nothing!())
            .register_versioned("A", "1.0.0", nothing!())
    };
    let expected = "duplicate orchestration registration: A@1.0.0; \
                    duplicate orchestration registration: A@2.0.0; \
                    duplicate orchestration registration: A@1.0.0";
    assert_eq!(builder().build_result().err().unwrap(), expected);
    assert_eq!(versions(&builder().build(), "A"), ["1.0.0", "2.0.0"], "build ignores recorded errors");

    let kept = OrchestrationRegistry::builder().register("A", nothing!()).build();
    let first = kept.resolve_handler("A").unwrap().1;
    let again = Registry::builder_from(&kept).register("A", nothing!()).build();
    assert!(Arc::ptr_eq(&first, &again.resolve_handler("A").unwrap().1));
}

#[test]
fn a_typed_orchestration_replaces_the_first() {
    let kept = OrchestrationRegistry::builder().register("A", nothing!()).build();
    let first = kept.resolve_handler("A").unwrap().1;
    let again = Registry::builder_from(&kept).register_typed::<String, String, _, _>("A", nothing!());
    let again = again.build_result().unwrap();
    assert!(!Arc::ptr_eq(&first, &again.resolve_handler("A").unwrap().1));
    assert_eq!(versions(&again, "A"), ["1.0.0"]);
}

#[test]
fn a_merge_keeps_existing_handlers_and_adds_no_policies() {
    let mine = OrchestrationRegistry::builder().register("A", nothing!()).build();
    let first = mine.resolve_handler("A").unwrap().1;
    let other = OrchestrationRegistry::builder()
        .register("A", nothing!())
        .register_versioned("A", "2.0.0", nothing!())
        .register("B", nothing!())
        .set_policy("A", VersionPolicy::Exact(v("1.0.0")))
        .build();
    let merged = Registry::builder_from(&mine).merge(other.clone());
    let named = Registry::builder_from(&mine).merge_registry(other, "plug-in");
    assert_eq!(named.build_result().err().unwrap(), "duplicate plug-in in merge: A@1.0.0");
    let merged = merged.build();
    assert!(Arc::ptr_eq(&first, &merged.resolve_handler_exact("A", &v("1.0.0")).unwrap()));
    assert_eq!(merged.resolve_version("A"), Some(v("2.0.0")), "the policy was left behind");
    assert!(merged.has("B"));

    let twice = ActivityRegistry::builder().register("X", nothing!()).build();
    let error = Registry::builder_from(&twice).merge(twice).build_result().err().unwrap();
    assert_eq!(error, "duplicate activity in merge: X@1.0.0");
}

#[test]
fn a_version_below_the_latest_panics() {
    let expected = "non-monotonic orchestration version for A: 1.5.0 is not later than existing latest 2.0.0";
    let builder = || OrchestrationRegistry::builder().register_versioned("A", "2.0.0", nothing!());
    assert_eq!(panic_text(|| drop(builder().register_versioned("A", "1.5.0", nothing!()))), expected);
    let typed = || builder().register_versioned_typed::<String, String, _, _>("A", "1.5.0", nothing!());
    assert_eq!(panic_text(|| drop(typed())), expected);
    let unversioned = builder().register("A", nothing!()).build_result().unwrap();
    assert_eq!(versions(&unversioned, "A"), ["1.0.0", "2.0.0"], "1.0.0 without a version may come late");
    assert_eq!(unversioned.resolve_version("A"), Some(v("2.0.0")));
}

#[test]
fn an_invalid_version_panics() {
    let text =
        panic_text(|| drop(OrchestrationRegistry::builder().register_versioned("A", "1.0", nothing!())));
    assert!(text.starts_with("invalid version '1.0' for orchestration A ("), "{text}");
    assert!(text.ends_with("use a form like 1.2.3"), "{text}");
}

#[test]
fn try_methods_return_the_errors_of_panicking_methods() {
    let builder = || OrchestrationRegistry::builder().register_versioned("A", "2.0.0", nothing!());
    let refused = |version: &str| builder().try_register_versioned("A", version, nothing!()).err().unwrap();
    let (name, version) = ("A".to_string(), v("1.5.0"));
    assert_eq!(refused("1.5.0"), RegistrationError::NotLater { name, version, latest: v("2.0.0") });
    let (name, version) = ("A".to_string(), v("2.0.0"));
    assert_eq!(refused("2.0.0"), RegistrationError::Duplicate { kind: "orchestration", name, version });
    assert!(matches!(refused("two"), RegistrationError::InvalidVersion { .. }));
    let typed =
        builder().try_register_versioned_typed::<u8, u8, _, _>("A", "two", |_, n| async move { Ok(n) });
    assert!(matches!(typed.err().unwrap(), RegistrationError::InvalidVersion { .. }));
    let registry =
        builder().try_register_versioned("A", "2.0.1", nothing!()).unwrap().build_result().unwrap();
    assert_eq!(versions(&registry, "A"), ["2.0.0", "2.0.1"]);
}

#[test]
fn activities_have_one_version_and_a_reserved_prefix() {
    let builder = || {
        ActivityRegistry::builder()
            .register("X", nothing!())
            .register_typed::<String, String, _, _>("X", nothing!())
            .register("__duroxide_syscall:mine", nothing!())
    };
    let expected = "duplicate activity registration: X@1.0.0; \
                    activity name '__duroxide_syscall:mine' uses reserved prefix '__duroxide_syscall:'";
    assert_eq!(builder().build_result().err().unwrap(), expected);
    let registry = builder().build();
    assert_eq!(
        (registry.list_names(), registry.list_versions("X")),
        (vec!["X".to_string()], vec![v("1.0.0")])
    );
    let refused = ActivityRegistry::builder().try_register("__duroxide_syscall:x", nothing!()).err().unwrap();
    assert_eq!(refused, RegistrationError::ReservedName { name: "__duroxide_syscall:x".into() });
    assert!(ActivityRegistry::builder().try_register("x", nothing!()).unwrap().build().has("x"));
}

#[test]
fn register_all_registers_each_item() {
    async fn shared<C>(_: C, input: String) -> Result<String, String> {
        Ok(input)
    }
    let orchestrations = OrchestrationRegistry::builder().register_all(vec![("A", shared), ("B", shared)]);
    assert_eq!(orchestrations.build().count(), 2);
    let known: Registry<dyn ActivityHandler> = ActivityRegistry::builder().register("X", shared).build();
    let activities =
        ActivityRegistryBuilder::from_registry(&known).register_all(vec![("X", shared), ("Y", shared)]);
    assert_eq!(activities.build_result().err().unwrap(), "duplicate activity registration: X@1.0.0");
    let prefixed = ActivityRegistry::builder()
        .register_all_handlers(vec![("X", shared)], |builder, name, f| {
            builder.register(format!("p::{name}"), f)
        });
    assert!(prefixed.build().has("p::X"));
}
