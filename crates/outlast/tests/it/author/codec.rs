//! A codec that changes the text of every value: no path of the typed layer stores a value in plain text.

use crate::support::{activities, orchestrations};
use outlast::prelude::*;
use outlast::providers::Provider;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::{Codec, PayloadCodec};
use outlast::{OrchestrationStatus, RuntimeOptions};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Every value has this text.
const SECRET: &str = "s3cret";
const LONG: Duration = Duration::from_secs(60);

/// Changes every byte, and writes the bytes as hexadecimal digits.
struct Scrambled(&'static str);

impl PayloadCodec for Scrambled {
    fn name(&self) -> &str {
        self.0
    }

    fn encode(&self, plain: &str) -> Result<String, String> {
        Ok(plain.bytes().map(|byte| format!("{:02x}", byte ^ 0x5a)).collect())
    }

    fn decode(&self, stored: &str) -> Result<String, String> {
        let byte = |at: usize| stored.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let bytes: Option<Vec<u8>> = (0..stored.len()).step_by(2).map(|at| Some(byte(at)? ^ 0x5a)).collect();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| "the text is damaged".to_string())
    }
}

#[test]
fn the_block_of_the_page_is_code_of_this_file() {
    let page = include_str!("../../../../../docs/codec.md");
    let block = page.split("```rust\n").nth(1).and_then(|block| block.split("```").next()).unwrap();
    assert!(include_str!("codec.rs").contains(block), "{block}");
}

fn scrambled() -> Codec {
    static CODEC: OnceLock<Codec> = OnceLock::new();
    *CODEC.get_or_init(|| Codec::custom(Scrambled("scrambled")))
}

fn secret(text: &str) -> String {
    format!("{SECRET} {text}")
}

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum Refused {
    #[error("refused: {0}")]
    #[failure(permanent)]
    Card(String),
    #[error("busy: {0}")]
    Busy(String),
}

#[derive(Serialize, Deserialize, outlast::Message)]
struct Note {
    text: String,
}

#[derive(Serialize, Deserialize, outlast::Message)]
#[message(route = event)]
struct Bell {
    text: String,
}

#[derive(Serialize, Deserialize, outlast::Message)]
#[message(reply = String)]
struct Ask {
    text: String,
}

const KEY: Key<String> = Key::new("key");

#[outlast::activity]
async fn echo(_ctx: ActivityContext, text: String) -> Result<String, String> {
    Ok(text)
}

#[outlast::activity(retry = 3, backoff = "1ms")]
async fn refuse(ctx: ActivityContext, text: String) -> Result<(), Refused> {
    if ctx.failures() == 0 { Err(Refused::Busy(text)) } else { Err(Refused::Card(text)) }
}

#[outlast::activity(errors = text)]
async fn refuse_in_text(_ctx: ActivityContext, text: String) -> Result<(), String> {
    Err(text)
}

#[outlast::activity]
async fn panics(_ctx: ActivityContext, text: String) -> Result<(), String> {
    panic!("{text}")
}

#[outlast::orchestration]
async fn fails(_ctx: OrchestrationContext, text: String) -> Result<(), Refused> {
    Err(Refused::Card(text))
}

#[outlast::orchestration]
async fn twice(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    if ctx.execution_id() == 1 {
        return twice::continue_as_new(&ctx, text).await;
    }
    Ok(text)
}

#[outlast::orchestration(accepts(Note, Bell, Ask), status = String)]
async fn everything(ctx: OrchestrationContext, input: String) -> outlast::Result<String> {
    assert_eq!(input, secret("input"));
    everything::set_status(&ctx, &secret("status"));
    ctx.set(KEY, &secret("key"));
    assert_eq!(ctx.get(KEY)?, Some(secret("key")));
    for text in ["", "null", "\"quoted\"", "7", &secret("argument")] {
        assert_eq!(echo::call(&ctx, text.to_string()).await?, text);
    }
    let card = Refused::Card(secret("refused"));
    assert_eq!(refuse::call(&ctx, secret("refused")).await, Err(CallError::Failed(card)));
    let refused = refuse_in_text::call(&ctx, secret("in text")).await;
    assert_eq!(refused, Err(CallError::Failed(secret("in text"))));
    let panicked = panics::call(&ctx, secret("panic")).await;
    assert!(
        matches!(&panicked, Err(CallError::Panicked(text)) if text.contains("s3cret panic")),
        "{panicked:?}"
    );
    let failed = fails::child(&ctx, secret("child")).await;
    assert_eq!(failed, Err(CallError::Failed(Refused::Card(secret("child")))));
    twice::detached(&ctx, secret("detached")).id("detached")?;
    let mut undo = Undo::new(&ctx);
    undo.push::<echo>(secret("undo"));
    undo.run().await?;
    let bell = ctx.next::<Bell>();
    let asked = ctx.next_request::<Ask>().await?;
    assert_eq!(asked.text, secret("question"));
    asked.answer(&secret("answer"))?;
    assert_eq!(bell.await?.text, secret("bell"));
    let note: Note = ctx.next().await?;
    Ok(note.text)
}

