//! What `--dry-run` checks.

/// One thing that was checked without a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was checked.
    pub what: &'static str,
    /// What was found.
    pub found: String,
}
