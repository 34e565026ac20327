//! The turns of one instance, all by one node or each by a new one.

use super::node::Node;
use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{Provider, TurnCommit, WorkItem};
use outlast_runtime::registry::OrchestrationRegistry;

/// The instance that runs.
pub(super) const ONE: &str = "one";

pub(super) struct Turns<'a> {
    factory: &'a dyn ProviderFactory,
    provider: &'a dyn Provider,
    orchestrations: &'a OrchestrationRegistry,
    stamp: &'a str,
    /// The node that runs all turns; without it each turn runs on a new node that replays the earlier ones.
    lasting: Option<Node<'a>>,
}

impl<'a> Turns<'a> {
    pub(super) fn new(
        factory: &'a dyn ProviderFactory,
        provider: &'a dyn Provider,
        orchestrations: &'a OrchestrationRegistry,
        stamp: &'a str,
        restarts: bool,
    ) -> Self {
        let lasting = (!restarts).then(|| Node::new(factory, provider, orchestrations).stamping(stamp));
        Self { factory, provider, orchestrations, stamp, lasting }
    }

    /// Delivers messages in one batch with the waiting ones, and commits the turn.
    pub(super) async fn commit(&self, messages: &[WorkItem]) -> TurnCommit {
        enqueue_all(self.provider, messages).await;
        match &self.lasting {
            Some(node) => node.commit(ONE).await,
            None => {
                Node::new(self.factory, self.provider, self.orchestrations)
                    .stamping(self.stamp)
                    .commit(ONE)
                    .await
            }
        }
    }
}
