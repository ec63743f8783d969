//! The log-probabilities of given tokens.

use crate::error::{PolicyError, Result};
use crate::model::Model;
use gavel_torch::head::Beside;
use tch::{Kind, Tensor};

/// Tokens whose logits are computed at once.
const CHUNK: i64 = 256;

impl Model {
    /// The log-probability of each of `tokens` but the first, given those before it, at temperature 1.
    ///
    /// # Errors
    /// The model is not a language model, or a token is outside its vocabulary, or there are more tokens than it has
    /// positions.
    pub fn token_logprobs(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        let (vocab, positions) = (self.config().vocab_size, self.config().positions());
        if let Some(token) = tokens.iter().find(|token| i64::from(**token) >= vocab) {
            return Err(PolicyError::Input(format!("token {token} is outside the model's vocabulary of {vocab}")));
        }
        if tokens.len() as i64 > positions {
            let count = tokens.len();
            return Err(PolicyError::Input(format!("{count} tokens are more than the model's {positions} positions")));
        }
        let Some(given) = tokens.len().checked_sub(1).filter(|given| *given > 0) else { return Ok(Vec::new()) };
        let _guard = tch::no_grad_guard();
        let ids: Vec<i64> = tokens.iter().map(|token| i64::from(*token)).collect();
        let ids = Tensor::f_from_slice(&ids)?.f_to_device(self.device())?;
        let hidden = self.hidden(&ids.f_narrow(0, 0, given as i64)?.f_unsqueeze(0)?)?.f_squeeze_dim(0)?;
        let targets = ids.f_narrow(0, 1, given as i64)?;
        let mut logprobs = Vec::with_capacity(given);
        for start in (0..given as i64).step_by(CHUNK as usize) {
            let length = CHUNK.min(given as i64 - start);
            let [hidden, targets] = [hidden.f_narrow(0, start, length)?, targets.f_narrow(0, start, length)?];
            let found = self.logprobs_of(&hidden, &targets, 1.0, Beside::Nothing)?.logprobs;
            logprobs.extend(Vec::<f32>::try_from(found.f_to_kind(Kind::Float)?)?);
        }
        Ok(logprobs)
    }
}
