//! `outlast instance list --follow`: new and changed instances.

use super::args::ListArgs;
use super::list::{COLUMNS, Listed, Page, Selection, first_page, selected};
use crate::args::Format;
use crate::failure::Failure;
use crate::follow::{Redraw, Step, check_format, follow};
use crate::output::{Columns, line, write};
use crate::store::{self, Intent};
use outlast::client::Client;
use outlast::providers::InstanceQuery;
use outlast::runtime::OrchestrationStatus;
use std::collections::HashMap;

/// The most pages of one read. A burst of starts fills more than the first page.
const MOST_PAGES: usize = 20;

pub(super) async fn run(args: ListArgs) -> Result<(), Failure> {
    let format = args.common.output;
    check_format(format)?;
    if args.filters.idle_for.is_some() {
        return Err(Failure::usage(
            "--follow shows changes, and --idle-for selects instances without changes",
        ));
    }
    let place = args.common.store.clone().place()?;
    let store = store::open_provider(&place, Intent::Read).await?;
    let (query, selection) = first_page(args);
    let mut followed = Followed {
        client: Client::new(store.clone()),
        query,
        selection,
        format,
        known: None,
        redraw: Redraw::default(),
        columns: Columns::new(&COLUMNS, &[]),
    };
    follow(&*store, None, async || followed.step().await).await
}

struct Followed {
    client: Client,
    query: InstanceQuery,
    selection: Selection,
    format: Format,
    /// The instances of the last read by id; `None` before the first read.
    known: Option<HashMap<String, Listed>>,
    redraw: Redraw,
    columns: Columns,
}

impl Followed {
    async fn step(&mut self) -> Result<Step, Failure> {
        let page = self.page().await?;
        if self.format == Format::Table && Redraw::is_in_place() {
            self.draw(page)?;
        } else {
            self.print_changes(page).await?;
        }
        Ok(Step::Continues)
    }

    /// The instances that the terminal shows replace each other.
    fn draw(&mut self, page: Page) -> Result<(), Failure> {
        let now = by_id(&page.instances);
        if self.known.as_ref() != Some(&now) {
            self.redraw.print(&page.text(), false)?;
            self.known = Some(now);
        }
        Ok(())
    }

    /// The first page. If none of its instances was known, the pages after it too, up to one with a known instance: then no start is
    /// missed.
    async fn page(&self) -> Result<Page, Failure> {
        let mut page = Page::from(selected(&self.client, self.query.clone(), &self.selection).await?);
        let Some(known) = self.known.as_ref().filter(|known| !known.is_empty()) else { return Ok(page) };
        let mut pages = 1;
        while let (Some(next), false) =
            (&page.next, page.instances.iter().any(|row| known.contains_key(&row.instance)))
        {
            if pages == MOST_PAGES {
                break;
            }
            let query = InstanceQuery { after: Some(next.clone()), ..self.query.clone() };
            let more = Page::from(selected(&self.client, query, &self.selection).await?);
            page.instances.extend(more.instances);
            page.next = more.next;
            pages += 1;
        }
        Ok(page)
    }

    /// Prints the instances that are new or changed, oldest change first, and those that no longer match the conditions.
    async fn print_changes(&mut self, page: Page) -> Result<(), Failure> {
        let now = by_id(&page.instances);
        let before = self.known.clone();
        let is_first = before.is_none();
        let before = before.unwrap_or_default();
        let mut changed: Vec<Listed> =
            page.instances.into_iter().filter(|row| before.get(&row.instance) != Some(row)).collect();
        for (id, row) in before.iter().filter(|(id, _)| !now.contains_key(*id)) {
            if self.client.get_orchestration_status(id).await? != OrchestrationStatus::NotFound {
                let found = Listed::from(self.client.get_instance_info(id).await?);
                changed.extend(Some(found).filter(|found| found != row));
            }
        }
        changed.sort_by_key(|row| row.updated_ms);
        let text = self.text(&changed, is_first)?;
        write(&text)?;
        self.known = Some(now);
        Ok(())
    }

    fn text(&mut self, changed: &[Listed], is_first: bool) -> Result<String, Failure> {
        if self.format != Format::Table {
            return changed.iter().map(line).collect();
        }
        let rows: Vec<Vec<String>> = changed.iter().map(Listed::row).collect();
        // The header is made after the rows, which set the widths.
        let lines = self.columns.rows(&rows);
        Ok(if is_first { self.columns.header() + &lines } else { lines })
    }
}

fn by_id(rows: &[Listed]) -> HashMap<String, Listed> {
    rows.iter().map(|row| (row.instance.clone(), row.clone())).collect()
}
