#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, outlast::Failure)]
enum OneError {
    #[error("one")]
    #[failure(permanant)]
    One,
}

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, outlast::Failure)]
enum TwoError {
    #[error("two")]
    #[failure(unknown)]
    Two,
}

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, outlast::Failure)]
enum ThreeError {
    #[error("three {wait}")]
    #[failure(retry_after = wait)]
    Three { wait: u64 },
}

#[derive(serde::Serialize, serde::Deserialize, outlast::Message)]
#[message(route = topic)]
struct Approval;

#[derive(outlast::Message)]
struct Note;

fn main() {}
