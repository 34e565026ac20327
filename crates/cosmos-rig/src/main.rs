//! Serves a rig for other processes: prints `COSMOS_ENDPOINT` and `COSMOS_KEY`, and ends when its input ends.

use std::io::Write;
use std::process::ExitCode;

use outlast_cosmos_rig::{Rig, RigOptions};
use tokio::io::AsyncReadExt;

const USAGE: &str = "usage: outlast-cosmos-rig [--throttle] [--totals-only]
  --throttle     throttles containers that were created with a throughput
  --totals-only  keeps sums of the requests, and no record of each";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            #[allow(clippy::print_stderr, reason = "the error of a command")]
            {
                eprintln!("{message}");
            }
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<(), String> {
    let mut options = RigOptions::default();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--throttle" => options.throttles = true,
            "--totals-only" => options.keeps_records = false,
            _ => return Err(format!("{argument} is no option of this command\n{USAGE}")),
        }
    }
    let rig = Rig::start_with(options).await.map_err(|error| format!("the rig cannot start: {error}"))?;
    let mut out = std::io::stdout();
    writeln!(out, "COSMOS_ENDPOINT={}\nCOSMOS_KEY={}", rig.endpoint(), rig.key())
        .and_then(|()| out.flush())
        .map_err(|error| format!("the address cannot be printed: {error}"))?;
    // The process that started this one holds the other end, and the system closes it when that process dies.
    let mut input = Vec::new();
    tokio::io::stdin().read_to_end(&mut input).await.map_err(|error| error.to_string())?;
    Ok(())
}
