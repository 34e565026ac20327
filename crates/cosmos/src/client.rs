//! Requests to the container. Every request ends within a limit, and the answer to a write classifies the write as applied, refused
//! or in doubt.

use crate::document::Versioned;
use crate::doubt::{Answer, Refusal, Verdict};
use crate::error::{damaged, failed, is_transient, of_status};
use crate::limit;
use azure_core::http::Etag;
use azure_data_cosmos::feed::{ChangeFeedPageIterator, ContinuationToken, QueryItemIterator};
use azure_data_cosmos::models::ChangeFeedItem;
use azure_data_cosmos::models::TransactionalBatchResponse;
use azure_data_cosmos::options::{
    BatchDeleteOptions, BatchOptions, BatchReadOptions, BatchReplaceOptions, ContentResponseOnWrite,
    ItemReadOptions, ItemWriteOptions, MaxItemCountHint, OperationOptions, Precondition, QueryOptions,
    ReadConsistencyStrategy, ThrottlingRetryOptionsBuilder,
};
use azure_data_cosmos::options::{ChangeFeedOptions, ChangeFeedStartFrom};
use azure_data_cosmos::{ContainerClient, CosmosError, FeedScope, Query, TransactionalBatch, diagnostics};
use futures::StreamExt;
use outlast_provider::ProviderError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// From this number of documents on, the service chooses the size of pages.
const LARGE_PAGE: u32 = 1_000;

/// The longest time that a request waits because the container is throttled.
const THROTTLED_LIMIT: Duration = Duration::from_secs(5);

/// Repetitions of a throttled request.
const THROTTLED_RETRIES: u32 = 9;

/// An operation of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Create(Value),
    Upsert(Value),
    Replace {
        id: String,
        body: Value,
        etag: Option<String>,
    },
    Delete {
        id: String,
        etag: Option<String>,
    },
    /// Reads a document under `If-Match`: the guard of the other operations.
    Guard {
        id: String,
        etag: String,
    },
}

impl Op {
    pub(crate) fn create(document: &impl Serialize) -> Result<Self, ProviderError> {
        Ok(Self::Create(json(document)?))
    }

    pub(crate) fn upsert(document: &impl Serialize) -> Result<Self, ProviderError> {
        Ok(Self::Upsert(json(document)?))
    }

    pub(crate) fn replace(
        id: &str,
        document: &impl Serialize,
        etag: Option<&str>,
    ) -> Result<Self, ProviderError> {
        Ok(Self::Replace { id: id.to_string(), body: json(document)?, etag: etag.map(str::to_string) })
    }

    pub(crate) fn delete(id: &str, etag: Option<&str>) -> Self {
        Self::Delete { id: id.to_string(), etag: etag.map(str::to_string) }
    }
}

/// A document as JSON.
pub(crate) fn json(document: &impl Serialize) -> Result<Value, ProviderError> {
    serde_json::to_value(document).map_err(|error| damaged("encode", error))
}

/// The answer to a batch.
#[derive(Clone, Debug)]
pub(crate) struct Batched {
    pub(crate) answer: Answer,
    /// The operation that failed, if the service named one.
    pub(crate) failed: Option<usize>,
    /// The version of each document after the batch.
    pub(crate) etags: Vec<String>,
    /// The times that the service stamped, in whole seconds, if it returned documents.
    pub(crate) details: String,
}

impl Batched {
    pub(crate) fn verdict(&self) -> Verdict {
        self.answer.verdict()
    }

    /// The error for a caller, if the batch was not applied. The error of a batch that is in doubt is retryable, whatever the last
    /// answer is.
    pub(crate) fn error(&self, operation: &str) -> ProviderError {
        let is_answered = self.verdict() != Verdict::InDoubt;
        let status = self.answer.status.filter(|status| is_answered || is_transient(*status));
        of_status(operation, status, &self.details)
    }
}

/// A position in the changes of a partition.
pub(crate) type Changes = ChangeFeedPageIterator<ChangeFeedItem<Value>>;

/// A container.
#[derive(Clone)]
pub(crate) struct Client {
    container: Arc<ContainerClient>,
    deadline: Duration,
}

impl Client {
    pub(crate) fn new(container: ContainerClient, deadline: Duration) -> Self {
        let deadline = deadline.clamp(limit::SHORTEST, limit::LONGEST);
        Self { container: Arc::new(container), deadline }
    }

    /// The time that the next request of this task has.
    pub(crate) fn limit(&self) -> Duration {
        limit::of_request(self.deadline)
    }

    pub(crate) fn container(&self) -> &ContainerClient {
        &self.container
    }

