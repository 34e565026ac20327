//! Thousands of requests that are made from the OpenAPI document. No answer is an error of the server, no connection is dropped, and
//! every answer is one that the document describes.

mod plan;
mod schema;
mod values;
mod wire;

use crate::kit::{PATIENCE, Server, operating};
use plan::{Operation, Request, operations};
use schema::Checker;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;
use wire::{Answer, Wire};

/// The connections that send at the same time.
const CONNECTIONS: usize = 4;
/// The fewest requests.
const FEWEST: usize = 5_000;
/// The most problems that a failed test prints.
const SHOWN: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn every_generated_request_has_a_documented_answer_on_sqlite() {
    let server = Server::on_sqlite(generous()).await;
    all_answers_are_documented(&server).await;
    server.stop().await;
}

/// Options without a limit for the rate of requests, which these tests are above.
pub(crate) fn generous() -> outlast_server::Options {
    let mut options = operating();
    options.request_rate = 1e9;
    options.request_burst = u32::MAX;
    options
}

pub(crate) async fn all_answers_are_documented(server: &Server) {
    let began = Instant::now();
    let document = server.get("/api/v1/openapi.json").await.json();
    let mut wires: Vec<Wire> = (0..CONNECTIONS).map(|_| Wire::new(&server.address)).collect();
    let (mut sent, mut problems) = (0, Vec::new());
    for operation in operations(&document) {
        let requests = operation.requests();
        sent += requests.len();
        let mut batches: Vec<Vec<Request>> = vec![Vec::new(); CONNECTIONS];
        for (index, request) in requests.into_iter().enumerate() {
            batches[index % CONNECTIONS].push(request);
        }
        prepare(server).await;
        let all =
            wires.iter_mut().zip(batches).map(|(wire, batch)| send_all(wire, &document, &operation, batch));
        problems.extend(futures::future::join_all(all).await.into_iter().flatten());
    }
    let shown: Vec<String> = problems.iter().take(SHOWN).map(|problem| format!("{problem:.900}")).collect();
    let shown = shown.join("\n");
    assert!(problems.is_empty(), "{} of {sent} requests:\n{shown}", problems.len());
    assert!(sent >= FEWEST, "{sent}");
    // The server answers others after all this.
    assert_eq!(server.get("/readyz").await.status, 200);
    assert!(began.elapsed() < Duration::from_secs(240), "{:?}", began.elapsed());
}

/// Makes the instances that valid requests name, which the requests of the operation before may have ended or deleted.
async fn prepare(server: &Server) {
    for id in ["run", "done", "failed", "new"] {
        let _ = server.store.delete_instance(id, true).await;
    }
    server.waiting_order("run").await;
    server.waiting_order("done").await;
    server.start_order("failed", "stolen").await;
    server.store.raise_event("done", "approval", "yes").await.unwrap();
    for id in ["done", "failed"] {
        server.store.wait_for_orchestration(id, PATIENCE).await.unwrap();
    }
}

async fn send_all(
    wire: &mut Wire,
    document: &Value,
    operation: &Operation<'_>,
    requests: Vec<Request>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for request in requests {
        let problem = match wire.send(&request).await {
            Ok(answer) => problem_of(document, operation, &request, &answer),
            Err(error) => Some(error),
        };
        problems.extend(problem.map(|problem| {
            let body = String::from_utf8_lossy(&request.body[..request.body.len().min(300)]).into_owned();
            format!("{} {:.200} {:?} {body}: {problem}", request.method, request.path, request.headers)
        }));
    }
    problems
}

/// The difference between an answer and the document.
fn problem_of(
    document: &Value,
    operation: &Operation<'_>,
    request: &Request,
    answer: &Answer,
) -> Option<String> {
    if answer.status >= 500 {
        return Some(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body)));
    }
    let checker = Checker { document };
    let of_problem = document.pointer("/components/schemas/ProblemBody")?;
    let is_other = request.method != operation.method;
    let (media, schema) = match (answer.status, is_other) {
        // A HEAD is answered as a GET without its body.
        _ if request.method == "HEAD" => return None,
        (405, true) | (404, false) if !answer.media.is_empty() => ("application/problem+json", of_problem),
        (status, false) => match &operation.described["responses"][status.to_string()]["content"] {
            Value::Object(content) => {
                let (media, described) = content.iter().next()?;
                (media.as_str(), &described["schema"])
            }
            _ => return Some(format!("the status {status} is not documented")),
        },
        (status, true) => return Some(format!("the status is {status}")),
    };
    if answer.media != media {
        return Some(format!("{} with the media type '{}' instead of {media}", answer.status, answer.media));
    }
    if media == "text/event-stream" {
        return None;
    }
    match serde_json::from_slice(&answer.body) {
        Ok(value) => checker.check(schema, &value).err().map(|error| format!("{}: {error}", answer.status)),
        Err(error) => Some(format!("{}: the body is no JSON: {error}", answer.status)),
    }
}
