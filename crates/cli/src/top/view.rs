//! Draws the screen.

use super::figures::{Figures, MOST_DEAD_LETTERS, MOST_RUNNING};
use crate::output::plain;
use outlast::lens::{grouped, moment, span};
use outlast::providers::QueueBacklog;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table};

/// The smallest screen.
pub(super) const LEAST_COLUMNS: u16 = 70;
pub(super) const LEAST_ROWS: u16 = 14;

/// The rows of the boxes above the waits.
const BOXES: u16 = 7;

pub(super) struct Look {
    pub(super) colours: bool,
}

impl Look {
    /// The style of a number that an operator should look at.
    fn alarm(&self, is_bad: bool) -> Style {
        match (is_bad, self.colours) {
            (false, _) => Style::new(),
            (true, true) => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            (true, false) => Style::new().add_modifier(Modifier::BOLD),
        }
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, figures: &Figures, look: &Look) {
    let area = frame.area();
    if area.width < LEAST_COLUMNS || area.height < LEAST_ROWS {
        let text = format!(
            "The terminal is too small: {LEAST_COLUMNS} columns and {LEAST_ROWS} rows are needed. q ends."
        );
        frame.render_widget(Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }), area);
        return;
    }
    let [top, boxes, waits, bottom] = area.layout(&Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(BOXES),
        Constraint::Min(3),
        Constraint::Length(1),
    ]));
    let [instances, queues, rates] = boxes.layout(&Layout::horizontal([
        Constraint::Length(20),
        Constraint::Min(30),
        Constraint::Length(18 + (area.width - LEAST_COLUMNS) / 4),
    ]));
    title(frame, top, figures);
    draw_instances(frame, instances, figures, look);
    draw_queues(frame, queues, figures, look);
    draw_rates(frame, rates, figures);
    draw_waits(frame, waits, figures);
    draw_bottom(frame, bottom, figures, look);
}

fn title(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let time = format!("{} UTC", moment(figures.now_ms).split('.').next().unwrap_or_default());
    let [left, right] = area.layout(&Layout::horizontal([
        Constraint::Min(10),
        Constraint::Length(u16::try_from(time.chars().count()).unwrap_or(0)),
    ]));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let store = Line::from(vec![
        Span::styled("outlast top", bold),
        Span::raw(format!("  {}", plain(&figures.store))),
    ]);
    frame.render_widget(Paragraph::new(store), left);
    frame.render_widget(Paragraph::new(time), right);
}

/// A name at the left and a number at the right of a box.
fn figure(name: &str, number: &str, width: u16, style: Style) -> Line<'static> {
    let room = usize::from(width).saturating_sub(name.chars().count());
    Line::from(vec![Span::raw(name.to_string()), Span::styled(format!("{number:>room$}"), style)])
}

fn draw_instances(frame: &mut Frame<'_>, area: Rect, figures: &Figures, look: &Look) {
    let block = Block::bordered().title(" Instances ");
    let width = block.inner(area).width;
    // All from one read, so that the parts add up.
    let totals = &figures.totals;
    let held = figures.held.map_or(0, |held| held.instances);
    let lines = vec![
        figure("Running", &grouped(totals.running_instances), width, Style::new()),
        figure("Completed", &grouped(totals.completed_instances), width, Style::new()),
        figure("Failed", &grouped(totals.failed_instances), width, look.alarm(totals.failed_instances > 0)),
        figure("Held", &grouped(held), width, Style::new()),
        figure("Total", &grouped(totals.total_instances), width, Style::new()),
    ];
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_queues(frame: &mut Frame<'_>, area: Rect, figures: &Figures, look: &Look) {
    let gauges = &figures.gauges;
    // A store that does not tell delayed items apart reports all of them as due.
    let row = |queue: &'static str, waiting: u64, backlog: Option<QueueBacklog>| {
        let due = grouped(backlog.map_or(waiting, |backlog| backlog.due));
        let delayed = backlog.map_or_else(|| "-".to_string(), |backlog| grouped(backlog.delayed));
        let cells = [due, delayed].map(|number| Cell::from(Line::from(number).right_aligned()));
        Row::new([Cell::from(queue)].into_iter().chain(cells))
    };
    let dead = match figures.dead_letters {
        MOST_DEAD_LETTERS => format!("{MOST_DEAD_LETTERS} or more"),
        count => count.to_string(),
    };
    let head = ["due", "delayed"].map(|name| Cell::from(Line::from(name).right_aligned()));
    let head = Row::new([Cell::from("")].into_iter().chain(head));
    let letters = Line::from(dead).style(look.alarm(figures.dead_letters > 0)).right_aligned();
    let rows = [
        row("turns", gauges.orchestrator_queue, gauges.orchestrator_backlog),
        row("activities", gauges.worker_queue, gauges.worker_backlog),
        Row::new([Cell::from("dead letters"), Cell::from(letters)]),
    ];
    let widths = [Constraint::Length(12), Constraint::Fill(1), Constraint::Fill(1)];
    let table = Table::new(rows, widths).header(head).block(Block::bordered().title(" Queues "));
    frame.render_widget(table, area);
}

