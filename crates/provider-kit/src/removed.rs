//! Sums of the results of deletions and prunes, for operations on many instances.

use outlast_provider::{DeleteInstanceResult, PruneResult};

/// Adds the counts of one deletion to those of an operation.
pub fn add_deleted(total: &mut DeleteInstanceResult, more: &DeleteInstanceResult) {
    total.instances_deleted += more.instances_deleted;
    total.executions_deleted += more.executions_deleted;
    total.events_deleted += more.events_deleted;
    total.queue_messages_deleted += more.queue_messages_deleted;
}

/// Adds the counts of one prune to those of an operation.
pub fn add_pruned(total: &mut PruneResult, more: &PruneResult) {
    total.instances_processed += more.instances_processed;
    total.executions_deleted += more.executions_deleted;
    total.events_deleted += more.events_deleted;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_added() {
        let mut deleted = DeleteInstanceResult {
            instances_deleted: 1,
            executions_deleted: 2,
            events_deleted: 3,
            queue_messages_deleted: 4,
        };
        let once = deleted.clone();
        add_deleted(&mut deleted, &once);
        let counts = [deleted.instances_deleted, deleted.executions_deleted, deleted.events_deleted];
        assert_eq!((counts, deleted.queue_messages_deleted), ([2, 4, 6], 8));

        let mut pruned = PruneResult { instances_processed: 1, executions_deleted: 2, events_deleted: 3 };
        let once = pruned.clone();
        add_pruned(&mut pruned, &once);
        assert_eq!((pruned.instances_processed, pruned.executions_deleted, pruned.events_deleted), (2, 4, 6));
    }
}
