//! How far a tracker is.

/// How far a tracker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There may be more to send.
    More,
    /// It has what the run has recorded so far.
    CaughtUp,
}
