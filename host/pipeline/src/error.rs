//! Why a run stops.

use gavel_agent::{EpisodeError, ToolSetError};
use gavel_config::ConfigError;
use gavel_data::{RowError, SpoolError};
use gavel_gateway::GatewayError;
use gavel_hub::HubError;
use gavel_plugin::{DecisionError, LoadError, TapeError};
use gavel_policy::{Device, PolicyError, device};
use gavel_rollout::RolloutError;
use gavel_runs::RunError;
use gavel_scoring::ScorerError;
use gavel_scoring::recording::RecordingError;
use gavel_text::ContentError;
use gavel_text::TextError;
use gavel_torch::peers::PeersError;
use gavel_tracking::TrackingError;
use gavel_train::TrainError;
use std::path::PathBuf;

/// A failure of a run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PipelineError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A model or a dataset of the hub cannot be found or downloaded.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// A dataset cannot be read.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The rows of a large dataset cannot be kept.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The model failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The tokenizer or the chat template failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Responses could not be generated.
    #[error("{}", cause(.0))]
    Rollout(#[from] RolloutError),
    /// The tools cannot be used.
    #[error(transparent)]
    Tools(#[from] ToolSetError),
    /// The agent, or a plugin that decides, cannot be used.
    #[error(transparent)]
    Agent(#[from] LoadError),
    /// There is no gateway, or no agent that asks it.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The tools of samples under way are gone.
    #[error("the tools were stopped while samples used them")]
    ToolsStopped,
    /// A plugin does not load.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// The run's folder cannot be written or read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A tracker cannot be used.
    #[error("log.trackers: {0}")]
    Tracking(#[from] TrackingError),
    /// The plugins of the run cannot be kept.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A run would continue with changed plugins.
    #[error("{0}\nhint: put them back, or continue with these: --resume --allow-changed-plugins")]
    ChangedPlugins(RecordingError),
    /// The answers that plugins get from outside cannot be recorded.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// An update failed.
    #[error("step {step}: {source}")]
    Train { step: u64, source: TrainError },
    /// A reward gave credit to a text that has no tokens to learn from.
    #[error(
        "step {step}: the reward `{reward}` gave credit to message {message} of trajectory {trajectory} of {sample}, which has no tokens: {why}\nhint: set the reward to give no credit, or report this with the trajectory"
    )]
    Credit {
        step: u64,
        reward: String,
        sample: String,
        /// The trajectory, from 0.
        trajectory: usize,
        /// The message, from 0.
        message: u32,
        why: Unplaced,
    },
    /// The turns of a trajectory are to be compared and cannot be told apart.
    #[error(
        "step {step}: the turns of trajectory {trajectory} of {sample} are not known: {why}\nhint: leave train.advantage.turns out, or report this with the trajectory"
    )]
    Turns {
        step: u64,
        sample: String,
        /// The trajectory, from 0.
        trajectory: usize,
        why: Unplaced,
    },
    /// A plugin that decides what is learned failed.
    #[error(
        "step {step}: {source}\nhint: repair it, or raise plugin.{}.limits, and continue with --resume --allow-changed-plugins",
        source.plugin
    )]
    Decision { step: u64, source: DecisionError },
    /// The optimiser cannot be set up or restored.
    #[error(transparent)]
    Optimizer(TrainError),
    /// Another rank of the run is gone, or would compute something else.
    #[error(transparent)]
    Ranks(PeersError),
    /// A row of a dataset cannot be used.
    #[error("{}, {place}: {what}", path.display())]
    BadRow {
        path: PathBuf,
        /// The line or row.
        place: String,
        what: String,
    },
    /// The run cannot continue.
    #[error("{0}")]
    Stopped(String),
    /// The same, as all ranks know at the same place of the run.
    #[error("{0}")]
    StoppedTogether(String),
}

/// Why generation failed. A run generates for one purpose, so the error need not say what failed.
fn cause(error: &RolloutError) -> String {
    match error {
        RolloutError::Step(error) => error.to_string(),
        other => other.to_string(),
    }
}

pub(crate) type Result<T> = std::result::Result<T, PipelineError>;

impl PipelineError {
    /// The error of an update of step `step` on `device`.
    pub(crate) fn of_step(step: u64, error: TrainError, device: Device) -> Self {
        Self::Train { step, source: error.on(device, device::probe) }
    }
}

impl From<EpisodeError<RolloutError>> for PipelineError {
    fn from(error: EpisodeError<RolloutError>) -> Self {
        match error {
            EpisodeError::Policy(error) => error.into(),
            EpisodeError::Text(error) => error.into(),
            EpisodeError::Row(error) => Self::Stopped(error.to_string()),
            EpisodeError::ShutDown => Self::ToolsStopped,
        }
    }
}

/// Why credit for a message has no tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplaced {
    /// It is not known which turn of the policy is which message.
    #[error("its tokens have {turns} turns of the policy, and its messages {replies}")]
    Turns {
        /// Turns of the policy in the trajectory's tokens.
        turns: usize,
        /// Messages of the policy.
        replies: usize,
    },
    /// The policy did not write the message.
    #[error("the policy did not write the message")]
    NotOfPolicy,
    /// The tokens of the turn have no places in the message.
    #[error(transparent)]
    Content(#[from] ContentError),
}
