//! The statements, one per file, with the schema put in when a store is opened.

use crate::names::SchemaName;

macro_rules! statements {
    ($($name:ident),+ $(,)?) => {
        /// Every statement of a store in its schema.
        pub(crate) struct Statements {
            $(pub(crate) $name: String,)+
        }

        impl Statements {
            pub(crate) fn of(schema: &SchemaName) -> Self {
                Self { $($name: schema.put_into(include_str!(concat!("sql/", stringify!($name), ".sql"))),)+ }
            }
        }
    };
}

statements!(
    abandon,
    append,
    append_audit,
    audit_page,
    bulk_candidates,
    dead_letter_activities,
    cleanup_sessions,
    commit,
    commit_alone,
    count_attention,
    count_held,
    create_ledger,
    create_schema,
    custom_status,
    delete_instances,
    drop_objects,
    drop_schema,
    enqueue_activities,
    enqueue_messages,
    execution_info,
    existing_event,
    fetch_activities,
    fetch_turns,
    foreign_name,
    forward_notification,
    gauges,
    held_instance,
    history_outline,
    history_page,
    history_size,
    hold,
    hold_turn,
    idle_listeners,
    instance_info,
    instance_stats,
    instance_tree,
    kv_snapshot,
    kv_stats,
    kv_value,
    kv_view,
    last_event,
    leases_in_doubt,
    ledger_exists,
    limits_in_force,
    list_attention,
    list_attention_ids,
    list_children,
    list_dead_letters,
    list_executions,
    list_held,
    list_instance_ids,
    list_instances,
    listen,
    lock_instances,
    lock_leases,
    lock_migrations,
    newest_execution,
    notify,
    orphan_of,
    outcomes,
    parent_of,
    pending_activities,
    pending_messages,
    pending_summary,
    prune,
    prune_candidates,
    queue_depths,
    read_history,
    read_ledger,
    read_newest_history,
    read_texts,
    register_listener,
    release,
    renew,
    renew_sessions,
    reset,
    running_of,
    schema_exists,
    set_aside,
    settle_turn,
    start,
    stored_commit,
    system_metrics,
    unregister_listener,
    window_end,
    write_ledger,
);
