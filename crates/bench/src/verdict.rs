//! Figures beside their targets.

/// A figure beside its target.
pub(crate) struct Verdict {
    pub(crate) text: String,
    pub(crate) holds: bool,
}

/// Prints the verdicts. Returns whether all targets are met.
pub(crate) fn print(verdicts: &[Verdict]) -> bool {
    for Verdict { text, holds } in verdicts {
        println!("{} {text}", if *holds { "holds: " } else { "MISSED:" });
    }
    verdicts.iter().all(|verdict| verdict.holds)
}
