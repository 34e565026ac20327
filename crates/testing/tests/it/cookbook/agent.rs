//! A language model that calls tools until it has an answer.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::{Test, hours};
use outlast::time::days;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Turn {
    User(String),
    Model(Reply),
    Tool { call: ToolCall, result: Result<String, String> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Reply {
    Answer(String),
    Calls(Vec<ToolCall>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum ToolCall {
    Search(String),
    Refund { order: String, cents: u64 },
}

#[derive(Serialize, Deserialize, outlast::Message)]
struct Permission {
    granted: bool,
}

/// One request to the model, with the whole conversation. Retries and the timeout are for the model's service.
#[outlast::activity(retry = 6, backoff = "2s", timeout = "2m")]
async fn ask_model(_ctx: ActivityContext, conversation: Vec<Turn>) -> Result<Reply, String> {
    Err(format!("the model is a mock in the tests ({} turns)", conversation.len()))
}

#[outlast::activity(retry = 3, timeout = "30s")]
async fn search(_ctx: ActivityContext, query: String) -> Result<String, String> {
    Ok(format!("one page about {query}"))
}

#[outlast::activity(retry = 3)]
async fn refund(_ctx: ActivityContext, order: String, cents: u64) -> Result<String, String> {
    Ok(format!("{cents} cents for {order}"))
}

#[outlast::orchestration(accepts(Permission))]
async fn agent(ctx: OrchestrationContext, question: String) -> Result<String, String> {
    let mut conversation = vec![Turn::User(question)];
    for _round in 0..20 {
        let reply = ask_model::call(&ctx, conversation.clone()).await?;
        conversation.push(Turn::Model(reply.clone()));
        match reply {
            Reply::Answer(text) => return Ok(text),
            Reply::Calls(calls) => {
                let tools: Vec<_> = calls.iter().map(|call| run_tool(&ctx, call)).collect();
                let results = ctx.join_all(tools).await;
                let turns = calls.into_iter().zip(results);
                conversation.extend(turns.map(|(call, result)| Turn::Tool { call, result }));
            }
        }
    }
    Err("no answer after 20 rounds".to_string())
}

/// The error of a tool goes back to the model, which can try something else.
#[outlast::deterministic]
async fn run_tool(ctx: &OrchestrationContext, call: &ToolCall) -> Result<String, String> {
    match call {
        ToolCall::Search(query) => Ok(search::call(ctx, query.clone()).await?),
        ToolCall::Refund { order, cents } => {
            // Money needs a person. The wait costs nothing, however long it is.
            match ctx.next::<Permission>().within(days(1)).await? {
                Some(Permission { granted: true }) => Ok(refund::call(ctx, order.clone(), *cents).await?),
                _ => Err("a person did not permit this".to_string()),
            }
        }
    }
}

/// A model that searches, refunds, and then answers.
fn model(conversation: &[Turn]) -> Reply {
    let refund = ToolCall::Refund { order: "o-7".into(), cents: 700 };
    match conversation {
        [Turn::User(_)] => Reply::Calls(vec![ToolCall::Search("order o-7".into()), refund]),
        [.., Turn::Tool { call: ToolCall::Refund { .. }, result: Ok(text) }] => {
            Reply::Answer(format!("refunded {text}"))
        }
        _ => Reply::Answer("I am sorry".into()),
    }
}

#[cfg(test)]
fn desk() -> Test<agent> {
    Test::<agent>::new(outlast::module![agent, search, refund]).mock::<ask_model>(|turns| Ok(model(&turns)))
}

#[test]
fn an_agent_refunds_with_permission() {
    let test = desk().send_at(hours(5), Permission { granted: true });
    let run = test.run("Where is o-7?".into());
    assert_eq!(run.output(), "refunded 700 cents for o-7");
    run.calls::<ask_model>().times(2);
    // A crash repeats no request to the model that was answered, and changes no answer.
    test.crash_everywhere("Where is o-7?".into()).holds();
}

#[test]
fn an_agent_does_not_refund_without_permission() {
    let run = desk().run("Where is o-7?".into());
    assert_eq!(run.output(), "I am sorry");
    run.calls::<refund>().never();
}
// guide: end
