//! Where tasks come from: epochs of the datasets, or a plugin.

use crate::rl::sampler::{Sampler, SamplerAnswer};
use crate::rows::TaskStream;

/// The source of a run's tasks.
pub(crate) enum TaskSource {
    /// The rows of the datasets, epoch after epoch.
    Epochs(TaskStream),
    /// A plugin.
    Sampler(Sampler),
}

impl TaskSource {
    pub(crate) fn sampler(&self) -> Option<&Sampler> {
        match self {
            Self::Epochs(_) => None,
            Self::Sampler(sampler) => Some(sampler),
        }
    }

    pub(crate) fn sampler_mut(&mut self) -> Option<&mut Sampler> {
        match self {
            Self::Epochs(_) => None,
            Self::Sampler(sampler) => Some(sampler),
        }
    }

    /// As [`Sampler::keep`].
    pub(crate) fn keep(&mut self, answer: &mut SamplerAnswer, seconds: f64) {
        if let Self::Sampler(sampler) = self {
            sampler.keep(answer, seconds);
        }
    }
}
