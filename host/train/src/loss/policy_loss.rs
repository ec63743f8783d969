//! The policy losses by their names.

use super::aggregation::Aggregation;
use super::cispo::Cispo;
use super::clip_cov::ClipCov;
use super::dppo::{Divergence, Dppo};
use super::dro::Dro;
use super::geo_mean::GeoMean;
use super::gpg::Gpg;
use super::gspo::Gspo;
use super::icepop::IcePop;
use super::kl_cov::KlCov;
use super::m2po::M2po;
use super::name::PolicyLossName;
use super::ppo_clip::PpoClip;
use super::sapo::Sapo;
use super::table::LossTable;
use super::token_loss::{Drawn, Surrogate, TokenLoss, Tokens};
use crate::config::ConfigError;
use tch::TchError;

/// The loss of a token, with its settings. Each is a file beside this one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PolicyLoss {
    /// PPO's clipped surrogate; `vanilla` in a configuration.
    PpoClip(PpoClip),
    /// `gspo` and `gspo_token`.
    Gspo(Gspo),
    /// `icepop`
    IcePop(IcePop),
    /// `m2po`
    M2po(M2po),
    /// `sapo`
    Sapo(Sapo),
    /// `gpg`
    Gpg(Gpg),
    /// `clip_cov`
    ClipCov(ClipCov),
    /// `kl_cov`
    KlCov(KlCov),
    /// `geo_mean`
    GeoMean(GeoMean),
    /// `cispo`
    Cispo(Cispo),
    /// `dppo_tv` and `dppo_kl`.
    Dppo(Dppo),
    /// `dro`
    Dro(Dro),
}

impl PolicyLossName {
    /// The loss with its defaults.
    fn loss(self) -> PolicyLoss {
        match self {
            Self::Vanilla => PolicyLoss::PpoClip(PpoClip::default()),
            Self::Gspo => PolicyLoss::Gspo(Gspo::new(false)),
            Self::GspoToken => PolicyLoss::Gspo(Gspo::new(true)),
            Self::IcePop => PolicyLoss::IcePop(IcePop::default()),
            Self::M2po => PolicyLoss::M2po(M2po::default()),
            Self::Sapo => PolicyLoss::Sapo(Sapo::default()),
            Self::Gpg => PolicyLoss::Gpg(Gpg),
            Self::ClipCov => PolicyLoss::ClipCov(ClipCov::default()),
            Self::KlCov => PolicyLoss::KlCov(KlCov::default()),
            Self::GeoMean => PolicyLoss::GeoMean(GeoMean::default()),
            Self::Cispo => PolicyLoss::Cispo(Cispo::default()),
            Self::DppoTv => PolicyLoss::Dppo(Dppo::new(Divergence::TotalVariation)),
            Self::DppoKl => PolicyLoss::Dppo(Dppo::new(Divergence::Kl)),
            Self::Dro => PolicyLoss::Dro(Dro::default()),
        }
    }
}

impl Default for PolicyLoss {
    fn default() -> Self {
        PolicyLossName::default().loss()
    }
}

/// Evaluates `$get` with the settings of whichever loss a value is.
macro_rules! each {
    ($loss:expr, $one:ident => $get:expr) => {
        match $loss {
            PolicyLoss::PpoClip($one) => $get,
            PolicyLoss::Gspo($one) => $get,
            PolicyLoss::IcePop($one) => $get,
            PolicyLoss::M2po($one) => $get,
            PolicyLoss::Sapo($one) => $get,
            PolicyLoss::Gpg($one) => $get,
            PolicyLoss::ClipCov($one) => $get,
            PolicyLoss::KlCov($one) => $get,
            PolicyLoss::GeoMean($one) => $get,
            PolicyLoss::Cispo($one) => $get,
            PolicyLoss::Dppo($one) => $get,
            PolicyLoss::Dro($one) => $get,
        }
    };
}

impl PolicyLoss {
    /// Every loss with its defaults, by name.
    pub fn all() -> Vec<(String, Self)> {
        PolicyLossName::ALL.into_iter().map(|name| (name.to_string(), name.loss())).collect()
    }

    /// The loss that a table asks for. The keys that it has are taken out of the table.
    pub(super) fn read(table: &mut LossTable) -> Self {
        let mut loss = table.policy.loss();
        for (key, value) in each!(&mut loss, one => one.keys()) {
            if let Some(given) = table.number(key).and_then(Option::take) {
                *value = given;
            }
        }
        loss
    }

    /// A table that asks for this loss, with all its keys.
    pub(super) fn written(mut self) -> LossTable {
        let mut table = LossTable { policy: self.name(), ..LossTable::default() };
        for (key, value) in each!(&mut self, one => one.keys()) {
            if let Some(written) = table.number(key).filter(|_| value.is_finite()) {
                *written = Some(*value);
            }
        }
        table
    }

    fn name(&self) -> PolicyLossName {
        match self {
            Self::PpoClip(_) => PolicyLossName::Vanilla,
            Self::Gspo(Gspo { by_token: false, .. }) => PolicyLossName::Gspo,
            Self::Gspo(Gspo { by_token: true, .. }) => PolicyLossName::GspoToken,
            Self::IcePop(_) => PolicyLossName::IcePop,
            Self::M2po(_) => PolicyLossName::M2po,
            Self::Sapo(_) => PolicyLossName::Sapo,
            Self::Gpg(_) => PolicyLossName::Gpg,
            Self::ClipCov(_) => PolicyLossName::ClipCov,
            Self::KlCov(_) => PolicyLossName::KlCov,
            Self::GeoMean(_) => PolicyLossName::GeoMean,
            Self::Cispo(_) => PolicyLossName::Cispo,
            Self::Dppo(Dppo { divergence: Divergence::TotalVariation, .. }) => PolicyLossName::DppoTv,
            Self::Dppo(Dppo { divergence: Divergence::Kl, .. }) => PolicyLossName::DppoKl,
            Self::Dro(_) => PolicyLossName::Dro,
        }
    }

    /// Refuses values that are not valid, naming the key.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        each!(self, one => one.validate())
    }

    /// How tokens become one number if the configuration does not set it.
    pub fn aggregation(&self) -> Aggregation {
        each!(self, one => one.aggregation())
    }

    /// Whether the loss of a token depends on others.
    pub(crate) fn has_context(&self) -> bool {
        each!(self, one => one.context().is_some())
    }

    /// For each learned token of each row, the numbers of its context, on which its loss depends beyond the token;
    /// nothing if the loss has no context.
    pub(crate) fn context(&self, rows: &[Vec<Drawn>]) -> Option<Vec<Vec<[f64; 2]>>> {
        each!(self, one => one.context().map(|context| context.of(rows)))
    }

    /// The loss of each token.
    pub(crate) fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        each!(self, one => one.token_loss(tokens))
    }
}
