use outlast::prelude::*;

#[derive(serde::Serialize, serde::Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

#[outlast::orchestration]
async fn fulfil(_ctx: OrchestrationContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::orchestration(accepts(Approval))]
async fn accepting(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

async fn approve(client: &Client) {
    let _ = fulfil::handle(client, "o-1").send(Approval { yes: true }).await;
    let _ = accepting::handle(client, "o-1").ask(Approval { yes: true }).await;
    let _ = fulfil::handle(client, "o-1").send(&Approval { yes: true }).await;
    let _ = accepting::handle(client, "o-1").send(&Approval { yes: true }).await;
}

fn main() {}
