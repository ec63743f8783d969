//! The log-probabilities of given tokens, and of those that may follow them.

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
        self.check_tokens(tokens)?;
        let Some(given) = tokens.len().checked_sub(1).filter(|given| *given > 0) else { return Ok(Vec::new()) };
        let _guard = tch::no_grad_guard();
        let ids = self.ids(tokens)?;
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

    /// The log-probability of each token of the vocabulary after `tokens`, at temperature 1.
    ///
    /// # Errors
    /// As [`token_logprobs`](Self::token_logprobs), or there are no tokens.
    pub fn next_logprobs(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check_tokens(tokens)?;
        if tokens.is_empty() {
            return Err(PolicyError::Input("the prompt has no tokens".into()));
        }
        let _guard = tch::no_grad_guard();
        let hidden = self.hidden(&self.ids(tokens)?.f_unsqueeze(0)?)?.f_squeeze_dim(0)?;
        let logits = self.logits_to_draw_from(&hidden.f_narrow(0, tokens.len() as i64 - 1, 1)?)?;
        Ok(Vec::try_from(logits.f_squeeze_dim(0)?.f_log_softmax(-1, Kind::Float)?)?)
    }

    fn check_tokens(&self, tokens: &[u32]) -> Result<()> {
        let (vocab, positions) = (self.config().vocab_size, self.config().positions());
        if let Some(token) = tokens.iter().find(|token| i64::from(**token) >= vocab) {
            return Err(PolicyError::Input(format!("token {token} is outside the model's vocabulary of {vocab}")));
        }
        if tokens.len() as i64 > positions {
            let count = tokens.len();
            return Err(PolicyError::Input(format!("{count} tokens are more than the model's {positions} positions")));
        }
        Ok(())
    }

    fn ids(&self, tokens: &[u32]) -> Result<Tensor> {
        let ids: Vec<i64> = tokens.iter().map(|token| i64::from(*token)).collect();
        Ok(Tensor::f_from_slice(&ids)?.f_to_device(self.device())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use tch::Device;

    #[test]
    fn the_next_token_has_the_log_probability_that_it_has_as_a_given_token() {
        let sizes = r#"{"vocab_size":16,"hidden_size":8,"intermediate_size":8,"num_hidden_layers":2,"num_attention_heads":2,"initializer_range":0.5}"#;
        let config: ModelConfig = serde_json::from_str(sizes).unwrap();
        let model = Model::random(config, 3, Device::Cpu).unwrap();
        let next = model.next_logprobs(&[5, 3, 9]).unwrap();
        assert_eq!(next.len(), 16);
        for (token, found) in (0..).zip(next) {
            let given = model.token_logprobs(&[5, 3, 9, token]).unwrap()[2];
            assert!((given - found).abs() < 1e-5, "{token}: {given} {found}");
        }
        assert!(model.next_logprobs(&[]).is_err() && model.next_logprobs(&[16]).is_err());
    }
}
