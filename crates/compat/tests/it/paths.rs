//! Every path that programs for duroxide import, by exactly that path (spec/api.md 11, and the root of 1.3), but for
//! those that serve the reference's own internal tests: `HistoryManager`, `WorkItemReader`, `replay_engine`.

#[allow(unused_imports, reason = "that the paths resolve is the test")]
mod resolve {
    use duroxide::Action;
    use duroxide::AppErrorKind;
    use duroxide::BackoffStrategy;
    use duroxide::ConfigErrorKind;
    use duroxide::ErrorDetails;
    use duroxide::Event;
    use duroxide::EventKind;
    use duroxide::INITIAL_EVENT_ID;
    use duroxide::INITIAL_EXECUTION_ID;
    use duroxide::LogLevel;
    use duroxide::PoisonMessageType;
    use duroxide::ProviderRef;
    use duroxide::RetryPolicy;
    use duroxide::SUB_ORCH_AUTO_PREFIX;
    use duroxide::ScheduleKind;
    use duroxide::SystemStats;
    use duroxide::TagFilter;
    use duroxide::current_build_version;
    use duroxide::{
        DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter, InstanceInfo,
        InstanceTree, ProviderAdmin, PruneOptions, PruneResult, QueueDepths, ScheduledActivityIdentifier,
        SemverRange, SessionFetchConfig, SystemMetrics,
    };
    use duroxide::{build_child_instance_id, is_auto_generated_sub_orch_id};

    use duroxide::ActivityContext;
    use duroxide::Client;
    use duroxide::ClientError;
    use duroxide::DurableFuture;
    use duroxide::Either2;
    use duroxide::Either3;
    use duroxide::OrchestrationContext;
    use duroxide::OrchestrationDescriptor;
    use duroxide::OrchestrationHandler;
    use duroxide::OrchestrationHandlerRef;
    use duroxide::OrchestrationRegistry;
    use duroxide::OrchestrationRegistryBuilder;
    use duroxide::OrchestrationStatus;
    use duroxide::RuntimeOptions;
    use duroxide::client::{Client as ClientOfModule, ClientError as ErrorOfModule};

    use duroxide::runtime;
    use duroxide::runtime::limits;
    use duroxide::runtime::limits::{
        MAX_CARRY_FORWARD_EVENTS, MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES,
        MAX_TAG_NAME_BYTES, MAX_WORKER_TAGS,
    };
    use duroxide::runtime::observability::{
        LogFormat as Format, MetricsProvider, MetricsSnapshot, ObservabilityConfig as Config,
        ObservabilityHandle, init_logging,
    };
    use duroxide::runtime::registry::{
        ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry as OfModule,
        OrchestrationRegistryBuilder as BuilderOfModule, Registry, RegistryBuilder, VersionPolicy as Policy,
    };
    use duroxide::runtime::test_hooks;
    use duroxide::runtime::{
        ActivityHandler, FnActivity, FnOrchestration, LogFormat, ObservabilityConfig,
        OrchestrationDescriptor as Descriptor, OrchestrationHandler as Handler,
        OrchestrationRegistry as Orchestrations, OrchestrationRegistryBuilder as Builder,
        OrchestrationStatus as Status, Runtime, RuntimeOptions as Options, UnregisteredBackoffConfig,
        VersionPolicy, kind_of,
    };

    use duroxide::providers;
    use duroxide::providers::ExecutionMetadata;
    use duroxide::providers::Provider;
    use duroxide::providers::WorkItem;
    use duroxide::providers::error::ProviderError;
    use duroxide::providers::instrumented::InstrumentedProvider;
    use duroxide::providers::management;
    use duroxide::providers::memory::MemoryProvider;
    use duroxide::providers::sqlite;

