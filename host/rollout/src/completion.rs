//! A response as it comes.

use crate::error::RolloutError;
use gavel_data::FinishReason;
use gavel_policy::DrawnToken;
use tokio::sync::mpsc::{self, UnboundedReceiver};

/// A response under way, piece by piece. A stop text is not part of it. Dropping it cancels the request.
pub struct Completion {
    events: UnboundedReceiver<Event>,
    /// Tokens drawn so far.
    tokens: usize,
    finish_reason: Option<FinishReason>,
}

/// What the device's thread reports of a response.
pub(crate) enum Event {
    Piece(Piece),
    /// The end, with the text that was held back until it.
    End {
        rest: String,
        finish_reason: FinishReason,
    },
    Failed(RolloutError),
}

/// What one token adds.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The text that is certain now: often the text of the token, sometimes none.
    pub text: String,
    /// The token. Absent for the token that ends a text, and in a last piece that only has text that was held back.
    pub token: Option<DrawnToken>,
}

/// A whole response.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeCompletion {
    /// All of its text.
    pub text: String,
    /// Its tokens, without a token that only ends the text.
    pub tokens: Vec<DrawnToken>,
    /// How many tokens were drawn, including such a token.
    pub count: usize,
    /// Why it ended: `Stop` or `Length`.
    pub finish_reason: FinishReason,
}

impl Completion {
    pub(crate) fn new(events: UnboundedReceiver<Event>) -> Self {
        Self { events, tokens: 0, finish_reason: None }
    }

    /// A response without tokens, for a request that draws none.
    pub fn empty() -> Self {
        let (_, events) = mpsc::unbounded_channel();
        Self { events, tokens: 0, finish_reason: Some(FinishReason::Length) }
    }

    /// The next piece; `None` once the response has ended.
    ///
    /// # Errors
    /// The model failed, or was stopped.
    pub async fn next(&mut self) -> Result<Option<Piece>, RolloutError> {
        if self.finish_reason.is_some() {
            return Ok(None);
        }
        match self.events.recv().await {
            None => Err(RolloutError::Stopped),
            Some(Event::Failed(error)) => Err(error),
            Some(Event::Piece(piece)) => {
                self.tokens += 1;
                Ok(Some(piece))
            }
            Some(Event::End { rest, finish_reason }) => {
                self.finish_reason = Some(finish_reason);
                Ok((!rest.is_empty()).then_some(Piece { text: rest, token: None }))
            }
        }
    }

    /// Tokens drawn so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Why it ended, once it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason
    }

    /// Waits for the whole response.
    ///
    /// # Errors
    /// The model failed, or was stopped.
    pub async fn whole(mut self) -> Result<WholeCompletion, RolloutError> {
        let (mut text, mut tokens) = (String::new(), Vec::new());
        while let Some(piece) = self.next().await? {
            text.push_str(&piece.text);
            tokens.extend(piece.token);
        }
        let finish_reason = self.finish_reason.unwrap_or(FinishReason::Stop);
        Ok(WholeCompletion { text, tokens, count: self.tokens, finish_reason })
    }
}
