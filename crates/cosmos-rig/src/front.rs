//! The way of a request: authorization, faults, refusals, the emulator, the record.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use hyper::Version;
use hyper::http::request::Parts;
use serde_json::{Value, json};

use crate::account::{Account, EMPTY_PAGE};
use crate::auth::Auth;
use crate::call::{CONTINUATION, Call, parse_json};
use crate::fault::{Effect, Faults, Moment, Strike};
use crate::recorder::{Record, RecordedOperation, Recorder};
use crate::reply::Reply;
use crate::sql::Query;
use crate::{ChargeModel, Kind, RigOptions, control, strict};

/// All parts of a rig behind its ports.
pub(crate) struct Front {
    pub(crate) account: Account,
    pub(crate) auth: Auth,
    pub(crate) faults: Faults,
    pub(crate) recorder: Recorder,
    /// The largest page, or 0.
    pub(crate) page_limit: AtomicU32,
    strict: bool,
    guards_reads: bool,
    charges: ChargeModel,
}

/// The end of a request.
pub(crate) enum Outcome {
    Reply(Reply),
    /// No answer, but the connection goes on where the protocol allows it.
    Reset,
    /// No answer, and the end of the connection.
    DropConnection,
}

impl Front {
    pub(crate) fn new(options: RigOptions, account: Account) -> Self {
        Self {
            account,
            auth: Auth::new(options.checks_keys, options.token_lifetime),
            faults: Faults::default(),
            recorder: Recorder::new(options.keeps_records),
            page_limit: AtomicU32::new(0),
            strict: options.strict,
            guards_reads: options.guards_reads,
            charges: options.charges,
        }
    }

    pub(crate) async fn serve(&self, region: usize, parts: Parts, body: Bytes) -> Outcome {
        let path = parts.uri.path();
        if let Some(route) = path.strip_prefix(control::PREFIX) {
            return Outcome::Reply(control::serve(self, &parts.method, route, &body).await);
        }
        if path.ends_with("/oauth2/v2.0/token") {
            return Outcome::Reply(self.auth.token(path, &body, self.account.clock.now_ms()));
        }
        let body = if self.guards_reads { body } else { without_read_conditions(body) };
        self.answer(region, &Call::new(parts, body)).await
    }

    async fn answer(&self, region: usize, call: &Call) -> Outcome {
        let mut record = record_of(call);
        if let Err(refusal) = self.auth.check(call, self.account.clock.now_ms()) {
            return self.finish(record, Outcome::Reply(refusal));
        }
        let strikes = self.faults.strikes(call);
        for strike in strikes.iter().filter(|strike| strike.is(Moment::Before)) {
            strike.land().await;
            if let Some(outcome) = outcome_of(strike, call) {
                record.faulted = true;
                return self.finish(record, outcome);
            }
        }
        if self.strict
            && let Err(refusal) = self.check(region, call, &mut record).await
        {
            return self.finish(record, Outcome::Reply(refusal));
        }
        let limit = Some(self.page_limit.load(Ordering::Relaxed)).filter(|limit| *limit > 0);
        let Some(reply) = self.account.execute(region, call, limit).await else {
            return self.finish(record, Outcome::DropConnection);
        };
        record.executed = true;
        self.fill(&mut record, call, &reply);
        let mut after = strikes.iter().filter(|strike| strike.is(Moment::After));
        let changed = after.clone().find_map(|strike| outcome_of(strike, call));
        record.faulted = changed.is_some();
        // The record is written before the request is held, so that a test can look at it meanwhile.
        let outcome = self.finish(record, changed.unwrap_or(Outcome::Reply(reply)));
        for strike in &mut after {
            strike.land().await;
        }
        outcome
    }

    async fn check(&self, region: usize, call: &Call, record: &mut Record) -> Result<(), Reply> {
        let policy = self.account.policy(call);
        if let Some(sql) = call.sql() {
            let filtered = Query::read(sql).filtered;
            record.unindexed = filtered.into_iter().filter(|path| !policy.is_indexed(path)).collect();
        }
        strict::check(call, &policy, self.account.clock.is_altered())?;
        match strict::needs_plan(call) {
            true => self.account.plan(region, call).await.map_or(Ok(()), |plan| strict::check_plan(&plan)),
            false => Ok(()),
        }
    }

    fn finish(&self, mut record: Record, outcome: Outcome) -> Outcome {
        if let Outcome::Reply(reply) = &outcome {
            record.status = reply.status;
            record.substatus = reply.header("x-ms-substatus").and_then(|code| code.parse().ok());
        }
        self.recorder.add(record);
        outcome
    }

