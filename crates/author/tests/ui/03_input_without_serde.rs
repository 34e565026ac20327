use outlast::prelude::*;

struct Order {
    cents: u64,
}

#[outlast::activity]
async fn charge(_ctx: ActivityContext, order: Order) -> Result<u64, String> {
    Ok(order.cents)
}

fn main() {}
