//! `outlast instance list`

use crate::args::ListArgs;
use crate::failure::Failure;
use crate::moment::moment;
use crate::output::{plain, print, table};
use crate::store::{self, Intent};
use outlast::providers::{InstanceInfo, InstancePage, InstanceQuery};
use serde::Serialize;

pub(super) async fn run(args: ListArgs) -> Result<(), Failure> {
    let client = store::open(&args.common.store, Intent::Read).await?;
    let mut query = InstanceQuery {
        status: args.status.map(|status| status.stored().to_string()),
        orchestration_name: args.name,
        id_prefix: args.prefix,
        limit: Some(args.limit),
        after: args.after,
        ..InstanceQuery::default()
    };
    let size = query.page_size();
    let mut found = InstancePage::default();
    loop {
        let page = client.list_instances_page(query.clone()).await?;
        found.instances.extend(page.instances);
        found.next = page.next;
        // A store looks at a bounded number of instances for one page.
        if found.instances.len() >= size || found.next.is_none() {
            break;
        }
        query.after = found.next.clone();
        query.limit = u32::try_from(size - found.instances.len()).ok();
    }
    print(args.common.output, &Page::from(found), Page::text)
}

#[derive(Serialize)]
struct Page {
    instances: Vec<Listed>,
    /// For `--after`; null at the end.
    next: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    instance: String,
    orchestration: String,
    version: String,
    status: String,
    execution: u64,
    parent: Option<String>,
    created_ms: u64,
    updated_ms: u64,
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
    fn text(&self) -> String {
        if self.instances.is_empty() {
            return "No instance matches.\n".to_string();
        }
        let rows: Vec<Vec<String>> = self.instances.iter().map(Listed::row).collect();
        let mut text = table(
            &["INSTANCE", "ORCHESTRATION", "STATUS", "EXECUTION", "CREATED (UTC)", "UPDATED (UTC)"],
            &rows,
        );
        if let Some(next) = &self.next {
            text.push_str(&format!("There are more: go on with --after '{next}'\n"));
        }
        text
    }
}

impl Listed {
    fn row(&self) -> Vec<String> {
        vec![
            plain(&self.instance),
            plain(&format!("{} {}", self.orchestration, self.version)),
            self.status.clone(),
            self.execution.to_string(),
            moment(self.created_ms),
            moment(self.updated_ms),
        ]
    }
}
