//! Why a server did not answer a request.

/// Why a server did not answer a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is gone, or busy: another server, or another attempt, may answer.
    Lost(String),
    /// It answered with weights that this run did not give it.
    Foreign(String),
    /// It does not take the request as it is, or answered it wrongly.
    Refused(String),
}

impl Failure {
    /// The reason.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Lost(why) | Self::Foreign(why) | Self::Refused(why) => why,
        }
    }

    /// The same failure, with another reason.
    pub(super) fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Lost(why) => Self::Lost(change(why)),
            Self::Foreign(why) => Self::Foreign(change(why)),
            Self::Refused(why) => Self::Refused(change(why)),
        }
    }
}
