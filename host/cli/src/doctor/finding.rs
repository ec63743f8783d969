//! What a check of `gavel doctor` finds.

/// The result of a check.
pub enum Finding {
    /// It is there: where, or how much of it.
    Ok(String),
    /// It is not there: why, and what to do.
    Missing(String, String),
    /// It is not what it should be: why, and what to do.
    Changed(String, String),
    /// Without it nothing works: why, and what to do.
    Broken(String, String),
}
