//! The texts of client errors, and which of them are retryable.

use outlast_provider::ProviderError;
use outlast_runtime::ClientError;

#[test]
fn each_error_has_its_text_and_retry_class() {
    let id = || "order-1".to_string();
    let cases = [
        (ClientError::Provider(ProviderError::retryable("read", "busy")), "read: busy", true),
        (ClientError::from(ProviderError::permanent("read", "gone")), "read: gone", false),
        (
            ClientError::ManagementNotAvailable,
            "Management features not available - provider doesn't implement ProviderAdmin",
            false,
        ),
        (ClientError::InvalidInput { message: "no".to_string() }, "Invalid input: no", false),
        (ClientError::Timeout, "Operation timed out", true),
        (
            ClientError::InstanceStillRunning { instance_id: id() },
            "Instance order-1 is still running. Use force=true or cancel first.",
            false,
        ),
        (
            ClientError::CannotDeleteSubOrchestration { instance_id: id() },
            "Cannot delete sub-orchestration order-1 directly. Delete the root orchestration instead.",
            false,
        ),
        (ClientError::InstanceNotFound { instance_id: id() }, "Instance order-1 not found", false),
    ];
    for (error, text, retryable) in cases {
        assert_eq!((error.to_string().as_str(), error.is_retryable()), (text, retryable));
        let _: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
    }
}
