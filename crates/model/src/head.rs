//! The head of a stored work item: its kind, name and ids, without its payload.

use crate::{WorkItem, json};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// Characters of a stored work item that hold its head: the payload comes last.
pub const HEAD_CHARS: usize = 16_384;

/// The head of a work item, for tools that show queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkItemHead {
    /// The name of its variant.
    pub kind: String,
    /// The name of the activity, orchestration, event or queue, if the item has one.
    pub name: Option<String>,
    /// The execution that the item belongs to, if it belongs to one.
    pub execution_id: Option<u64>,
    /// The scheduling event of the activity, timer or child that the item runs or answers.
    pub id: Option<u64>,
}

impl WorkItem {
    /// The head of the item.
    pub fn head(&self) -> WorkItemHead {
        let (name, execution_id, id) = match self {
            Self::StartOrchestration { orchestration, execution_id, .. } => {
                (Some(orchestration), Some(*execution_id), None)
            }
            Self::ContinueAsNew { orchestration, .. } => (Some(orchestration), None, None),
            Self::ActivityExecute { name, execution_id, id, .. } => {
                (Some(name), Some(*execution_id), Some(*id))
            }
            Self::ActivityCompleted { execution_id, id, .. }
            | Self::ActivityFailed { execution_id, id, .. }
            | Self::TimerFired { execution_id, id, .. } => (None, Some(*execution_id), Some(*id)),
            Self::SubOrchCompleted { parent_execution_id, parent_id, .. }
            | Self::SubOrchFailed { parent_execution_id, parent_id, .. } => {
                (None, Some(*parent_execution_id), Some(*parent_id))
            }
            Self::ExternalRaised { name, .. } | Self::QueueMessage { name, .. } => (Some(name), None, None),
            Self::CancelInstance { .. } => (None, None, None),
            #[cfg(feature = "replay-version-test")]
            Self::ExternalRaised2 { name, .. } => (Some(name), None, None),
        };
        WorkItemHead { kind: self.kind_name().to_string(), name: name.cloned(), execution_id, id }
    }
}

/// Decodes a head from the first [`HEAD_CHARS`] characters of a stored work item; `None` if they do not decode. Fields after a
/// large payload are missing.
pub fn decode_head(text: &str) -> Option<WorkItemHead> {
    if text.chars().count() < HEAD_CHARS {
        return json::decode_work_item(text).ok().map(|item| item.head());
    }
    let mut head = WorkItemHead::default();
    // The text is cut, so decoding ends with an error. The fields before the cut count.
    let _ = Item(&mut head).deserialize(&mut serde_json::Deserializer::from_str(text));
    (!head.kind.is_empty()).then_some(head)
}

struct Item<'a>(&'a mut WorkItemHead);

impl<'de> DeserializeSeed<'de> for Item<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Item<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a work item")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let kind: String = map.next_key()?.ok_or_else(|| A::Error::custom("no variant"))?;
        self.0.kind = kind;
        map.next_value_seed(Fields(self.0))
    }
}

struct Fields<'a>(&'a mut WorkItemHead);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields of a work item")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "name" | "orchestration" => self.0.name = Some(map.next_value()?),
                "execution_id" | "parent_execution_id" if self.0.kind != "ContinueAsNew" => {
                    self.0.execution_id = map.next_value()?;
                }
                "id" => self.0.id = map.next_value()?,
                "parent_id" if self.0.kind.starts_with("SubOrch") => self.0.id = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AppErrorKind;
    use crate::ErrorDetails;

    fn items(payload: &str) -> Vec<WorkItem> {
        let instance = || "order-\"1\"".to_string();
        let payload = || payload.to_string();
        let details = || ErrorDetails::Application {
            kind: AppErrorKind::OrchestrationFailed,
            message: payload(),
            retryable: false,
        };
        vec![
            WorkItem::ActivityExecute {
                instance: instance(),
                execution_id: 2,
                id: 3,
                name: "Charge".into(),
                input: payload(),
                session_id: None,
                tag: None,
            },
            WorkItem::ActivityCompleted { instance: instance(), execution_id: 2, id: 4, result: payload() },
            WorkItem::ActivityFailed { instance: instance(), execution_id: 2, id: 5, details: details() },
            WorkItem::TimerFired { instance: instance(), execution_id: 2, id: 6, fire_at_ms: 7 },
            WorkItem::ExternalRaised { instance: instance(), name: "approve".into(), data: payload() },
            WorkItem::QueueMessage { instance: instance(), name: "orders".into(), data: payload() },
            WorkItem::SubOrchCompleted {
                parent_instance: instance(),
                parent_execution_id: 2,
                parent_id: 8,
                result: payload(),
            },
            WorkItem::SubOrchFailed {
                parent_instance: instance(),
                parent_execution_id: 2,
                parent_id: 9,
                details: details(),
            },
            WorkItem::CancelInstance { instance: instance(), reason: payload() },
            WorkItem::ContinueAsNew {
                instance: instance(),
                orchestration: "Order".into(),
                input: payload(),
                version: None,
                parent_instance: None,
                parent_id: Some(1),
                parent_execution_id: Some(1),
                carry_forward_events: vec![],
                initial_custom_status: None,
            },
        ]
    }

    #[test]
    fn head_of_a_cut_text_equals_head_of_the_item() {
        for payload in ["", &"é\"".repeat(HEAD_CHARS)] {
            for item in items(payload) {
                let text: String = json::encode_work_item(&item).unwrap().chars().take(HEAD_CHARS).collect();
                assert_eq!(decode_head(&text), Some(item.head()), "{}", item.kind_name());
            }
        }
    }

    #[test]
    fn damaged_work_item_text_has_no_head() {
        for text in ["", "NOT_VALID_JSON{{{", "{\"Unheard\":{}}", &"x".repeat(HEAD_CHARS)] {
            assert_eq!(decode_head(text), None);
        }
    }
}
