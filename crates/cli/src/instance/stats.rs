//! `outlast instance stats`

use super::args::StatsArgs;
use super::unknown;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use outlast::lens::counted;
use serde::Serialize;

pub(super) async fn run(args: StatsArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    let Some(stats) = client.get_orchestration_stats(&args.instance).await? else {
        return Err(unknown(&args.instance, &place));
    };
    let kept = client.list_executions(&args.instance).await?;
    let stats = Stats {
        instance: args.instance,
        execution: kept.last().copied().unwrap_or(outlast::INITIAL_EXECUTION_ID),
        executions: kept.len(),
        events: stats.history_event_count,
        history_bytes: stats.history_size_bytes,
        messages_taken_over: stats.queue_pending_count,
        keys: stats.kv_user_key_count,
        value_bytes: stats.kv_total_value_bytes,
    };
    print(args.common.output, &stats, Stats::text)
}

#[derive(Serialize)]
struct Stats {
    instance: String,
    /// The current execution.
    execution: u64,
    /// The executions that the store keeps.
    executions: usize,
    /// Events of the current execution.
    events: u64,
    history_bytes: u64,
    /// Queue messages that the current execution took over from its predecessor.
    messages_taken_over: u64,
    keys: u64,
    value_bytes: u64,
}

impl Stats {
    fn text(&self) -> String {
        let execution = match self.executions {
            0 | 1 => self.execution.to_string(),
            kept => format!("{} ({kept} are kept)", self.execution),
        };
        let rows = [
            ("instance", plain(&self.instance)),
            ("execution", execution),
            ("events", self.events.to_string()),
            ("history bytes", self.history_bytes.to_string()),
            ("taken over", counted(self.messages_taken_over, "message")),
            ("keys", self.keys.to_string()),
            ("value bytes", self.value_bytes.to_string()),
        ];
        rows.iter().map(|(name, value)| format!("{name:<15}{value}\n")).collect()
    }
}
