//! Keys and Entra tokens.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::time::{self, OffsetDateTime};
use azure_data_cosmos::{AccountEndpoint, AccountReference, CosmosError};
use outlast_cosmos_rig::{CLIENT_ID, CLIENT_SECRET, READ_ONLY_KEY, Rig, RigOptions};
use serde_json::json;

use crate::kit::{Fixture, Rest, build, code, connect, document};

const WRONG_KEY: &str =
    "d3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbg==";

#[tokio::test]
async fn a_wrong_key_is_refused() {
    let fixture = Fixture::new().await;
    let refused = match connect(&fixture.rig, WRONG_KEY).await {
        Ok(client) => client.create_database("x", None).await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert_eq!(refused.map_err(|error| code(&error)), Err(401));
    let rest = Rest { key: WRONG_KEY, ..fixture.rest() };
    assert_eq!(rest.create("p", document("p", "a")).await.status, 401);
    assert_eq!(fixture.rest().read("p", "a").await.status, 404);
}

#[tokio::test]
async fn signatures_are_checked_with_method_resource_and_date() {
    let fixture = Fixture::new().await;
    let rest = fixture.rest();
    let path = "/dbs/d/colls/c";
    let now = time::to_rfc7231(&OffsetDateTime::now_utc());
    let old = time::to_rfc7231(&(OffsetDateTime::now_utc() - Duration::from_secs(7200)));
    let cases = [
        (
            "as it should be",
            vec![("x-ms-date", now.clone()), ("authorization", rest.sign("GET", path, &now))],
            200,
        ),
        ("without authorization", vec![("authorization", String::new())], 401),
        ("garbage", vec![("authorization", "type%3Dmaster%26ver%3D1.0%26sig%3DAAAA".into())], 401),
        (
            "of another method",
            vec![("x-ms-date", now.clone()), ("authorization", rest.sign("PUT", path, &now))],
            401,
        ),
        (
            "of another path",
            vec![("x-ms-date", now.clone()), ("authorization", rest.sign("GET", "/dbs/d", &now))],
            401,
        ),
        ("of another date", vec![("x-ms-date", now), ("authorization", rest.sign("GET", path, &old))], 401),
        (
            "two hours old",
            vec![("x-ms-date", old.clone()), ("authorization", rest.sign("GET", path, &old))],
            403,
        ),
    ];
    for (name, headers, expected) in cases {
        assert_eq!(
            rest.send("GET", path, &headers, None).await.unwrap().status,
            expected,
            "a signature {name}"
        );
    }
}

#[tokio::test]
async fn the_read_only_key_reads_and_does_not_write() {
    let fixture = Fixture::new().await;
    fixture.create("p", "a", json!({})).await;
    let rest = Rest { key: READ_ONLY_KEY, ..fixture.rest() };
    assert_eq!(rest.read("p", "a").await.status, 200);
    assert_eq!(rest.query("p", "SELECT * FROM c", &[]).await.ids(), ["a"]);
    assert_eq!(rest.create("p", document("p", "b")).await.status, 403);
    let database = rest.send("POST", "/dbs", &[], Some(json!({ "id": "x" }))).await.unwrap();
    assert_eq!(database.status, 403);
    let client = connect(&fixture.rig, READ_ONLY_KEY).await.unwrap();
    let container = client.database_client("d").container_client("c", None).await.unwrap();
    container.read_item("p", "a", None).await.unwrap();
    let refused = container.create_item("p", "b", document("p", "b"), None).await.unwrap_err();
    assert_eq!(code(&refused), 403);
}

#[tokio::test]
async fn a_rig_can_leave_keys_unchecked() {
    let rig = Rig::start_with(RigOptions { checks_keys: false, ..RigOptions::default() }).await.unwrap();
    let rest = Rest { endpoint: rig.endpoint(), key: WRONG_KEY };
    assert_eq!(rest.send("GET", "/", &[], None).await.unwrap().status, 200);
}

/// A credential that requests a token of the rig's endpoint, and keeps the token until a test tells it to request another one.
#[derive(Debug)]
struct ClientSecret {
    endpoint: String,
    token_endpoint: String,
    secret: String,
    cached: Mutex<Option<AccessToken>>,
}

impl ClientSecret {
    fn new(rig: &Rig, secret: &str) -> Arc<Self> {
        Arc::new(Self {
            endpoint: rig.endpoint().to_string(),
            token_endpoint: rig.token_endpoint(),
            secret: secret.to_string(),
            cached: Mutex::new(None),
        })
    }

    fn forget(&self) {
        *self.cached.lock().unwrap() = None;
    }
}

#[async_trait]
impl TokenCredential for ClientSecret {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        if let Some(token) = self.cached.lock().unwrap().clone() {
            return Ok(token);
        }
        let scope = scopes[0].replace(':', "%3A").replace('/', "%2F");
        let form = format!(
            "grant_type=client_credentials&client_id={CLIENT_ID}&client_secret={}&scope={scope}",
            self.secret
        );
        let path = format!("/{}", self.token_endpoint.strip_prefix(&self.endpoint).unwrap());
        let rest = Rest { endpoint: &self.endpoint, key: "" };
        let answer = rest.send_raw("POST", &path, &[], form).await?;
        let Some(token) = answer.body["access_token"].as_str() else {
            return Err(azure_core::Error::with_message(ErrorKind::Credential, answer.body.to_string()));
        };
        let lifetime = Duration::from_secs(answer.body["expires_in"].as_u64().unwrap());
        let token = AccessToken::new(token.to_string(), OffsetDateTime::now_utc() + lifetime);
        *self.cached.lock().unwrap() = Some(token.clone());
        Ok(token)
    }
}

