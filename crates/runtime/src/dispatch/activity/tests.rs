//! The orchestration name and version that an activity context reports.

use super::*;
use crate::dispatch::fixture::{core, started, store};

#[tokio::test(start_paused = true)]
async fn name_and_version_of_the_orchestration_are_read_from_its_history() {
    let core = core();
    store(&core, "i", 1, vec![started()]).await;
    let pair = |name: &str, version: &str| (name.to_string(), version.to_string());
    assert_eq!(read_orchestration(&core, "i").await, pair("O", "1.2.3"));
    assert_eq!(read_orchestration(&core, "missing").await, pair("unknown", "unknown"));
}
