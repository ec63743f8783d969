//! Errors of an update and of the optimiser's state.

use crate::config::ConfigError;
use gavel_data::disk;
use gavel_policy::device::DeviceFailure;
use gavel_policy::{Device, Phase, PolicyError};
use gavel_torch::peers::{PeersError, RankProcess};
use std::path::PathBuf;
use std::sync::Arc;
use tch::TchError;

/// A failure of an update. The parameters are those from before it, unless
/// libtorch failed within the optimiser's step.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrainError {
    /// A row that cannot be learned from.
    #[error("row {index} of the mini-batch {what}")]
    Row {
        /// Its position, from 0.
        index: usize,
        what: String,
    },
    /// The mini-batch has no token that the policy wrote.
    #[error("the mini-batch of {rows} rows has no token to learn from: every loss mask is empty")]
    NoTokens { rows: usize },
    /// A KL penalty without a reference.
    #[error("a kl penalty is set, but no reference model was given\nhint: load one, or remove the table `kl`")]
    NoReference,
    /// Values are needed, and there is no critic.
    #[error("values are needed, but there is no critic")]
    NoCritic,
    /// A loss or a gradient that is NaN or infinite.
    #[error(
        "optimiser step {step}: the {quantity} is {value}; nothing was changed\nhint: lower the learning rate, or look for damaged weights"
    )]
    NonFinite {
        /// The step that would have been taken, from 0.
        step: u64,
        /// `loss` or `gradient norm`.
        quantity: &'static str,
        /// NaN or an infinity.
        value: f64,
    },
    /// The loss does not depend on a parameter of the trainer.
    #[error("parameter `{name}` got no gradient: is this the model that the trainer was made for?")]
    NoGradient { name: String },
    /// A parameter whose gradients would underflow.
    #[error("parameter `{name}` is in float16, in which small gradients are 0\nhint: train in bfloat16 or float32")]
    Half { name: String },
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The model failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The optimiser's state cannot be saved or restored.
    #[error(transparent)]
    State(#[from] StateError),
    /// Another rank failed.
    #[error("{process} failed: {what}")]
    Rank { process: RankProcess, what: String },
    /// The ranks cannot compute together.
    #[error(transparent)]
    Peers(#[from] PeersError),
    /// libtorch failed.
    #[error("libtorch: {0}")]
    Torch(String),
    /// The device has failed.
    #[error(transparent)]
    Device(DeviceFailure),
}

impl TrainError {
    /// The same error or, if libtorch failed because nothing more can be computed on `device`, as `probe` finds, that
    /// failure.
    pub fn on(self, device: Device, probe: impl FnOnce(Device) -> std::result::Result<(), PolicyError>) -> Self {
        let text = match &self {
            Self::Torch(text) | Self::Policy(PolicyError::Torch(text)) => text.clone(),
            _ => return self,
        };
        let error = Arc::new(PolicyError::Torch(text));
        DeviceFailure::after(&error, "a training step was computed", device, probe).map_or(self, Self::Device)
    }

    /// Adds what was being done, if memory ran out and the error does not have
    /// it yet.
    pub(crate) fn during(self, now: Phase) -> Self {
        match self {
            Self::Policy(error) => Self::Policy(error.during(now)),
            other => other,
        }
    }
}

impl From<TchError> for TrainError {
    fn from(error: TchError) -> Self {
        // Only the first line of libtorch's message describes the failure; a C++ backtrace follows.
        match PolicyError::from(error) {
            PolicyError::Torch(text) => Self::Torch(text),
            other => Self::Policy(other),
        }
    }
}

/// A state that cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("cannot {action} optimiser state {}: {source}{}", path.display(), disk::hint(source))]
    Io {
        /// `read` or `write`.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The content of the file is wrong.
    #[error("optimiser state {}: {what}", path.display())]
    Format { path: PathBuf, what: String },
    /// The state of another kind of optimiser.
    #[error(
        "optimiser state {} is of the kind `{found}`, not `{expected}`\nhint: continue with `kind = \"{found}\"`, or start a new run from the weights",
        path.display()
    )]
    Kind { path: PathBuf, expected: &'static str, found: &'static str },
    /// A tensor of this model is not in the file.
    #[error("optimiser state {} does not have the tensor `{name}`: it belongs to another model", path.display())]
    Missing { path: PathBuf, name: String },
    /// A tensor in the file has no place in this model.
    #[error("optimiser state {} has the tensor `{name}`, which this model does not: it belongs to another model", path.display())]
    Unknown { path: PathBuf, name: String },
    /// A tensor of another shape or kind.
    #[error("optimiser state {}: tensor `{name}` is {found}, expected {expected}: it belongs to another model", path.display())]
    Mismatch {
        path: PathBuf,
        name: String,
        /// Kind and shape in this model.
        expected: String,
        /// Kind and shape in the file.
        found: String,
    },
    /// libtorch failed.
    #[error("optimiser state {}: libtorch: {source}", path.display())]
    Torch { path: PathBuf, source: TchError },
}

pub(crate) type Result<T> = std::result::Result<T, TrainError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_only_if_it_failed() {
        let (fails, works) = (|_| Err(PolicyError::Torch("again".into())), |_| Ok(()));
        for error in [TrainError::Torch("CUDA error".into()), PolicyError::Torch("CUDA error".into()).into()] {
            let unchanged = error.on(Device::Cpu, works);
            assert_eq!(unchanged.to_string(), "libtorch: CUDA error");
            let failed = unchanged.on(Device::Cpu, fails).to_string();
            let expected = "cpu failed while a training step was computed, and nothing more can be computed there: libtorch: CUDA error\n";
            assert!(failed.starts_with(expected), "{failed}");
        }
        let other = TrainError::NoTokens { rows: 3 }.on(Device::Cpu, fails).to_string();
        assert!(other.contains("3 rows"), "{other}");
    }
}
