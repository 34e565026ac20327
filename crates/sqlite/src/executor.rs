//! Where the writer runs: on its thread, or on the calling task.

use crate::command::{Handle, Inline};
use crate::counters::Counters;
use crate::db::Result;
use crate::large_requests::LARGE_BYTES;
use crate::leased::{LeaseAnswer, Leases};
use crate::threads::{Threads, permits_for};
use crate::url::Location;
use crate::writer::Writer;
use crate::{SqliteOptions, SqliteProvider};
use outlast_provider::{ProviderError, saturating_ms};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// The result of a provider call.
pub(crate) type Answer<T> = std::result::Result<T, ProviderError>;

/// Where the store's operations run.
pub(crate) enum Executor {
    /// On the threads of the store.
    Threaded(Threads),
    /// On the calling task.
    Inline(Arc<Inline>),
}

impl Executor {
    /// Opens the store.
    pub(crate) async fn start(
        location: &Location,
        options: &SqliteOptions,
        counters: &Arc<Counters>,
    ) -> Result<Self> {
        match options.inline {
            true => {
                let writer = Writer::open(location.clone(), options.clone(), Arc::clone(counters))?;
                Ok(Self::Inline(Arc::new(Inline::new(writer))))
            }
            false => {
                let threads = Threads::start(location.clone(), options.clone(), Arc::clone(counters));
                Ok(Self::Threaded(threads.await?))
            }
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        match self {
            Self::Threaded(threads) => Handle::Threaded(threads.commands.clone()),
            Self::Inline(inline) => Handle::Inline(Arc::downgrade(inline)),
        }
    }

    /// Waits for the permit to send a call with this many bytes to the writer. Inline mode needs no permit: the caller itself
    /// runs the writer.
    pub(crate) async fn permit(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let Self::Threaded(threads) = self else { return None };
        let permits = if bytes >= LARGE_BYTES { &threads.large_call_permits } else { &threads.call_permits };
        // The store never closes the semaphore.
        Arc::clone(permits).acquire_many_owned(permits_for(bytes)).await.ok()
    }
}

impl SqliteProvider {
    /// The free permits for small and for large calls, for tests.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn free_room(&self) -> Option<[usize; 2]> {
        match &self.executor {
            Executor::Threaded(threads) => Some([
                threads.call_permits.available_permits(),
                threads.large_call_permits.available_permits(),
            ]),
            Executor::Inline(_) => None,
        }
    }

    /// Closes the connection of an inline store on a file, for tests. The next call opens it again.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn disconnect(&self) {
        if let (Executor::Inline(inline), Location::File { .. }) = (&self.executor, &self.location) {
            inline.writer().connection.disconnect();
        }
    }

    /// Without a writer thread, the waiting task itself polls the parked fetches when a poll is due, and checks for commits of
    /// other processes, as the thread does. `None` after the timeout.
    pub(crate) async fn poll_inline<L: Leases>(
        &self,
        inline: &Inline,
        answer: &mut oneshot::Receiver<LeaseAnswer<L>>,
        poll_timeout: Duration,
    ) -> std::result::Result<Option<LeaseAnswer<L>>, oneshot::error::RecvError> {
        let foreign_poll_ms = saturating_ms(self.options.foreign_poll_interval).max(1);
        let give_up_at = self.options.clock.now_ms().saturating_add(saturating_ms(poll_timeout));
        loop {
            let mut changed = pin!(inline.changed.notified());
            changed.as_mut().enable();
            let now = self.options.clock.now_ms();
            let wake_at = inline.writer().wake_at().unwrap_or(u64::MAX);
            if wake_at <= now {
                inline.writer().process(Vec::new(), true, &self.executor.handle());
            }
            let look_at = match self.location {
                Location::Memory => u64::MAX,
                Location::File { .. } => now.saturating_add(foreign_poll_ms),
            };
            let pause = Duration::from_millis(wake_at.min(give_up_at).min(look_at).saturating_sub(now));
            let mut answered = pin!(&mut *answer);
            let answer_or_change = poll_fn(|context| match answered.as_mut().poll(context) {
                Poll::Ready(leases) => Poll::Ready(Some(leases)),
                Poll::Pending => changed.as_mut().poll(context).map(|()| None),
            });
            match tokio::time::timeout(pause, answer_or_change).await {
                Ok(Some(leases)) => return leases.map(Some),
                Err(_) if self.options.clock.now_ms() >= give_up_at => return Ok(None),
                Err(_) => inline.check_for_foreign_commits(self.options.clock.now_ms(), foreign_poll_ms),
                Ok(None) => {}
            }
        }
    }
}
