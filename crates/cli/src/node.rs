//! `outlast node`: the nodes that report to a store.

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print_list, table};
use crate::store::{self, Intent};
use clap::{Args as ClapArgs, Subcommand};
use outlast::client::ListedNode;
use outlast::lens::{counted, span};
use outlast::providers::{NodeLease, NodeLoad, NodeOrchestration, NodeTags};
use serde::Serialize;

#[derive(Debug, ClapArgs)]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Debug, Subcommand)]
enum NodeCommand {
    /// List the nodes: their last report, what they run and may run, and lost nodes with the leases that have not ended
    ///
    /// A runtime stores a report about itself every five seconds. A node without a report for three intervals is lost: its process has
    /// ended without a shutdown, or cannot reach the store. Its turns and activities are delivered again when their leases end.
    List(ListArgs),
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    #[command(flatten)]
    common: Common,
}

pub(crate) async fn run(args: NodeArgs) -> Result<(), Failure> {
    let NodeCommand::List(args) = args.command;
    let client = store::open(&args.common.store.place()?, Intent::Read).await?;
    let listed = client.list_nodes().await?;
    let supported = listed.is_some();
    let nodes = Nodes { supported, nodes: listed.unwrap_or_default().into_iter().map(Node::from).collect() };
    print_list(args.common.output, &nodes, &nodes.nodes, None, Nodes::text)
}

#[derive(Serialize)]
struct Nodes {
    /// False if the store keeps no reports.
    supported: bool,
    nodes: Vec<Node>,
}

#[derive(Serialize)]
struct Node {
    id: String,
    /// `live` or `lost`.
    state: &'static str,
    host: String,
    pid: u32,
    build: String,
    started_at_ms: u64,
    seen_ms_ago: u64,
    turns: NodeLoad,
    activities: NodeLoad,
    orchestrations: Vec<NodeOrchestration>,
    activity_names: Vec<String>,
    omitted_handlers: u64,
    tags: NodeTags,
    leases: Vec<NodeLease>,
    omitted_leases: u64,
    /// The leases of a lost node that have not ended, and the time until the last one ends.
    lost_leases: u64,
    lost_leases_end_in_ms: u64,
}

impl From<ListedNode> for Node {
    fn from(node: ListedNode) -> Self {
        let (record, lost) = (node.record, node.lost_leases);
        Self {
            state: if record.is_lost() { "lost" } else { "live" },
            seen_ms_ago: record.seen_ms_ago,
            id: record.report.node_id,
            host: record.report.host,
            pid: record.report.pid,
            build: record.report.build,
            started_at_ms: record.report.started_at_ms,
            turns: record.report.running_turns,
            activities: record.report.running_activities,
            orchestrations: record.report.orchestrations,
            activity_names: record.report.activities,
            omitted_handlers: record.report.omitted_handlers,
            tags: record.report.tags,
            leases: record.report.leases,
            omitted_leases: record.report.omitted_leases,
            lost_leases: lost.count,
            lost_leases_end_in_ms: lost.end_in_ms,
        }
    }
}

impl Node {
    fn row(&self) -> Vec<String> {
        let load = |load: NodeLoad| format!("{}/{}", load.running, load.limit);
        let or_dash = |text: &str| if text.is_empty() { "-".to_string() } else { plain(text) };
        vec![
            plain(&self.id),
            or_dash(&self.host),
            self.pid.to_string(),
            or_dash(&self.build),
            span(self.seen_ms_ago),
            load(self.turns),
            load(self.activities),
            self.state_text(),
        ]
    }

    fn state_text(&self) -> String {
        match (self.state, self.lost_leases) {
            ("lost", 0) => "lost".to_string(),
            ("lost", 1) => format!("lost: 1 lease ends in {}", span(self.lost_leases_end_in_ms)),
            ("lost", count) => format!("lost: {count} leases end in {}", span(self.lost_leases_end_in_ms)),
            (state, _) => state.to_string(),
        }
    }
}

impl Nodes {
    fn text(&self) -> String {
        if !self.supported {
            return "The store keeps no reports of nodes.\n".to_string();
        }
        if self.nodes.is_empty() {
            return "No node reports to this store: no runtime runs on it, or its heartbeat is off.\n"
                .to_string();
        }
        let rows: Vec<Vec<String>> = self.nodes.iter().map(Node::row).collect();
        let lost = self.nodes.iter().filter(|node| node.state == "lost").count();
        let total = match lost {
            0 => String::new(),
            lost => format!("{} of {} lost.\n", lost, counted(self.nodes.len(), "node")),
        };
        table(&["NODE", "HOST", "PID", "BUILD", "SEEN", "TURNS", "ACTIVITIES", "STATE"], &rows) + &total
    }
}
