//! Checks and conversions that several tables share.

use super::error::ConfigError;
use bytesize::ByteSize;

/// A size in bytes, as far as the machine can address it.
pub(super) fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

pub(super) fn at_least_one(field: &str, value: usize) -> Result<(), ConfigError> {
    if value == 0 { Err(ConfigError::value(field, "at least 1", 0)) } else { Ok(()) }
}
