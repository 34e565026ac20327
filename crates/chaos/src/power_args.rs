//! The arguments of power cuts. A program without the feature `power` reads them too, to name the feature in its error.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `chaos power`.
#[derive(Args, Clone, Debug)]
pub struct PowerArgs {
    /// Power cuts with the default setting
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub cuts: u64,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
