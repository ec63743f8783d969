//! Errors of a tape.

use gavel_data::disk;
use std::path::PathBuf;

/// Why a tape has no answer to a request.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TapeError {
    /// The request was not recorded.
    #[error("the {import} request {name} was not recorded")]
    NotRecorded {
        import: String,
        /// The request, for messages.
        name: String,
    },
    /// A file of the tape cannot be read or written.
    #[error("cannot {action} {} of the tape: {source}{}", path.display(), disk::hint(source))]
    Io {
        /// `read`, `write` or `sync`.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file of the tape has other contents than were written.
    #[error("{} of the tape is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    /// The process is ending.
    #[error("the host stopped while it wrote the tape")]
    Stopped,
}
