//! Every recorded failure: its JSON text, category and message.

use crate::golden::{self, Row, variants};
use outlast_model::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType};

variants! { ErrorDetails: Infrastructure, Configuration, Application, Poison }
variants! { AppErrorKind: ActivityFailed, OrchestrationFailed, Panicked, Cancelled }
variants! { ConfigErrorKind: Nondeterminism }
variants! { PoisonMessageType: Orchestration, Activity, FailedDeserialization }

pub(crate) fn rows() -> Vec<Row<ErrorDetails>> {
    table().into_iter().map(|case| (case.error, case.json.to_string())).collect()
}

/// One failure, its JSON text, and the answers of its three methods.
struct Case {
    error: ErrorDetails,
    json: &'static str,
    category: &'static str,
    retryable: bool,
    display: &'static str,
}

fn table() -> Vec<Case> {
    vec![
        Case {
            error: ErrorDetails::Infrastructure {
                operation: "ack".into(),
                message: "disk full".into(),
                retryable: true,
            },
            json: r#"{"Infrastructure":{"operation":"ack","message":"disk full","retryable":true}}"#,
            category: "infrastructure",
            retryable: true,
            display: "infrastructure:ack: disk full",
        },
        Case {
            error: ErrorDetails::Infrastructure {
                operation: "ack".into(),
                message: "lease lost".into(),
                retryable: false,
            },
            json: r#"{"Infrastructure":{"operation":"ack","message":"lease lost","retryable":false}}"#,
            category: "infrastructure",
            retryable: false,
            display: "infrastructure:ack: lease lost",
        },
        Case {
            error: ErrorDetails::Configuration {
                kind: ConfigErrorKind::Nondeterminism,
                resource: "Order".into(),
                message: Some("schedule mismatch".into()),
            },
            json: r#"{"Configuration":{"kind":"Nondeterminism","resource":"Order","message":"schedule mismatch"}}"#,
            category: "configuration",
            retryable: false,
            display: "nondeterministic: schedule mismatch",
        },
        Case {
            error: ErrorDetails::Configuration {
                kind: ConfigErrorKind::Nondeterminism,
                resource: "Order".into(),
                message: None,
            },
            json: r#"{"Configuration":{"kind":"Nondeterminism","resource":"Order","message":null}}"#,
            category: "configuration",
            retryable: false,
            display: "nondeterministic in Order",
        },
        Case {
            error: application(AppErrorKind::Cancelled { reason: "stop".into() }, "", false),
            json: r#"{"Application":{"kind":{"Cancelled":{"reason":"stop"}},"message":"","retryable":false}}"#,
            category: "application",
            retryable: false,
            display: "canceled: stop",
        },
        Case {
            error: application(AppErrorKind::Cancelled { reason: "stop".into() }, "ignored", true),
            json: r#"{"Application":{"kind":{"Cancelled":{"reason":"stop"}},"message":"ignored","retryable":true}}"#,
            category: "application",
            retryable: true,
            display: "canceled: stop",
        },
        Case {
            error: application(AppErrorKind::Panicked, "index out of bounds", false),
            json: r#"{"Application":{"kind":"Panicked","message":"index out of bounds","retryable":false}}"#,
            category: "application",
            retryable: false,
            display: "orchestration panicked: index out of bounds",
        },
        Case {
            error: application(AppErrorKind::Panicked, "index out of bounds", true),
            json: r#"{"Application":{"kind":"Panicked","message":"index out of bounds","retryable":true}}"#,
            category: "application",
            retryable: true,
            display: "orchestration panicked: index out of bounds",
        },
        Case {
            error: application(AppErrorKind::ActivityFailed, "no stock", true),
            json: r#"{"Application":{"kind":"ActivityFailed","message":"no stock","retryable":true}}"#,
            category: "application",
            retryable: true,
            display: "no stock",
        },
        Case {
            error: application(AppErrorKind::OrchestrationFailed, "no stock", false),
            json: r#"{"Application":{"kind":"OrchestrationFailed","message":"no stock","retryable":false}}"#,
            category: "application",
            retryable: false,
            display: "no stock",
        },
        Case {
            error: poison(PoisonMessageType::Orchestration { instance: "i".into(), execution_id: 2 }),
            json: r#"{"Poison":{"attempt_count":11,"max_attempts":10,"message_type":{"Orchestration":{"instance":"i","execution_id":2}},"message":"gave up"}}"#,
            category: "poison",
            retryable: false,
            display: "poison: orchestration i exceeded 11 attempts (max 10)",
        },
        Case {
            error: poison(PoisonMessageType::Activity {
                instance: "i".into(),
                execution_id: 2,
                activity_name: "Ship".into(),
                activity_id: 3,
            }),
            json: r#"{"Poison":{"attempt_count":11,"max_attempts":10,"message_type":{"Activity":{"instance":"i","execution_id":2,"activity_name":"Ship","activity_id":3}},"message":"gave up"}}"#,
            category: "poison",
            retryable: false,
            display: "poison: activity Ship#3 exceeded 11 attempts (max 10)",
        },
        Case {
            error: poison(PoisonMessageType::FailedDeserialization {
                instance: "i".into(),
                execution_id: 2,
                error: "expected value".into(),
            }),
            json: r#"{"Poison":{"attempt_count":11,"max_attempts":10,"message_type":{"FailedDeserialization":{"instance":"i","execution_id":2,"error":"expected value"}},"message":"gave up"}}"#,
            category: "poison",
            retryable: false,
            display: "poison: orchestration i history deserialization failed after 11 attempts (max 10): expected value",
        },
    ]
}

