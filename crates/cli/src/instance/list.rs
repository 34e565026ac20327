//! `outlast instance list`

use super::args::{Filters, ListArgs, Status};
use super::follow_list;
use crate::failure::Failure;
use crate::output::{plain, print_list, table};
use crate::store::{self, Intent};
use outlast::client::Client;
use outlast::lens::moment;
use outlast::providers::{
    Clock, HeldInstance, InstanceInfo, InstancePage, InstanceQuery, SystemClock, saturating_ms,
};
use serde::Serialize;

/// The page size while the command filters instances itself.
const SCAN: u32 = 1_000;

pub(super) async fn run(args: ListArgs) -> Result<(), Failure> {
    if args.follow {
        return follow_list::run(args).await;
    }
    let client = store::open(&args.common.store.clone().place()?, Intent::Read).await?;
    if args.held {
        let page = HeldPage::read(&client, args.after.as_deref(), args.limit).await?;
        return print_list(args.common.output, &page, &page.held, page.next.as_deref(), HeldPage::text);
    }
    let output = args.common.output;
    let (query, selection) = first_page(args);
    let page = Page::from(selected(&client, query, &selection).await?);
    print_list(output, &page, &page.instances, page.next.as_deref(), Page::text)
}

/// The query for the page that the command line names, and the conditions that the command checks.
pub(super) fn first_page(args: ListArgs) -> (InstanceQuery, Selection) {
    let (query, selection) = conditions(args.filters);
    (InstanceQuery { limit: Some(args.limit), after: args.after, ..query }, selection)
}

/// The conditions that the store checks, and those that the command checks.
pub(super) fn conditions(filters: Filters) -> (InstanceQuery, Selection) {
    let query = InstanceQuery {
        status: filters.status.filter(|status| *status != Status::Unknown).map(|s| s.stored().to_string()),
        orchestration_name: filters.name,
        id_prefix: filters.prefix,
        ..InstanceQuery::default()
    };
    let selection = Selection {
        status: filters.status.filter(|status| *status == Status::Unknown).map(Status::stored),
        version: filters.version,
        updated_until: filters.idle_for.map(|idle| SystemClock.now_ms().saturating_sub(saturating_ms(idle))),
    };
    (query, selection)
}

/// Conditions that the stores do not support. The command checks them.
#[derive(Default)]
pub(super) struct Selection {
    status: Option<&'static str>,
    version: Option<String>,
    updated_until: Option<u64>,
}

impl Selection {
    pub(super) fn is_everything(&self) -> bool {
        self.status.is_none() && self.version.is_none() && self.updated_until.is_none()
    }

    pub(super) fn takes(&self, info: &InstanceInfo) -> bool {
        self.status.is_none_or(|status| status == info.status)
            && self.version.as_ref().is_none_or(|version| *version == info.orchestration_version)
            && self.updated_until.is_none_or(|until| info.updated_at <= until)
    }
}

/// A page of instances that match the query and the conditions. The mark of the page comes from the store.
pub(super) async fn selected(
    client: &Client,
    mut query: InstanceQuery,
    selection: &Selection,
) -> Result<InstancePage, Failure> {
    let wanted = query.page_size();
    let mut found = InstancePage::default();
    // A store reads a bounded number of instances for one page, so a short page may have a mark.
    loop {
        let left = wanted - found.instances.len();
        query.limit = match selection.is_everything() {
            true => u32::try_from(left).ok(),
            false => Some(SCAN),
        };
        let mut page = client.list_instances_page(query.clone()).await?;
        let taken = page.instances.iter().enumerate().filter(|(_, info)| selection.takes(info));
        if let Some((last, _)) = taken.take(left).nth(left - 1)
            && last + 1 < page.instances.len()
        {
            // Only the store can create a mark: this reads a page that ends with the last instance shown.
            query.limit = Some(u32::try_from(last + 1).unwrap_or(SCAN));
            page = client.list_instances_page(query.clone()).await?;
        }
        found.instances.extend(page.instances.into_iter().filter(|info| selection.takes(info)));
        found.next = page.next.clone();
        if found.instances.len() >= wanted || page.next.is_none() {
            return Ok(found);
        }
        query.after = page.next;
    }
}

