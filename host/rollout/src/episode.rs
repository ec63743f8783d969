//! One attempt at a task, from its prompt to a sample.

use crate::async_engine::AsyncEngine;
use crate::error::RolloutError;
use crate::request::{GenerateRequest, Response};
use gavel_data::{FinishReason, Message, Role, Sample, Task, Tokens, Trajectory};
use gavel_policy::{Finished, Sampling};
use gavel_text::{TextError, TextModel};
use std::sync::Arc;

/// An attempt that is to be made: one response to the task's prompt.
#[derive(Debug, Clone)]
pub struct Episode {
    /// What is attempted.
    pub task: Arc<Task>,
    /// The number of the sample in its group.
    pub index: u32,
    /// Token ids of the task's prompt.
    pub prompt: Vec<u32>,
    /// How the response is drawn.
    pub sampling: Sampling,
    /// Texts that end it and are part of it.
    pub stop: Vec<String>,
    /// The seed of what is drawn.
    pub seed: u64,
}

impl Episode {
    /// The request of its first turn, which is submitted together with those of the other episodes: the log-probs of a
    /// response depend, in their last bits, on what is decoded beside it.
    pub fn first_request(&self) -> GenerateRequest {
        GenerateRequest {
            prompt: self.prompt.clone(),
            continues_prompt: false,
            sampling: self.sampling.clone(),
            stop: self.stop.clone(),
            seed: self.seed,
            top_logprobs: 0,
        }
    }

    /// Plays it to its end, from the response to [`first_request`](Self::first_request).
    ///
    /// # Errors
    /// The model failed or was stopped, or the tokens of the response cannot be decoded.
    pub async fn play(self, engine: &AsyncEngine, response: Response) -> Result<Sample, RolloutError> {
        let mut conversation = Conversation::new(self.prompt);
        let finish_reason = conversation.append(response.await?, engine.text())?;
        let trajectory = conversation.end(finish_reason);
        Ok(Sample { task: self.task, index: self.index, trajectories: vec![trajectory] })
    }
}

/// A conversation under way: its messages, and the tokens that they are made of.
struct Conversation {
    messages: Vec<Message>,
    tokens: Tokens,
}

impl Conversation {
    fn new(prompt: Vec<u32>) -> Self {
        Self { messages: Vec::new(), tokens: Tokens { prompt, ..Tokens::default() } }
    }

    /// Appends a response of the policy as a message.
    fn append(&mut self, finished: Finished, text: &TextModel) -> Result<FinishReason, TextError> {
        let Finished { response, logprobs, versions, finish_reason, .. } = finished;
        self.messages.push(Message::new(Role::Assistant, text.tokenizer.decode(&response)?));
        let tokens = &mut self.tokens;
        tokens.loss_mask.extend(response.iter().map(|_| true));
        tokens.response.extend(response);
        tokens.logprobs.extend(logprobs);
        tokens.versions.extend(versions);
        Ok(finish_reason)
    }

    fn end(self, finish_reason: FinishReason) -> Trajectory {
        Trajectory { messages: self.messages, tokens: Some(self.tokens.into()), finish_reason }
    }
}
