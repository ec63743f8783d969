//! The names of the policy losses.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The names of the losses of a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PolicyLossName {
    #[default]
    Vanilla,
    Gspo,
    GspoToken,
    #[serde(rename = "icepop")]
    IcePop,
    M2po,
    Sapo,
    Gpg,
    ClipCov,
    KlCov,
    GeoMean,
    Cispo,
    DppoTv,
    DppoKl,
    Dro,
}

impl PolicyLossName {
    /// All names.
    pub(super) const ALL: [Self; 14] = [
        Self::Vanilla,
        Self::Gspo,
        Self::GspoToken,
        Self::IcePop,
        Self::M2po,
        Self::Sapo,
        Self::Gpg,
        Self::ClipCov,
        Self::KlCov,
        Self::GeoMean,
        Self::Cispo,
        Self::DppoTv,
        Self::DppoKl,
        Self::Dro,
    ];
}

impl fmt::Display for PolicyLossName {
    /// The name as it is written.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}