fn draw_rates(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let block = Block::bordered().title(" Per second ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [text, chart] = inner.layout(&Layout::vertical([Constraint::Length(2), Constraint::Min(1)]));
    let Some(last) = figures.rates.back() else {
        frame.render_widget(Paragraph::new("measuring ..."), text);
        return;
    };
    let lines = vec![
        figure("ended", &format!("{:.1}", last.ended), text.width, Style::new()),
        figure("events", &format!("{:.1}", last.events), text.width, Style::new()),
    ];
    frame.render_widget(Paragraph::new(lines), text);
    let kept = figures.rates.len().saturating_sub(usize::from(chart.width));
    // Tenths, because slow stores end less than one instance per second.
    let bars: Vec<u64> = figures.rates.iter().skip(kept).map(|rate| (rate.ended * 10.0) as u64).collect();
    frame.render_widget(Sparkline::default().data(bars), chart);
}

fn draw_waits(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let title = match figures.more_run {
        true => format!(" Longest without a turn, of the newest {} running ", grouped(MOST_RUNNING as u64)),
        false => " Longest without a turn ".to_string(),
    };
    let block = Block::bordered().title(title);
    if figures.waits.is_empty() {
        frame.render_widget(Paragraph::new("No instance runs.").block(block), area);
        return;
    }
    let rows = figures.waits.iter().map(|wait| {
        let idle = span(figures.now_ms.saturating_sub(wait.since_ms));
        Row::new([plain(&wait.instance), plain(&wait.orchestration), idle, plain(&wait.why)])
    });
    let longest = |text: fn(&super::figures::Wait) -> &str, least: usize, most: usize| {
        let longest = figures.waits.iter().map(|wait| text(wait).chars().count()).max().unwrap_or(0);
        Constraint::Length(u16::try_from(longest.clamp(least, most)).unwrap_or(0))
    };
    let widths = [
        longest(|wait| &wait.instance, 8, usize::from(area.width / 4)),
        longest(|wait| &wait.orchestration, 13, usize::from(area.width / 6).max(13)),
        Constraint::Length(8),
        Constraint::Fill(1),
    ];
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let head = Row::new(["INSTANCE", "ORCHESTRATION", "IDLE", "WHY"]).style(bold);
    frame.render_widget(Table::new(rows, widths).header(head).column_spacing(2).block(block), area);
}

fn draw_bottom(frame: &mut Frame<'_>, area: Rect, figures: &Figures, look: &Look) {
    let line = match &figures.error {
        Some(error) => {
            Line::from(format!("The store does not answer, the figures are old: {}", plain(error)))
                .style(look.alarm(true))
        }
        None => Line::from(format!(
            "q ends   reads every {}, totals and waits every 5s or more   `instance why ID` says more",
            span(u64::try_from(figures.every.as_millis()).unwrap_or(u64::MAX))
        )),
    };
    frame.render_widget(Paragraph::new(line), area);
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Rate, Wait};
    use super::*;
    use outlast::providers::{HeldCounts, StoreGauges, SystemMetrics};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Duration;

    fn figures() -> Figures {
        let mut figures = Figures::new("shop.db".to_string(), Duration::from_secs(1));
        figures.now_ms = 1_000_000_000_000;
        figures.gauges = StoreGauges {
            running_instances: 4,
            orchestrator_queue: 43,
            worker_queue: 16,
            orchestrator_backlog: Some(QueueBacklog { due: 3, delayed: 40 }),
            worker_backlog: None,
        };
        figures.held = Some(HeldCounts { instances: 1, messages: 2 });
        figures.totals = SystemMetrics {
            total_instances: 1_000_004,
            running_instances: 3,
            completed_instances: 999_999,
            failed_instances: 2,
            ..SystemMetrics::default()
        };
        figures
    }

    fn drawn(figures: &Figures, columns: u16, rows: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| draw(frame, figures, &Look { colours: false })).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |row: u16| (0..columns).map(|column| buffer[(column, row)].symbol()).collect::<String>();
        (0..rows).map(|row| line(row).trim_end().to_string()).collect()
    }

    #[test]
    fn screen_has_instances_queues_rates_and_waits() {
        let mut figures = figures();
        figures.rates.extend([Rate { ended: 1.0, events: 8.0 }, Rate { ended: 12.44, events: 120.0 }]);
        figures.waits.push(Wait {
            instance: "order-17".to_string(),
            orchestration: "Order".to_string(),
            since_ms: figures.now_ms - 7_200_000,
            why: "waits for event 'approval' \u{1b}[31m".to_string(),
        });
        let screen = drawn(&figures, 80, 14);
        assert_eq!(screen[0], format!("{:<57}2001-09-09 01:46:40 UTC", "outlast top  shop.db"));
        assert_eq!(screen[1].chars().count(), 80);
        let text = screen.join("\n");
        for part in [
            "│Running          3│",
            "│Completed  999,999│",
            "│Failed           2│",
            "│Held             1│",
            "│Total    1,000,004│",
            "turns",
            "dead letters",
            "12.4│",
            "120.0│",
            "│INSTANCE  ORCHESTRATION  IDLE      WHY",
            "│order-17  Order          2h        waits for event 'approval' \\u{1b}[31m",
            "q ends   reads every 1.0s",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(
            screen[3].contains("turns") && screen[3].contains(" 3 ") && screen[3].contains(" 40│"),
            "{text}"
        );
        assert!(
            screen[4].contains("activities") && screen[4].contains(" 16 ") && screen[4].contains(" -│"),
            "unknown parts are a dash: {text}"
        );
    }

    #[test]
    fn empty_store_and_failed_read_are_named() {
        let mut figures = Figures::new("shop.db".to_string(), Duration::from_secs(1));
        let text = drawn(&figures, LEAST_COLUMNS, LEAST_ROWS).join("\n");
        assert!(text.contains("No instance runs.") && text.contains("measuring ..."), "{text}");
        figures.error = Some("it is locked".to_string());
        let text = drawn(&figures, 80, 20).join("\n");
        assert!(text.contains("The store does not answer, the figures are old: it is locked"), "{text}");
    }

    #[test]
    fn small_terminal_names_the_size_that_is_needed() {
        let text = drawn(&figures(), LEAST_COLUMNS - 1, LEAST_ROWS).join(" ");
        assert!(text.contains("too small: 70 columns and 14 rows"), "{text}");
        drawn(&figures(), 1, 1);
    }
}