fn application(kind: AppErrorKind, message: &str, retryable: bool) -> ErrorDetails {
    ErrorDetails::Application { kind, message: message.into(), retryable }
}

fn poison(message_type: PoisonMessageType) -> ErrorDetails {
    ErrorDetails::Poison { attempt_count: 11, max_attempts: 10, message_type, message: "gave up".into() }
}

#[test]
fn every_failure_has_its_text() {
    golden::check(&rows());
}

#[test]
fn poison_failure_with_known_cause_names_it() {
    let kind = || PoisonMessageType::Orchestration { instance: "i".into(), execution_id: 2 };
    let with = |message: String| ErrorDetails::Poison {
        attempt_count: 11,
        max_attempts: 10,
        message_type: kind(),
        message,
    };
    let known = with(ErrorDetails::message_with_cause("'Order' is not registered", "[{}]"));
    assert_eq!(known.poison_cause(), Some("'Order' is not registered"));
    assert_eq!(
        known.display_message(),
        "poison: orchestration i exceeded 11 attempts (max 10): 'Order' is not registered"
    );
    // The message of the contract is the delivered message.
    for message in ["[{}]", "", "because: cause: of"] {
        let unknown = with(message.to_string());
        assert_eq!(unknown.poison_cause(), None, "{message}");
        assert_eq!(unknown.display_message(), "poison: orchestration i exceeded 11 attempts (max 10)");
    }
    assert_eq!(application(AppErrorKind::ActivityFailed, "cause: x", false).poison_cause(), None);
}

#[test]
fn every_variant_of_the_four_enums_has_a_row() {
    let errors: Vec<ErrorDetails> = table().into_iter().map(|case| case.error).collect();
    golden::assert_covered(&errors);
    golden::assert_covered(errors.iter().filter_map(|error| match error {
        ErrorDetails::Application { kind, .. } => Some(kind),
        _ => None,
    }));
    golden::assert_covered(errors.iter().filter_map(|error| match error {
        ErrorDetails::Configuration { kind, .. } => Some(kind),
        _ => None,
    }));
    golden::assert_covered(errors.iter().filter_map(|error| match error {
        ErrorDetails::Poison { message_type, .. } => Some(message_type),
        _ => None,
    }));
}

#[test]
fn category_class_and_message_follow_the_table() {
    for Case { error, category, retryable, display, .. } in table() {
        let said = (error.category(), error.is_retryable(), error.display_message());
        assert_eq!(said, (category, retryable, display.to_string()), "{error:?}");
    }
}
