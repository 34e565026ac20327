//! `src/lib.rs` of the project of docs/guide/testing.md.

// guide: library
use outlast::prelude::*;
use outlast::runtime::Module;
use outlast::time::days;

#[outlast::activity]
pub async fn letter(_ctx: ActivityContext, to: String, text: String) -> Result<(), String> {
    println!("to {to}: {text}");
    Ok(())
}

/// A course of three lessons, one each day.
#[outlast::orchestration]
pub async fn course(ctx: OrchestrationContext, to: String) -> Result<u32, String> {
    for lesson in 1..=3 {
        letter::call(&ctx, to.clone(), format!("lesson {lesson}")).await?;
        ctx.sleep(days(1)).await;
    }
    Ok(3)
}

/// What a runtime runs, in the program and in its tests.
pub fn module() -> Module {
    outlast::module![letter, course]
}
// guide: end
