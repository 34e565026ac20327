//! Typed calls encode and decode with the codec of the execution.

use crate::kit::*;
use outlast_engine::OrchestrationContext;
use outlast_model::codec::Codec;

async fn typed(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let activity: String = ctx.schedule_activity_typed("A", &"1").await?;
    let child: String = ctx.schedule_sub_orchestration_typed("C", &activity).await?;
    let raised: String = ctx.schedule_wait_typed("s").await;
    let taken: String = ctx.dequeue_event_typed("q").await;
    Ok(format!("{:?} {activity} {child} {raised} {taken}", ctx.codec()))
}

#[test]
fn strings_keep_their_quotes_under_json_only() {
    // The stored form of "1", and the value that the stored result `2` decodes to.
    for (codec, written) in [(Codec::Contract, r#""1""#), (Codec::Json, r#""\"1\"""#)] {
        let mut driver = InstanceDriver::new(typed).written_as(codec);
        driver.turn(
            [],
            &format!(
                r#"
                1 OrchestrationStarted Main "in"
                2 ActivityScheduled A {written}
                > activity 2 A {written}
            "#
            ),
        );
        let text = |content: &str| codec.encode(content).unwrap();
        driver.give([done(2, &text("two"))]);
        driver.give([child_done(4, &text("four"))]);
        driver.give([raise("s", &text("six"))]);
        let output = driver.give([enqueue("q", &text("eight"))]);
        assert!(
            output_text(&output).contains(&format!("\"{codec:?} two four six eight\"")),
            "{}",
            output_text(&output)
        );
    }
}
