//! Samples → new policy: advantages, losses, batches and the optimiser.
//!
//! An update learns from [`Experience`]s: responses, the log-probabilities that they were sampled with, and the
//! advantages that [`AdvantageConfig::estimate`] gave them among the groups of their step. A [`Trainer`] takes one
//! optimiser step over a mini-batch of them ([`Trainer::update`]), over supervised rows ([`Trainer::sft_step`]), or over
//! pairs of which one side is preferred ([`preference`]).
//! [`OffPolicyConfig`] corrects for tokens that another policy drew. Nothing here draws from libtorch's random
//! generator: the same inputs give the same policy.

pub mod advantage;
mod batch;
pub mod config;
pub mod critic;
pub mod drawing;
mod error;
pub mod experience;
pub mod kl;
mod logit_changes;
pub mod logprobs;
pub mod loss;
pub mod memory;
pub mod off_policy;
pub mod optimizer;
#[cfg(test)]
mod parity;
pub mod preference;
mod ranks;
pub mod schedule;
pub mod sft;
pub mod statistics;
pub mod taught;
pub mod teacher;
#[cfg(test)]
mod testing;
pub mod trainer;

pub use advantage::{
    Advantage, AdvantageConfig, Estimator, RewardPart, RewardStatistics, Scale, ScoredGroup, ScoredSample,
    ScoredTrajectory, ScoredTurn, TurnComparison,
};
pub use batch::{LongestRows, PaddedBatch, passes, shares};
pub use config::ConfigError;
pub use critic::{ValueLossConfig, explained_variance};
pub use drawing::Drawing;
pub use error::{StateError, TrainError};
pub use experience::{Experience, SampleId};
pub use kl::{KlConfig, KlEstimator};
pub use logprobs::log_probs;
pub use loss::{Aggregation, ClipRange, DistillationConfig, LossConfig, OldLogProbs, PolicyLoss, PpoClip};
pub use off_policy::{OffPolicyConfig, RolloutIs, RolloutRs, Staleness};
pub use optimizer::{AdjustLr, MuonConfig, Optimizer, OptimizerConfig, OptimizerKind, Parameters};
pub use preference::{BradleyTerryConfig, ConversationPair, DpoConfig, PairStats, ResponsePair};
pub use schedule::{Schedule, ScheduleConfig, ScheduleKind};
pub use sft::{SftRow, SftStats};
pub use statistics::Statistics;
pub use taught::{Taught, TopLogprobs};
pub use teacher::Asked;
pub use trainer::{PolicyUpdate, Trainer, UpdateStats};
