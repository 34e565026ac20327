//! The row with which a dead letter returns to its queue.

use crate::plan::{ActivityRow, MessageRow, activity_row, message_row};
use crate::rows;
use outlast_provider::{DeadLetter, DeadLetterQueue};

/// The row of a dead letter in its queue.
#[derive(Debug, Clone)]
pub enum RequeuedRow {
    /// A message.
    Message(MessageRow),
    /// An activity.
    Activity(ActivityRow),
}

impl RequeuedRow {
    /// The row of a dead letter with its stored text, or the reason why a fetch could not deliver it.
    pub fn of(letter: &DeadLetter) -> Result<Self, String> {
        const REQUEUE: &str = "requeue_dead_letter";
        let instance = letter.instance_id.as_deref().unwrap_or_default();
        let text = letter.work_item.clone();
        match letter.queue {
            DeadLetterQueue::Orchestrator => {
                let item = rows::decode_message(instance, &text)?;
                let row = message_row(REQUEUE, &item).map_err(|error| error.to_string())?;
                Ok(Self::Message(MessageRow { work_item: text, ..row }))
            }
            DeadLetterQueue::Worker => {
                let item = rows::decode_activity(instance, &text)?;
                let row = activity_row(REQUEUE, &item).map_err(|error| error.to_string())?;
                Ok(Self::Activity(ActivityRow { work_item: text, ..row }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(queue: DeadLetterQueue, instance: &str, text: &str) -> DeadLetter {
        DeadLetter {
            queue,
            instance_id: Some(instance.to_string()),
            work_item: text.to_string(),
            reason: "r".to_string(),
            attempt_count: 3,
            dead_at: 0,
        }
    }

    #[test]
    fn a_dead_letter_returns_with_its_stored_text() {
        let text = r#"{ "TimerFired": {"instance":"i","execution_id":1,"id":2,"fire_at_ms":70} }"#;
        let Ok(RequeuedRow::Message(row)) =
            RequeuedRow::of(&letter(DeadLetterQueue::Orchestrator, "i", text))
        else {
            panic!("a message")
        };
        assert_eq!(
            (row.work_item.as_str(), row.instance_id.as_str(), row.not_before, row.begins),
            (text, "i", 70, false)
        );
        let text = r#"{"ActivityExecute":{"instance":"i","execution_id":3,"id":4,"name":"A","input":"","tag":"gpu"}}"#;
        let Ok(RequeuedRow::Activity(row)) = RequeuedRow::of(&letter(DeadLetterQueue::Worker, "i", text))
        else {
            panic!("an activity")
        };
        assert_eq!(
            (row.work_item.as_str(), row.execution_id, row.activity_id, row.tag.as_deref()),
            (text, 3, 4, Some("gpu"))
        );
    }

    #[test]
    fn a_dead_letter_of_another_instance_or_queue_is_refused() {
        let text = r#"{"CancelInstance":{"instance":"i","reason":""}}"#;
        assert!(RequeuedRow::of(&letter(DeadLetterQueue::Orchestrator, "i", text)).is_ok());
        for (queue, instance, text) in [
            (DeadLetterQueue::Orchestrator, "j", text),
            (DeadLetterQueue::Worker, "i", text),
            (DeadLetterQueue::Orchestrator, "i", "damaged"),
        ] {
            assert!(RequeuedRow::of(&letter(queue, instance, text)).is_err(), "{queue:?} {instance} {text}");
        }
    }
}