    /// Runs operations on one partition, all or none.
    pub(crate) async fn batch(&self, partition: &str, operations: Vec<Op>) -> Result<Batched, ProviderError> {
        if !limit::has_time() {
            return Ok(unanswered(Answer { status: None, sent: 0 }, String::new()));
        }
        if let [only] = operations.as_slice() {
            let Some(sent) = self.single(partition, only).await? else {
                return self.many(partition, operations).await;
            };
            return Ok(sent);
        }
        self.many(partition, operations).await
    }

    async fn many(&self, partition: &str, operations: Vec<Op>) -> Result<Batched, ProviderError> {
        let mut batch = TransactionalBatch::new(partition.to_string());
        for operation in operations {
            batch = added(batch, operation).map_err(|error| failed("batch", &error))?;
        }
        let options = BatchOptions::default().with_operation_options(options(self.limit()));
        let sent = Box::pin(self.container.execute_transactional_batch(batch, Some(options)));
        let response = match within(self.limit(), sent).await {
            Ok(response) => response,
            Err(refusal) => return Ok(refusal),
        };
        let attempts = attempts(Some(response.diagnostics()));
        let results: TransactionalBatchResponse =
            response.into_model().map_err(|error| failed("batch", &error))?;
        let statuses: Vec<u16> = results.results().iter().map(|result| result.status_code()).collect();
        let failed = statuses.iter().position(|status| !(200..300).contains(status) && *status != 424);
        let etags = results.results().iter().map(|result| result.etag().unwrap_or_default().to_string());
        Ok(Batched {
            answer: Answer::of_batch(&statuses, attempts),
            failed,
            etags: etags.collect(),
            details: String::new(),
        })
    }

    /// Runs one operation without a batch. `None`: the operation exists in batches only.
    async fn single(&self, partition: &str, operation: &Op) -> Result<Option<Batched>, ProviderError> {
        let key = partition.to_string();
        let options = |etag: &Option<String>| {
            let write = ItemWriteOptions::default().with_operation_options(options(self.limit()));
            Some(match etag {
                Some(etag) => write.with_precondition(Precondition::IfMatch(Etag::from(etag.clone()))),
                None => write,
            })
        };
        let limit = self.limit();
        let id_of = |body: &Value| body["id"].as_str().unwrap_or_default().to_string();
        let sent = match operation {
            Op::Create(body) => {
                within(limit, Box::pin(self.container.create_item(key, &id_of(body), body, options(&None))))
                    .await
            }
            Op::Upsert(body) => {
                within(limit, Box::pin(self.container.upsert_item(key, &id_of(body), body, options(&None))))
                    .await
            }
            Op::Replace { id, body, etag } => {
                within(limit, Box::pin(self.container.replace_item(key, id, body, options(etag)))).await
            }
            Op::Delete { id, etag } => {
                within(limit, Box::pin(self.container.delete_item(key, id, options(etag)))).await
            }
            Op::Guard { .. } => return Ok(None),
        };
        let response = match sent {
            Ok(response) => response,
            Err(refusal) => return Ok(Some(refusal)),
        };
        let etag = response.headers().etag().map(|etag| etag.to_string()).unwrap_or_default();
        let status = u16::from(response.status().status_code());
        let answer = Answer { status: Some(status), sent: attempts(Some(response.diagnostics())) };
        Ok(Some(Batched { answer, failed: None, etags: vec![etag], details: String::new() }))
    }

    /// Writes a document and returns the time that the service stamped, in whole seconds.
    pub(crate) async fn stamped_upsert(&self, partition: &str, body: &Value) -> Result<Option<u64>, Batched> {
        let mut operation = options(self.limit());
        operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
        let write = ItemWriteOptions::default().with_operation_options(operation);
        let id = body["id"].as_str().unwrap_or_default().to_string();
        let sent = Box::pin(self.container.upsert_item(partition.to_string(), &id, body, Some(write)));
        let sent = within(self.limit(), sent).await;
        let stored = sent?.into_model::<Value>().ok();
        Ok(stored.and_then(|stored| stored["_ts"].as_u64()))
    }

