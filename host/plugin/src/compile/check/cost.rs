//! Costs that are counted, and the error of one that is too high.

/// A component that is not compiled, since that could take all of a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooCostly {
    /// The file is larger than is allowed.
    #[error("it has {found} bytes, {allowed} are allowed")]
    Size {
        /// Its bytes.
        found: usize,
        /// The limit.
        allowed: usize,
    },
    /// Something in it would be multiplied by the compiler.
    #[error("{what}: {found}, {allowed} are allowed")]
    Count {
        /// What there is too much of.
        what: &'static str,
        /// How much of it.
        found: u64,
        /// The limit.
        allowed: u64,
    },
    /// What it would take cannot be told, since it is not valid.
    #[error("{0}")]
    Invalid(String),
    /// It instantiates a component that it gets from elsewhere, whose cost
    /// cannot be known.
    #[error("it instantiates a component that it imports or is handed, so that its size cannot be told")]
    Unknown,
}

impl From<wasmparser::BinaryReaderError> for TooCostly {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Refuses a count that is higher than is allowed.
pub(super) fn within(what: &'static str, found: u64, allowed: u64) -> Result<(), TooCostly> {
    if found > allowed { Err(TooCostly::Count { what, found, allowed }) } else { Ok(()) }
}
