//! Requests that Azure refuses with 400 and the emulator accepts.

use serde_json::{Value, json};

use crate::Kind;
use crate::call::{Call, PARTITION_KEY};
use crate::indexing::Policy;
use crate::reply::Reply;
use crate::sql::Query;

/// The bytes of an id.
const MAX_ID: usize = 1023;
/// The bytes of a partition key, in a container with Hash v2.
const MAX_PARTITION_KEY: usize = 2048;
/// The levels of nested arrays and objects.
const MAX_NESTING: usize = 128;
/// The bytes of the text of a query.
const MAX_QUERY: usize = 512 * 1024;

/// Checks a request, before the emulator sees it.
pub(crate) fn check(call: &Call, policy: &Policy, clock_is_altered: bool) -> Result<(), Reply> {
    check_partition(call)?;
    call.documents().into_iter().try_for_each(check_document)?;
    call.ids().try_for_each(check_id)?;
    check_replacement(call)?;
    if call.kind == Kind::Container {
        check_container(call)?;
    }
    match call.sql() {
        Some(sql) => check_query(call, sql, policy, clock_is_altered),
        None => Ok(()),
    }
}

fn check_partition(call: &Call) -> Result<(), Reply> {
    // The JSON of the header is ASCII: a key with other bytes is no key.
    if call.kind.needs_partition() && call.header(PARTITION_KEY).is_none() {
        return Err(Reply::refusal(400, 1001, "PartitionKey value must be supplied for this operation."));
    }
    let too_long = call.partition.as_ref().is_some_and(|key| key.len() > MAX_PARTITION_KEY);
    if too_long { Err(bad("Partition key exceeded maximum size of 2048 bytes.")) } else { Ok(()) }
}

fn check_document(document: &Value) -> Result<(), Reply> {
    if depth(document) > MAX_NESTING {
        return Err(bad("The document exceeds the maximum of 128 nested levels."));
    }
    let valid_ttl = match document.get("ttl") {
        None => true,
        Some(ttl) => ttl.as_i64().is_some_and(|ttl| ttl == -1 || (1..=i64::from(i32::MAX)).contains(&ttl)),
    };
    if valid_ttl {
        return Ok(());
    }
    Err(bad(
        "The input ttl is invalid. Ensure to provide a nonzero positive integer less than or equal to 2147483647, \
             or -1 which means never expire.",
    ))
}

/// Also the ids of operations in a batch.
fn check_id(id: &str) -> Result<(), Reply> {
    if id.is_empty() || id.len() > MAX_ID {
        return Err(bad(
            "The input name is invalid. Ensure to provide a unique non-empty string less than 1024 bytes.",
        ));
    }
    if id.contains(['/', '\\', '?', '#']) {
        return Err(bad("The input name is invalid: it contains illegal characters '/', '\\', '?', '#'."));
    }
    Ok(())
}

/// A replace keeps the id of its document.
fn check_replacement(call: &Call) -> Result<(), Reply> {
    let named = call.json.as_ref().and_then(|json| json.get("id")?.as_str());
    match named {
        Some(id) if call.kind == Kind::Replace && call.id.as_deref() != Some(id) => {
            Err(bad("The id of the document differs from the id in the path."))
        }
        _ => Ok(()),
    }
}

fn check_container(call: &Call) -> Result<(), Reply> {
    let Some(json) = &call.json else { return Ok(()) };
    if let Some(policy) = json.get("indexingPolicy") {
        Policy::read(policy).map_err(|reason| bad(&reason))?;
    }
    Ok(())
}

fn check_query(call: &Call, sql: &str, policy: &Policy, clock_is_altered: bool) -> Result<(), Reply> {
    if sql.len() > MAX_QUERY {
        return Err(bad("The SQL query text exceeded the maximum limit of 524288 characters."));
    }
    let query = Query::read(sql);
    if let Some(text) = query.double_quoted.first() {
        return Err(rig_cannot(&format!(
            "the emulator takes \"{text}\" as a name: use a parameter, single quotes, or c.{text}"
        )));
    }
    if query.uses_ts && clock_is_altered {
        return Err(rig_cannot(
            "the emulator does not know the clock of the rig: queries cannot use _ts, only select it beside _etag",
        ));
    }
    if let Some(reason) = policy.refuses_order(&query.order) {
        return Err(bad(&reason));
    }
    let goes_to_one_partition =
        call.partition.is_some() || call.headers.contains_key("x-ms-documentdb-partitionkeyrangeid");
    if call.kind == Kind::Query
        && !goes_to_one_partition
        && !call.is_on("x-ms-documentdb-query-enablecrosspartition")
    {
        return Err(bad("Cross partition query is required but disabled. Please set \
                        x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or \
                        revise your query to avoid this exception."));
    }
    Ok(())
}

/// Whether the gateway must be asked for the plan of a query before it is run: the query goes to several partitions.
pub(crate) fn needs_plan(call: &Call) -> bool {
    call.kind == Kind::Query
        && call.partition.is_none()
        && !call.headers.contains_key("x-ms-documentdb-partitionkeyrangeid")
}

/// Refuses a query whose results the client must merge. The gateway does not.
pub(crate) fn check_plan(plan: &Value) -> Result<(), Reply> {
    let info = &plan["queryInfo"];
    let lists = ["orderBy", "aggregates", "groupByExpressions"];
    let merged = lists.iter().any(|name| info[name].as_array().is_some_and(|list| !list.is_empty()))
        || ["top", "offset", "limit"].iter().any(|name| !info[name].is_null())
        || info["distinctType"].as_str().is_some_and(|kind| kind != "None");
    if !merged {
        return Ok(());
    }
    let message = "The provided cross partition query can not be directly served by the gateway. This is a first chance \
                   (internal) exception that all newer clients will know how to handle gracefully.";
    let body = json!({ "code": "BadRequest", "message": message, "additionalErrorInfo": plan.to_string() });
    Err(Reply::new(400, body.to_string()).with("x-ms-substatus", "1004"))
}

fn depth(json: &Value) -> usize {
    match json {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn bad(message: &str) -> Reply {
    Reply::refusal(400, 0, message)
}

/// A limit of the rig: Azure would answer.
fn rig_cannot(reason: &str) -> Reply {
    bad(&format!("limit of the test rig: {reason}"))
}
