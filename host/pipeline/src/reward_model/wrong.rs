//! A key of `[reward_model.NAME]` that cannot be used.

/// A key of a table that cannot be used.
pub(super) struct Wrong {
    pub(super) field: &'static str,
    pub(super) what: String,
}

impl Wrong {
    pub(super) fn new(field: &'static str, what: impl ToString) -> Self {
        Self { field, what: what.to_string() }
    }
}
