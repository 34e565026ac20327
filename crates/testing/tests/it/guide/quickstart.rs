//! The programs of docs/guide/quickstart.md.

// guide: program
use outlast::prelude::*;
use outlast::providers::sqlite::SqliteProvider;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[outlast::activity]
async fn step(_ctx: ActivityContext, name: String) -> Result<(), String> {
    println!("{name}");
    Ok(())
}

#[outlast::orchestration]
async fn coffee(ctx: OrchestrationContext, pause: u64) -> Result<String, String> {
    for name in ["grind the beans", "boil the water", "pour the coffee"] {
        step::call(&ctx, name.into()).await?;
        ctx.sleep(Duration::from_secs(pause)).await;
    }
    Ok("the coffee is ready".to_string())
}

async fn run(url: &str, pause: u64) -> Result<String, Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new(url, None).await?);
    let module = outlast::module![step, coffee];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let instance = coffee::start(&client, pause).id("coffee-1").or_existing().await?;
    let result = instance.result().await?;
    runtime.shutdown(None).await;
    Ok(result)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run("sqlite:coffee.db", 5).await?);
    Ok(())
}
// guide: end

#[tokio::test]
async fn the_program_runs_and_finds_its_instance_again() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("coffee.db").display());
    for _ in 0..2 {
        assert_eq!(run(&url, 0).await.unwrap(), "the coffee is ready");
    }
    // The pause of `main` takes 15 seconds.
    let _: fn() -> Result<(), Box<dyn Error>> = main;
}

// guide: test
#[test]
fn coffee_takes_fifteen_seconds() {
    let run = outlast::testing::Test::<coffee>::new(outlast::module![step, coffee]).run(5);
    assert_eq!(run.output(), "the coffee is ready");
    assert_eq!(run.elapsed(), Duration::from_secs(15));
}
// guide: end
