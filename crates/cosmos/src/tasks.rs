//! Starts and ends the tasks of this crate.

use outlast_provider::ProviderError;
use std::future::Future;
use tokio::task::JoinHandle;

/// Starts a task that ends by itself.
pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}

/// Runs a call to its end, also if the caller is dropped: a commit that has begun is finished.
pub(crate) async fn finished<T: Send + 'static>(
    operation: &'static str,
    call: impl Future<Output = Result<T, ProviderError>> + Send + 'static,
) -> Result<T, ProviderError> {
    match tokio::spawn(call).await {
        Ok(result) => result,
        Err(error) => {
            Err(ProviderError::retryable(operation, format!("the task of the call failed: {error}")))
        }
    }
}

/// A task that ends with its owner.
pub(crate) struct Background(JoinHandle<()>);

impl Background {
    pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }

    pub(crate) fn stop(&self) {
        self.0.abort();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_of_a_store_ends_with_the_last_clone_of_the_store() {
        let (held, ended) = tokio::sync::oneshot::channel::<()>();
        let task = std::sync::Arc::new(Background::start(async move {
            let _held = held;
            std::future::pending::<()>().await;
        }));
        drop(std::sync::Arc::clone(&task));
        tokio::task::yield_now().await;
        assert!(!task.0.is_finished(), "one clone is left");
        drop(task);
        assert!(ended.await.is_err(), "the task dropped what it held");
    }
}
