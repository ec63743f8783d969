//! What the loss of a token depends on beyond the token, from the whole mini-batch.

use super::Trainer;
use crate::batch::Sequence;
use crate::error::Result;
use crate::experience::Experience;
use crate::logprobs::token_values;
use crate::loss::{LearnedToken, LossConfig, OldLogProbs};
use gavel_data::seed::{Purpose, derive};
use gavel_policy::{Model, Phase};
use gavel_torch::head::Beside;

impl Trainer {
    /// For each response token of each row, the two numbers that its loss depends on beyond the token; nothing if the
    /// loss depends on the token alone. This takes a forward pass, for the log-probabilities under the current policy.
    pub(super) fn context(
        &self,
        model: &Model,
        mini_batch: &[Experience],
        config: &LossConfig,
        temperature: f64,
    ) -> Result<Option<Vec<Vec<[f64; 2]>>>> {
        if !config.policy.has_context() {
            return Ok(None);
        }
        let tokens = self.max_tokens;
        let now = token_values(model, mini_batch, temperature, tokens, Beside::Nothing, |of| Ok(of.logprobs))
            .map_err(|error| error.during(Phase::MicroBatch { tokens }));
        let sequences: Vec<Sequence<'_>> = mini_batch.iter().map(Experience::sequence).collect();
        let sequences = &sequences;
        let places = |row: usize| (0..mini_batch[row].response.len()).filter(move |&at| sequences[row].is_trained(at));
        let drawn = |now: &[Vec<f64>], row: usize| {
            let experience = &mini_batch[row];
            let hash = hash(experience);
            let token = |at: usize| LearnedToken {
                logprob: now[row][at],
                old: match config.old_logprobs() {
                    OldLogProbs::Rollout => f64::from(experience.logprobs[at]),
                    OldLogProbs::Proximal => f64::from(experience.proximal[at]),
                    OldLogProbs::Current => now[row][at],
                },
                advantage: f64::from(experience.advantages[at]),
                random: derive(hash, self.steps(), at as u64, Purpose::Update),
            };
            places(row).map(token).collect()
        };
        let rows = |now: &Vec<Vec<f64>>| (0..mini_batch.len()).map(|row| drawn(now.as_slice(), row)).collect();
        let of_all = |rows: &[Vec<LearnedToken>]| (config.policy.context(rows).unwrap_or_default(), ());
        let (_, found, ()) = self.over_all(now, rows, of_all)?;
        let spread = |(row, numbers): (usize, Vec<[f64; 2]>)| {
            let mut all = vec![[0.0; 2]; mini_batch[row].response.len()];
            places(row).zip(numbers).for_each(|(at, numbers)| all[at] = numbers);
            all
        };
        Ok(Some(found.into_iter().enumerate().map(spread).collect()))
    }
}

/// A hash of a row's tokens alone (FNV-1a), so that neither the order nor the number of rows matters.
fn hash(row: &Experience) -> u64 {
    let tokens = row.prompt.iter().chain(&row.response);
    tokens.fold(0xcbf2_9ce4_8422_2325, |hash, &token| (hash ^ u64::from(token)).wrapping_mul(0x0100_0000_01b3))
}
