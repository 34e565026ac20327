//! The server is stopped for longer than any lease and started again: running instances end without a restart of a
//! process.

mod needs_postgres {
    use crate::SERVER_LOCK;
    use outlast::providers::postgres::PostgresProvider;
    use outlast::runtime::Runtime;
    use outlast::runtime::registry::ActivityRegistry;
    use outlast::{
        ActivityContext, Client, ClientError, OrchestrationContext, OrchestrationRegistry,
        OrchestrationStatus, RuntimeOptions,
    };
    use outlast_chaos::server::{ServerControl, Stop, URL, variable};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use tokio::sync::{Notify, watch};
    use tokio::time::{Instant, sleep, timeout};

    const LEASE: Duration = Duration::from_millis(800);
    /// Longer than any lease of the test.
    const GONE: Duration = Duration::from_millis(2_500);
    const PATIENCE: Duration = Duration::from_secs(60);
    const CHAINS: u64 = 8;
    const STEPS: u64 = 40;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn instances_end_after_a_fast_shutdown_of_the_server() {
        with_server_restarted(Stop::Fast).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn instances_end_after_an_immediate_shutdown_of_the_server() {
        with_server_restarted(Stop::Immediate).await;
    }

    /// Runs an outage, and starts the server again even if the test fails, because other tests need it.
    async fn with_server_restarted(how: Stop) {
        let _lock = SERVER_LOCK.lock().await;
        let control = ServerControl::find().unwrap();
        let tested = tokio::spawn(outage(control.clone(), how)).await;
        if tested.is_err() {
            // The server may be running already.
            let _ = control.start().await;
        }
        tested.unwrap();
    }

    /// The progress of the activities.
    #[derive(Default)]
    struct Done {
        steps: AtomicU64,
        has_begun: Notify,
        /// Whether the server was stopped. The second half of the steps waits for that.
        is_stopped: watch::Sender<bool>,
    }

    fn activities(done: &Arc<Done>) -> ActivityRegistry {
        let (steps, long) = (Arc::clone(done), Arc::clone(done));
        ActivityRegistry::builder()
            .register("Step", move |_: ActivityContext, step: String| {
                let done = Arc::clone(&steps);
                async move {
                    if done.steps.fetch_add(1, Ordering::Relaxed) >= CHAINS * STEPS / 2 {
                        // It cannot fail, because `done` owns the sender.
                        let _ = done.is_stopped.subscribe().wait_for(|is_stopped| *is_stopped).await;
                    }
                    Ok(step)
                }
            })
            // Its first run has begun when the server stops, and does not end before its lease.
            .register("Long", move |ctx: ActivityContext, _: String| {
                let done = Arc::clone(&long);
                async move {
                    if ctx.attempt() == 1 {
                        done.has_begun.notify_one();
                        std::future::pending::<()>().await;
                    }
                    Ok("delivered again".to_string())
                }
            })
            .build()
    }

    fn orchestrations() -> OrchestrationRegistry {
        let chain = |ctx: OrchestrationContext, _: String| async move {
            let mut sum = 0;
            for step in 0..STEPS {
                let made = ctx.schedule_activity("Step", step.to_string()).await?;
                sum += made.parse::<u64>().map_err(|error| error.to_string())?;
                if step % 10 == 9 {
                    ctx.schedule_timer(Duration::from_millis(5)).await;
                }
            }
            Ok(sum.to_string())
        };
        let long =
            |ctx: OrchestrationContext, _: String| async move { ctx.schedule_activity("Long", "").await };
        OrchestrationRegistry::builder().register("Chain", chain).register("Long", long).build()
    }

    /// Checks that an error is retryable and does not contain the password.
    fn check_error(error: &ClientError, password: &str) {
        let shown = format!("{error} {error:?}");
        assert!(error.is_retryable(), "{shown}");
        assert!(!shown.contains(password), "a password is shown");
    }

    /// Waits for the output of an instance, and retries on errors. The time while the server is stopped or recovers does not
    /// count: a busy disk decides how long a recovery takes.
    async fn output(
        client: &Client,
        instance: &str,
        password: &str,
        is_back: watch::Receiver<bool>,
    ) -> String {
        let mut since = Instant::now();
        loop {
            if !*is_back.borrow() {
                since = Instant::now();
            }
            assert!(since.elapsed() < PATIENCE, "{instance} does not end");
            match client.wait_for_orchestration(instance, Duration::from_secs(5)).await {
                Ok(OrchestrationStatus::Completed { output, .. }) => return output,
                Ok(other) => panic!("{instance}: {other:?}"),
                Err(ClientError::Timeout) => {}
                Err(error) => {
                    check_error(&error, password);
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    async fn outage(control: ServerControl, how: Stop) {
        let url = variable(URL).unwrap();
        let config: tokio_postgres::Config = url.parse().unwrap();
        let password = String::from_utf8(config.get_password().unwrap().to_vec()).unwrap();
        let schema = format!("outage_{how:?}_{}", std::process::id()).to_lowercase();
        let store = Arc::new(PostgresProvider::new_with_schema(&url, Some(&schema)).await.unwrap());
        let options = RuntimeOptions {
            orchestrator_lock_timeout: LEASE,
            worker_lock_timeout: LEASE,
            worker_lock_renewal_buffer: LEASE / 4,
            ..RuntimeOptions::default()
        };
        let done = Arc::new(Done::default());
        let runtime =
            Runtime::start_with_options(store.clone(), activities(&done), orchestrations(), options).await;
        let client = Client::new(store.clone());
        client.start_orchestration("long", "Long", "").await.unwrap();
        timeout(PATIENCE, done.has_begun.notified()).await.expect("it begins");
        for n in 0..CHAINS {
            client.start_orchestration(format!("chain-{n}"), "Chain", "").await.unwrap();
        }
        let is_back = watch::Sender::new(false);
        // A client that waits during the whole outage.
        let waiting = tokio::spawn({
            let (client, password, is_back) = (client.clone(), password.clone(), is_back.subscribe());
            async move { output(&client, "long", &password, is_back).await }
        });
        while done.steps.load(Ordering::Relaxed) < CHAINS * STEPS / 4 {
            sleep(Duration::from_millis(1)).await;
        }

        control.stop(how).await.unwrap();
        done.is_stopped.send_replace(true);
        let steps_before = done.steps.load(Ordering::Relaxed);
        assert!(steps_before < CHAINS * STEPS, "the server was stopped too late");
        let since = Instant::now();
        let mut refused = 0;
        while since.elapsed() < GONE || refused <= 5 {
            check_error(&client.start_orchestration("late", "Chain", "").await.unwrap_err(), &password);
            check_error(&client.get_orchestration_status("long").await.unwrap_err(), &password);
            let refusal = PostgresProvider::new_with_schema(&url, Some(&schema)).await.unwrap_err();
            assert!(refusal.is_retryable(), "{refusal}");
            assert!(!format!("{refusal} {refusal:?}").contains(&password), "a password is shown");
            refused += 1;
            sleep(Duration::from_millis(50)).await;
        }

        control.start().await.unwrap();
        is_back.send_replace(true);
        let since = Instant::now();
        while let Err(error) = client.start_orchestration("late", "Chain", "").await {
            check_error(&error, &password);
            assert!(since.elapsed() < PATIENCE, "the store does not recover: {error}");
            sleep(Duration::from_millis(10)).await;
        }
        let sum = (0..STEPS).sum::<u64>().to_string();
        for instance in (0..CHAINS).map(|n| format!("chain-{n}")).chain(["late".to_string()]) {
            assert_eq!(output(&client, &instance, &password, is_back.subscribe()).await, sum, "{instance}");
        }
        assert_eq!(waiting.await.unwrap(), "delivered again");
        assert!(
            since.elapsed() < PATIENCE / 2,
            "{how:?}: all instances ended {:?} after the server was back",
            since.elapsed()
        );
        let metrics = client.get_system_metrics().await.unwrap();
        assert_eq!((metrics.failed_instances, metrics.completed_instances), (0, CHAINS + 2));
        runtime.shutdown(None).await;
    }
}
