//! `outlast instance tree`

use super::args::TreeArgs;
use super::unknown;
use crate::failure::Failure;
use crate::output::{plain, print_list};
use crate::store::{self, Intent};
use outlast::client::Client;
use outlast::lens::counted;
use outlast::providers::InstanceInfo;
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;
use std::collections::HashMap;

/// The deepest indentation; a tree may be deeper.
const DEEPEST: usize = 20;

pub(super) async fn run(args: TreeArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    let Some(mut top) = info(&client, &args.instance).await? else {
        return Err(unknown(&args.instance, &place));
    };
    while let (true, Some(parent)) = (args.root, &top.parent_instance_id) {
        match info(&client, parent).await? {
            Some(parent) => top = parent,
            None => break,
        }
    }
    let tree = Tree::read(&client, top, args.limit as usize).await?;
    print_list(args.common.output, &tree, &tree.instances, None, Tree::text)
}

/// `None` if the instance does not exist.
async fn info(client: &Client, instance: &str) -> Result<Option<InstanceInfo>, Failure> {
    match client.get_orchestration_status(instance).await? {
        OrchestrationStatus::NotFound => Ok(None),
        _ => Ok(Some(client.get_instance_info(instance).await?)),
    }
}

/// An instance and its descendants, each after its parent.
#[derive(Serialize)]
struct Tree {
    instances: Vec<Node>,
    /// The descendants beyond `--limit`.
    left_out: usize,
}

#[derive(Serialize)]
struct Node {
    /// 0 for the first instance.
    depth: usize,
    instance: String,
    parent: Option<String>,
    orchestration: String,
    version: String,
    status: String,
}

impl Node {
    fn of(info: InstanceInfo, depth: usize) -> Self {
        Self {
            depth,
            instance: info.instance_id,
            parent: info.parent_instance_id,
            orchestration: info.orchestration_name,
            version: info.orchestration_version,
            status: info.status,
        }
    }
}

impl Tree {
    async fn read(client: &Client, top: InstanceInfo, limit: usize) -> Result<Self, Failure> {
        let all = client.get_instance_tree(&top.instance_id).await?.all_ids;
        let below: Vec<String> = all.into_iter().filter(|id| *id != top.instance_id).collect();
        let left_out = below.len().saturating_sub(limit);
        let mut children: HashMap<String, Vec<InstanceInfo>> = HashMap::new();
        for id in below.into_iter().take(limit) {
            // A child that was deleted after the tree was read is left out.
            if let Some(child) = info(client, &id).await? {
                children.entry(child.parent_instance_id.clone().unwrap_or_default()).or_default().push(child);
            }
        }
        let mut instances = Vec::new();
        // A stack instead of recursion: the depth of a tree is not bounded.
        let mut open = vec![(top, 0)];
        while let Some((info, depth)) = open.pop() {
            let below = children.remove(&info.instance_id).unwrap_or_default();
            open.extend(below.into_iter().rev().map(|child| (child, depth + 1)));
            instances.push(Node::of(info, depth));
        }
        Ok(Self { instances, left_out })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.instances {
            let indent = "  ".repeat(node.depth.min(DEEPEST));
            let id = plain(&node.instance);
            let code = format!("{} {}", plain(&node.orchestration), plain(&node.version));
            text.push_str(&format!("{indent}{id}  {code}  {}\n", node.status));
        }
        if self.left_out > 0 {
            text.push_str(&format!(
                "{} not shown: --limit shows more\n",
                counted(self.left_out, "descendant")
            ));
        }
        text
    }
}
