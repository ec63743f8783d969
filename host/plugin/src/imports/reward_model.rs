//! The host's side of `reward-model`.

use crate::bindings::gavel::plugin::{chat, reward_model};
use crate::grant::ChatReply;
use crate::imports::state::State;
use crate::outside::ChatError;
use futures::future::try_join_all;
use gavel_data::{ConversationScore, StepValue};
use wasmtime::Result;

impl reward_model::Host for State {
    async fn score(&mut self, requests: Vec<reward_model::Request>) -> Result<Vec<Result<f64, reward_model::Error>>> {
        let scores = self.scores(requests).await?;
        Ok(scores.into_iter().map(|score| Ok(score?.score)).collect())
    }

    async fn score_steps(
        &mut self,
        requests: Vec<reward_model::Request>,
    ) -> Result<Vec<Result<reward_model::StepScores, reward_model::Error>>> {
        let scores = self.scores(requests).await?;
        Ok(scores.into_iter().map(|score| Ok(score?.into())).collect())
    }
}

impl State {
    /// Asks for all of them at once. The outer error ends the call.
    async fn scores(
        &mut self,
        requests: Vec<reward_model::Request>,
    ) -> Result<Vec<Result<ConversationScore, ChatError>>> {
        let meter = self.grants.reward_model.meter().clone();
        meter.request(requests.len())?;
        // Held until all are answered, as for `chat`.
        let mut held = meter.hold(0)?;
        let mut progress = meter.progress();
        let mut asked = Vec::with_capacity(requests.len());
        for reward_model::Request { model, messages } in requests {
            let request = chat::Request { endpoint: model, messages, options: String::new() };
            let ready = match self.lift_request(request, &mut held, &mut progress).await? {
                Ok(request) => self.grants.reward_model.prepare(request, &mut progress).await,
                Err(error) => Err(error),
            };
            asked.push(self.grants.reward_model.ask(ready));
        }
        let answers = try_join_all(asked).await?;
        let scores: Vec<_> = answers.into_iter().map(|answer| score(&answer?)).collect();
        scores.iter().for_each(|score| meter.note_answer(score));
        Ok(scores)
    }
}

/// The score that a reward model wrote.
fn score(reply: &ChatReply) -> Result<ConversationScore, ChatError> {
    let text = reply.text().unwrap_or_default();
    ConversationScore::parse(&text)
        .ok_or_else(|| ChatError::Unavailable(format!("the reward model's answer is not a number: {text:?}")))
}

impl From<ConversationScore> for reward_model::StepScores {
    fn from(ConversationScore { score, steps }: ConversationScore) -> Self {
        let step = |StepValue { start, end, value }| reward_model::Step { start, end, value };
        Self { score, steps: steps.into_iter().map(step).collect() }
    }
}

impl From<ChatError> for reward_model::Error {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::InvalidRequest(what) => Self::InvalidRequest(what),
            ChatError::Refused(what) => Self::Refused(what),
            ChatError::Unavailable(what) => Self::Unavailable(what),
            // Not reached: the call has ended before.
            ChatError::NoMemory => Self::Unavailable(error.to_string()),
        }
    }
}
