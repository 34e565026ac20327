//! Size figures of an instance.

use crate::golden::{self, Row};
use outlast_model::SystemStats;

pub(crate) fn rows() -> Vec<Row<SystemStats>> {
    let stats = SystemStats {
        history_event_count: 1,
        history_size_bytes: 2,
        queue_pending_count: 3,
        kv_user_key_count: 4,
        kv_total_value_bytes: u64::MAX,
    };
    let text = r#"{"history_event_count":1,"history_size_bytes":2,"queue_pending_count":3,"kv_user_key_count":4,"kv_total_value_bytes":18446744073709551615}"#;
    vec![(stats, text.to_string())]
}

#[test]
fn figures_have_their_text() {
    golden::check(&rows());
}
