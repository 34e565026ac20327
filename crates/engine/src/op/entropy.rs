//! System calls: activities with a reserved name. A unique id and the time are recorded as outcomes in the turn that calls
//! them.

use crate::context::OrchestrationContext;
use std::panic::Location;
use std::time::{Duration, SystemTime};

/// Activity names that belong to the runtime.
pub const SYSTEM_CALL_PREFIX: &str = "__duroxide_syscall:";

/// The activities that the runtime provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemCall {
    /// A unique id.
    NewGuid,
    /// The time in milliseconds since the Unix epoch.
    UtcNowMs,
    /// A key of another instance.
    GetKvValue,
}

impl SystemCall {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NewGuid, Self::UtcNowMs, Self::GetKvValue];

    /// The name under which it is scheduled.
    pub fn activity_name(self) -> String {
        let name = match self {
            Self::NewGuid => "new_guid",
            Self::UtcNowMs => "utc_now_ms",
            Self::GetKvValue => "get_kv_value",
        };
        format!("{SYSTEM_CALL_PREFIX}{name}")
    }

    /// The outcome of a call that needs no store, which its own turn records.
    pub fn answer(activity_name: &str, now_ms: u64, random: impl FnOnce() -> u128) -> Option<String> {
        match activity_name.strip_prefix(SYSTEM_CALL_PREFIX)? {
            "new_guid" => Some(guid(random())),
            "utc_now_ms" => Some(now_ms.to_string()),
            _ => None,
        }
    }
}

impl OrchestrationContext {
    /// A UUID (version 4) that stays the same on replay.
    #[track_caller]
    pub fn new_guid(&self) -> impl Future<Output = Result<String, String>> {
        self.call_activity(SystemCall::NewGuid.activity_name(), String::new(), None, Location::caller())
    }

    /// The time, in whole milliseconds, that stays the same on replay.
    #[track_caller]
    pub fn utc_now(&self) -> impl Future<Output = Result<SystemTime, String>> {
        let name = SystemCall::UtcNowMs.activity_name();
        self.call_activity(name, String::new(), None, Location::caller()).map(|result| {
            let text = result?;
            let ms: u64 = text.parse().map_err(|error| format!("utc_now recorded '{text}': {error}"))?;
            Ok(SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
        })
    }
}

/// 128 random bits as a UUID of version 4, variant 1.
fn guid(random: u128) -> String {
    let free = random & !(0xf << 76) & !(0x3 << 62);
    let bits = free + (0x4 << 76) + (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_has_version_4_and_variant_1() {
        assert_eq!(guid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(guid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn system_call_without_store_is_answered_and_other_calls_are_not() {
        let answer = |call: SystemCall| SystemCall::answer(&call.activity_name(), 7, || 0);
        assert_eq!(answer(SystemCall::UtcNowMs).as_deref(), Some("7"));
        assert!(answer(SystemCall::NewGuid).is_some());
        assert_eq!(answer(SystemCall::GetKvValue), None);
        assert_eq!(SystemCall::answer("mine", 7, || 0), None);
    }
}