    /// Reads a document; `None` if it does not exist. The read sees every acknowledged write.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        operation: &str,
        partition: &str,
        id: &str,
    ) -> Result<Option<Versioned<T>>, ProviderError> {
        let mut read = options(self.limit());
        read.read_consistency_strategy = Some(ReadConsistencyStrategy::LatestCommitted);
        let read = ItemReadOptions::default().with_operation_options(read);
        let sent = Box::pin(self.container.read_item(partition.to_string(), id, Some(read)));
        let response = match tokio::time::timeout(self.limit(), sent).await {
            Err(_) => return Err(of_status(operation, None, "")),
            Ok(Ok(response)) => response,
            Ok(Err(error))
                if u16::from(error.status().status_code()) == 404 && !is_missing_container(&error) =>
            {
                return Ok(None);
            }
            Ok(Err(error)) => return Err(failed(operation, &error)),
        };
        let body: Value = response.into_model().map_err(|error| failed(operation, &error))?;
        decoded(operation, body).map(Some)
    }

    /// The changes of one partition: from now on, or from a position.
    pub(crate) async fn changes(
        &self,
        operation: &str,
        partition: &str,
        position: Option<ContinuationToken>,
    ) -> Result<Changes, ProviderError> {
        let mut settings = ChangeFeedOptions::default().with_operation_options(options(self.limit()));
        if let Some(position) = position {
            settings = settings.with_continuation_token(position);
        }
        let scope = FeedScope::partition(partition.to_string());
        let sent =
            Box::pin(self.container.query_change_feed(scope, ChangeFeedStartFrom::Now, Some(settings)));
        let sent = tokio::time::timeout(self.limit(), sent).await;
        sent.map_err(|_| of_status(operation, None, ""))?.map_err(|error| failed(operation, &error))
    }

    /// Queries one partition.
    pub(crate) async fn query<T: DeserializeOwned>(
        &self,
        operation: &str,
        partition: &str,
        sql: &'static str,
        parameters: &[(&str, Value)],
    ) -> Result<Vec<T>, ProviderError> {
        self.query_in(operation, FeedScope::partition(partition.to_string()), sql, parameters, usize::MAX)
            .await
    }

    /// Queries one partition; reads no page after the one with the last wanted document.
    pub(crate) async fn query_some<T: DeserializeOwned>(
        &self,
        operation: &str,
        partition: &str,
        sql: &'static str,
        parameters: &[(&str, Value)],
        most: usize,
    ) -> Result<Vec<T>, ProviderError> {
        self.query_in(operation, FeedScope::partition(partition.to_string()), sql, parameters, most).await
    }

    /// Queries one partition. The flag is set if all documents came in one page, and so were read in one moment.
    pub(crate) async fn query_pages(
        &self,
        operation: &str,
        partition: &str,
        sql: &'static str,
        parameters: &[(&str, Value)],
    ) -> Result<(Vec<Value>, bool), ProviderError> {
        let scope = FeedScope::partition(partition.to_string());
        let mut pages = self.rows(operation, scope, sql, parameters, usize::MAX).await?.into_pages();
        let (mut found, mut count) = (Vec::new(), 0);
        loop {
            let next = tokio::time::timeout(self.limit(), pages.next()).await;
            match next.map_err(|_| of_status(operation, None, ""))? {
                None => return Ok((found, count <= 1)),
                Some(Err(error)) => return Err(failed(operation, &error)),
                Some(Ok(page)) => {
                    found.extend(page.into_items());
                    count += 1;
                }
            }
        }
    }

    /// Queries all partitions; reads no page after the one with the last wanted document.
    pub(crate) async fn query_all<T: DeserializeOwned>(
        &self,
        operation: &str,
        sql: &'static str,
        parameters: &[(&str, Value)],
        most: usize,
    ) -> Result<Vec<T>, ProviderError> {
        self.query_in(operation, FeedScope::full_container(), sql, parameters, most).await
    }

    async fn rows(
        &self,
        operation: &str,
        scope: FeedScope,
        sql: &'static str,
        parameters: &[(&str, Value)],
        most: usize,
    ) -> Result<QueryItemIterator<Value>, ProviderError> {
        let mut query = Query::from(sql);
        for (name, value) in parameters {
            query = query.with_parameter(*name, value).map_err(|error| failed(operation, &error))?;
        }
        let mut options = QueryOptions::default().with_operation_options(options(self.limit()));
        // A page is billed by its documents, so it has no more than are wanted.
        if let Some(few) =
            u32::try_from(most).ok().filter(|most| *most < LARGE_PAGE).and_then(NonZeroU32::new)
        {
            options = options.with_max_item_count(MaxItemCountHint::Limit(few));
        }
        let sent = Box::pin(self.container.query_items::<Value>(query, scope, Some(options)));
        let rows = tokio::time::timeout(self.limit(), sent).await;
        rows.map_err(|_| of_status(operation, None, ""))?.map_err(|error| failed(operation, &error))
    }

    async fn query_in<T: DeserializeOwned>(
        &self,
        operation: &str,
        scope: FeedScope,
        sql: &'static str,
        parameters: &[(&str, Value)],
        most: usize,
    ) -> Result<Vec<T>, ProviderError> {
        let late = || of_status(operation, None, "");
        let mut rows = self.rows(operation, scope, sql, parameters, most).await?;
        let mut found = Vec::new();
        while found.len() < most {
            // The limit counts for each page.
            let next = tokio::time::timeout(self.limit(), rows.next()).await.map_err(|_| late())?;
            match next {
                None => break,
                Some(Err(error)) => return Err(failed(operation, &error)),
                Some(Ok(row)) => found.push(decoded(operation, row)?),
            }
        }
        Ok(found)
    }
}

