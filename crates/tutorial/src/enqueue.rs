//! Step 2: messages and activities are enqueued.

use crate::state::{Activity, Message, State};
use outlast_provider::{ProviderError, WorkItem};
use outlast_provider_kit::plan::{self, ActivityRow, MessageRow};
use std::time::Duration;

// guide: enqueue
impl State {
    pub(crate) fn enqueue_for_orchestrator(
        &mut self,
        item: &WorkItem,
        delay: Option<Duration>,
        now: u64,
    ) -> Result<(), ProviderError> {
        let row = plan::message_row("enqueue_for_orchestrator", item)?;
        self.push_message(row, delay, now);
        Ok(())
    }

    pub(crate) fn push_message(&mut self, row: MessageRow, delay: Option<Duration>, now: u64) {
        // A message becomes visible after its delay, and a timer not before its time.
        let visible_at = plan::visible_at(&row, now, delay);
        let message = Message {
            instance: row.instance_id,
            text: row.work_item,
            begins: row.begins,
            visible_at,
            available_at: visible_at,
            token: None,
            attempts: 0,
        };
        let ordinal = self.next_ordinal();
        self.messages.insert(ordinal, message);
    }
    // guide: end

    pub(crate) fn enqueue_for_worker(&mut self, item: &WorkItem, now: u64) -> Result<(), ProviderError> {
        self.push_activity(plan::activity_row("enqueue_for_worker", item)?, now);
        Ok(())
    }

    pub(crate) fn push_activity(&mut self, row: ActivityRow, now: u64) {
        let activity = Activity {
            instance: row.instance_id,
            execution_id: row.execution_id,
            activity_id: row.activity_id,
            session: row.session_id,
            tag: row.tag,
            text: row.work_item,
            visible_at: now,
            lease: None,
            attempts: 0,
        };
        let ordinal = self.next_ordinal();
        self.activities.insert(ordinal, activity);
    }
}
