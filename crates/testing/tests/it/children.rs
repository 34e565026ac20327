//! Children, mocked and not.

use outlast::prelude::*;
use outlast::testing::Test;

#[outlast::orchestration]
async fn ship(_ctx: OrchestrationContext, item: String) -> Result<String, String> {
    Err(format!("{item} was really shipped"))
}

#[outlast::orchestration]
async fn order(ctx: OrchestrationContext, items: Vec<String>) -> Result<Vec<String>, String> {
    let mut shipped = Vec::new();
    for item in items {
        shipped.push(ship::child(&ctx, item).await?);
    }
    Ok(shipped)
}

fn items() -> Vec<String> {
    ["hat", "coat"].map(String::from).to_vec()
}

#[test]
fn a_mock_replaces_a_child() {
    let test = Test::<order>::new(outlast::module![order]);
    let run = test.clone().mock_child::<ship>(|item| Ok(format!("{item} sent"))).run(items());
    assert_eq!(run.output(), &["hat sent", "coat sent"]);
    assert_eq!(run.instances::<ship>().len(), 2);
    let failed = test.mock_child::<ship>(|item| Err(format!("no {item}"))).run(items());
    assert_eq!(failed.failure(), "no hat");
}

#[test]
fn children_of_the_module_run() {
    let run = Test::<order>::new(outlast::module![order, ship]).run(items());
    assert_eq!(run.failure(), "hat was really shipped");
    let child = run.instances::<ship>()[0].to_string();
    assert_eq!(outlast::testing::story(&run.history_of(&child)[0])[0], "1 start ship 1.0.0 hat");
}
