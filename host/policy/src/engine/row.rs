//! A response under way.

use super::drawn::Pick;
use super::request::{Finished, Request};
use gavel_data::{ConstraintState, FinishReason, SamplingMasks, seed};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A response under way, or a request that waits, maybe again after it was put
/// back.
pub(super) struct Row {
    pub(super) request: Request,
    /// Its slot in the cache. It gets one when it is under way.
    pub(super) slot: Option<usize>,
    /// The order in which requests came.
    pub(super) arrival: u64,
    /// Equal for rows with the same prompt, and hardly ever for others.
    prompt_hash: u64,
    /// How often the weights had changed when the keys and values of its prompt were computed.
    pub(super) changes_before: u64,
    pub(super) response: Vec<u32>,
    pub(super) logprobs: Vec<f32>,
    pub(super) versions: Vec<u64>,
    /// As in [`Finished::masks`].
    pub(super) masks: SamplingMasks,
    /// The state of its constraint, once a token was drawn.
    pub(super) constraint: Option<Box<dyn ConstraintState>>,
}

impl Row {
    pub(super) fn new(request: Request, arrival: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        request.prompt.hash(&mut hasher);
        Self {
            request,
            slot: None,
            arrival,
            prompt_hash: hasher.finish(),
            changes_before: 0,
            response: Vec::new(),
            logprobs: Vec::new(),
            versions: Vec::new(),
            masks: SamplingMasks::new(),
            constraint: None,
        }
    }

    /// All tokens but the last, which is the next input. They must be in the
    /// cache before the row can continue.
    pub(super) fn prefix(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.request.prompt.iter().chain(&self.response).copied().take(self.tokens() - 1)
    }

    /// With how many tokens, all but the last of each, this row and another begin alike.
    pub(super) fn shares_with(&self, other: &Row) -> usize {
        let mut shared = 0;
        loop {
            let (own, others) = (self.prefix_from(shared), other.prefix_from(shared));
            let both = own.len().min(others.len());
            let (own, others) = (&own[..both], &others[..both]);
            if own != others {
                return shared + own.iter().zip(others).take_while(|(one, other)| one == other).count();
            }
            if both == 0 {
                return shared;
            }
            shared += both;
        }
    }

    /// Its tokens but the last from `start` on, as far as they are neighbours. There must be as many before.
    fn prefix_from(&self, start: usize) -> &[u32] {
        let (prompt, end) = (&self.request.prompt, self.tokens() - 1);
        match start.checked_sub(prompt.len()) {
            Some(start) => &self.response[start..end - prompt.len()],
            None => &prompt[start..end.min(prompt.len())],
        }
    }

    /// The tokens that its constraint allows next, as [`ConstraintState::allowed`] gives them; `None` without one.
    pub(super) fn allowed(&mut self) -> Option<std::result::Result<Vec<u32>, String>> {
        let constraint = self.request.sampling.constraint.as_ref()?;
        Some(self.constraint.get_or_insert_with(|| constraint.begin()).allowed())
    }

    /// Whether the prompts are the same.
    pub(super) fn has_prompt_of(&self, other: &Row) -> bool {
        let (own, others) = (&self.request.prompt, &other.request.prompt);
        Arc::ptr_eq(own, others) || self.prompt_hash == other.prompt_hash && own == others
    }

    /// Length of prompt and response so far.
    pub(super) fn tokens(&self) -> usize {
        self.request.prompt.len() + self.response.len()
    }

    pub(super) fn last_token(&self) -> i64 {
        let last = self.response.last().or(self.request.prompt.last());
        // `submit` refuses an empty prompt.
        i64::from(last.copied().unwrap_or_default())
    }

    /// The number at which a token is drawn: the next after `more` tokens.
    pub(super) fn uniform(&self, more: usize) -> f64 {
        seed::uniform(self.request.seed, (self.response.len() + more) as u64)
    }

    pub(super) fn finish_reason(&self) -> Option<FinishReason> {
        let last = self.response.last()?;
        if self.request.sampling.stop_ids.contains(last) {
            Some(FinishReason::Stop)
        } else if self.response.len() >= self.request.sampling.max_tokens {
            Some(FinishReason::Length)
        } else {
            None
        }
    }

    /// Adds a token that weights of this version drew.
    pub(super) fn push(&mut self, pick: &Pick, version: u64) {
        self.response.push(pick.token);
        self.logprobs.push(pick.logprob);
        self.versions.push(version);
        if self.request.sampling.masked {
            self.masks.push(&pick.mask);
        }
        if let Some(constraint) = &mut self.constraint {
            constraint.advance(pick.token);
        }
    }

    /// Forgets the tokens after the first `tokens` of the response.
    pub(super) fn truncate(&mut self, tokens: usize) {
        if tokens < self.response.len() {
            self.response.truncate(tokens);
            self.logprobs.truncate(tokens);
            self.versions.truncate(tokens);
            self.masks.truncate(tokens);
        }
    }

    pub(super) fn finish(self, finish_reason: FinishReason) -> Finished {
        Finished {
            id: self.request.id,
            response: self.response,
            logprobs: self.logprobs,
            versions: self.versions,
            masks: self.masks,
            finish_reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Sampling;

    #[test]
    fn rows_share_tokens_across_prompts_and_responses() {
        let row = |prompt: &[u32], response: &[u32]| {
            let request = Request::new(0, prompt.to_vec(), Sampling::new(9, vec![]), 0);
            Row { response: response.to_vec(), ..Row::new(request, 0) }
        };
        // All sequences of at most five tokens of two kinds, at each border of prompt and response.
        let sequences = (1..6).flat_map(|length| (0..1u32 << length).map(move |bits| (length, bits)));
        let ids = |(length, bits): (u32, u32)| (0..length).map(|at| bits >> at & 1).collect::<Vec<_>>();
        let rows: Vec<Row> = sequences
            .map(ids)
            .flat_map(|ids| (1..=ids.len()).map(move |border| row(&ids[..border], &ids[border..])))
            .collect();
        for own in &rows {
            for other in &rows {
                let shared = own.prefix().zip(other.prefix()).take_while(|(one, other)| one == other).count();
                assert_eq!(own.shares_with(other), shared);
            }
        }
    }
}
