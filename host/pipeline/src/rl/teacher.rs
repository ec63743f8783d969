//! A reference that a server has: `train.reference.chat`.

use crate::error::{PipelineError, Result};
use crate::rows::{Prompt, StoredRows};
use futures::future::try_join_all;
use gavel_config::{Config, RlTable};
use gavel_plugin::{ChatError, Sandbox};
use gavel_scoring::chat::{LogprobClient, TokenLogprob};
use gavel_text::Tokenizer;
use gavel_train::Experience;

/// Asks a server how likely the tokens of responses are.
pub(crate) struct Teacher {
    client: LogprobClient,
    name: String,
}

impl Teacher {
    /// The teacher of a run, if a server is one. Nothing is sent yet.
    ///
    /// # Errors
    /// There is no `[chat.NAME]` of its name, or a field of it is wrong.
    pub(crate) fn open(config: &Config<RlTable>, sandbox: &Sandbox) -> Result<Option<Self>> {
        let Some(name) = config.train.reference.as_ref().and_then(|reference| reference.chat.clone()) else {
            return Ok(None);
        };
        // The validation of the configuration has found it.
        let Some(endpoint) = config.chat.get(&name) else { return Ok(None) };
        let client = LogprobClient::new(&name, endpoint, sandbox);
        let client = client.map_err(|error| PipelineError::Stopped(error.to_string()))?;
        Ok(Some(Self { client, name }))
    }

    /// Asks about the tokens of the first prompt, so that a mistake is found before the run.
    ///
    /// # Errors
    /// The server does not answer, or has other tokens than the policy.
    pub(crate) fn check(&self, prompts: &StoredRows<Prompt>, tokenizer: &Tokenizer, sandbox: &Sandbox) -> Result<()> {
        let first = prompts.get(0)?;
        let tokens = first.ids.as_slice();
        let found = sandbox.handle().block_on(self.client.ask(tokens)).map_err(|error| self.failed(error))?;
        let differs = |(token, found): (&u32, TokenLogprob)| {
            let (own, other) = (tokenizer.token_to_text(*token).text, found.text?);
            (own.trim() != other.trim()).then_some((*token, own, other))
        };
        let others: Vec<_> = tokens.iter().skip(1).zip(found).filter_map(differs).collect();
        // Servers show a few tokens in another way, such as parts of characters.
        match others.first() {
            Some((token, own, other)) if 2 * others.len() > tokens.len() => Err(PipelineError::Stopped(format!(
                "train.reference.chat: token {token} is {other:?} in the model of `{}`, and {own:?} in the policy's tokenizer\nhint: log-probabilities can only be compared with those of a model that has the policy's tokens",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    /// The log-probability of each response token of the rows.
    ///
    /// # Errors
    /// All attempts of a request failed.
    pub(crate) async fn log_probs(&self, rows: &[Experience]) -> Result<Vec<Vec<f32>>> {
        let of_row = |row: &Experience| {
            let tokens: Vec<u32> = row.prompt.iter().chain(&row.response).copied().collect();
            // A prompt has at least one token, and the first of them has no log-probability.
            let before = row.prompt.len().saturating_sub(1);
            async move {
                let found = self.client.ask(&tokens).await.map_err(|error| self.failed(error))?;
                Ok(found.iter().skip(before).map(|token| token.logprob as f32).collect())
            }
        };
        try_join_all(rows.iter().map(of_row)).await
    }

    fn failed(&self, error: ChatError) -> PipelineError {
        PipelineError::Stopped(format!("train.reference.chat: {error}"))
    }
}
