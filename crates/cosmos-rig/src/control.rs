//! Control by HTTP, for tests in other processes. The routes need no key: a rig listens on the loopback only.
//!
//! | route | does |
//! |---|---|
//! | `GET /__rig/records`, `GET /__rig/totals` | returns what was recorded |
//! | `DELETE /__rig/records` | forgets it |
//! | `POST /__rig/faults` with a [`Fault`] | adds a fault |
//! | `DELETE /__rig/faults` | removes all faults |
//! | `POST /__rig/copies` with `{"database", "container", "key", "prefix", "copies"}` | copies logical partitions |
//! | `POST /__rig/clock` with `{"stop_at_ms": n}`, `{"advance_ms": n}` or `{"shift_ms": n}` | sets the clock |

use std::time::Duration;

use hyper::Method;
use serde::Deserialize;
use serde_json::json;

use crate::Fault;
use crate::front::Front;
use crate::reply::Reply;

pub(crate) const PREFIX: &str = "/__rig/";

/// A change of the clock, in milliseconds.
#[derive(Deserialize)]
enum SetClock {
    #[serde(rename = "stop_at_ms")]
    StopAt(u64),
    #[serde(rename = "advance_ms")]
    Advance(u64),
    #[serde(rename = "shift_ms")]
    Shift(i64),
}

pub(crate) async fn serve(front: &Front, method: &Method, route: &str, body: &[u8]) -> Reply {
    let done = || Reply::new(200, "{}");
    match (method, route) {
        (&Method::GET, "records") => Reply::new(200, json!(front.recorder.records()).to_string()),
        (&Method::GET, "totals") => Reply::new(200, json!(front.recorder.totals()).to_string()),
        (&Method::DELETE, "records") => {
            front.recorder.take();
            done()
        }
        (&Method::POST, "faults") => match serde_json::from_slice::<Fault>(body) {
            Ok(fault) => {
                front.faults.add(fault);
                done()
            }
            Err(error) => Reply::refusal(400, 0, &error.to_string()),
        },
        (&Method::DELETE, "faults") => {
            front.faults.clear();
            done()
        }
        (&Method::POST, "copies") => match serde_json::from_slice(body) {
            Ok(copies) => match front.account.copy(&copies).await {
                Ok(created) => Reply::new(200, json!({ "created": created }).to_string()),
                Err(error) => Reply::refusal(400, 0, &error),
            },
            Err(error) => Reply::refusal(400, 0, &error.to_string()),
        },
        (&Method::POST, "clock") => match serde_json::from_slice::<SetClock>(body) {
            Ok(set) => {
                let clock = &front.account.clock;
                match set {
                    SetClock::StopAt(now_ms) => clock.stop_at(now_ms),
                    SetClock::Advance(by_ms) => clock.advance(Duration::from_millis(by_ms)),
                    SetClock::Shift(by_ms) => clock.shift(by_ms),
                }
                done()
            }
            Err(error) => Reply::refusal(400, 0, &error.to_string()),
        },
        _ => Reply::refusal(404, 0, "The rig has no such route."),
    }
}
