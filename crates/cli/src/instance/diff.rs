//! `outlast instance diff`

use super::args::DiffArgs;
use super::execution;
use crate::failure::Failure;
use crate::output::{plain, print, table};
use crate::store::{self, Intent};
use outlast::lens::{Comparison, Diff, DiffRow, EventLine, counted, diff};
use serde::Serialize;

pub(super) async fn run(args: DiffArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    let (left, left_events) = execution(&client, &place, &args.instance, args.execution).await?;
    let (right, right_events) = execution(&client, &place, &args.other, args.other_execution).await?;
    let compared = Compared {
        left: Side { instance: args.instance, execution: left, events: left_events.len() },
        right: Side { instance: args.other, execution: right, events: right_events.len() },
        diff: diff(&left_events, &right_events),
    };
    print(args.common.output, &compared, Compared::text)
}

#[derive(Serialize)]
struct Compared {
    left: Side,
    right: Side,
    #[serde(flatten)]
    diff: Diff,
}

#[derive(Serialize)]
struct Side {
    instance: String,
    execution: u64,
    events: usize,
}

impl Compared {
    fn text(&self) -> String {
        let side = |side: &Side| {
            let events = counted(side.events, "event");
            format!("{} execution {}, {events}", plain(&side.instance), side.execution)
        };
        let rows: Vec<Vec<String>> =
            (1..).zip(&self.diff.rows).map(|(number, row)| line(number, row)).collect();
        format!(
            "left   {}\nright  {}\n{}\n{}",
            side(&self.left),
            side(&self.right),
            self.summary(),
            table(&["", "EVENT", "LEFT", "RIGHT"], &rows)
        )
    }

    fn summary(&self) -> String {
        let payload = match self.diff.first_payload_difference {
            Some(at) => format!(", with other payloads from event {at} on (~)"),
            None => String::new(),
        };
        match self.diff.first_difference {
            Some(at) => format!("The histories differ first at event {at} (!){payload}."),
            None => format!("The histories are equal{payload}."),
        }
    }
}

fn line(number: usize, row: &DiffRow) -> Vec<String> {
    let mark = match row.comparison {
        Comparison::Same => "",
        Comparison::Payload => "~",
        Comparison::Different => "!",
    };
    let event = |line: &Option<EventLine>| line.as_ref().map(event_text).unwrap_or_default();
    vec![mark.to_string(), number.to_string(), event(&row.left), event(&row.right)]
}

fn event_text(line: &EventLine) -> String {
    let source = line.source_event_id.map_or(String::new(), |source| format!(" of {source}"));
    let details = if line.details.is_empty() { String::new() } else { format!(" {}", line.details) };
    plain(&format!("{}{source}{details}", line.kind))
}
