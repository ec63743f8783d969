//! The error for a component that costs too much to compile.

/// Why a component is not compiled: it could use up the whole machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TooCostly {
    /// The file is larger than is allowed.
    #[error("it has {found} bytes, more than the {allowed} allowed")]
    Size { found: usize, allowed: usize },
    /// It has too much of something that the compiler would multiply.
    #[error("{what}: {found}, more than the {allowed} allowed")]
    Count { what: &'static str, found: u64, allowed: u64 },
    /// It is not valid, so its cost is unknown.
    #[error("{0}")]
    Invalid(String),
    /// It instantiates a component that it gets from elsewhere, whose cost is
    /// unknown.
    #[error("it instantiates a component that it imports or gets as an argument, so its size is unknown")]
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
