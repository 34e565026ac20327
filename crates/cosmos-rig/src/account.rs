//! The emulated account: Microsoft's emulator, with the clock and the expiry that it lacks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use azure_core::http::headers::{HeaderName, HeaderValue};
use azure_core::http::{Method, Request, Url};
use azure_data_cosmos_driver::in_memory_emulator::{
    EmulatorStore, InMemoryEmulatorHttpClient, VirtualAccountConfig, VirtualRegion, WriteMode,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::RwLock;

use crate::call::{CONTINUATION, Call, PARTITION_KEY, parse_json, write_json};
use crate::clock::Clock;
use crate::expiry::{Expiry, Place};
use crate::indexing::Policy;
use crate::reply::Reply;
use crate::{Kind, RigOptions};

/// Continuations of empty pages that the rig made up begin with it. The continuation of the emulator follows.
pub(crate) const EMPTY_PAGE: &str = "rig-empty-page:";
const MAX_ITEM_COUNT: &str = "x-ms-max-item-count";
const IF_NONE_MATCH: &str = "if-none-match";

pub(crate) struct Account {
    emulator: InMemoryEmulatorHttpClient,
    /// The addresses of the regions. The first is the write region.
    regions: Vec<Url>,
    /// Writes hold it exclusively until the rig has noted their time, so that no read shows another.
    order: RwLock<()>,
    pub(crate) clock: Clock,
    expiry: Mutex<Expiry>,
    containers: Mutex<HashMap<(String, String), Container>>,
}

/// The settings of a container that the emulator does not apply.
#[derive(Clone, Default)]
struct Container {
    default_ttl: Option<i64>,
    policy: Policy,
}

impl Account {
    pub(crate) fn new(options: &RigOptions, regions: Vec<Url>) -> Result<Self, String> {
        let named = options.regions.iter().zip(&regions);
        let named = named.map(|(name, url)| VirtualRegion::new(name, url.clone())).collect();
        let mode = if options.multi_region_writes { WriteMode::Multi } else { WriteMode::Single };
        let config = VirtualAccountConfig::new(named).map_err(|error| error.to_string())?;
        let config = config
            .with_write_mode(mode)
            .with_consistency(options.consistency)
            .with_throttling_enabled(options.throttles);
        Ok(Self {
            emulator: InMemoryEmulatorHttpClient::try_new(config).map_err(|error| error.to_string())?,
            regions,
            order: RwLock::new(()),
            clock: Clock::new(),
            expiry: Mutex::default(),
            containers: Mutex::default(),
        })
    }

    pub(crate) fn store(&self) -> Arc<EmulatorStore> {
        self.emulator.store()
    }

    /// The indexing policy of the container that a request names.
    pub(crate) fn policy(&self, call: &Call) -> Policy {
        self.rules(call).policy
    }

    /// Executes a request in a region. Returns `None` if the region cannot be reached.
    pub(crate) async fn execute(&self, region: usize, call: &Call, page_limit: Option<u32>) -> Option<Reply> {
        self.expire().await;
        let reply = if call.kind.is_data() && !call.kind.is_write() {
            let _shared = self.order.read().await;
            self.send(region, call, page_limit).await?
        } else {
            let _exclusive = self.order.write().await;
            let reply = self.send(region, call, page_limit).await?;
            self.note(call, &reply);
            reply
        };
        Some(self.correct(reply))
    }

    /// Asks the emulator for the plan of a query.
    pub(crate) async fn plan(&self, region: usize, call: &Call) -> Option<Value> {
        let mut request = Request::new(self.url(region, &call.path), Method::Post);
        for name in ["x-ms-cosmos-is-query-plan-request", "x-ms-documentdb-isquery"] {
            insert(&mut request, name, "True");
        }
        request.set_body(call.body.to_vec());
        let reply = self.run(&request).await?;
        parse_json(&reply.body).filter(|_| reply.is_success())
    }

    async fn send(&self, region: usize, call: &Call, page_limit: Option<u32>) -> Option<Reply> {
        let method = match call.method.as_str() {
            "GET" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "PATCH" => Method::Patch,
            _ => Method::Head,
        };
        let mut request = Request::new(self.url(region, &call.path), method);
        for (name, value) in &call.headers {
            let Ok(value) = value.to_str() else { continue };
            let value = match name.as_str() {
                CONTINUATION | IF_NONE_MATCH => value.strip_prefix(EMPTY_PAGE).unwrap_or(value),
                _ => value,
            };
            if !value.is_empty() {
                insert(&mut request, name.as_str(), value);
            }
        }
        if let Some(limit) =
            page_limit.filter(|_| matches!(call.kind, Kind::Query | Kind::ReadFeed | Kind::ChangeFeed))
        {
            let asked = call.header(MAX_ITEM_COUNT).and_then(|count| count.parse::<u32>().ok());
            let count = asked.filter(|asked| *asked > 0).map_or(limit, |asked| asked.min(limit));
            insert(&mut request, MAX_ITEM_COUNT, &count.to_string());
        }
        if !call.body.is_empty() {
            request.set_body(call.body.to_vec());
        }
        self.run(&request).await
    }

    pub(crate) async fn run(&self, request: &Request) -> Option<Reply> {
        let response = self.emulator.execute_request(request).await.ok()?;
        let raw = response.try_into_raw_response().await.ok()?;
        let headers = raw.headers().iter().filter(|(name, _)| name.as_str() != "content-length");
        let headers =
            headers.map(|(name, value)| (name.as_str().to_string(), value.as_str().to_string())).collect();
        let body: &[u8] = raw.body().as_ref();
        Some(Reply { status: u16::from(raw.status()), headers, body: Bytes::copy_from_slice(body) })
    }

    pub(crate) fn url(&self, region: usize, path: &str) -> Url {
        let mut url = self.regions[region].clone();
        url.set_path(path);
        url
    }

    /// Deletes the documents whose time to live is over.
    async fn expire(&self) {
        let now_s = self.clock.now_ms() / 1000;
        if self.expiry().expired(now_s).is_empty() {
            return;
        }
        let _exclusive = self.order.write().await;
        // A write may have prolonged a document meanwhile.
        let expired = self.expiry().expired(now_s);
        for place in expired {
            let mut url = self.regions[0].clone();
            if let Ok(mut path) = url.path_segments_mut() {
                path.clear().extend(["dbs", &place.database, "colls", &place.container, "docs", &place.id]);
            }
            let mut request = Request::new(url, Method::Delete);
            insert(&mut request, PARTITION_KEY, &place.partition);
            // A throttled delete is tried again before the next request.
            if self.run(&request).await.is_some_and(|reply| matches!(reply.status, 204 | 404)) {
                self.expiry().gone(&place);
            }
        }
    }

    /// Notes the time and the time to live of documents, and the settings of containers.
    fn note(&self, call: &Call, reply: &Reply) {
        if !reply.is_success() || reply.status == 207 {
            return;
        }
        match call.kind {
            Kind::Batch => {
                let results = parse_json(&reply.body);
                let results = results.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                self.clock.wrote(results.iter().filter_map(|result| result.get("eTag")?.as_str()));
                for operation in &call.operations {
                    self.note_document(
                        call,
                        operation.kind,
                        operation.id.as_deref(),
                        operation.document.as_ref(),
                    );
                }
            }
            Kind::Container | Kind::Database => self.note_container(call),
            kind => {
                self.clock.wrote(reply.header("etag").into_iter());
                self.note_document(call, kind, call.id.as_deref(), call.json.as_ref());
            }
        }
    }

    fn note_document(&self, call: &Call, kind: Kind, id: Option<&str>, document: Option<&Value>) {
        let header = call.header(PARTITION_KEY).and_then(|key| serde_json::from_str::<Value>(key).ok());
        let (Some(database), Some(container), Some(id), Some(partition)) =
            (call.database(), call.container(), id, header)
        else {
            return;
        };
        let place = Place {
            database: database.to_string(),
            container: container.to_string(),
            partition: partition.to_string(),
            id: id.to_string(),
        };
        let now_s = self.clock.now_ms() / 1000;
        match kind {
            Kind::Create | Kind::Upsert | Kind::Replace => {
                let own = document.and_then(|document| document.get("ttl"));
                self.expiry().stored(place, self.rules(call).default_ttl, own, now_s);
            }
            Kind::Patch => self.expiry().touched(&place, now_s),
            Kind::Delete => self.expiry().gone(&place),
            _ => {}
        }
    }

    fn note_container(&self, call: &Call) {
        let Some(database) = call.database() else { return };
        let mut containers = self.containers.lock().unwrap_or_else(PoisonError::into_inner);
        if call.method == hyper::Method::DELETE {
            let dropped = |name: &str| call.container().is_none_or(|container| container == name);
            containers.retain(|(of, name), _| of != database || !dropped(name));
            self.expiry().dropped(database, call.container());
        } else if let Some(json) = call.json.as_ref().filter(|_| call.kind == Kind::Container)
            && let Some(id) = json.get("id").and_then(Value::as_str)
        {
            let policy = json.get("indexingPolicy").and_then(|policy| Policy::read(policy).ok());
            let container = Container {
                default_ttl: json.get("defaultTtl").and_then(Value::as_i64),
                policy: policy.unwrap_or_default(),
            };
            containers.insert((database.to_string(), id.to_string()), container);
        }
    }

    fn rules(&self, call: &Call) -> Container {
        let names = call.database().map(str::to_string).zip(call.container().map(str::to_string));
        let containers = self.containers.lock().unwrap_or_else(PoisonError::into_inner);
        names.and_then(|names| containers.get(&names).cloned()).unwrap_or_default()
    }

    fn correct(&self, reply: Reply) -> Reply {
        if !self.clock.is_altered() {
            return reply;
        }
        let Some(mut json) = parse_json(&reply.body) else { return reply };
        if !self.clock.correct(&mut json) {
            return reply;
        }
        Reply { body: write_json(&json, &reply.body), ..reply }
    }

    fn expiry(&self) -> std::sync::MutexGuard<'_, Expiry> {
        self.expiry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn insert(request: &mut Request, name: &str, value: &str) {
    let name = HeaderName::from(name.to_string());
    request.headers_mut().insert(name, HeaderValue::from(value.to_string()));
}
