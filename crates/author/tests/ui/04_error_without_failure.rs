use outlast::prelude::*;

#[derive(Debug, thiserror::Error)]
#[error("declined")]
struct Declined;

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, Declined> {
    Ok(cents)
}

fn main() {}
