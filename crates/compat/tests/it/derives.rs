//! The traits that outside code relies on, type by type.

use duroxide::providers::*;
use duroxide::{
    Action, AppErrorKind, BackoffStrategy, ConfigErrorKind, ErrorDetails, Event, EventKind, LogLevel,
    PoisonMessageType, RetryPolicy, ScheduleKind, SystemStats,
};
use serde::{Serialize, de::DeserializeOwned};
use std::error::Error;
use std::fmt::{Debug, Display};

macro_rules! implement {
    ($($bounds:path),+ => $($type:ty),+ $(,)?) => {{
        fn check<T: $($bounds +)+ Send + Sync + 'static>() {}
        $(check::<$type>();)+
    }};
}

#[test]
fn every_type_implements_the_traits_of_the_contract() {
    implement! { Debug, Clone, Serialize, DeserializeOwned, PartialEq, Eq =>
        Event, EventKind, WorkItem, ErrorDetails, AppErrorKind, ConfigErrorKind, PoisonMessageType,
    }
    implement! { Debug, Clone, Serialize, DeserializeOwned, PartialEq => SystemStats }
    implement! { Debug, Clone, PartialEq, Eq, Display, Error => ProviderError }
    implement! { Debug, Clone, PartialEq, Eq, Default => TagFilter }
    implement! { Debug, Clone, PartialEq, Eq => SemverRange, ScheduledActivityIdentifier }
    implement! { Debug, Clone, PartialEq => KvEntry }
    implement! { Debug, Clone, Default =>
        ExecutionMetadata, SystemMetrics, QueueDepths, InstanceFilter, PruneOptions, DeleteInstanceResult, PruneResult,
        RetryPolicy, BackoffStrategy,
    }
    implement! { Debug, Clone =>
        OrchestrationItem, DispatcherCapabilityFilter, SessionFetchConfig, InstanceInfo, ExecutionInfo, InstanceTree,
        Action, ScheduleKind, LogLevel,
    }
}
