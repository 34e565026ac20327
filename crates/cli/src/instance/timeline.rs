//! `outlast instance timeline`

use super::args::TimelineArgs;
use super::execution;
use super::gantt::{Look, draw};
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use crate::terminal;
use outlast::lens::{Timeline, TimelineOptions, counted, moment, span, timeline};
use outlast::providers::{Clock, SystemClock};
use serde::Serialize;

/// The width of the chart if standard output is not a terminal.
const PLAIN_WIDTH: usize = 100;

pub(super) async fn run(args: TimelineArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    let (execution, events) = execution(&client, &place, &args.instance, args.execution).await?;
    let mut options = TimelineOptions::default();
    options.folds_retries = !args.tries;
    let timeline = timeline(&events, SystemClock.now_ms(), &options);
    let drawn = Drawn { instance: args.instance, execution, timeline };
    let look = Look { width: terminal::width().unwrap_or(PLAIN_WIDTH), colours: terminal::has_colours() };
    print(args.common.output, &drawn, |drawn| drawn.text(&look))
}

#[derive(Serialize)]
struct Drawn {
    instance: String,
    execution: u64,
    #[serde(flatten)]
    timeline: Timeline,
}

impl Drawn {
    fn text(&self, look: &Look) -> String {
        let found = &self.timeline;
        let events = counted(found.events, "event");
        let title = format!("{} execution {}, {events}", plain(&self.instance), self.execution);
        let end = if found.is_running { "now".to_string() } else { moment(found.to_ms) };
        let took = span(found.to_ms - found.from_ms);
        let mut text = format!("{title}\n{} (UTC) to {end}, {took}\n", moment(found.from_ms));
        for gap in &found.gaps {
            let (from, length) = (moment(gap.from_ms), span(gap.to_ms - gap.from_ms));
            text.push_str(&format!("idle ~~~ from {from}, {length}\n"));
        }
        if found.is_grouped {
            text.push_str("grouped: one line per name\n");
        }
        text + &draw(found, look)
    }
}
