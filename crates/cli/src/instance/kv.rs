//! `outlast instance kv`

use super::args::KvArgs;
use super::unknown;
use crate::failure::Failure;
use crate::output::{plain, print, print_list, table};
use crate::store::{self, Intent};
use outlast::client::Client;
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;
use std::io::{self, IsTerminal};

pub(super) async fn run(args: KvArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    if client.get_orchestration_status(&args.instance).await? == OrchestrationStatus::NotFound {
        return Err(unknown(&args.instance, &place));
    }
    let Some(key) = args.key else {
        let state = State::read(&client, args.instance).await?;
        return print_list(args.common.output, &state, &state.values, None, State::text);
    };
    match client.get_kv_value(&args.instance, &key).await? {
        Some(value) => print(args.common.output, &Entry { key, value }, Entry::text),
        None => Err(Failure::not_found(format!(
            "instance '{0}' has no key '{key}': `outlast instance kv {0}` shows its keys",
            args.instance
        ))),
    }
}

#[derive(Serialize)]
struct State {
    instance: String,
    /// By ascending key.
    values: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    key: String,
    value: String,
}

impl State {
    async fn read(client: &Client, instance: String) -> Result<Self, Failure> {
        let values = client.get_kv_all_values(&instance).await?;
        let mut values: Vec<Entry> = values.into_iter().map(|(key, value)| Entry { key, value }).collect();
        values.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(Self { instance, values })
    }

    fn text(&self) -> String {
        if self.values.is_empty() {
            return format!("Instance '{}' has no keys.\n", plain(&self.instance));
        }
        let row = |entry: &Entry| vec![plain(&entry.key), plain(&entry.value)];
        table(&["KEY", "VALUE"], &self.values.iter().map(row).collect::<Vec<_>>())
    }
}

impl Entry {
    /// The value alone. Programs get it as it is stored; on a terminal it could move the cursor.
    fn text(&self) -> String {
        match io::stdout().is_terminal() {
            true => format!("{}\n", plain(&self.value)),
            false => format!("{}\n", self.value),
        }
    }
}