pub(super) const COLUMNS: [&str; 7] =
    ["INSTANCE", "ORCHESTRATION", "VERSION", "STATUS", "EXECUTION", "CREATED (UTC)", "UPDATED (UTC)"];

#[derive(Serialize)]
pub(super) struct Page {
    pub(super) instances: Vec<Listed>,
    /// For `--after`; null at the end.
    pub(super) next: Option<String>,
}

#[derive(Clone, PartialEq, Serialize)]
pub(super) struct Listed {
    pub(super) instance: String,
    orchestration: String,
    version: String,
    status: String,
    execution: u64,
    parent: Option<String>,
    created_ms: u64,
    pub(super) updated_ms: u64,
}

impl From<InstancePage> for Page {
    fn from(page: InstancePage) -> Self {
        Self { instances: page.instances.into_iter().map(Listed::from).collect(), next: page.next }
    }
}

impl From<InstanceInfo> for Listed {
    fn from(info: InstanceInfo) -> Self {
        Self {
            instance: info.instance_id,
            orchestration: info.orchestration_name,
            version: info.orchestration_version,
            status: info.status,
            execution: info.current_execution_id,
            parent: info.parent_instance_id,
            created_ms: info.created_at,
            updated_ms: info.updated_at,
        }
    }
}

impl Page {
    pub(super) fn text(&self) -> String {
        let next = match &self.next {
            Some(next) => format!("There are more: go on with --after '{next}'\n"),
            None => String::new(),
        };
        if self.instances.is_empty() {
            return format!("No instance matches.\n{next}");
        }
        let rows: Vec<Vec<String>> = self.instances.iter().map(Listed::row).collect();
        table(&COLUMNS, &rows) + &next
    }
}

impl Listed {
    /// A column per filter, so that printed values can be used as filters.
    pub(super) fn row(&self) -> Vec<String> {
        vec![
            plain(&self.instance),
            plain(&self.orchestration),
            plain(&self.version),
            self.status.clone(),
            self.execution.to_string(),
            moment(self.created_ms),
            moment(self.updated_ms),
        ]
    }
}

/// A page of held instances.
#[derive(Serialize)]
struct HeldPage {
    held: Vec<ListedHold>,
    /// For `--after`; null at the end.
    next: Option<String>,
}

#[derive(Serialize)]
struct ListedHold {
    instance: String,
    kind: String,
    by: String,
    reason: String,
    since_ms: u64,
}

impl HeldPage {
    async fn read(client: &Client, after: Option<&str>, limit: u32) -> Result<Self, Failure> {
        let limit = limit as usize;
        let mut found = client.list_held(after, limit + 1).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|held| held.instance_id.clone());
        let listed = |HeldInstance { instance_id, hold, held_at_ms }: HeldInstance| ListedHold {
            instance: instance_id,
            kind: hold.kind.to_string(),
            by: hold.actor,
            reason: hold.reason,
            since_ms: held_at_ms,
        };
        Ok(Self { held: found.into_iter().map(listed).collect(), next })
    }

    fn text(&self) -> String {
        if self.held.is_empty() {
            return "No instance is paused or parked.\n".to_string();
        }
        let row = |hold: &ListedHold| {
            let texts = [&hold.instance, &hold.kind, &hold.by, &moment(hold.since_ms), &hold.reason];
            texts.map(|text| plain(text)).to_vec()
        };
        let rows: Vec<Vec<String>> = self.held.iter().map(row).collect();
        let next = match &self.next {
            Some(next) => format!("There are more: go on with --after '{}'\n", plain(next)),
            None => String::new(),
        };
        table(&["INSTANCE", "HOLD", "BY", "SINCE (UTC)", "REASON"], &rows) + &next
    }
}
