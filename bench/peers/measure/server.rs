//! The PostgreSQL server of `cargo xtask bench compare`: its address and the resources that it used.

use super::tally::Counts;
use super::usage;
use std::process::Command;

/// The server, with a database that is fresh for this process. Not an argument, because it has a password.
pub(crate) fn url() -> Result<String, String> {
    std::env::var("OUTLAST_BENCH_POSTGRES_URL")
        .map_err(|_| "OUTLAST_BENCH_POSTGRES_URL is not set".to_string())
}

/// The processor time of all server processes, and the number of requests of this process; empty without a server.
pub(super) fn counts() -> Counts {
    let process = std::env::var("OUTLAST_BENCH_POSTGRES_PID").ok().and_then(|text| text.parse().ok());
    let (Ok(url), Some(process)) = (url(), process) else { return Vec::new() };
    let used = usage::used_by_family(process).as_micros();
    let mut counts = vec![("server_cpu_us", u64::try_from(used).unwrap_or(u64::MAX))];
    counts.extend(port(&url).and_then(sent).map(|sent| ("round_trips", sent)));
    counts
}

fn port(url: &str) -> Option<&str> {
    url.rsplit_once('@')?.1.split('/').next()?.rsplit_once(':').map(|(_, port)| port)
}

/// Segments with data that went to this port of the loopback, by the kernel's accounting of the open connections. On
/// the loopback, one system call sends one segment of up to 64 kB, so this is the number of requests of any client.
fn sent(port: &str) -> Option<u64> {
    let output = Command::new("ss").args(["-tinH", "dport", "=", &format!(":{port}")]).output().ok()?;
    output.status.success().then(|| segments(&String::from_utf8_lossy(&output.stdout)))
}

fn segments(listing: &str) -> u64 {
    listing
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("data_segs_out:")?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_address() {
        assert_eq!(port("postgres://postgres:secret@127.0.0.1:4711/run_7"), Some("4711"));
        assert_eq!(port("postgres://localhost/run"), None);
    }

    #[test]
    fn segments_of_all_connections_add_up() {
        let listing = "ESTAB 0 0 127.0.0.1:1 127.0.0.1:2\n\t cubic segs_out:9 data_segs_out:7 send 1Gbps\n\
                       ESTAB 0 0 127.0.0.1:3 127.0.0.1:2\n\t cubic data_segs_out:5 data_segs_in:8\n";
        assert_eq!(segments(listing), 12);
    }
}
