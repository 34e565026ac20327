//! The store against the specification, by sequences of every call, with small batches so that most turns are staged.

use crate::factory::{fresh_config, quiet_target};
use crate::faults::is_full;
use async_trait::async_trait;
use outlast_conformance::model::{DAMAGED, Damage, Hand, Sequence, Stored, Subject};
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, Texts};
use outlast_cosmos_rig::Target;
use outlast_provider::model::json;
use outlast_provider::{Clock, Entropy, MessageBound, OsEntropy, Provider};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn agrees_with_the_specification() {
    outlast_conformance::model::agrees_with_the_specification(3, &run);
}

/// A test for each named sequence. Those around the end of a lease are many, and run on one kind of store.
macro_rules! stories {
    ($run:tt leases: [$($lease:ident),* $(,)?], regressions: [$($name:ident),* $(,)?],) => {
        mod leases {
            $(#[test]
            fn $lease() {
                outlast_conformance::model::check_story("leases", stringify!($lease), &super::run_some);
            })*
        }
        mod regressions {
            $(#[test]
            fn $name() {
                outlast_conformance::model::check_story("regressions", stringify!($name), &super::$run);
            })*
        }
    };
}
outlast_conformance::__each_story! { [stories] run }

/// Runs the first sequences of a story and every fourth one after them, or all with `OUTLAST_COSMOS_SWEEP=full`.
fn run_some(sequence: &Sequence) -> Result<(), String> {
    const FIRST: u32 = 16;
    let nth = NTH.with(|nth| nth.replace(nth.get() + 1));
    match nth < FIRST || nth.is_multiple_of(4) || is_full() {
        true => run_whole(sequence),
        false => Ok(()),
    }
}

fn run_whole(sequence: &Sequence) -> Result<(), String> {
    run_with(sequence, MessageBound::default(), (100, 1_800_000))
}

/// Runs a sequence on a new store, and on one that hands out few messages at a time and stages most turns.
fn run(sequence: &Sequence) -> Result<(), String> {
    run_whole(sequence)?;
    let small = |difference| format!("{difference}\nwith {FEW:?} and batches of {SMALL:?}");
    run_with(sequence, FEW, SMALL).map_err(small)
}

/// Fewer messages than a sequence often sends to an instance, and fewer bytes than two of them with a long text.
const FEW: MessageBound = MessageBound::new(2, 300);

/// Operations and bytes of a batch.
const SMALL: (usize, usize) = (5, 4_000);

thread_local! {
    /// The account of the test on this thread. Every sequence has a container of its own.
    static TARGET: OnceCell<Rc<Target>> = const { OnceCell::new() };
    /// The number of sequences that the test on this thread was given.
    static NTH: Cell<u32> = const { Cell::new(0) };
}

async fn target_of_this_thread() -> Rc<Target> {
    if let Some(target) = TARGET.with(|target| target.get().cloned()) {
        return target;
    }
    let started = Rc::new(quiet_target().await);
    TARGET.with(|target| target.get_or_init(|| started).clone())
}

fn run_with(sequence: &Sequence, bound: MessageBound, batch: (usize, usize)) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { sequence.run(&mut InContainer::open(bound, batch).await).await })
}

/// Gives all stores of a container the id of one process. The lease of another process ends later by the bound on clock skew, and
/// the specification has no processes.
#[derive(Default)]
struct SameProcess {
    has_id: AtomicBool,
}

impl Entropy for SameProcess {
    fn next_u128(&self) -> u128 {
        match self.has_id.swap(true, Ordering::Relaxed) {
            true => OsEntropy.next_u128(),
            false => 1,
        }
    }
}

/// A store in a container.
struct InContainer {
    _target: Rc<Target>,
    clock: Arc<Hand>,
    config: CosmosDBProviderConfig,
    options: CosmosDBOptions,
    store: CosmosDBProvider,
}

impl InContainer {
    async fn open(bound: MessageBound, batch: (usize, usize)) -> Self {
        let target = target_of_this_thread().await;
        let clock = Arc::new(Hand::default());
        let given = Some(Arc::clone(&clock) as Arc<dyn Clock>);
        let entropy = Arc::new(SameProcess::default());
        let default = CosmosDBOptions::default();
        let options = CosmosDBOptions { message_bound: bound, batch, clock: given, entropy, ..default };
        let config = fresh_config(&target);
        let store = CosmosDBProvider::open(config.clone(), options.clone()).await.unwrap();
        Self { _target: target, clock, config, options, store }
    }
}

#[async_trait(?Send)]
impl Subject for InContainer {
    fn provider(&self) -> &dyn Provider {
        &self.store
    }

    fn message_bound(&self) -> MessageBound {
        self.options.message_bound
    }

    fn starts_with_turn(&self) -> bool {
        false
    }

    async fn set_time(&mut self, now_ms: u64) {
        self.clock.set(now_ms);
    }

    /// Opens the store again, with the id of the same process, unless a message is delayed: a new process does not know the delay
    /// before it reads the instance, and looks at instances in another order than the specification.
    async fn reopen(&mut self) {
        let is_delayed = |line: &String| {
            let mut fields = line.split(' ').skip(2);
            line.starts_with("message ") && fields.next() != fields.next()
        };
        if self.dump().await.iter().any(is_delayed) {
            return;
        }
        self.options.entropy = Arc::new(SameProcess::default());
        self.store = CosmosDBProvider::open(self.config.clone(), self.options.clone()).await.unwrap();
    }

    async fn dump(&self) -> Vec<String> {
        self.store.dump().await.unwrap()
    }

    async fn damage(&self, what: Damage, instance: &str) {
        let texts = match what {
            Damage::History => Texts::History,
            Damage::Messages => Texts::Messages,
            Damage::Work => Texts::Activities,
        };
        self.store.damage(texts, instance, DAMAGED).await.unwrap();
    }

    async fn stored(&self, instance: &str, execution: u64) -> Stored {
        let events = self.store.stored_events(instance, execution).await.unwrap();
        let is_over =
            |(_, text): &(u64, String)| json::decode_event(text).is_ok_and(|event| event.is_terminal());
        Stored { last_event: events.last().map_or(0, |(id, _)| *id), is_over: events.iter().any(is_over) }
    }
}
