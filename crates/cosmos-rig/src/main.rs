//! Serves a rig for other processes: prints `COSMOS_ENDPOINT` and `COSMOS_KEY`, and ends when its input ends.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use outlast_cosmos_rig::{Rig, RigOptions};
use tokio::io::AsyncReadExt;

/// Serves Microsoft's emulator of Azure Cosmos DB until the input ends.
#[derive(Parser)]
#[command(name = "outlast-cosmos-rig")]
struct Args {
    /// Throttles containers that were created with a throughput
    #[arg(long)]
    throttle: bool,
    /// Keeps sums of the requests, and no record of each
    #[arg(long)]
    totals_only: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
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

async fn run(args: &Args) -> Result<(), String> {
    let options =
        RigOptions { throttles: args.throttle, keeps_records: !args.totals_only, ..RigOptions::default() };
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
