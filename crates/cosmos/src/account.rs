//! The properties of the account, which the SDK reads and does not return.

use crate::error::{CosmosStoreError, advice, is_transient};
use crate::{CosmosDBOptions, CosmosDBProviderConfig};
use azure_core::credentials::Secret;
use azure_core::hmac::hmac_sha256;
use azure_core::http::{Method, Request, Url, new_http_client};
use azure_core::time::{OffsetDateTime, to_rfc7231};
use serde::Deserialize;
use std::time::Duration;

/// The scope of tokens for Cosmos DB.
const SCOPE: &str = "https://cosmos.azure.com/.default";

const LIMIT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    #[serde(default)]
    enable_multiple_write_locations: bool,
    #[serde(default)]
    writable_locations: Vec<Location>,
    #[serde(default)]
    readable_locations: Vec<Location>,
}

#[derive(Deserialize)]
struct Location {
    name: String,
}

/// Refuses an account that accepts writes in several regions, and regions that the account does not have.
pub(crate) async fn check(
    config: &CosmosDBProviderConfig,
    options: &CosmosDBOptions,
) -> Result<(), CosmosStoreError> {
    let failed = |reason: String, is_transient| CosmosStoreError::Failed {
        action: "reading the account".to_string(),
        reason,
        is_transient,
    };
    let url = Url::parse(&config.endpoint).map_err(|error| failed(error.to_string(), false))?;
    let date = to_rfc7231(&OffsetDateTime::now_utc());
    let signature = match &options.credential {
        Some(credential) => {
            let token = credential.get_token(&[SCOPE], None).await;
            let token = token.map_err(|error| failed(error.to_string(), false))?;
            format!("type=aad&ver=1.0&sig={}", token.token.secret())
        }
        None => {
            let text = format!("get\n\n\n{}\n\n", date.to_lowercase());
            let signed = hmac_sha256(&text, &Secret::new(config.key.clone()));
            let signed = signed.map_err(|_| CosmosStoreError::Setting {
                setting: "key",
                reason: "not a key of an account, which is base64".to_string(),
            })?;
            format!("type=master&ver=1.0&sig={signed}")
        }
    };
    let mut request = Request::new(url, Method::Get);
    request.insert_header("x-ms-date", date);
    request.insert_header("x-ms-version", "2020-07-15");
    request.insert_header("authorization", encoded(&signature));
    let client = new_http_client(None);
    let answer = async { client.execute_request(&request).await?.try_into_raw_response().await };
    let answer = tokio::time::timeout(LIMIT, answer).await;
    let answer = answer.map_err(|_| failed("no answer came in time".to_string(), true))?;
    let answer = answer.map_err(|error| failed(error.to_string(), true))?;
    let status = u16::from(answer.status());
    match status {
        200 => {}
        401 | 403 => {
            return Err(CosmosStoreError::Denied { action: "reading the account".to_string(), status });
        }
        _ => return Err(failed(format!("{} (status {status})", advice(Some(status))), is_transient(status))),
    }
    let properties: Properties =
        serde_json::from_slice(answer.body()).map_err(|error| failed(error.to_string(), false))?;
    if properties.enable_multiple_write_locations && properties.writable_locations.len() > 1 {
        let regions: Vec<String> =
            properties.writable_locations.into_iter().map(|location| location.name).collect();
        return Err(CosmosStoreError::MultiRegionWrites { regions: regions.join(", ") });
    }
    check_regions(&properties, &options.preferred_regions)
        .map_err(|reason| CosmosStoreError::Setting { setting: "preferred_regions", reason })
}

/// Refuses a preferred region that the account does not have, which the SDK would ignore, and reads outside of the region of the
/// writes, which would miss committed events.
fn check_regions(account: &Properties, preferred: &[String]) -> Result<(), String> {
    let plain = |name: &str| name.replace(' ', "").to_lowercase();
    let found = &account.readable_locations;
    let is_unknown = |region: &&String| found.iter().all(|found| plain(&found.name) != plain(region));
    if let Some(region) = preferred.iter().find(is_unknown) {
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        return Err(format!("the account has no region '{region}': choose among {}", names.join(", ")));
    }
    match (preferred.first(), account.writable_locations.first()) {
        (Some(first), Some(writes)) if plain(first) != plain(&writes.name) => Err(format!(
            "the first region is '{first}', and the account writes in '{}': reads elsewhere miss committed events, so name \
             that region first",
            writes.name
        )),
        _ => Ok(()),
    }
}

/// The characters of a signature that a header must not hold as they are.
fn encoded(signature: &str) -> String {
    let encode = |char: char| match char {
        '=' => "%3D".to_string(),
        '&' => "%26".to_string(),
        '+' => "%2B".to_string(),
        '/' => "%2F".to_string(),
        char => char.to_string(),
    };
    signature.chars().map(encode).collect()
}
