//! The number and the durations of requests.

use super::text::Text;
use axum::http::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "outlast_http_request_duration_seconds";
/// The upper bounds of the buckets, in milliseconds, and as they are written.
const BOUNDS: [(u64, &str); 7] =
    [(5, "0.005"), (25, "0.025"), (100, "0.1"), (250, "0.25"), (1_000, "1"), (5_000, "5"), (30_000, "30")];
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Durations of requests by the class of their status.
#[derive(Default)]
pub(crate) struct Requests([Durations; CLASSES.len()]);

#[derive(Default)]
struct Durations {
    /// Requests up to each bound. Longer requests are in `count` only.
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    sum_ms: AtomicU64,
}

impl Requests {
    /// Counts a request. The duration of a stream is the time until it begins.
    pub(crate) fn note(&self, status: StatusCode, took_ms: u64) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(2).min(CLASSES.len() - 1);
        let Some(durations) = self.0.get(class) else { return };
        for ((bound, _), bucket) in BOUNDS.iter().zip(&durations.buckets) {
            if took_ms <= *bound {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        durations.count.fetch_add(1, Ordering::Relaxed);
        durations.sum_ms.fetch_add(took_ms, Ordering::Relaxed);
    }

    pub(super) fn render(&self, text: &mut Text) {
        text.head(NAME, "histogram", "Durations of requests by the class of their status.");
        for (class, durations) in CLASSES.iter().zip(&self.0) {
            let count = durations.count.load(Ordering::Relaxed);
            for ((_, bound), bucket) in BOUNDS.iter().zip(&durations.buckets) {
                // A request that is counted just now may be in the bucket already.
                let within = bucket.load(Ordering::Relaxed).min(count);
                text.line(&format!("{NAME}_bucket"), format!("code=\"{class}\",le=\"{bound}\""), within);
            }
            text.line(&format!("{NAME}_bucket"), format!("code=\"{class}\",le=\"+Inf\""), count);
            let seconds = durations.sum_ms.load(Ordering::Relaxed) as f64 / 1_000.0;
            text.line(&format!("{NAME}_sum"), format!("code=\"{class}\""), seconds);
            text.line(&format!("{NAME}_count"), format!("code=\"{class}\""), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_all_requests_up_to_their_bound() {
        let requests = Requests::default();
        for (status, took_ms) in [(200, 5), (201, 6), (204, 60_000), (503, 100)] {
            requests.note(StatusCode::from_u16(status).unwrap(), took_ms);
        }
        let mut text = Text::default();
        requests.render(&mut text);
        let text = text.finish();
        for line in [
            "_bucket{code=\"2xx\",le=\"0.005\"} 1",
            "_bucket{code=\"2xx\",le=\"0.025\"} 2",
            "_bucket{code=\"2xx\",le=\"30\"} 2",
            "_bucket{code=\"2xx\",le=\"+Inf\"} 3",
            "_sum{code=\"2xx\"} 60.011",
            "_count{code=\"4xx\"} 0",
            "_bucket{code=\"5xx\",le=\"0.1\"} 1",
        ] {
            assert!(text.contains(&format!("{NAME}{line}\n")), "{line} in {text}");
        }
    }
}
