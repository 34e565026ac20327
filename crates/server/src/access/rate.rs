//! The rate of requests of each caller.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The most callers that are counted apart. Further callers are counted together.
const MOST_CALLERS: usize = 4_096;

/// A bucket of tokens per caller. A request takes one token, and tokens come back at the rate.
pub(crate) struct Buckets {
    /// Tokens per millisecond.
    rate: f64,
    burst: f64,
    all: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    tokens: f64,
    at_ms: u64,
}

impl Buckets {
    pub(crate) fn new(requests_per_second: f64, burst: u32) -> Self {
        Self { rate: requests_per_second / 1_000.0, burst: f64::from(burst), all: Mutex::default() }
    }

    /// Takes a token. The error is the number of seconds after which the caller has a token again.
    pub(crate) fn take(&self, caller: &str, now_ms: u64) -> Result<(), u64> {
        // A panic between two statements of this function leaves whole buckets.
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_CALLERS && !all.contains_key(caller) {
            // A caller with a full bucket is treated as one that was never seen.
            all.retain(|_, bucket| self.tokens(bucket, now_ms) < self.burst);
        }
        let caller = if all.len() < MOST_CALLERS || all.contains_key(caller) { caller } else { "" };
        let bucket = all.entry(caller.to_string()).or_insert(Bucket { tokens: self.burst, at_ms: now_ms });
        bucket.tokens = self.tokens(bucket, now_ms);
        bucket.at_ms = now_ms;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let seconds = ((1.0 - bucket.tokens) / self.rate / 1_000.0).ceil();
        // The conversion saturates. A rate of zero has no end.
        Err((seconds as u64).clamp(1, 3_600))
    }

    fn tokens(&self, bucket: &Bucket, now_ms: u64) -> f64 {
        let passed = now_ms.saturating_sub(bucket.at_ms) as f64;
        (bucket.tokens + passed * self.rate).min(self.burst)
    }
}

/// The address of a caller without a token. A network of IPv6 addresses that one customer has counts as one address.
pub(super) fn of_address(address: Option<IpAddr>) -> String {
    match address {
        Some(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_none() => {
            let [a, b, c, d, ..] = ip.segments();
            format!("address {a:x}:{b:x}:{c:x}:{d:x}")
        }
        Some(ip) => format!("address {}", ip.to_canonical()),
        None => "address".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_at_the_rate_up_to_the_burst() {
        let buckets = Buckets::new(2.0, 3);
        let taken = |now_ms| (0..10).take_while(|_| buckets.take("a", now_ms).is_ok()).count();
        assert_eq!((taken(0), taken(499), taken(500), taken(2_000), taken(1_000_000)), (3, 0, 1, 3, 3));
        assert_eq!(buckets.take("b", 0), Ok(()), "callers are counted apart");
    }

    #[test]
    fn refused_callers_learn_when_to_return() {
        let buckets = Buckets::new(0.1, 1);
        assert_eq!((buckets.take("a", 0), buckets.take("a", 0)), (Ok(()), Err(10)));
        assert_eq!(buckets.take("a", 8_000), Err(2));
        assert_eq!(Buckets::new(0.0, 0).take("a", 0), Err(3_600), "a rate of zero admits nothing");
    }

    #[test]
    fn callers_beyond_the_bound_are_counted_together() {
        let buckets = Buckets::new(0.001, 1);
        for caller in 0..MOST_CALLERS {
            buckets.take(&caller.to_string(), 0).unwrap();
        }
        assert_eq!(buckets.take("one more", 0), Ok(()));
        assert!(buckets.take("another", 0).is_err(), "both are counted together");
        let later = 10_000_000;
        assert_eq!((buckets.take("another", later), buckets.take("one more", later)), (Ok(()), Ok(())));
        assert!(buckets.all.lock().unwrap().len() < 3, "full buckets are forgotten");
    }

    #[test]
    fn addresses_of_one_network_are_one_caller() {
        let of = |text: &str| of_address(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
