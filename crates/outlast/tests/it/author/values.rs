//! Values round-trip exactly through activities, children, messages and results, with both codecs.

use crate::support::{Cluster, Kind, Node};
use outlast::prelude::*;
use outlast::runtime::Codec;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, outlast::Message)]
struct Values {
    texts: Vec<String>,
    maybe: Option<String>,
    number: f64,
}

#[outlast::activity]
async fn echo(_ctx: ActivityContext, text: String) -> Result<String, String> {
    Ok(text)
}

#[outlast::activity]
async fn echo_maybe(_ctx: ActivityContext, text: Option<String>) -> Result<Option<String>, String> {
    Ok(text)
}

#[outlast::activity]
async fn echo_both(_ctx: ActivityContext, text: String, number: f64) -> Result<(String, f64), String> {
    Ok((text, number))
}

#[outlast::orchestration]
async fn echo_child(_ctx: OrchestrationContext, text: String) -> Result<String, String> {
    Ok(text)
}

#[outlast::orchestration(accepts(Values))]
async fn everything(ctx: OrchestrationContext, values: Values) -> Result<Values, String> {
    for text in &values.texts {
        assert_eq!(&echo::call(&ctx, text.clone()).await?, text);
        assert_eq!(echo_maybe::call(&ctx, Some(text.clone())).await?.as_ref(), Some(text));
        assert_eq!(&echo_child::child(&ctx, text.clone()).await?, text);
        assert_eq!(echo_both::call(&ctx, text.clone(), values.number).await?, (text.clone(), values.number));
    }
    assert_eq!(echo_maybe::call(&ctx, None).await?, None);
    let sent: Values = ctx.next().await?;
    assert_eq!(sent, values);
    Ok(values)
}

#[tokio::test]
async fn every_value_returns_as_it_was_with_both_codecs() {
    let values = Values {
        texts: ["", "plain", "\"quoted\"", "null", "7", "{\"a\":1}", "true"].map(String::from).to_vec(),
        maybe: Some("null".into()),
        number: 31.245270191439438,
    };
    for codec in [Codec::Contract, Codec::Json] {
        let cluster = Cluster::real(Kind::SqliteMemory).await;
        let module = outlast::module![echo, echo_maybe, echo_both, echo_child, everything];
        cluster.start(&Node::of(module).with(move |options| options.codec = codec)).await;
        let client = cluster.client.clone().with_codec(codec);
        let everything = everything::start(&client, values.clone()).id("v").with(&values).await.unwrap();
        assert_eq!(everything.result().await.as_ref(), Ok(&values), "{codec:?}");
        for text in &values.texts {
            let echo = echo_child::start(&client, text.clone()).await.unwrap();
            assert_eq!(&echo.result().await.unwrap(), text, "{codec:?}");
        }
        cluster.end().await;
    }
}
