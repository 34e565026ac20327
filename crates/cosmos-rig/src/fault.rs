//! Faults, addressed by operation and ordinal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::Kind;
use crate::call::Call;

/// A fault: the requests that it counts, the ordinals among them that it strikes, the moment, and the effect.
///
/// ```
/// use outlast_cosmos_rig::{Fault, Kind};
///
/// // The second batch on partition `a` is executed, and its answer is lost.
/// let lost = Fault::on(Kind::Batch).partition("a").nth(2).after().drop_connection();
/// // Every operation is throttled.
/// let throttled = Fault::any().always().status(429);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    kind: Option<Kind>,
    partition: Option<String>,
    #[serde(default)]
    prefix: Option<String>,
    id: Option<String>,
    #[serde(default = "one")]
    first: u64,
    #[serde(default = "one")]
    count: u64,
    #[serde(default)]
    moment: Moment,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    hold: bool,
    #[serde(default)]
    effect: Effect,
}

fn one() -> u64 {
    1
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moment {
    /// The emulator does not see the request.
    #[default]
    Before,
    /// The emulator has executed the request, and the client does not see the answer.
    After,
}

/// The answer to a struck request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    /// The answer, perhaps late.
    #[default]
    None,
    /// An error.
    Status { status: u16, substatus: u32, retry_after_ms: u64 },
    /// The end of the connection, and with it of all requests on it.
    DropConnection,
    /// The end of this request: a reset stream (HTTP/2), or the end of the connection (HTTP/1).
    Reset,
    /// A page without documents and with a continuation.
    EmptyPage,
}

impl Fault {
    /// Counts operations of a kind.
    pub fn on(kind: Kind) -> Self {
        Self { kind: Some(kind), ..Self::any() }
    }

    /// Counts all operations on documents ([`Kind::is_data`]).
    pub fn any() -> Self {
        Self {
            kind: None,
            partition: None,
            prefix: None,
            id: None,
            first: 1,
            count: 1,
            moment: Moment::Before,
            delay_ms: 0,
            hold: false,
            effect: Effect::None,
        }
    }

    /// Counts only requests to this partition.
    pub fn partition(mut self, key: impl Into<String>) -> Self {
        self.partition = Some(key.into());
        self
    }

