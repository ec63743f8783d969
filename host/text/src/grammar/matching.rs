//! Follows a response through a grammar.

use super::reason::reason;
use gavel_data::{Constraint, ConstraintState};
use llguidance::Matcher;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A grammar that binds responses, compiled for the vocabulary of a tokenizer. A response may end, with one of the
/// tokenizer's stop tokens, exactly where its text is one of the grammar's.
pub struct Grammar {
    /// Before the first token.
    start: Mutex<Matcher>,
    stop_ids: Arc<[u32]>,
}

impl Grammar {
    pub(super) fn new(start: Matcher, stop_ids: &[u32]) -> Self {
        Self { start: Mutex::new(start), stop_ids: stop_ids.into() }
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Grammar").finish_non_exhaustive()
    }
}

impl Constraint for Grammar {
    fn begin(&self) -> Box<dyn ConstraintState> {
        // Not a plain clone: those share a lexer, its lock and the states that the others have reached.
        let matcher = self.start.lock().unwrap_or_else(PoisonError::into_inner).deep_clone();
        Box::new(Matching { matcher, stop_ids: self.stop_ids.clone(), has_ended: false, failure: None })
    }
}

/// The state of a response.
struct Matching {
    matcher: Matcher,
    stop_ids: Arc<[u32]>,
    /// Whether a stop token was drawn.
    has_ended: bool,
    failure: Option<String>,
}

impl ConstraintState for Matching {
    fn allowed(&mut self) -> Result<Vec<u32>, String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.has_ended {
            return Ok(self.ends());
        }
        let found = self.matcher.compute_mask_or_eos();
        let mask = found.map_err(|error| self.failure.insert(reason(&error)).clone())?;
        let size = mask.len();
        let mut words: Vec<u32> = mask.into();
        // There is one more bit than there are tokens.
        words.truncate(size.div_ceil(32));
        if let Some(last) = words.last_mut().filter(|_| size % 32 != 0) {
            *last &= (1 << (size % 32)) - 1;
        }
        Ok(words)
    }

    fn advance(&mut self, token: u32) {
        if self.stop_ids.contains(&token) {
            self.has_ended = true;
        } else if self.failure.is_none()
            && let Err(error) = self.matcher.consume_token(token)
        {
            self.failure = Some(reason(&error));
        }
    }
}

impl Matching {
    /// The stop tokens.
    fn ends(&self) -> Vec<u32> {
        let last = self.stop_ids.iter().max().map_or(0, |last| *last as usize);
        let mut words = vec![0; last / 32 + 1];
        self.stop_ids.iter().for_each(|id| words[*id as usize / 32] |= 1 << (id % 32));
        words
    }
}
