//! Equivalent mutants of statements: mutants that do not change the results, each with its reason.

/// A statement, the change, and the reason why the results stay the same.
const EQUIVALENT: &[(&str, &str, &str)] = &[
    ("abandon_messages", "replace instance_id = ?1 with true", FENCED),
    ("delete_covered_messages", "replace instance_id = ?1 with true", FENCED),
    (
        "queue_depths",
        "replace q.lock_token IS NULL with false",
        "no lease has the token of a message without one; knowing that spares the look for it",
    ),
    ("renew_messages", "replace instance_id = ?1 with true", FENCED),
    (
        "renew_messages",
        "replace lock_token = ?2 with true",
        "an instance has one lease, and the maximum of its end and of no end is none",
    ),
    ("undo_cover", "replace instance_id = ?1 with true", FENCED),
];

const FENCED: &str =
    "the fence went before, for this instance and this token, and no two leases share a token";

pub(super) fn is_listed(statement: &str, what: &str) -> bool {
    EQUIVALENT.iter().any(|(name, change, _)| *name == statement && *change == what)
}

#[cfg(test)]
mod tests {
    use super::super::FOLDER;
    use super::super::conditions::changes;
    use super::*;
    use outlast_toolkit::process;

    #[test]
    fn every_listed_name_is_a_mutant() {
        for (name, change, reason) in EQUIVALENT {
            let text = std::fs::read_to_string(process::root().join(format!("{FOLDER}/{name}.sql"))).unwrap();
            assert!(changes(&text).iter().any(|made| made.what == *change), "{name}: {change}");
            assert!(!reason.is_empty());
        }
    }
}