    /// Counts only requests to partitions whose key begins with this text.
    pub fn partitions_from(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Counts only requests that name this document: also in a batch.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Strikes from the n-th counted request on (1 is the first and the default).
    pub fn nth(mut self, n: u64) -> Self {
        self.first = n;
        self
    }

    /// Strikes `count` requests in a row (1 is the default).
    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// Strikes every request from the first ordinal on.
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Strikes before the execution: the default.
    pub fn before(mut self) -> Self {
        self.moment = Moment::Before;
        self
    }

    /// Strikes after the execution: a write is applied.
    pub fn after(mut self) -> Self {
        self.moment = Moment::After;
        self
    }

    /// Answers with this status. 429 and 449 ask for a repetition after 5 ms, see [`Fault::retry_after`].
    pub fn status(mut self, status: u16) -> Self {
        let substatus = if status == 429 { 3200 } else { 0 };
        self.effect = Effect::Status { status, substatus, retry_after_ms: 5 };
        self
    }

    /// Sets the substatus of [`Fault::status`].
    pub fn substatus(mut self, code: u32) -> Self {
        if let Effect::Status { substatus, .. } = &mut self.effect {
            *substatus = code;
        }
        self
    }

    /// Sets the time after which the client of [`Fault::status`] may repeat the request.
    pub fn retry_after(mut self, time: Duration) -> Self {
        if let Effect::Status { retry_after_ms, .. } = &mut self.effect {
            *retry_after_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        }
        self
    }

    /// Ends the connection, and with it all requests on it.
    pub fn drop_connection(mut self) -> Self {
        self.effect = Effect::DropConnection;
        self
    }

    /// Ends this request without an answer: a reset stream (HTTP/2), or the end of the connection (HTTP/1).
    pub fn reset(mut self) -> Self {
        self.effect = Effect::Reset;
        self
    }

    /// Answers a query or feed with a page that is empty and has a continuation. The next page goes on where this one
    /// would have begun. Other operations are not struck.
    pub fn empty_page(mut self) -> Self {
        self.effect = Effect::EmptyPage;
        self
    }

    /// Waits at the moment of the fault.
    pub fn delay(mut self, time: Duration) -> Self {
        self.delay_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Stops the request at the moment of the fault until [`FaultHandle::release`].
    pub fn hold(mut self) -> Self {
        self.hold = true;
        self
    }

    fn counts(&self, call: &Call) -> bool {
        let kind = self.kind.map_or(call.kind.is_data(), |kind| kind == call.kind);
        let pages = matches!(call.kind, Kind::Query | Kind::ReadFeed | Kind::ChangeFeed);
        kind && (pages || self.effect != Effect::EmptyPage)
            && self.partition.as_ref().is_none_or(|key| call.partition.as_ref() == Some(key))
            && self.prefix.as_ref().is_none_or(|prefix| {
                call.partition.as_ref().is_some_and(|partition| partition.starts_with(prefix))
            })
            && self.id.as_ref().is_none_or(|id| call.ids().any(|other| other == id))
    }
}

/// The longest wait for a request that a fault should strike.
const PATIENCE: Duration = Duration::from_secs(60);

/// A fault that was given to a rig.
#[derive(Clone, Debug)]
pub struct FaultHandle {
    rule: Arc<Rule>,
}

impl FaultHandle {
    /// The number of requests that the fault has counted.
    pub fn counted(&self) -> u64 {
        *self.rule.counted.borrow()
    }

    /// The number of requests that the fault has struck. A test checks it: a fault that strikes nothing proves nothing.
    pub fn struck(&self) -> u64 {
        *self.rule.struck.borrow()
    }

    /// Waits until the fault has struck this many requests.
    ///
    /// # Panics
    ///
    /// After a minute: a test whose fault strikes nothing fails instead of waiting for ever.
    pub async fn wait_struck(&self, count: u64) {
        let mut struck = self.rule.struck.subscribe();
        let waited = tokio::time::timeout(PATIENCE, struck.wait_for(|now| *now >= count)).await.is_ok();
        assert!(waited, "{self:?} has not struck {count} request(s) within {PATIENCE:?}");
    }

    /// Lets the requests go on that [`Fault::hold`] stopped, and those that it would stop.
    pub fn release(&self) {
        self.rule.released.send_replace(true);
    }

    /// Strikes no more requests. Held requests stay held.
    pub fn remove(&self) {
        self.rule.removed.send_replace(true);
    }
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    counted: watch::Sender<u64>,
    struck: watch::Sender<u64>,
    released: watch::Sender<bool>,
    removed: watch::Sender<bool>,
}

/// The faults of a rig.
#[derive(Default)]
pub(crate) struct Faults {
    rules: Mutex<Vec<Arc<Rule>>>,
}

/// A fault that strikes a request.
pub(crate) struct Strike {
    rule: Arc<Rule>,
}

impl Faults {
    pub(crate) fn add(&self, fault: Fault) -> FaultHandle {
        let rule = Arc::new(Rule {
            fault,
            counted: watch::Sender::new(0),
            struck: watch::Sender::new(0),
            released: watch::Sender::new(false),
            removed: watch::Sender::new(false),
        });
        self.lock().push(rule.clone());
        FaultHandle { rule }
    }

    /// Removes all faults and releases what they hold.
    pub(crate) fn clear(&self) {
        for rule in self.lock().drain(..) {
            rule.released.send_replace(true);
        }
    }

    /// Counts a request and returns the faults that strike it, in the order in which they were added.
    pub(crate) fn strikes(&self, call: &Call) -> Vec<Strike> {
        let mut rules = self.lock();
        rules.retain(|rule| !*rule.removed.borrow());
        let counting = rules.iter().filter(|rule| rule.fault.counts(call));
        let mut strikes = Vec::new();
        for rule in counting {
            let mut ordinal = 0;
            rule.counted.send_modify(|counted| {
                *counted += 1;
                ordinal = *counted;
            });
            let Fault { first, count, .. } = rule.fault;
            if ordinal >= first && ordinal - first < count {
                strikes.push(Strike { rule: rule.clone() });
            }
        }
        strikes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Rule>>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Strike {
    pub(crate) fn is(&self, moment: Moment) -> bool {
        self.rule.fault.moment == moment
    }

    pub(crate) fn effect(&self) -> &Effect {
        &self.rule.fault.effect
    }

    /// Counts the strike, then delays or holds the request.
    pub(crate) async fn land(&self) {
        self.rule.struck.send_modify(|struck| *struck += 1);
        let fault = &self.rule.fault;
        if fault.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(fault.delay_ms)).await;
        }
        if fault.hold {
            let mut released = self.rule.released.subscribe();
            let _ = released.wait_for(|released| *released).await;
        }
    }
}