    /// Counts what the emulator did.
    fn fill(&self, record: &mut Record, call: &Call, reply: &Reply) {
        record.response_bytes = reply.body.len();
        record.emulator_charge =
            reply.header("x-ms-request-charge").and_then(|charge| charge.parse().ok()).unwrap_or(0.0);
        match call.kind {
            Kind::Batch => self.fill_batch(record, reply),
            Kind::Query | Kind::ReadFeed | Kind::ChangeFeed => {
                record.documents_read = documents_in(reply);
                record.charge =
                    self.charges.page(call.kind, reply.status, record.documents_read, record.response_bytes);
            }
            kind => {
                let bytes = if kind == Kind::Read { reply.body.len() } else { call.body.len() };
                record.documents_read = usize::from(kind == Kind::Read && reply.status == 200);
                record.documents_written = usize::from(kind.is_write() && reply.is_success());
                record.charge = self.charges.point(kind, reply.status, bytes);
            }
        }
    }

    fn fill_batch(&self, record: &mut Record, reply: &Reply) {
        let results = parse_json(&reply.body);
        let Some(results) = results.as_ref().and_then(Value::as_array) else {
            record.charge = self.charges.point(Kind::Batch, reply.status, 0);
            return;
        };
        for (operation, result) in record.operations.iter_mut().zip(results) {
            let status =
                result.get("statusCode").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            let read = result.get("resourceBody").filter(|_| operation.kind == Kind::Read);
            let bytes = read.map_or(operation.bytes, |document| document.to_string().len());
            operation.status = status;
            let status = status.unwrap_or(0);
            let applied = (200..300).contains(&status);
            record.documents_read += usize::from(applied && operation.kind == Kind::Read);
            record.documents_written += usize::from(applied && operation.kind.is_write());
            record.charge += self.charges.point(operation.kind, status, bytes);
        }
    }
}

/// A batch whose reads have no condition; any other body as it is.
fn without_read_conditions(body: Bytes) -> Bytes {
    let Some(Value::Array(mut operations)) = parse_json(&body) else { return body };
    for operation in &mut operations {
        if operation["operationType"] == "Read"
            && let Some(operation) = operation.as_object_mut()
        {
            operation.remove("ifMatch");
        }
    }
    Bytes::from(Value::Array(operations).to_string())
}

/// The record of a request that was not executed.
fn record_of(call: &Call) -> Record {
    let operation = |one: &crate::call::Operation| RecordedOperation {
        kind: one.kind,
        id: one.id.clone(),
        bytes: one.document.as_ref().map_or(0, |document| document.to_string().len()),
        status: None,
    };
    Record {
        kind: call.kind,
        database: call.database().map(str::to_string),
        container: call.container().map(str::to_string),
        partition: call.partition.clone(),
        id: call.id.clone(),
        operations: call.operations.iter().map(operation).collect(),
        query: call.sql().map(str::to_string),
        unindexed: Vec::new(),
        documents_read: 0,
        documents_written: 0,
        request_bytes: call.body.len(),
        response_bytes: 0,
        status: 0,
        substatus: None,
        executed: false,
        faulted: false,
        charge: 0.0,
        emulator_charge: 0.0,
        http: if call.version == Version::HTTP_2 { 2 } else { 1 },
    }
}

fn documents_in(reply: &Reply) -> usize {
    if reply.status != 200 {
        return 0;
    }
    let stated = reply.header("x-ms-item-count").and_then(|count| count.parse().ok());
    stated.unwrap_or_else(|| {
        let json = parse_json(&reply.body);
        json.as_ref().and_then(|json| json.get("Documents")?.as_array()).map_or(0, Vec::len)
    })
}

/// The answer that a fault puts in the place of the emulator's.
fn outcome_of(strike: &Strike, call: &Call) -> Option<Outcome> {
    match strike.effect() {
        Effect::None => None,
        Effect::Status { status, substatus, retry_after_ms } => {
            let moment = if strike.is(Moment::Before) { "before" } else { "after" };
            let message = format!("fault of the test rig, {moment} the execution");
            let reply = Reply::refusal(*status, *substatus, &message);
            let reply = match status {
                429 | 449 | 503 => reply.with("x-ms-retry-after-ms", retry_after_ms.to_string()),
                _ => reply,
            };
            Some(Outcome::Reply(reply))
        }
        Effect::DropConnection => Some(Outcome::DropConnection),
        Effect::Reset => Some(Outcome::Reset),
        Effect::EmptyPage => empty_page(call).map(Outcome::Reply),
    }
}

/// An empty page, after which the client asks for the page that it would have got now.
fn empty_page(call: &Call) -> Option<Reply> {
    if call.kind == Kind::ChangeFeed {
        let position = call.header("if-none-match").unwrap_or_default();
        // A feed that starts now has no position before the emulator has said where now is.
        let reply = Reply { status: 304, headers: Vec::new(), body: Bytes::new() };
        return (position != "*").then(|| reply.with("etag", marked(position)));
    }
    let position = call.header(CONTINUATION).unwrap_or_default();
    let body = json!({ "_rid": "", "Documents": [], "_count": 0 }).to_string();
    Some(Reply::new(200, body).with(CONTINUATION, marked(position)).with("x-ms-item-count", "0"))
}

fn marked(position: &str) -> String {
    format!("{EMPTY_PAGE}{}", position.strip_prefix(EMPTY_PAGE).unwrap_or(position))
}
