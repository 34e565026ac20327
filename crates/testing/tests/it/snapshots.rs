//! History snapshots.

use outlast::prelude::*;
use outlast::testing::{Test, days};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

#[outlast::activity]
async fn reserve(_ctx: ActivityContext, order: String) -> Result<(), String> {
    if order == "unknown" { Err("no such order".into()) } else { Ok(()) }
}

#[outlast::orchestration(accepts(Approval))]
async fn fulfil(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    reserve::call(&ctx, order.clone()).await?;
    let id = ctx.new_guid().await?;
    match ctx.next::<Approval>().within(days(3)).await? {
        Some(Approval { yes: true }) => Ok(format!("{order} {id}")),
        _ => Err("not approved".to_string()),
    }
}

fn test() -> Test<fulfil> {
    Test::new(outlast::module![reserve, fulfil]).send_at(days(1), Approval { yes: true })
}

#[test]
fn a_history_matches_its_file() {
    test().run("o-1".into()).matches("tests/snapshots/fulfil.history");
}

#[test]
fn a_changed_history_is_shown_beside_its_file() {
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        return;
    }
    let run = test().run("o-2".into());
    let text = crate::panic_of(|| run.matches("tests/snapshots/fulfil.history"));
    assert!(text.contains("- 1 start fulfil 1.0.0 o-1\n"), "{text}");
    assert!(text.contains("+ 1 start fulfil 1.0.0 o-2\n"), "{text}");
    assert!(text.contains("OUTLAST_BLESS=1"), "{text}");
    let text = crate::panic_of(|| run.matches("tests/snapshots/missing.history"));
    assert!(text.contains("cannot be read"), "{text}");
}
