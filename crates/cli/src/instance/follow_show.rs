//! `outlast instance show --follow`: the instance after every change.

use super::args::ShowArgs;
use super::deleted;
use super::show::{Shown, missing, read};
use crate::args::Format;
use crate::failure::Failure;
use crate::follow::{Redraw, Step, check_format, follow};
use crate::output::{line, write};
use crate::store::{self, Intent};
use outlast::client::Client;
use serde_json::Value;

/// The number of reads after which the text is drawn again without a change, because it has times that pass.
const READS_PER_TICK: u32 = 4;

pub(super) async fn run(args: ShowArgs) -> Result<(), Failure> {
    check_format(args.common.output)?;
    let place = args.common.store.place()?;
    let store = store::open_provider(&place, Intent::Read).await?;
    let client = Client::new(store.clone());
    let (instance, format) = (args.instance.as_str(), args.common.output);
    let mut printed = Printed { format, last: None, reads: 0, redraw: Redraw::default() };
    follow(&*store, Some(instance), async || match (read(&client, instance).await?, &printed.last) {
        (Some(shown), _) => printed.next(&shown),
        (None, Some(_)) => Err(deleted(instance)),
        (None, None) => Err(missing(&client, instance, &place).await?),
    })
    .await
}

/// The state that was printed last.
struct Printed {
    format: Format,
    last: Option<Value>,
    /// The reads since the text was drawn.
    reads: u32,
    redraw: Redraw,
}

impl Printed {
    fn next(&mut self, shown: &Shown) -> Result<Step, Failure> {
        let state = state(shown)?;
        let is_new = self.last.as_ref() != Some(&state);
        self.reads += 1;
        match self.format {
            Format::Table if is_new || (Redraw::is_in_place() && self.reads >= READS_PER_TICK) => {
                self.redraw.print(&shown.text(), shown.has_ended())?;
                self.reads = 0;
            }
            Format::Json | Format::Jsonl if is_new => write(&line(shown)?)?,
            _ => {}
        }
        self.last = Some(state);
        Ok(if shown.has_ended() { Step::Ended } else { Step::Continues })
    }
}

/// The instance without the times that change while it waits: the present, durations in the sentence, and the ends of leases, which
/// are renewed.
fn state(shown: &Shown) -> Result<Value, Failure> {
    let mut state = serde_json::to_value(shown).map_err(|error| Failure::new(error.to_string()))?;
    forget(&mut state);
    Ok(state)
}

fn forget(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["now_ms", "sentence", "lease_until_ms"].contains(&name.as_str()));
            fields.values_mut().for_each(forget);
        }
        Value::Array(values) => values.iter_mut().for_each(forget),
        _ => {}
    }
}
