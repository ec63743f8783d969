//! What a tape cannot do.

use std::path::PathBuf;

/// A request that gets no answer from a tape.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// It was never made before.
    #[error("the {import} request {name} was not recorded")]
    NotRecorded {
        /// The import.
        import: String,
        /// The request, for people.
        name: String,
    },
    /// A file of the tape cannot be read or written.
    #[error("cannot {action} {} of the tape: {source}", path.display())]
    Io {
        /// `read`, `write` or `sync`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the tape has another content than it was given.
    #[error("{} of the tape is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The process is about to end.
    #[error("the host stopped while it wrote the tape")]
    Stopped,
}
