//! A container on a rig, and two clients for it.

use azure_core::credentials::Secret;
use azure_core::{hmac, time};
use azure_data_cosmos::models::ContainerProperties;
use azure_data_cosmos::options::OperationOptions;
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, ContainerClient, CosmosClient, CosmosError, CosmosRuntime,
    RoutingStrategy,
};
use outlast_cosmos_rig::{Rig, RigOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const REGION: &str = "East US";

/// A rig with the container `d/c`, whose partition key is `/instanceId`.
pub(crate) struct Fixture {
    pub(crate) rig: Rig,
    pub(crate) container: ContainerClient,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(RigOptions::default(), properties()).await
    }

    pub(crate) async fn with(options: RigOptions, properties: ContainerProperties) -> Self {
        let rig = Rig::start_with(options).await.unwrap();
        let client = connect(&rig, rig.key()).await.unwrap();
        client.create_database("d", None).await.unwrap();
        let database = client.database_client("d");
        database.create_container(properties, None).await.unwrap();
        let container = database.container_client("c", None).await.unwrap();
        rig.take_recorded();
        Self { rig, container }
    }

    pub(crate) fn rest(&self) -> Rest<'_> {
        Rest { endpoint: self.rig.endpoint(), key: self.rig.key() }
    }

    /// Creates a document through the SDK.
    pub(crate) async fn create(&self, partition: &str, id: &str, mut fields: Value) {
        fields["id"] = id.into();
        fields["instanceId"] = partition.into();
        self.container.create_item(partition.to_string(), id, fields, None).await.unwrap();
    }

    /// Reads a document through the SDK.
    pub(crate) async fn read(&self, partition: &str, id: &str) -> Result<Value, u16> {
        let read = self.container.read_item(partition.to_string(), id, None).await;
        read.map(|response| response.into_model().unwrap()).map_err(|error| code(&error))
    }
}

pub(crate) fn properties() -> ContainerProperties {
    ContainerProperties::new("c", "/instanceId".into())
}

pub(crate) async fn connect(rig: &Rig, key: &'static str) -> Result<CosmosClient, CosmosError> {
    let endpoint: AccountEndpoint = rig.endpoint().parse().unwrap();
    build(AccountReference::with_authentication_key(endpoint, key)).await
}

pub(crate) async fn build(account: AccountReference) -> Result<CosmosClient, CosmosError> {
    let routing = RoutingStrategy::PreferredRegions(vec![REGION.into()]);
    // A build of the whole workspace gives the client TLS without a provider of cryptography. The first test chooses one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Clients that share a runtime share its cache of containers, and with it the credential of the first of them.
    let runtime = CosmosRuntime::builder().build().await?;
    CosmosClient::builder().with_runtime(runtime).build(account, routing).await
}

/// Options with which the SDK does not repeat requests, except for 429 and 449.
pub(crate) fn unrepeated() -> OperationOptions {
    let mut options = OperationOptions::default();
    options.max_failover_retry_count = Some(0);
    options
}

pub(crate) fn code(error: &CosmosError) -> u16 {
    u16::from(error.status().status_code())
}

/// A client that speaks HTTP/1 and repeats nothing.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) key: &'a str,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) fn substatus(&self) -> Option<&str> {
        self.header("x-ms-substatus")
    }

    /// The ids of the documents, in their order.
    pub(crate) fn ids(&self) -> Vec<String> {
        let documents =
            self.body["Documents"].as_array().unwrap_or_else(|| panic!("{} {}", self.status, self.body));
        documents.iter().map(|document| document["id"].as_str().unwrap().to_string()).collect()
    }
}

const DOCS: &str = "/dbs/d/colls/c/docs";

impl Rest<'_> {
    pub(crate) async fn create(&self, partition: &str, document: Value) -> Answer {
        self.send("POST", DOCS, &[key(partition)], Some(document)).await.unwrap()
    }

    pub(crate) async fn read(&self, partition: &str, id: &str) -> Answer {
        self.send("GET", &format!("{DOCS}/{id}"), &[key(partition)], None).await.unwrap()
    }

    pub(crate) async fn query(&self, partition: &str, sql: &str, parameters: &[(&str, Value)]) -> Answer {
        self.query_with(&[key(partition)], sql, parameters).await
    }

    pub(crate) async fn query_with(
        &self,
        headers: &[(&str, String)],
        sql: &str,
        parameters: &[(&str, Value)],
    ) -> Answer {
        let parameters: Vec<Value> =
            parameters.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let mut all = vec![("x-ms-documentdb-isquery", "true".to_string())];
        all.extend(headers.iter().cloned());
        let body = json!({ "query": sql, "parameters": parameters });
        self.send("POST", DOCS, &all, Some(body)).await.unwrap()
    }

    pub(crate) async fn batch(&self, partition: &str, operations: Value) -> Answer {
        let headers = [key(partition), ("x-ms-cosmos-is-batch-request", "true".into())];
        self.send("POST", DOCS, &headers, Some(operations)).await.unwrap()
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Option<Value>,
    ) -> std::io::Result<Answer> {
        let date = time::to_rfc7231(&time::OffsetDateTime::now_utc());
        let mut all = vec![("x-ms-date", date.clone()), ("authorization", self.sign(method, path, &date))];
        // A test may replace the date or the signature, or leave one out.
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()).cloned());
        self.send_raw(method, path, &all, body.map(|body| body.to_string()).unwrap_or_default()).await
    }

    pub(crate) fn sign(&self, method: &str, path: &str, date: &str) -> String {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (resource, link) = match segments.as_slice() {
            [] => ("", String::new()),
            [link @ .., feed] if segments.len() % 2 == 1 => (*feed, link.join("/")),
            [.., resource, _] => (*resource, segments.join("/")),
            [_] => unreachable!("an odd number"),
        };
        let text = format!("{}\n{resource}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
        let signature = hmac::hmac_sha256(&text, &Secret::new(self.key.to_string())).unwrap();
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!("type%3Dmaster%26ver%3D1.0%26sig%3D{signature}")
    }

    pub(crate) async fn send_raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: String,
    ) -> std::io::Result<Answer> {
        let host = self.endpoint.trim_start_matches("http://").trim_end_matches('/');
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(host).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8(answer).map_err(std::io::Error::other)?;
        let ended = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(ended)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(ended)?;
        let body = serde_json::from_str(body).unwrap_or(Value::String(body.to_string()));
        Ok(Answer { status, head: head.to_string(), body })
    }
}

/// The header of a partition key, in ASCII.
pub(crate) fn key(partition: &str) -> (&'static str, String) {
    let text = json!([partition]).to_string();
    let escape = |char: char| match char {
        ' '..='~' => char.to_string(),
        _ => char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    ("x-ms-documentdb-partitionkey", text.chars().map(escape).collect())
}

/// A document of a partition.
pub(crate) fn document(partition: &str, id: &str) -> Value {
    json!({ "id": id, "instanceId": partition })
}
