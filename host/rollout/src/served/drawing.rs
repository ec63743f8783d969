//! How a response is drawn: at which server, and at which other one if that is lost.

use super::error::ServedError;
use super::failure::Failure;
use super::fleet::Fleet;
use super::masks::AskedMasks;
use super::messages::{body, response};
use super::pool::{GivenUp, Place, Placing};
use crate::error::RolloutError;
use crate::request::GenerateRequest;
use crate::stop_reader::StopReader;
use gavel_data::FinishReason;
use gavel_policy::Finished;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// How often a server that works may fail at a request.
const ATTEMPTS: u32 = 8;
/// The first pause after such a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

impl Fleet {
    /// Draws a response, at another server if the first one is lost.
    pub(super) async fn draw(self: &Arc<Self>, request: &GenerateRequest) -> Result<Finished, ServedError> {
        let (masked, has_masks) = (request.sampling.masked, self.config.mask_vocabulary.is_some());
        if request.sampling.constraint.is_some() || (masked && !has_masks) {
            return Err(ServedError::Unsupported);
        }
        let (mut failures, mut pause) = (0, PAUSES.0);
        loop {
            let mut place = self.place(request.conversation).await?;
            let server = &self.servers[place.server];
            let lost = || Err(Failure::Lost("it was lost".into()));
            let answer = tokio::select! {
                biased;
                // First: the answer may have been drawn after the server was lost, with weights under another name.
                () = place.lost() => lost(),
                answer = server.generate(body(request, server.kind, has_masks)) => answer,
            };
            // It may have been drawn with new weights that turn out to be wrong.
            let answer = if place.checked().await { answer } else { lost() };
            let number = place.server;
            drop(place);
            let masks = AskedMasks::of(&self.config, server.kind).filter(|_| masked);
            let refused = |what| ServedError::Refused { url: server.url.clone(), what };
            let (why, counts) = match answer.and_then(|answer| response(&answer, |name| self.run.version(name), masks))
            {
                Ok(finished) => return self.cut(request, finished).map_err(|error| refused(error.to_string())),
                Err(Failure::Refused(what)) => return Err(refused(what)),
                Err(Failure::Lost(why)) => {
                    self.look(number).await;
                    (why, self.pool.is_up(number))
                }
                Err(Failure::Foreign(why) | Failure::Taken(why)) => {
                    // What it says of its version is not what it draws with.
                    self.leave_out(number, &why, false);
                    (why, true)
                }
            };
            self.redrawn.fetch_add(1, Ordering::Relaxed);
            if !counts {
                continue;
            }
            failures += 1;
            if failures == ATTEMPTS {
                return Err(refused(why));
            }
            sleep(pause).await;
            pause = (2 * pause).min(PAUSES.1);
        }
    }

    /// Waits for a place at a server.
    async fn place(&self, conversation: Option<u64>) -> Result<Place<'_>, ServedError> {
        let mut down = None;
        loop {
            let mut changed = pin!(self.pool.changed());
            changed.as_mut().enable();
            let start = match self.pool.place(conversation) {
                Placing::Found(place) => return Ok(place),
                Placing::Full => {
                    down = None;
                    changed.await;
                    continue;
                }
                Placing::GivenUp(GivenUp { server, why }) => {
                    return Err(ServedError::Refused { url: self.servers[server].url.clone(), what: why });
                }
                Placing::Down => *down.get_or_insert_with(Instant::now),
            };
            match self.config.max_pause {
                None => changed.await,
                Some(most) => timeout(most.saturating_sub(start.elapsed()), changed).await.map_err(|_| {
                    ServedError::Down { seconds: start.elapsed().as_secs_f64(), last: self.pool.last_failure() }
                })?,
            }
        }
    }

    /// Ends a response where the engine of this process would: at a stop text, with the token that completes it.
    fn cut(&self, request: &GenerateRequest, mut finished: Finished) -> Result<Finished, RolloutError> {
        if request.stop.is_empty() {
            return Ok(finished);
        }
        let decoder = self.text.tokenizer.stream(true);
        let decoder = if request.continues_prompt { decoder.after(&request.prompt) } else { decoder };
        let mut reader = StopReader::new(decoder, request.stop.clone(), request.sampling.clone());
        for at in 0..finished.response.len() {
            if reader.push(finished.response[at])?.stopped {
                finished.response.truncate(at + 1);
                finished.logprobs.truncate(at + 1);
                finished.versions.truncate(at + 1);
                finished.masks.truncate(at + 1);
                finished.finish_reason = FinishReason::Stop;
                return Ok(finished);
            }
        }
        if reader.finish()?.stopped {
            finished.finish_reason = FinishReason::Stop;
        }
        Ok(finished)
    }
}
