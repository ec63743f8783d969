//! How long a row may be.

/// The most bytes of a row, as JSON: room for some images.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// The message for a row with more than `most` bytes.
pub(super) fn too_long(most: usize) -> String {
    format!("the row has more than {most} bytes\nhint: remove the row, or shorten its values")
}