async fn started(path: &Path, codec: Codec) -> (Arc<Runtime>, Client, Arc<dyn Provider>) {
    let store: Arc<dyn Provider> =
        Arc::new(SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap());
    let module = outlast::module![echo, refuse, refuse_in_text, panics, fails, twice, everything];
    let options = RuntimeOptions { codec, ..RuntimeOptions::default() };
    let builder = Runtime::builder().store(store.clone()).register(module).options(options);
    let runtime = builder.start().await.unwrap();
    (runtime, Client::new(store.clone()).with_codec(codec), store)
}

#[tokio::test]
async fn no_value_of_the_typed_layer_is_stored_in_plain_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (runtime, client, _store) = started(&path, scrambled()).await;
    let run = everything::start(&client, secret("input")).id("e").await.unwrap();
    assert_eq!(run.ask(Ask { text: secret("question") }).within(LONG).await.unwrap(), secret("answer"));
    run.send(Bell { text: secret("bell") }).await.unwrap();
    assert_eq!(run.status().await.unwrap(), Some(secret("status")));
    assert_eq!(run.get(KEY).await.unwrap(), Some(secret("key")));
    run.send(Note { text: secret("note") }).await.unwrap();
    assert_eq!(run.result().within(LONG).await.map_err(|error| error.to_string()), Ok(secret("note")));
    let detached = twice::handle(&client, "detached");
    assert_eq!(detached.result().within(LONG).await, Ok(secret("detached")));
    runtime.shutdown(None).await;
    let mut stored = Vec::new();
    let entries = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
    // The folder beside the store has the lock files of its owners, which are empty.
    for file in entries.filter(|entry| entry.file_type().unwrap().is_file()) {
        stored.extend(std::fs::read(file.path()).unwrap());
    }
    let holds = |text: &str| stored.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("__outlast:codec:scrambled:"), "the values are in these files");
    assert!(!holds(SECRET), "a value is stored in plain text");
}

#[tokio::test]
async fn client_with_another_codec_gets_an_error_that_names_both() {
    let folder = tempfile::tempdir().unwrap();
    let (runtime, client, store) = started(&folder.path().join("store.db"), scrambled()).await;
    twice::start(&client, secret("input")).id("t").await.unwrap().result().within(LONG).await.unwrap();
    let failed = fails::start(&client, secret("input")).id("f").await.unwrap();
    failed.result().within(LONG).await.unwrap_err();
    let none = Client::new(store.clone());
    let other = Client::new(store).with_codec(Codec::custom(Scrambled("other")));
    for (client, has) in [(none, "has none"), (other, "has codec 'other'")] {
        for error in [
            twice::handle(&client, "t").result().await.unwrap_err().to_string(),
            fails::handle(&client, "f").result().await.unwrap_err().to_string(),
            client.wait_for_orchestration_typed::<String>("t", LONG).await.unwrap_err().to_string(),
        ] {
            assert!(error.contains("written with codec 'scrambled'") && error.contains(has), "{error}");
        }
    }
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn typed_functions_with_a_codec_mix_with_the_string_api() {
    let folder = tempfile::tempdir().unwrap();
    let (runtime, client, store) = started(&folder.path().join("store.db"), scrambled()).await;
    // Plain text of the string API is read as by a runtime without a codec.
    client.start_orchestration("plain", "twice", "plain text").await.unwrap();
    let OrchestrationStatus::Completed { output, .. } =
        client.wait_for_orchestration("plain", LONG).await.unwrap()
    else {
        panic!("the instance failed")
    };
    assert!(output.starts_with("__outlast:codec:scrambled:"), "{output}");
    let typed = client.wait_for_orchestration_typed::<String>("plain", LONG).await.unwrap();
    assert_eq!(typed, Ok("plain text".to_string()));
    // Functions of the string API with types use the codec too.
    let caller = |ctx: OrchestrationContext, text: String| async move {
        ctx.set_kv_value_typed("typed", &text);
        let kept: Option<String> = ctx.get_kv_value_typed("typed")?;
        let echoed: String = ctx.schedule_activity_typed("echo", &text).await?;
        Ok(format!("{echoed} {kept:?}"))
    };
    let options = RuntimeOptions { codec: scrambled(), ..RuntimeOptions::default() };
    let registry = orchestrations().register_typed("caller", caller).build();
    let second = Runtime::start_with_options(store, activities().build(), registry, options).await;
    client.start_orchestration_typed("caller", "caller", secret("text")).await.unwrap();
    let output = client.wait_for_orchestration_typed::<String>("caller", LONG).await.unwrap();
    assert_eq!(output, Ok("s3cret text Some(\"s3cret text\")".to_string()));
    assert_eq!(client.get_kv_value_typed::<String>("caller", "typed").await.unwrap(), Some(secret("text")));
    runtime.shutdown(None).await;
    second.shutdown(None).await;
}
