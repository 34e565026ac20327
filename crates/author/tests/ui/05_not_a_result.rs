use outlast::prelude::*;

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> u64 {
    cents
}

#[outlast::activity]
async fn refund(_ctx: ActivityContext) {}

struct Receipt;

#[outlast::activity]
async fn print(_ctx: ActivityContext) -> Receipt {
    Receipt
}

fn main() {}