async fn connect_with(
    rig: &Rig,
    credential: Arc<ClientSecret>,
) -> Result<azure_data_cosmos::CosmosClient, CosmosError> {
    let endpoint: AccountEndpoint = rig.endpoint().parse().unwrap();
    build(AccountReference::with_credential(endpoint, credential)).await
}

#[tokio::test]
async fn tokens_of_the_local_endpoint_are_accepted_until_they_expire_or_are_revoked() {
    let fixture = Fixture::new().await;
    let credential = ClientSecret::new(&fixture.rig, CLIENT_SECRET);
    let client = connect_with(&fixture.rig, credential.clone()).await.unwrap();
    let container = client.database_client("d").container_client("c", None).await.unwrap();
    container.create_item("p", "a", document("p", "a"), None).await.unwrap();
    assert_eq!(fixture.rig.tokens_issued(), 1);

    fixture.rig.revoke_tokens();
    assert_eq!(code(&container.read_item("p", "a", None).await.unwrap_err()), 401);
    credential.forget();
    container.read_item("p", "a", None).await.unwrap();

    fixture.rig.advance_clock(Duration::from_secs(3601));
    assert_eq!(code(&container.read_item("p", "a", None).await.unwrap_err()), 401);
    credential.forget();
    container.read_item("p", "a", None).await.unwrap();
    assert_eq!(fixture.rig.tokens_issued(), 3);
}

#[tokio::test]
async fn tokens_of_others_and_wrong_secrets_are_refused() {
    let fixture = Fixture::new().await;
    let wrong = connect_with(&fixture.rig, ClientSecret::new(&fixture.rig, "wrong")).await;
    assert!(wrong.is_err(), "the credential cannot get a token");
    assert_eq!(fixture.rig.tokens_issued(), 0);
    let headers = [("authorization", "type%3Daad%26ver%3D1.0%26sig%3Drig-token-1".to_string())];
    assert_eq!(fixture.rest().send("GET", "/", &headers, None).await.unwrap().status, 401);
    let path = format!("/{}", fixture.rig.token_endpoint().strip_prefix(fixture.rig.endpoint()).unwrap());
    let ask = async |form: &str| fixture.rest().send_raw("POST", &path, &[], form.to_string()).await.unwrap();
    let valid = format!("client_id={CLIENT_ID}&client_secret={CLIENT_SECRET}");
    let scope = "scope=https%3A%2F%2Fcosmos.azure.com%2F.default";
    assert_eq!(
        ask(&format!("grant_type=client_credentials&{valid}&scope=other")).await.body["error"],
        "invalid_scope"
    );
    assert_eq!(
        ask(&format!("grant_type=password&{valid}&{scope}")).await.body["error"],
        "unsupported_grant_type"
    );
    assert_eq!(ask(&format!("grant_type=client_credentials&{valid}&{scope}")).await.status, 200);
}
