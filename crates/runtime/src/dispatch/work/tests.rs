//! What activities are told about who called them.

use super::*;
use crate::dispatch::fixture::{core, started, store};

#[tokio::test(start_paused = true)]
async fn who_scheduled_an_activity_is_read_where_the_store_does_not_say_it() {
    let core = core();
    store(&core, "i", 1, vec![started()]).await;
    let pair = |name: &str, version: &str| (name.to_string(), version.to_string());
    assert_eq!(descriptor(&core, "i").await, pair("O", "1.2.3"));
    assert_eq!(descriptor(&core, "nobody").await, pair("unknown", "unknown"));
}
