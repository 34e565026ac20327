mod charge {
    use outlast::prelude::*;

    #[outlast::activity]
    pub async fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
        Ok(cents)
    }
}
pub use charge::charge;

fn main() {}
