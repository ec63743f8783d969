//! Why no step trains on a group.

use std::borrow::Cow;

/// Why no step trains on a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// Fewer samples than `min_scored` have a reward.
    TooFewScored,
    /// All rewards are equal, so that no sample is better than another.
    EqualRewards,
    /// A sampler refused the group, with this reason.
    Refused(String),
}

impl DropReason {
    /// The name under which groups are counted.
    pub(crate) fn name(&self) -> Cow<'static, str> {
        match self {
            Self::TooFewScored => "too-few-scored".into(),
            Self::EqualRewards => "equal-rewards".into(),
            Self::Refused(reason) => format!("refused: {reason}").into(),
        }
    }
}
