//! Copies of logical partitions, so that a container with thousands of instances takes seconds to fill: the emulator executes
//! single creates quickly, and copies a physical partition for every batch.

use azure_core::http::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::account::{Account, insert};
use crate::call::{CONTINUATION, PARTITION_KEY, parse_json};

const ALL_DOCUMENTS: &str = include_str!("sql/all_documents.sql");

/// The partitions to copy.
#[derive(Debug, Deserialize)]
pub(crate) struct Copies {
    database: String,
    container: String,
    /// The property with the partition key, which is a text.
    key: String,
    /// The partitions whose key begins with this text.
    prefix: String,
    /// How many copies of each. The n-th copy has the key `KEY-n`, also where a document names it.
    copies: usize,
}

impl Account {
    /// Copies partitions; returns how many documents were created. Nothing is recorded, and no time to live is noted.
    pub(crate) async fn copy(&self, copies: &Copies) -> Result<usize, String> {
        let path = format!("/dbs/{}/colls/{}/docs", copies.database, copies.container);
        let mut created = 0;
        for document in self.all(&path).await? {
            let Some(key) = document.get(&copies.key).and_then(Value::as_str) else { continue };
            if !key.starts_with(&copies.prefix) {
                continue;
            }
            let text = document.to_string();
            for nth in 1..=copies.copies {
                let copied = format!("{key}-{nth}");
                let mut request = Request::new(self.url(0, &path), Method::Post);
                insert(&mut request, PARTITION_KEY, &json!([copied]).to_string());
                request.set_body(text.replace(key, &copied).into_bytes());
                match self.run(&request).await {
                    Some(reply) if reply.is_success() => created += 1,
                    Some(reply) => return Err(format!("status {} for a copy of '{key}'", reply.status)),
                    None => return Err("the write region cannot be reached".to_string()),
                }
            }
        }
        Ok(created)
    }

    /// All documents of a container, without the properties that the service sets.
    async fn all(&self, path: &str) -> Result<Vec<Value>, String> {
        let mut documents = Vec::new();
        let mut continuation: Option<String> = None;
        loop {
            let mut request = Request::new(self.url(0, path), Method::Post);
            for name in ["x-ms-documentdb-isquery", "x-ms-documentdb-query-enablecrosspartition"] {
                insert(&mut request, name, "True");
            }
            insert(&mut request, "content-type", "application/query+json");
            if let Some(continuation) = &continuation {
                insert(&mut request, CONTINUATION, continuation);
            }
            request.set_body(json!({ "query": ALL_DOCUMENTS.trim() }).to_string().into_bytes());
            let reply = self.run(&request).await.ok_or("the write region cannot be reached")?;
            let page = parse_json(&reply.body).filter(|_| reply.is_success());
            let mut page = page.ok_or_else(|| format!("status {} for a query", reply.status))?;
            for document in page["Documents"].as_array_mut().into_iter().flatten() {
                if let Some(properties) = document.as_object_mut() {
                    properties.retain(|name, _| !name.starts_with('_'));
                }
                documents.push(document.take());
            }
            continuation = reply.header(CONTINUATION).filter(|text| !text.is_empty()).map(str::to_string);
            if continuation.is_none() {
                return Ok(documents);
            }
        }
    }
}
