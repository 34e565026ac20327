//! `Either2`, `Either3`, `DurableFuture`: combinators over all argument types that callers use.

use super::{output, started};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, DurableFuture, Either2, Either3, OrchestrationContext, OrchestrationRegistry,
};
use std::time::Duration;

fn echo() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Echo", |_: ActivityContext, input: String| async move { Ok(input) })
        .build()
}

const LONG: Duration = Duration::from_secs(3_600);

/// A future that is passed on, by name.
fn scheduled(ctx: &OrchestrationContext, input: &str) -> DurableFuture<Result<String, String>> {
    ctx.schedule_activity("Echo", input)
}

#[tokio::test]
async fn borrowed_blocks_mutable_references_and_joins() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Combines", |ctx: OrchestrationContext, _: String| async move {
            // Blocks that borrow the context and a local.
            let prefix = String::from("borrowed");
            let quick = async { ctx.schedule_activity("Echo", &prefix).await };
            let slow = async {
                ctx.schedule_timer(LONG).await;
                format!("{prefix} too late")
            };
            let a = match ctx.select2(quick, slow).await {
                Either2::First(result) => result?,
                Either2::Second(late) => late,
            };
            // A future that loses a race by reference and is awaited later.
            let mut patient = scheduled(&ctx, "patient");
            let mut wins = 0;
            while wins < 3 {
                match ctx.select2(ctx.schedule_timer(Duration::ZERO), &mut patient).await {
                    Either2::First(()) => wins += 1,
                    Either2::Second(result) => {
                        assert_eq!(result?, "patient");
                        break;
                    }
                }
            }
            // Three of them, and tuples.
            let c = ctx
                .select3(ctx.schedule_timer(LONG), scheduled(&ctx, "third"), ctx.schedule_wait("never"))
                .await;
            let c = match c {
                Either3::First(()) => "timer".to_string(),
                Either3::Second(result) => result?,
                Either3::Third(event) => event,
            };
            let (index, value) = ctx
                .select2(scheduled(&ctx, "x"), ctx.schedule_timer(LONG).map(|()| Ok(String::new())))
                .await
                .into_tuple();
            let joined = ctx.join(vec![scheduled(&ctx, "1"), scheduled(&ctx, "2")]).await;
            let joined: Vec<String> = joined.into_iter().collect::<Result<_, _>>()?;
            let (j, k) = ctx.join2(scheduled(&ctx, "j"), ctx.schedule_timer(Duration::ZERO)).await;
            let (l, (), n) =
                ctx.join3(scheduled(&ctx, "l"), ctx.schedule_timer(Duration::ZERO), async { 7 }).await;
            let () = k;
            Ok(format!("{a} {c} {index} {} {} {} {} {n}", value?, joined.join("+"), j?, l?))
        })
        .build();
    let (_store, rt, client) = started(echo(), orchestrations).await;
    client.start_orchestration("combines", "Combines", "").await.unwrap();
    assert_eq!(output(&client, "combines").await, "borrowed third 0 x 1+2 j l 7");
    rt.shutdown(None).await;
}

#[test]
fn the_two_ends_of_a_race_are_values() {
    let first: Either2<u8, u8> = Either2::First(1);
    assert!(first.is_first() && !first.is_second());
    assert_eq!((first.index(), first.clone().into_tuple()), (0, (0, 1)));
    let third: Either3<u8, u8, u8> = Either3::Third(3);
    assert_eq!((third.index(), third.clone().into_tuple()), (2, (2, 3)));
    assert_eq!(format!("{:?}", Either2::<u8, &str>::Second("b")), "Second(\"b\")");
    fn is_send_and_unpin<T: Send + Unpin>() {}
    is_send_and_unpin::<DurableFuture<Result<String, String>>>();
}

/// More than a thousand children, and combinators of the `futures` crate that older programs avoid.
#[tokio::test]
async fn join_of_a_thousand_activities_completes() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Joins", |ctx: OrchestrationContext, _: String| async move {
            let results =
                ctx.join((0..1024).map(|n| ctx.schedule_activity("Echo", n.to_string())).collect()).await;
            let ours = results.into_iter().collect::<Result<Vec<_>, _>>()?.len();
            let results =
                futures::future::join_all((0..100).map(|n| ctx.schedule_activity("Echo", n.to_string())))
                    .await;
            Ok(format!("{ours} {}", results.into_iter().collect::<Result<Vec<_>, _>>()?.len()))
        })
        .build();
    let (_store, rt, client) = started(echo(), orchestrations).await;
    client.start_orchestration("joins", "Joins", "").await.unwrap();
    assert_eq!(output(&client, "joins").await, "1024 100");
    rt.shutdown(None).await;
}