/// Whether a 404 means that the container is missing, not the document.
fn is_missing_container(error: &CosmosError) -> bool {
    error.status().sub_status().is_some_and(|substatus| u32::from(substatus.value()) == 1003)
}

fn decoded<T: DeserializeOwned>(operation: &str, body: Value) -> Result<T, ProviderError> {
    let name = || {
        format!(
            "'{}' of partition '{}'",
            body["id"].as_str().unwrap_or("?"),
            body["instanceId"].as_str().unwrap_or("?")
        )
    };
    let (name, decoded) = (name(), serde_json::from_value(body));
    decoded.map_err(|error| damaged(operation, format!("{name}: {error}")))
}

fn added(batch: TransactionalBatch, operation: Op) -> Result<TransactionalBatch, CosmosError> {
    let matches = |etag: String| Precondition::IfMatch(Etag::from(etag));
    Ok(match operation {
        Op::Create(body) => batch.create_item(body)?,
        Op::Upsert(body) => batch.upsert_item(body, None)?,
        Op::Replace { id, body, etag } => {
            let options = etag.map(|etag| BatchReplaceOptions::default().with_precondition(matches(etag)));
            batch.replace_item(id, body, options)?
        }
        Op::Delete { id, etag } => {
            let options = etag.map(|etag| BatchDeleteOptions::default().with_precondition(matches(etag)));
            batch.delete_item(id, options)
        }
        Op::Guard { id, etag } => {
            batch.read_item(id, Some(BatchReadOptions::default().with_precondition(matches(etag))))
        }
    })
}

/// The settings of a request.
fn options(limit: Duration) -> OperationOptions {
    let mut options = OperationOptions::default();
    options.max_failover_retry_count = Some(1);
    options.end_to_end_latency_policy = Some(limit.into());
    options.throttling_retry_options = Some(
        ThrottlingRetryOptionsBuilder::new()
            .with_max_retry_count(THROTTLED_RETRIES)
            .with_max_retry_wait_time(THROTTLED_LIMIT.min(limit / 2))
            .build(),
    );
    options
}

fn unanswered(answer: Answer, details: String) -> Batched {
    Batched { answer, failed: None, etags: Vec::new(), details }
}

/// The response to a write, or an answer without one. The futures of the SDK are large: inside of ours they would fill a stack.
async fn within<T>(
    limit: Duration,
    sent: Pin<Box<impl Future<Output = Result<T, CosmosError>>>>,
) -> Result<T, Batched> {
    // The SDK keeps the limit itself; the second limit is for a request that it cannot end.
    match tokio::time::timeout(limit + limit / 5, sent).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => {
            let status = u16::from(error.status().status_code());
            let answer = Answer {
                // The SDK uses a status of its own for requests without an answer.
                status: error.is_from_wire().then_some(status),
                sent: attempts(error.diagnostics()),
            };
            let details = error.to_string().lines().next().unwrap_or_default().chars().take(200).collect();
            Err(unanswered(answer, details))
        }
        Err(_) => Err(unanswered(Answer { status: None, sent: 1 }, String::new())),
    }
}

/// The number of attempts of the SDK that were sent, or perhaps sent.
fn attempts(diagnostics: Option<Arc<diagnostics::DiagnosticsContext>>) -> u32 {
    let Some(diagnostics) = diagnostics else { return 2 };
    let requests = diagnostics.requests();
    let sent = requests.iter().filter(|request| request.request_sent().may_have_been_sent()).count();
    u32::try_from(sent).unwrap_or(u32::MAX)
}

/// Whether a refusal means that the documents are not those that the caller read.
pub(crate) fn is_conflict(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::Absent | Refusal::Exists | Refusal::Changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_is_in_doubt_may_be_sent_again_whatever_its_last_answer_was() {
        let batched = |status, sent| Batched {
            answer: Answer { status, sent },
            failed: None,
            etags: Vec::new(),
            details: String::new(),
        };
        for status in [404, 409, 412] {
            assert!(!batched(Some(status), 1).error("x").is_retryable(), "{status}");
            assert!(batched(Some(status), 2).error("x").is_retryable(), "{status}");
        }
        assert!(!batched(Some(400), 2).error("x").is_retryable());
        let throttled = batched(Some(429), 3).error("x");
        assert!(throttled.is_retryable() && throttled.message.contains("throttled"), "{throttled}");
        assert!(batched(None, 1).error("x").is_retryable());
    }
}
