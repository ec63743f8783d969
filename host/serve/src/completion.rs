//! A response as it comes.

use crate::error::ServeError;
use crate::generator::Event;
use gavel_data::FinishReason;
use gavel_policy::Drawn;
use gavel_text::{DecodeStream, StopTexts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::UnboundedReceiver;

/// A response under way. Dropping it takes the request back.
pub struct Completion {
    events: UnboundedReceiver<Event>,
    decoder: DecodeStream,
    stop_texts: StopTexts,
    stop_ids: Vec<u32>,
    /// Says that the end was found in the text.
    stopped: Arc<AtomicBool>,
    /// Tokens drawn so far.
    tokens: usize,
    ended: Option<FinishReason>,
}

/// What one token adds.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The text that is certain now; often that of the token, sometimes none.
    pub text: String,
    /// The token. Absent in a last piece that only gives what was held back,
    /// and for the token that ends a text.
    pub token: Option<Drawn>,
}

/// How a response came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// All of its text.
    pub text: String,
    /// Its tokens, without one that only ends the text.
    pub tokens: Vec<Drawn>,
    /// How many were drawn, that one included.
    pub count: usize,
    /// Why it ended: `Stop` or `Length`.
    pub finish_reason: FinishReason,
}

impl Completion {
    pub(crate) fn new(
        events: UnboundedReceiver<Event>,
        decoder: DecodeStream,
        stop_texts: Vec<String>,
        stop_ids: Vec<u32>,
        stopped: Arc<AtomicBool>,
    ) -> Self {
        let stop_texts = StopTexts::new(stop_texts);
        Self { events, decoder, stop_texts, stop_ids, stopped, tokens: 0, ended: None }
    }

    /// The next piece; nothing once the response has ended.
    ///
    /// # Errors
    /// The model failed, or was stopped.
    pub async fn next(&mut self) -> Result<Option<Piece>, ServeError> {
        if self.ended.is_some() {
            return Ok(None);
        }
        match self.events.recv().await {
            None => Err(ServeError::Stopped),
            Some(Event::Failed(what)) => Err(ServeError::Step(what)),
            Some(Event::Ended(reason)) => {
                self.ended = Some(reason);
                let rest = self.decoder.finish()?;
                let certain = self.stop_texts.push(&rest);
                if certain.stopped {
                    self.ended = Some(FinishReason::Stop);
                }
                Ok(Some(Piece { text: certain.text + &self.stop_texts.finish(), token: None }))
            }
            Some(Event::Drawn(drawn)) => {
                self.tokens += 1;
                if self.stop_ids.contains(&drawn.token) {
                    return Ok(Some(Piece { text: String::new(), token: None }));
                }
                let certain = self.stop_texts.push_token(&mut self.decoder, drawn.token)?;
                if certain.stopped {
                    self.ended = Some(FinishReason::Stop);
                    // Nobody needs the rest.
                    self.stopped.store(true, Ordering::Relaxed);
                    self.events.close();
                }
                Ok(Some(Piece { text: certain.text, token: Some(drawn) }))
            }
        }
    }

    /// Tokens drawn so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Why it ended, once it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.ended
    }

    /// Waits for the whole response.
    ///
    /// # Errors
    /// The model failed, or was stopped.
    pub async fn whole(mut self) -> Result<Ended, ServeError> {
        let (mut text, mut tokens) = (String::new(), Vec::new());
        while let Some(piece) = self.next().await? {
            text.push_str(&piece.text);
            tokens.extend(piece.token);
        }
        let finish_reason = self.ended.unwrap_or(FinishReason::Stop);
        Ok(Ended { text, tokens, count: self.tokens, finish_reason })
    }
}
