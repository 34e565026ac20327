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
}

// guide: test
#[test]
fn coffee_takes_fifteen_seconds() {
    let run = outlast::testing::Test::<coffee>::new(outlast::module![step, coffee]).run(5);
    assert_eq!(run.output(), "the coffee is ready");
    assert_eq!(run.elapsed(), Duration::from_secs(15));
}
// guide: end

const PAGE: &str = include_str!("../../../../../docs/guide/quickstart.md");
const MANIFEST: &str = include_str!("../../../../outlast/Cargo.toml");
/// This test, and the variable with which a process of it runs `main`.
const TEST: &str = "guide::quickstart::commands_of_the_page_print_its_lines_with_a_kill_between_them";
const IS_PROGRAM: &str = "OUTLAST_TEST_QUICKSTART";

/// The texts in code style of each numbered step, up to its explanation.
fn steps() -> Vec<Vec<&'static str>> {
    let section = PAGE.split("\n## Run it\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let steps = section.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    steps.map(|step| step.split(':').next().unwrap().split('`').skip(1).step_by(2).collect()).collect()
}

/// A new process that calls `main` in the folder with the store, as `cargo run` starts.
fn cargo_run(folder: &std::path::Path) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        // With one thread, the first line of the program would follow the name of the test.
        .args([TEST, "--exact", "--nocapture", "--test-threads", "2"])
        .env(IS_PROGRAM, "1")
        .current_dir(folder)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

/// The lines of the program, without those of the test around it.
fn printed(program: &mut std::process::Child) -> impl Iterator<Item = String> + use<> {
    let lines = std::io::BufRead::lines(std::io::BufReader::new(program.stdout.take().unwrap()));
    lines
        .map_while(Result::ok)
        .filter(|line| !line.is_empty() && !["running ", "test "].iter().any(|start| line.starts_with(start)))
}

/// Waits until the store has the outcomes of this number of activities.
fn wait_for_outcomes(folder: &std::path::Path, count: usize) {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    tokio.block_on(async {
        let url = format!("sqlite:{}?mode=ro", folder.join("coffee.db").display());
        let client = Client::new(Arc::new(SqliteProvider::new(&url, None).await.unwrap()));
        let is_outcome =
            |event: &&outlast::Event| matches!(event.kind, outlast::EventKind::ActivityCompleted { .. });
        let has_outcomes = async {
            while client
                .read_execution_history("coffee-1", 1)
                .await
                .unwrap()
                .iter()
                .filter(is_outcome)
                .count()
                < count
            {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), has_outcomes).await;
        waited.expect("the activities end within a minute");
    });
}

#[test]
fn commands_of_the_page_print_its_lines_with_a_kill_between_them() {
    if std::env::var_os(IS_PROGRAM).is_some() {
        return main().unwrap();
    }
    let steps = steps();
    let [first, kill, again, once_more] = &steps[..] else { panic!("four steps: {steps:?}") };
    assert_eq!(kill, &["kill -9"]);
    let folder = tempfile::tempdir().unwrap();

    assert_eq!(first[0], "cargo run");
    let mut program = cargo_run(folder.path());
    let mut lines = printed(&mut program);
    for expected in &first[1..] {
        assert_eq!(lines.next().as_deref(), Some(*expected));
    }
    wait_for_outcomes(folder.path(), first.len() - 1);
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(lines.next(), None, "the killed program does not go on");

    for step in [again, once_more] {
        assert_eq!(step[0], "cargo run");
        let mut program = cargo_run(folder.path());
        assert_eq!(printed(&mut program).collect::<Vec<_>>(), step[1..]);
        assert!(program.wait().unwrap().success());
    }
}

#[test]
fn manifest_of_the_page_names_the_package_and_its_features() {
    let block = PAGE.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let rows: Vec<&str> = block.lines().filter(|line| line.starts_with("outlast = ")).collect();
    assert_eq!(rows.len(), 2, "{block}");
    for row in rows {
        assert!(row.contains("{ path = \"../outlast/crates/outlast\", features = ["), "{row}");
        let list = row.split("features = [").nth(1).unwrap().split(']').next().unwrap();
        for feature in list.split(", ").map(|feature| feature.trim_matches('"')) {
            assert!(MANIFEST.contains(&format!("\n{feature} = [")), "feature {feature} of {row}");
        }
    }
    assert!(MANIFEST.contains("\nname = \"outlast\"\n"), "{MANIFEST}");
}
