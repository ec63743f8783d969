//! A reward model at servers: `/classify` of vLLM, `/predict` of text-embeddings-inference, `/v1/embeddings` of the
//! OpenAI API, or `/rerank`.

mod asker;
mod conversations;
mod rerank;
#[cfg(test)]
mod tests;

use super::wrong::Wrong;
use asker::{Asker, Failed};
use conversations::Conversations;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_config::{RewardEndpointConfig, RewardModelTable, RewardProtocol};
use gavel_data::{ConversationScore, Message, Role};
use gavel_plugin::{ChatError, RewardModel};
use rerank::Rerank;
use std::sync::Arc;
use std::time::Duration;

/// Servers with a classifier.
pub(super) struct RewardEndpoint {
    asker: Arc<Asker>,
    form: Form,
}

/// What a request has.
enum Form {
    /// One conversation.
    Conversations(Box<Conversations>),
    /// The responses to one prompt.
    Rerank(Arc<Rerank>),
}

impl RewardEndpoint {
    /// Reads the key and the template; nothing is sent yet. A run stops after a pause of `max_pause`.
    pub(super) fn new(
        config: RewardEndpointConfig,
        table: &RewardModelTable,
        max_pause: Option<Duration>,
    ) -> Result<Self, Wrong> {
        let form = match config.protocol {
            RewardProtocol::Rerank => Form::Rerank(Arc::new(Rerank::new(config.model.clone()))),
            _ => Form::Conversations(Box::new(Conversations::new(&config, table)?)),
        };
        Ok(Self { asker: Arc::new(Asker::new(config, max_pause)?), form })
    }

    /// Why a run must stop: no server has answered for too long.
    pub(super) fn must_stop(&self) -> Option<String> {
        self.asker.must_stop()
    }

    /// Asks each server for the score of a short conversation, so that a mistake is found before the run. A server that
    /// does not answer is left out as long as another one does.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let probe = [Message::new(Role::User, "a"), Message::new(Role::Assistant, "b")];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Wrong::new("url", error))?;
        let refused = |error: ChatError| Wrong::new("chat_template", error);
        // One attempt: a server that is still loading does not answer.
        let answers: Vec<Result<f64, Failed>> = match &self.form {
            Form::Conversations(form) => {
                let body = form.body(&probe).map_err(refused)?;
                runtime.block_on(self.asker.ask_all_once(&body, |answer| form.read(answer)))
            }
            Form::Rerank(form) => {
                let (query, response) = rerank::pair(&probe).map_err(refused)?;
                let body = form.body(&query, &[&response]).map_err(refused)?;
                runtime
                    .block_on(self.asker.ask_all_once(&body, |answer| rerank::read(answer, 1).map(|scores| scores[0])))
            }
        };
        let is_answered = answers.iter().any(Result::is_ok);
        for answer in answers {
            match answer {
                Ok(score) => self.form.check_score(score)?,
                Err(Failed { error, is_of_server: true, .. }) if is_answered => {
                    tracing::warn!("{error}; the other servers of the reward model are asked until it answers");
                }
                Err(failed) => return Err(Wrong::new("url", failed.error)),
            }
        }
        Ok(())
    }
}

impl Form {
    /// Refuses the first score of a server that scales vectors to the length 1, as embeddings often are: it would score
    /// every conversation 1 or -1.
    fn check_score(&self, score: f64) -> Result<(), Wrong> {
        match self {
            Self::Conversations(form) if form.is_vector() && score.abs() == 1.0 => Err(Wrong::new(
                "url",
                format!(
                    "its vector is [{score}], as if it were scaled to the length 1\nhint: serve the model as a classifier, or without normalization"
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl RewardModel for RewardEndpoint {
    fn score(self: Arc<Self>, conversation: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>> {
        async move {
            let score = match &self.form {
                Form::Conversations(form) => {
                    let body = form.body(&conversation)?;
                    let place = self.asker.place().await?;
                    self.asker.ask(place, &body, |answer| form.read(answer)).await
                }
                Form::Rerank(form) => form.score(&self.asker, &conversation).await,
            };
            score.map(ConversationScore::whole)
        }
        .boxed()
    }
}
