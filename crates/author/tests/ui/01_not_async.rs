use outlast::prelude::*;

#[outlast::activity]
fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

fn main() {}
