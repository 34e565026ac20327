//! Installs a log subscriber.

use super::{LogFormat, ObservabilityConfig};
use std::io::IsTerminal;
use tracing::Dispatch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The reason for which logging could not be set up.
#[derive(Debug)]
pub(super) enum LoggingError {
    /// The configured level is not a level.
    Level(String),
    /// A subscriber is installed already, and stays.
    Installed(String),
}

impl From<LoggingError> for String {
    fn from(error: LoggingError) -> Self {
        match error {
            LoggingError::Level(message) | LoggingError::Installed(message) => message,
        }
    }
}

/// Installs a subscriber for the process that writes to standard output, with colours if that is a terminal, filtered by `RUST_LOG` if that is set and valid,
/// else by [`ObservabilityConfig::log_level`] for orchestrations and activities and `warn` for everything else.
///
/// # Errors
/// If the configured level is not a level, or a subscriber is installed already.
pub fn init_logging(config: &ObservabilityConfig) -> Result<(), String> {
    install(config).map_err(String::from)
}

pub(super) fn install(config: &ObservabilityConfig) -> Result<(), LoggingError> {
    let filter = match EnvFilter::try_from_default_env() {
        Ok(filter) => filter,
        Err(_) => configured_filter(&config.log_level)?,
    };
    let has_colours =
        std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
    let subscriber = subscriber(&config.log_format, filter, has_colours, std::io::stdout);
    tracing::dispatcher::set_global_default(subscriber).map_err(|error| {
        LoggingError::Installed(format!(
            "logging is not set up a second time, the first subscriber stays: {error}"
        ))
    })
}

fn configured_filter(level: &str) -> Result<EnvFilter, LoggingError> {
    let directives = format!("warn,duroxide::orchestration={level},duroxide::activity={level}");
    EnvFilter::try_new(directives).map_err(|error| {
        LoggingError::Level(format!(
            "log_level '{level}' is not valid ({error}): use error, warn, info, debug or trace"
        ))
    })
}

fn subscriber<W>(format: &LogFormat, filter: EnvFilter, has_colours: bool, writer: W) -> Dispatch
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(has_colours).with_writer(writer);
    match format {
        LogFormat::Json => builder.json().into(),
        LogFormat::Pretty => builder.pretty().into(),
        LogFormat::Compact => builder.compact().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The log output at this level in this format.
    fn written(format: LogFormat, level: &str) -> String {
        written_with(format, level, false)
    }

    fn written_with(format: LogFormat, level: &str, has_colours: bool) -> String {
        let written = Written::default();
        let writer = written.clone();
        let dispatch =
            subscriber(&format, configured_filter(level).unwrap(), has_colours, move || writer.clone());
        crate::captured::enable_every_callsite();
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::info!(target: "duroxide::orchestration", step = 1, "from an orchestration");
            tracing::debug!(target: "duroxide::activity", "from an activity");
            tracing::info!(target: "duroxide::runtime", "from the runtime");
            tracing::warn!(target: "elsewhere", "a warning from elsewhere");
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_level_applies_to_user_code_and_warnings_of_all_targets_are_shown() {
        let sources = ["from an orchestration", "from an activity", "from the runtime", "a warning"];
        let shown = |level| {
            let text = written(LogFormat::Compact, level);
            sources.map(|source| text.contains(source))
        };
        assert_eq!(shown("info"), [true, false, false, true]);
        assert_eq!(shown("debug"), [true, true, false, true]);
        assert_eq!(shown("error"), [false, false, false, true]);
    }

    #[test]
    fn json_is_one_object_per_line() {
        let text = written(LogFormat::Json, "info");
        let records: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0]["target"], "duroxide::orchestration");
        assert_eq!(records[0]["fields"]["step"], 1);
    }

    #[test]
    fn compact_writes_one_line_per_record_and_pretty_more() {
        assert_eq!(written(LogFormat::Compact, "info").lines().count(), 2);
        assert!(written(LogFormat::Pretty, "info").lines().count() > 2);
    }

    #[test]
    fn an_invalid_level_is_rejected_with_its_name() {
        let message = String::from(configured_filter("loud").unwrap_err());
        assert!(message.contains("log_level 'loud'") && message.contains("use error, warn"), "{message}");
    }

    #[test]
    fn only_a_terminal_gets_colours() {
        for format in [LogFormat::Compact, LogFormat::Pretty] {
            assert!(written_with(format.clone(), "info", true).contains('\u{1b}'));
            assert!(!written_with(format, "info", false).contains('\u{1b}'));
        }
    }
}
