//! The methods of both traits as [`forward_provider!`](crate::forward_provider) writes them.

/// `__forward_method!(name [exceptions] [this inner])` is the forwarding method with this name, or nothing if the name is
/// among the exceptions.
#[doc(hidden)]
#[macro_export]
macro_rules! __forward_method {
    // A name among the exceptions.
    (name [name $($rest:ident)*] $target:tt) => {};
    (version [version $($rest:ident)*] $target:tt) => {};
    (as_management_capability [as_management_capability $($rest:ident)*] $target:tt) => {};
    (fuses_outcomes [fuses_outcomes $($rest:ident)*] $target:tt) => {};
    (watch_instance [watch_instance $($rest:ident)*] $target:tt) => {};
    (fetch_orchestration_item [fetch_orchestration_item $($rest:ident)*] $target:tt) => {};
    (ack_orchestration_item [ack_orchestration_item $($rest:ident)*] $target:tt) => {};
    (abandon_orchestration_item [abandon_orchestration_item $($rest:ident)*] $target:tt) => {};
    (read [read $($rest:ident)*] $target:tt) => {};
    (read_with_execution [read_with_execution $($rest:ident)*] $target:tt) => {};
    (append_with_execution [append_with_execution $($rest:ident)*] $target:tt) => {};
    (enqueue_for_worker [enqueue_for_worker $($rest:ident)*] $target:tt) => {};
    (fetch_work_item [fetch_work_item $($rest:ident)*] $target:tt) => {};
    (ack_work_item [ack_work_item $($rest:ident)*] $target:tt) => {};
    (renew_work_item_lock [renew_work_item_lock $($rest:ident)*] $target:tt) => {};
    (renew_session_lock [renew_session_lock $($rest:ident)*] $target:tt) => {};
    (cleanup_orphaned_sessions [cleanup_orphaned_sessions $($rest:ident)*] $target:tt) => {};
    (abandon_work_item [abandon_work_item $($rest:ident)*] $target:tt) => {};
    (renew_orchestration_item_lock [renew_orchestration_item_lock $($rest:ident)*] $target:tt) => {};
    (enqueue_for_orchestrator [enqueue_for_orchestrator $($rest:ident)*] $target:tt) => {};
    (get_custom_status [get_custom_status $($rest:ident)*] $target:tt) => {};
    (get_kv_value [get_kv_value $($rest:ident)*] $target:tt) => {};
    (get_kv_all_values [get_kv_all_values $($rest:ident)*] $target:tt) => {};
    (get_instance_stats [get_instance_stats $($rest:ident)*] $target:tt) => {};
    (fetch_turn [fetch_turn $($rest:ident)*] $target:tt) => {};
    (load_turn [load_turn $($rest:ident)*] $target:tt) => {};
    (load_turn_within [load_turn_within $($rest:ident)*] $target:tt) => {};
    (commit_turn [commit_turn $($rest:ident)*] $target:tt) => {};
    (fetch_work_items [fetch_work_items $($rest:ident)*] $target:tt) => {};
    (complete_with_turn [complete_with_turn $($rest:ident)*] $target:tt) => {};
    (complete_all_with_turn [complete_all_with_turn $($rest:ident)*] $target:tt) => {};
    (abandon_work_noted [abandon_work_noted $($rest:ident)*] $target:tt) => {};
    (hold_turn [hold_turn $($rest:ident)*] $target:tt) => {};
    (read_outcome [read_outcome $($rest:ident)*] $target:tt) => {};
    (enqueue_within [enqueue_within $($rest:ident)*] $target:tt) => {};
    (enqueue_once [enqueue_once $($rest:ident)*] $target:tt) => {};
    (start_orchestration [start_orchestration $($rest:ident)*] $target:tt) => {};
    (start_with_turn [start_with_turn $($rest:ident)*] $target:tt) => {};
    (list_instances [list_instances $($rest:ident)*] $target:tt) => {};
    (list_instances_by_status [list_instances_by_status $($rest:ident)*] $target:tt) => {};
    (list_executions [list_executions $($rest:ident)*] $target:tt) => {};
    (read_history_with_execution_id [read_history_with_execution_id $($rest:ident)*] $target:tt) => {};
    (read_history [read_history $($rest:ident)*] $target:tt) => {};
    (latest_execution_id [latest_execution_id $($rest:ident)*] $target:tt) => {};
    (get_instance_info [get_instance_info $($rest:ident)*] $target:tt) => {};
    (get_execution_info [get_execution_info $($rest:ident)*] $target:tt) => {};
    (get_system_metrics [get_system_metrics $($rest:ident)*] $target:tt) => {};
    (get_queue_depths [get_queue_depths $($rest:ident)*] $target:tt) => {};
    (list_children [list_children $($rest:ident)*] $target:tt) => {};
    (get_parent_id [get_parent_id $($rest:ident)*] $target:tt) => {};
    (delete_instances_atomic [delete_instances_atomic $($rest:ident)*] $target:tt) => {};
    (get_instance_tree [get_instance_tree $($rest:ident)*] $target:tt) => {};
    (delete_instance [delete_instance $($rest:ident)*] $target:tt) => {};
    (delete_instance_bulk [delete_instance_bulk $($rest:ident)*] $target:tt) => {};
    (prune_executions [prune_executions $($rest:ident)*] $target:tt) => {};
    (prune_executions_bulk [prune_executions_bulk $($rest:ident)*] $target:tt) => {};
    (query_instances [query_instances $($rest:ident)*] $target:tt) => {};
    (get_gauges [get_gauges $($rest:ident)*] $target:tt) => {};
    (oldest_due [oldest_due $($rest:ident)*] $target:tt) => {};
    (list_dead_letters [list_dead_letters $($rest:ident)*] $target:tt) => {};
    (dead_letter_page [dead_letter_page $($rest:ident)*] $target:tt) => {};
    (requeue_dead_letter [requeue_dead_letter $($rest:ident)*] $target:tt) => {};
    (drop_dead_letter [drop_dead_letter $($rest:ident)*] $target:tt) => {};
    (pending [pending $($rest:ident)*] $target:tt) => {};
    (queue_page [queue_page $($rest:ident)*] $target:tt) => {};
    (tag_depths [tag_depths $($rest:ident)*] $target:tt) => {};
    (history_page [history_page $($rest:ident)*] $target:tt) => {};
    (hold_instance [hold_instance $($rest:ident)*] $target:tt) => {};
    (release_instance [release_instance $($rest:ident)*] $target:tt) => {};
    (held_instance [held_instance $($rest:ident)*] $target:tt) => {};
    (list_held [list_held $($rest:ident)*] $target:tt) => {};
    (count_held [count_held $($rest:ident)*] $target:tt) => {};
    (pause_orchestration [pause_orchestration $($rest:ident)*] $target:tt) => {};
    (resume_orchestration [resume_orchestration $($rest:ident)*] $target:tt) => {};
    (paused_orchestrations [paused_orchestrations $($rest:ident)*] $target:tt) => {};
    (append_audit [append_audit $($rest:ident)*] $target:tt) => {};
    (audit_page [audit_page $($rest:ident)*] $target:tt) => {};
    (reset_instance [reset_instance $($rest:ident)*] $target:tt) => {};
    (export_instance [export_instance $($rest:ident)*] $target:tt) => {};
    (import_instance [import_instance $($rest:ident)*] $target:tt) => {};
    (list_unstarted [list_unstarted $($rest:ident)*] $target:tt) => {};
    (oldest_instances [oldest_instances $($rest:ident)*] $target:tt) => {};
    (delete_ended [delete_ended $($rest:ident)*] $target:tt) => {};
    (prune_audit [prune_audit $($rest:ident)*] $target:tt) => {};
    (prune_dead_letters [prune_dead_letters $($rest:ident)*] $target:tt) => {};
    (announce_node [announce_node $($rest:ident)*] $target:tt) => {};
    (remove_node [remove_node $($rest:ident)*] $target:tt) => {};
    (nodes [nodes $($rest:ident)*] $target:tt) => {};
    (sweep_nodes [sweep_nodes $($rest:ident)*] $target:tt) => {};
    (@exists $name:ident) => { $crate::__forward_method!($name [$name] []); };
    ($name:ident [] []) => {
        compile_error!(concat!("`", stringify!($name), "` is not a method that `forward_provider!` knows"));
    };
    // The first exception has another name.
    ($name:ident [$other:ident $($rest:ident)*] $target:tt) => {
        $crate::__forward_method!($name [$($rest)*] $target);
    };

    // Methods of `Provider`.
    (name [] [$this:ident $inner:expr $(, $around:ident)?]) => {
        fn name(&self) -> &str {
            #[allow(unused_imports)]
            use $crate::Provider as _;
            let $this = self;
            $inner.name()
        }
    };
    (version [] [$this:ident $inner:expr $(, $around:ident)?]) => {
        fn version(&self) -> &str {
            #[allow(unused_imports)]
            use $crate::Provider as _;
            let $this = self;
            $inner.version()
        }
    };
    (as_management_capability [] [$this:ident $inner:expr $(, $around:ident)?]) => {
        fn as_management_capability(&self) -> ::std::option::Option<&dyn $crate::ProviderAdmin> {
            #[allow(unused_imports)]
            use $crate::Provider as _;
            let $this = self;
            $inner.as_management_capability()
        }
    };
    (fuses_outcomes [] [$this:ident $inner:expr $(, $around:ident)?]) => {
        fn fuses_outcomes(&self) -> bool {
            #[allow(unused_imports)]
            use $crate::Provider as _;
            let $this = self;
            $inner.fuses_outcomes()
        }
    };
    (watch_instance [] [$this:ident $inner:expr $(, $around:ident)?]) => {
        fn watch_instance(&self, instance: &str, interest: $crate::Interest) -> ::std::option::Option<$crate::InstanceWatch> {
            #[allow(unused_imports)]
            use $crate::Provider as _;
            let $this = self;
            $inner.watch_instance(instance, interest)
        }
    };
    (fetch_orchestration_item [] $target:tt) => {
        $crate::__forward_async!($target Provider fetch_orchestration_item ['life1] (
            lock_timeout: ::std::time::Duration,
            poll_timeout: ::std::time::Duration,
            filter: ::std::option::Option<&'life1 $crate::DispatcherCapabilityFilter>
        ) -> ::std::option::Option<($crate::OrchestrationItem, ::std::string::String, u32)>);
    };
    (ack_orchestration_item [] $target:tt) => {
        $crate::__forward_async!($target Provider ack_orchestration_item ['life1] (
            lock_token: &'life1 str,
            execution_id: u64,
            history_delta: ::std::vec::Vec<$crate::model::Event>,
            worker_items: ::std::vec::Vec<$crate::WorkItem>,
            orchestrator_items: ::std::vec::Vec<$crate::WorkItem>,
            metadata: $crate::ExecutionMetadata,
            cancelled_activities: ::std::vec::Vec<$crate::ScheduledActivityIdentifier>
        ) -> ());
    };
    (abandon_orchestration_item [] $target:tt) => {
        $crate::__forward_async!($target Provider abandon_orchestration_item ['life1] (
            lock_token: &'life1 str,
            delay: ::std::option::Option<::std::time::Duration>,
            ignore_attempt: bool
        ) -> ());
    };
    (read [] $target:tt) => {
        $crate::__forward_async!($target Provider read ['life1] (
            instance: &'life1 str
        ) -> ::std::vec::Vec<$crate::model::Event>);
    };
    (read_with_execution [] $target:tt) => {
        $crate::__forward_async!($target Provider read_with_execution ['life1] (
            instance: &'life1 str,
            execution_id: u64
        ) -> ::std::vec::Vec<$crate::model::Event>);
    };
    (append_with_execution [] $target:tt) => {
        $crate::__forward_async!($target Provider append_with_execution ['life1] (
            instance: &'life1 str,
            execution_id: u64,
            new_events: ::std::vec::Vec<$crate::model::Event>
        ) -> ());
    };
    (enqueue_for_worker [] $target:tt) => {
        $crate::__forward_async!($target Provider enqueue_for_worker [] (item: $crate::WorkItem) -> ());
    };
    (fetch_work_item [] $target:tt) => {
        $crate::__forward_async!($target Provider fetch_work_item ['life1 'life2] (
            lock_timeout: ::std::time::Duration,
            poll_timeout: ::std::time::Duration,
            session: ::std::option::Option<&'life1 $crate::SessionFetchConfig>,
            tag_filter: &'life2 $crate::TagFilter
        ) -> ::std::option::Option<($crate::WorkItem, ::std::string::String, u32)>);
    };
    (ack_work_item [] $target:tt) => {
        $crate::__forward_async!($target Provider ack_work_item ['life1] (
            token: &'life1 str,
            completion: ::std::option::Option<$crate::WorkItem>
        ) -> ());
    };
    (renew_work_item_lock [] $target:tt) => {
        $crate::__forward_async!($target Provider renew_work_item_lock ['life1] (
            token: &'life1 str,
            extend_for: ::std::time::Duration
        ) -> ());
    };
    (renew_session_lock [] $target:tt) => {
        $crate::__forward_async!($target Provider renew_session_lock ['life1 'life2] (
            owner_ids: &'life1 [&'life2 str],
            extend_for: ::std::time::Duration,
            idle_timeout: ::std::time::Duration
        ) -> usize);
    };
    (cleanup_orphaned_sessions [] $target:tt) => {
        $crate::__forward_async!($target Provider cleanup_orphaned_sessions [] (
            idle_timeout: ::std::time::Duration
        ) -> usize);
    };
    (abandon_work_item [] $target:tt) => {
        $crate::__forward_async!($target Provider abandon_work_item ['life1] (
            token: &'life1 str,
            delay: ::std::option::Option<::std::time::Duration>,
            ignore_attempt: bool
        ) -> ());
    };
    (renew_orchestration_item_lock [] $target:tt) => {
        $crate::__forward_async!($target Provider renew_orchestration_item_lock ['life1] (
            token: &'life1 str,
            extend_for: ::std::time::Duration
        ) -> ());
    };
    (enqueue_for_orchestrator [] $target:tt) => {
        $crate::__forward_async!($target Provider enqueue_for_orchestrator [] (
            item: $crate::WorkItem,
            delay: ::std::option::Option<::std::time::Duration>
        ) -> ());
    };
    (get_custom_status [] $target:tt) => {
        $crate::__forward_async!($target Provider get_custom_status ['life1] (
            instance: &'life1 str,
            last_seen_version: u64
        ) -> ::std::option::Option<(::std::option::Option<::std::string::String>, u64)>);
    };
    (get_kv_value [] $target:tt) => {
        $crate::__forward_async!($target Provider get_kv_value ['life1 'life2] (
            instance: &'life1 str,
            key: &'life2 str
        ) -> ::std::option::Option<::std::string::String>);
    };
    (get_kv_all_values [] $target:tt) => {
        $crate::__forward_async!($target Provider get_kv_all_values ['life1] (
            instance: &'life1 str
        ) -> ::std::collections::HashMap<::std::string::String, ::std::string::String>);
    };
    (get_instance_stats [] $target:tt) => {
        $crate::__forward_async!($target Provider get_instance_stats ['life1] (
            instance: &'life1 str
        ) -> ::std::option::Option<$crate::model::SystemStats>);
    };
    (fetch_turn [] $target:tt) => {
        $crate::__forward_async!($target Provider fetch_turn ['life1] (
            request: $crate::TurnRequest<'life1>
        ) -> ::std::option::Option<$crate::FetchedTurn>);
    };
    (load_turn [] $target:tt) => {
        $crate::__forward_async!($target Provider load_turn ['life1] (
            instance: &'life1 str,
            execution_id: u64
        ) -> $crate::LoadedTurn);
    };
    (load_turn_within [] $target:tt) => {
        $crate::__forward_async!($target Provider load_turn_within ['life1] (
            instance: &'life1 str,
            execution_id: u64,
            bound: $crate::HistoryBound
        ) -> $crate::BoundedTurn);
    };
    (commit_turn [] $target:tt) => {
        $crate::__forward_async!($target Provider commit_turn ['life1] (
            lock_token: &'life1 str,
            commit: $crate::TurnCommit
        ) -> ::std::option::Option<u64>);
    };
    (fetch_work_items [] $target:tt) => {
        $crate::__forward_async!($target Provider fetch_work_items ['life1] (
            request: $crate::WorkRequest<'life1>
        ) -> ::std::vec::Vec<$crate::FetchedWork>);
    };
    (complete_with_turn [] $target:tt) => {
        $crate::__forward_async!($target Provider complete_with_turn ['life1] (
            token: &'life1 str,
            completion: $crate::WorkItem,
            turn: $crate::TurnAhead
        ) -> $crate::Completion);
    };
    (complete_all_with_turn [] $target:tt) => {
        $crate::__forward_async!($target Provider complete_all_with_turn [] (
            outcomes: ::std::vec::Vec<$crate::LeasedOutcome>,
            turn: $crate::TurnAhead
        ) -> $crate::FusedCompletion);
    };
    (abandon_work_noted [] $target:tt) => {
        $crate::__forward_async!($target Provider abandon_work_noted ['life1 'life2] (
            token: &'life1 str,
            delay: ::std::option::Option<::std::time::Duration>,
            error: &'life2 str
        ) -> ());
    };
    (hold_turn [] $target:tt) => {
        $crate::__forward_async!($target Provider hold_turn ['life1 'life2] (
            lock_token: &'life1 str,
            hold: &'life2 $crate::Hold
        ) -> $crate::HoldOutcome);
    };
    (read_outcome [] $target:tt) => {
        $crate::__forward_async!($target Provider read_outcome ['life1] (
            instance: &'life1 str
        ) -> ::std::option::Option<$crate::InstanceOutcome>);
    };
    (enqueue_within [] $target:tt) => {
        $crate::__forward_async!($target Provider enqueue_within [] (
            item: $crate::WorkItem,
            most_waiting: usize
        ) -> bool);
    };
    (enqueue_once [] $target:tt) => {
        $crate::__forward_async!($target Provider enqueue_once ['life1] (
            item: $crate::WorkItem,
            key: &'life1 str,
            most_waiting: usize
        ) -> $crate::EnqueueOnce);
    };
    (start_orchestration [] $target:tt) => {
        $crate::__forward_async!($target Provider start_orchestration [] (
            request: $crate::StartRequest
        ) -> $crate::StartOutcome);
    };
    (start_with_turn [] $target:tt) => {
        $crate::__forward_async!($target Provider start_with_turn [] (
            start: $crate::WorkItem,
            turn: $crate::TurnAhead
        ) -> $crate::EagerStart);
    };
    // Methods of `ProviderAdmin`.
    (list_instances [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin list_instances [] (

        ) -> ::std::vec::Vec<::std::string::String>);
    };
    (list_instances_by_status [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin list_instances_by_status ['life1] (
            status: &'life1 str
        ) -> ::std::vec::Vec<::std::string::String>);
    };
    (list_executions [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin list_executions ['life1] (
            instance: &'life1 str
        ) -> ::std::vec::Vec<u64>);
    };
    (read_history_with_execution_id [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin read_history_with_execution_id ['life1] (
            instance: &'life1 str,
            execution_id: u64
        ) -> ::std::vec::Vec<$crate::model::Event>);
    };
    (read_history [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin read_history ['life1] (
            instance: &'life1 str
        ) -> ::std::vec::Vec<$crate::model::Event>);
    };
    (latest_execution_id [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin latest_execution_id ['life1] (
            instance: &'life1 str
        ) -> u64);
    };
    (get_instance_info [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin get_instance_info ['life1] (
            instance: &'life1 str
        ) -> $crate::InstanceInfo);
    };
    (get_execution_info [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin get_execution_info ['life1] (
            instance: &'life1 str,
            execution_id: u64
        ) -> $crate::ExecutionInfo);
    };
    (get_system_metrics [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin get_system_metrics [] () -> $crate::SystemMetrics);
    };
    (get_queue_depths [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin get_queue_depths [] () -> $crate::QueueDepths);
    };
    (list_children [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin list_children ['life1] (
            instance_id: &'life1 str
        ) -> ::std::vec::Vec<::std::string::String>);
    };
    (get_parent_id [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin get_parent_id ['life1] (
            instance_id: &'life1 str
        ) -> ::std::option::Option<::std::string::String>);
    };
    (delete_instances_atomic [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin delete_instances_atomic ['life1] (
            ids: &'life1 [::std::string::String],
            force: bool
        ) -> $crate::DeleteInstanceResult);
    };
    (get_instance_tree [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin get_instance_tree ['life1] (
            instance_id: &'life1 str
        ) -> $crate::InstanceTree);
    };
    (delete_instance [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin delete_instance ['life1] (
            instance_id: &'life1 str,
            force: bool
        ) -> $crate::DeleteInstanceResult);
    };
    (delete_instance_bulk [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin delete_instance_bulk [] (
            filter: $crate::InstanceFilter
        ) -> $crate::DeleteInstanceResult);
    };
    (prune_executions [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin prune_executions ['life1] (
            instance_id: &'life1 str,
            options: $crate::PruneOptions
        ) -> $crate::PruneResult);
    };
    (prune_executions_bulk [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin prune_executions_bulk [] (
            filter: $crate::InstanceFilter,
            options: $crate::PruneOptions
        ) -> $crate::PruneResult);
    };
    (query_instances [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin query_instances ['life1] (
            query: &'life1 $crate::InstanceQuery
        ) -> $crate::InstancePage);
    };
    (get_gauges [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin get_gauges [] () -> $crate::StoreGauges);
    };
    (oldest_due [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin oldest_due [] () -> ::std::option::Option<$crate::OldestDue>);
    };
    (list_dead_letters [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin list_dead_letters [] (
            limit: usize
        ) -> ::std::vec::Vec<$crate::DeadLetter>);
    };
    (dead_letter_page [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin dead_letter_page [] (
            before: ::std::option::Option<u64>,
            limit: usize
        ) -> ::std::option::Option<::std::vec::Vec<$crate::DeadLetterRecord>>);
    };
    (requeue_dead_letter [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin requeue_dead_letter ['life1] (
            id: u64,
            entry: &'life1 $crate::AuditEntry
        ) -> $crate::DeadLetterOutcome);
    };
    (drop_dead_letter [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin drop_dead_letter ['life1] (
            id: u64,
            entry: &'life1 $crate::AuditEntry
        ) -> $crate::DeadLetterOutcome);
    };
    (pending [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin pending ['life1] (
            instance: &'life1 str,
            limit: usize
        ) -> ::std::option::Option<$crate::PendingWork>);
    };
    (queue_page [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin queue_page ['life1] (
            queue: $crate::DeadLetterQueue,
            after: ::std::option::Option<&'life1 str>,
            limit: usize
        ) -> ::std::option::Option<$crate::QueuePage>);
    };
    (tag_depths [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin tag_depths [] (
            limit: usize
        ) -> ::std::option::Option<::std::vec::Vec<$crate::TagDepth>>);
    };
    (history_page [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin history_page ['life1] (
            instance: &'life1 str,
            execution_id: u64,
            after: u64,
            limit: usize
        ) -> ::std::vec::Vec<$crate::model::Event>);
    };
    (hold_instance [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin hold_instance ['life1 'life2] (
            instance: &'life1 str,
            hold: &'life2 $crate::Hold
        ) -> $crate::HoldOutcome);
    };
    (release_instance [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin release_instance ['life1] (
            instance: &'life1 str
        ) -> $crate::ReleaseOutcome);
    };
    (held_instance [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin held_instance ['life1] (
            instance: &'life1 str
        ) -> ::std::option::Option<$crate::HeldInstance>);
    };
    (list_held [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin list_held ['life1] (
            after: ::std::option::Option<&'life1 str>,
            limit: usize
        ) -> ::std::vec::Vec<$crate::HeldInstance>);
    };
    (count_held [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin count_held [] () -> ::std::option::Option<$crate::HeldCounts>);
    };
    (pause_orchestration [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin pause_orchestration ['life1 'life2 'life3] (
            orchestration: &'life1 str,
            actor: &'life2 str,
            reason: &'life3 str
        ) -> $crate::HoldOutcome);
    };
    (resume_orchestration [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin resume_orchestration ['life1] (
            orchestration: &'life1 str
        ) -> $crate::ReleaseOutcome);
    };
    (paused_orchestrations [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin paused_orchestrations [] (
        ) -> ::std::option::Option<::std::vec::Vec<$crate::PausedOrchestration>>);
    };
    (append_audit [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin append_audit ['life1] (
            entry: &'life1 $crate::AuditEntry
        ) -> bool);
    };
    (audit_page [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin audit_page [] (
            before: ::std::option::Option<u64>,
            limit: usize
        ) -> ::std::option::Option<::std::vec::Vec<$crate::AuditRecord>>);
    };
    (reset_instance [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin reset_instance ['life1] (
            plan: &'life1 $crate::ResetPlan
        ) -> $crate::ResetOutcome);
    };
    (export_instance [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin export_instance ['life1] (
            instance: &'life1 str
        ) -> $crate::ExportOutcome);
    };
    (import_instance [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin import_instance ['life1 'life2] (
            snapshot: &'life1 $crate::InstanceSnapshot,
            audit: &'life2 $crate::AuditEntry
        ) -> $crate::ImportOutcome);
    };
    (list_unstarted [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin list_unstarted ['life1] (
            after: ::std::option::Option<&'life1 str>,
            limit: usize
        ) -> ::std::vec::Vec<::std::string::String>);
    };
    (oldest_instances [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin oldest_instances [] (
            after: ::std::option::Option<u64>,
            limit: usize
        ) -> ::std::option::Option<$crate::OldestPage>);
    };
    (delete_ended [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin delete_ended ['life1] (
            roots: &'life1 [::std::string::String],
            ended_before: u64
        ) -> ::std::option::Option<$crate::DeleteInstanceResult>);
    };
    (prune_audit [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin prune_audit [] (
            before_ms: u64,
            limit: usize
        ) -> ::std::option::Option<u64>);
    };
    (prune_dead_letters [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin prune_dead_letters [] (
            before_ms: u64,
            limit: usize
        ) -> ::std::option::Option<u64>);
    };
    (announce_node [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin announce_node ['life1] (
            report: &'life1 $crate::NodeReport,
            live: ::std::time::Duration,
            kept: ::std::time::Duration
        ) -> bool);
    };
    (remove_node [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin remove_node ['life1] (
            node_id: &'life1 str
        ) -> bool);
    };
    (nodes [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin nodes ['life1] (
            after: ::std::option::Option<&'life1 str>,
            limit: usize
        ) -> ::std::option::Option<::std::vec::Vec<$crate::NodeRecord>>);
    };
    (sweep_nodes [] $target:tt) => {
        $crate::__forward_async!($target ProviderAdmin sweep_nodes [] (
            limit: usize
        ) -> u64);
    };
    ($name:ident [] [$($target:tt)+]) => {
        compile_error!(concat!("`forward_provider!` does not forward `", stringify!($name), "`"));
    };
}

/// An asynchronous method as `async_trait` writes it. It returns the future of the store inside, or the wrapper's future
/// around that.
#[doc(hidden)]
#[macro_export]
macro_rules! __forward_async {
    (
        [$this:ident $inner:expr $(, $around:ident)?] $trait:ident $name:ident [$($life:lifetime)*]
        ($($argument:ident: $type:ty),*) -> $ok:ty
    ) => {
        fn $name<'life0, $($life,)* 'async_trait>(
            &'life0 self
            $(, $argument: $type)*
        ) -> ::std::pin::Pin<::std::boxed::Box<
            dyn ::std::future::Future<Output = ::std::result::Result<$ok, $crate::ProviderError>>
                + ::std::marker::Send
                + 'async_trait,
        >>
        where
            'life0: 'async_trait,
            $($life: 'async_trait,)*
            Self: 'async_trait,
        {
            #[allow(unused_imports)]
            use $crate::$trait as _;
            let $this = self;
            let call = $inner.$name($($argument),*);
            $(let call = ::std::boxed::Box::pin($this.$around(stringify!($name), call));)?
            call
        }
    };
}