    use duroxide::provider_stress_test;
    use duroxide::provider_stress_tests::StressTestConfig;
    use duroxide::provider_stress_tests::StressTestResult;
    use duroxide::provider_stress_tests::large_payload::{
        LargePayloadConfig, run_large_payload_test_with_config,
    };
    use duroxide::provider_stress_tests::parallel_orchestrations::{
        ProviderStressFactory, run_parallel_orchestrations_test_with_config,
    };
    use duroxide::provider_stress_tests::print_comparison_table;

    use duroxide::provider_validation::ProviderFactory;
    use duroxide::provider_validation::run_all_validations;
    use duroxide::provider_validations;
    use duroxide::provider_validations::{
        bulk_deletion, capability_filtering, custom_status, deletion, kv_store, long_polling, poison_message,
        prune, race_replay, sessions, tag_filtering,
    };

    /// The additions of Outlast to the contract.
    mod added {
        use duroxide::providers::{
            Clock, DeadLetter, DeadLetterQueue, Entropy, FetchedTurn, FetchedWork, InstanceOutcome,
            InstancePage, InstanceQuery, LoadedTurn, OsEntropy, StartOutcome, StartPolicy, StartRequest,
            SystemClock, TurnRequest, WorkRequest, saturating_ms,
        };
    }
}

/// A type with several paths is one type.
#[test]
fn paths_to_one_type_agree() {
    macro_rules! same {
        ($($left:path = $right:path),+ $(,)?) => { $({ let _: fn($left) -> $right = |value| value; })+ };
    }
    use duroxide::providers;
    same! {
        duroxide::TagFilter = providers::TagFilter,
        duroxide::SessionFetchConfig = providers::SessionFetchConfig,
        duroxide::ScheduledActivityIdentifier = providers::ScheduledActivityIdentifier,
        duroxide::DispatcherCapabilityFilter = providers::DispatcherCapabilityFilter,
        duroxide::SemverRange = providers::SemverRange,
        duroxide::ExecutionInfo = providers::ExecutionInfo,
        duroxide::ExecutionInfo = providers::management::ExecutionInfo,
        duroxide::InstanceInfo = providers::InstanceInfo,
        duroxide::InstanceInfo = providers::management::InstanceInfo,
        duroxide::InstanceFilter = providers::management::InstanceFilter,
        duroxide::InstanceTree = providers::management::InstanceTree,
        duroxide::PruneOptions = providers::management::PruneOptions,
        duroxide::PruneResult = providers::management::PruneResult,
        duroxide::DeleteInstanceResult = providers::management::DeleteInstanceResult,
        duroxide::SystemMetrics = providers::management::SystemMetrics,
        duroxide::QueueDepths = providers::management::QueueDepths,
        providers::ProviderError = providers::error::ProviderError,
        duroxide::ProviderRef = std::sync::Arc<dyn providers::Provider>,
    }
    fn same_trait<T: providers::ProviderAdmin>() {
        fn through_the_root<T: duroxide::ProviderAdmin>() {}
        through_the_root::<T>();
    }
    let _ = same_trait::<providers::memory::MemoryProvider>;
    let _: fn(&dyn providers::ManagementProvider) -> &dyn providers::management::ManagementProvider =
        |old| old;
}

#[test]
fn constants_have_their_values() {
    use duroxide::runtime::limits;
    assert_eq!((duroxide::INITIAL_EXECUTION_ID, duroxide::INITIAL_EVENT_ID), (1_u64, 1_u64));
    assert_eq!(duroxide::SUB_ORCH_AUTO_PREFIX, "sub::");
    assert_eq!(duroxide::providers::MAX_WORKER_TAGS, 5_usize);
    let all = [
        limits::MAX_CARRY_FORWARD_EVENTS,
        limits::MAX_CUSTOM_STATUS_BYTES,
        limits::MAX_TAG_NAME_BYTES,
        limits::MAX_KV_VALUE_BYTES,
        limits::MAX_KV_KEYS,
        limits::MAX_WORKER_TAGS,
    ];
    assert_eq!(all, [100_usize, 262_144, 256, 65_536, 150, 5]);
    assert_eq!(duroxide::current_build_version(), semver::Version::new(0, 1, 32));
}
