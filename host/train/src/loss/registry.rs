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
use super::ppo_clip::PpoClip;
use super::sapo::Sapo;
use super::token_loss::{LearnedToken, Surrogate, TokenLoss, Tokens};
use crate::config::ConfigError;
use serde::{Deserialize, Serialize};
use std::fmt;
use tch::TchError;

/// Declares the losses: their settings, and the names under which a configuration asks for each, with the settings that
/// have the name and the defaults under it.
macro_rules! losses {
    ($($(#[$about:meta])* $loss:ident { $($(#[$default_name:meta])* $name:ident $written:literal: $form:pat => $default:expr,)+ })+) => {
        /// The loss of a token, with its settings. Each is a file beside this one.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum PolicyLoss {
            $($(#[$about])* $loss($loss),)+
        }

        /// The names of the losses of a token.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        pub(crate) enum PolicyLossName {
            $($($(#[$default_name])* #[serde(rename = $written)] $name,)+)+
        }

        impl PolicyLossName {
            /// All names.
            const ALL: &[Self] = &[$($(Self::$name,)+)+];

            /// The loss with its defaults.
            pub(super) fn loss(self) -> PolicyLoss {
                match self {
                    $($(Self::$name => PolicyLoss::$loss($default),)+)+
                }
            }

            /// The name as it is written.
            fn as_str(self) -> &'static str {
                match self {
                    $($(Self::$name => $written,)+)+
                }
            }
        }

        impl PolicyLoss {
            pub(super) fn name(&self) -> PolicyLossName {
                match self {
                    $($(Self::$loss($form) => PolicyLossName::$name,)+)+
                }
            }

            fn surrogate(&self) -> &dyn Surrogate {
                match self {
                    $(Self::$loss(loss) => loss,)+
                }
            }

            pub(super) fn surrogate_mut(&mut self) -> &mut dyn Surrogate {
                match self {
                    $(Self::$loss(loss) => loss,)+
                }
            }
        }
    };
}

losses! {
    /// PPO's clipped surrogate.
    PpoClip {
        #[default]
        Vanilla "vanilla": _ => PpoClip::default(),
    }
    /// Group sequence policy optimisation, with the advantage of a response or of each token.
    Gspo {
        Gspo "gspo": Gspo { by_token: false, .. } => Gspo::new(false),
        GspoToken "gspo_token": Gspo { by_token: true, .. } => Gspo::new(true),
    }
    /// IcePop.
    IcePop { IcePop "icepop": _ => IcePop::default(), }
    /// Second-moment trust policy optimisation.
    M2po { M2po "m2po": _ => M2po::default(), }
    /// Soft adaptive policy optimisation.
    Sapo { Sapo "sapo": _ => Sapo::default(), }
    /// The policy gradient alone.
    Gpg { Gpg "gpg": _ => Gpg, }
    /// PPO's surrogate without the tokens of the largest covariance.
    ClipCov { ClipCov "clip_cov": _ => ClipCov::default(), }
    /// A penalty on the tokens of the largest covariance.
    KlCov { KlCov "kl_cov": _ => KlCov::default(), }
    /// Geometric-mean policy optimisation.
    GeoMean { GeoMean "geo_mean": _ => GeoMean::default(), }
    /// Clipped importance-sampling weights.
    Cispo { Cispo "cispo": _ => Cispo::default(), }
    /// Divergence proximal policy optimisation, by total variation or by KL.
    Dppo {
        DppoTv "dppo_tv": Dppo { divergence: Divergence::TotalVariation, .. } => Dppo::new(Divergence::TotalVariation),
        DppoKl "dppo_kl": Dppo { divergence: Divergence::Kl, .. } => Dppo::new(Divergence::Kl),
    }
    /// Direct reward optimisation.
    Dro { Dro "dro": _ => Dro::default(), }
}

impl fmt::Display for PolicyLossName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Default for PolicyLoss {
    fn default() -> Self {
        PolicyLossName::default().loss()
    }
}

impl PolicyLoss {
    /// Every loss with its defaults, by name.
    pub fn all() -> Vec<(String, Self)> {
        PolicyLossName::ALL.iter().map(|name| (name.to_string(), name.loss())).collect()
    }

    /// Refuses values that are not valid, naming the key.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        self.surrogate().validate()
    }

    /// How tokens become one number if the configuration does not set it.
    pub fn aggregation(&self) -> Aggregation {
        self.surrogate().aggregation()
    }

    /// Whether the loss of a token depends on others.
    pub(crate) fn has_context(&self) -> bool {
        self.surrogate().context().is_some()
    }

    /// For each learned token of each row, the numbers of its context, on which its loss depends beyond the token;
    /// nothing if the loss has no context.
    pub(crate) fn context(&self, rows: &[Vec<LearnedToken>]) -> Option<Vec<Vec<[f64; 2]>>> {
        self.surrogate().context().map(|context| context.of(rows))
    }

    /// The loss of each token.
    pub(crate) fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        self.surrogate().token_loss(tokens)
    }
}
