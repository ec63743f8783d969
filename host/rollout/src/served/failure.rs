//! Why a server did not answer a request.

/// Why a server did not answer a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is gone, or busy: another server, or another attempt, may answer.
    Lost(String),
    /// It has weights that this run did not give it.
    Foreign(String),
    /// Another run has given it weights since this one did.
    Taken(String),
    /// It does not take the request as it is, or answered it wrongly.
    Refused(String),
}

impl Failure {
    /// A server has weights that another run gave it after this run did.
    pub(super) fn taken(version: &str) -> Self {
        Self::Taken(format!(
            "another run has given it weights, of the version {version:?}, since this run did\nhint: a server draws for one run at a time: give each run servers of its own"
        ))
    }

    /// The reason.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Lost(why) | Self::Foreign(why) | Self::Taken(why) | Self::Refused(why) => why,
        }
    }

    /// The same failure, with another reason.
    pub(super) fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Lost(why) => Self::Lost(change(why)),
            Self::Foreign(why) => Self::Foreign(change(why)),
            Self::Taken(why) => Self::Taken(change(why)),
            Self::Refused(why) => Self::Refused(change(why)),
        }
    }
}
