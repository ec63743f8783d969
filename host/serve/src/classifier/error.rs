//! Errors of a classifier as a client gets them.

use crate::openai::error::ApiError;
use gavel_rollout::RewardModelError;

impl From<RewardModelError> for ApiError {
    fn from(error: RewardModelError) -> Self {
        match &error {
            RewardModelError::Stopped | RewardModelError::Device(_) => Self::unavailable(error.to_string()),
            error if error.is_of_conversation() => Self::invalid(error.to_string()),
            error => Self::internal(error.to_string()),
        }
    }
}
