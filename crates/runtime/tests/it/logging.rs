//! The installation of a log subscriber, tested in a separate process because it is process-wide.

use outlast_runtime::observability::{LogFormat, ObservabilityConfig, ObservabilityHandle, init_logging};
use std::process::Command;

const CHILD: &str = "OUTLAST_TEST_LOGGING_CHILD";

#[test]
fn defaults_match_the_contract() {
    let config = ObservabilityConfig::default();
    assert_eq!((config.log_format, LogFormat::default()), (LogFormat::Pretty, LogFormat::Compact));
    assert_eq!((config.log_level.as_str(), config.service_name.as_str()), ("info", "duroxide"));
    assert_eq!((config.service_version, config.gauge_poll_interval.as_secs()), (None, 60));
}

#[test]
fn the_first_subscriber_stays() {
    if std::env::var_os(CHILD).is_some() {
        return in_a_process_of_its_own();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "logging::the_first_subscriber_stays", "--nocapture"]);
    let output = child.env(CHILD, "1").env_remove("RUST_LOG").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
    let shown = ["from an orchestration", "from the runtime"].map(|text| stdout.contains(text));
    assert_eq!(shown, [true, false], "{stdout}");
}

fn in_a_process_of_its_own() {
    let bad = ObservabilityConfig { log_level: "loud".into(), ..Default::default() };
    assert!(init_logging(&bad).unwrap_err().contains("'loud'"));
    assert!(ObservabilityHandle::init(&bad).is_err(), "only an installed subscriber is not an error");
    assert!(!tracing::dispatcher::has_been_set());
    let config = ObservabilityConfig { log_format: LogFormat::Compact, ..Default::default() };
    init_logging(&config).unwrap();
    assert!(init_logging(&config).unwrap_err().contains("the first subscriber stays"));
    let handle = ObservabilityHandle::init(&config).unwrap();
    handle.metrics_provider().record_activity_poison();
    assert_eq!(handle.metrics_snapshot().activity_poison, 1);
    tracing::info!(target: "duroxide::orchestration", "from an orchestration");
    tracing::info!(target: "duroxide::runtime", "from the runtime");
}
