//! A prompt whose next token every server must draw from the policy's own distribution.
//!
//! A server can answer from other weights without an error: it may not have loaded them, or have kept keys and values of
//! a prompt, or report log-probabilities of another distribution. So the probe has a prompt that is long enough to be
//! found in a prefix cache, and a temperature other than 1.

use gavel_data::seed::{Purpose, derive};
use gavel_data::{SamplingMask, SamplingMasks};
use std::sync::Arc;

/// The temperature of the probe.
pub(super) const TEMPERATURE: f64 = 0.7;
/// From how many tokens they are drawn, where servers report which could be.
pub(super) const TOP_K: usize = 64;
/// How many tokens are drawn.
pub(super) const DRAWS: usize = 8;
/// The most tokens of the prompt: eight blocks of vLLM's prefix cache.
const MOST_TOKENS: usize = 128;
/// Log-probabilities are those of the version before if they are nearer to it than to the newest by this factor.
const NEARER: f64 = 10.0;
/// As a share of the tolerance: nearer differences from the newest are rounding, which says nothing of the version before.
const ROUNDING: f64 = 0.1;

/// A prompt, and the log-probability of each token of the vocabulary after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Token ids.
    pub prompt: Arc<[u32]>,
    /// At temperature 1, under the policy that servers must have.
    pub logprobs: Arc<[f32]>,
}

/// The prompt of probes for a model with this vocabulary and so many positions.
pub fn probe_prompt(vocabulary: usize, positions: usize) -> Arc<[u32]> {
    let tokens = MOST_TOKENS.min(positions.saturating_sub(1)).max(1);
    let token = |at| (derive(0, 0, at, Purpose::Rollout) % vocabulary.max(1) as u64) as u32;
    (0..tokens as u64).map(token).collect()
}

/// Log-probabilities that are not the policy's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mismatch {
    /// The mean difference.
    pub(super) mean: f64,
    pub(super) found: Found,
}

/// What was drawn for a probe.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    /// The tokens, with their log-probabilities.
    pub(super) tokens: Vec<(u32, f32)>,
    /// Among which tokens each of them was drawn.
    pub(super) masks: SamplingMasks,
}

/// What they are instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Those of the version before.
    VersionBefore,
    /// Those at temperature 1.
    OtherTemperature,
    /// Others.
    Other,
}

impl Probe {
    /// The mean difference of these log-probabilities from the probe's at a temperature. Infinite where a token is not in
    /// the vocabulary, or has no number. In 16 bits, single tokens differ by several times as much by rounding.
    fn distance(&self, drawn: &Drawn, temperature: f64) -> f64 {
        let scaled = |logprob: f32| f64::from(logprob) / temperature;
        let among_all = normaliser(self.logprobs.iter().copied().map(scaled));
        let normaliser = |position| match drawn.masks.get(position) {
            SamplingMask::All => among_all,
            SamplingMask::Only(ids) => {
                normaliser(ids.iter().filter_map(|id| self.logprobs.get(*id as usize)).copied().map(scaled))
            }
            mask @ SamplingMask::Except(_) => {
                let drawable = (0..).zip(&*self.logprobs).filter(|(token, _)| mask.contains(*token));
                normaliser(drawable.map(|(_, logprob)| scaled(*logprob)))
            }
        };
        let distance = |(position, (token, found)): (usize, &(u32, f32))| {
            let own = self.logprobs.get(*token as usize).map(|own| scaled(*own) - normaliser(position));
            own.map(|own| (own - f64::from(*found)).abs())
                .filter(|distance| !distance.is_nan())
                .unwrap_or(f64::INFINITY)
        };
        drawn.tokens.iter().enumerate().map(distance).sum::<f64>() / drawn.tokens.len().max(1) as f64
    }

    /// Checks tokens that a server has drawn, with their log-probabilities. `before` is the probe of the version before.
    /// Returns the mean difference from the policy's own.
    ///
    /// # Errors
    /// They are not from the policy's distribution.
    pub(super) fn check(&self, drawn: &Drawn, before: Option<&Self>, tolerance: f64) -> Result<f64, Mismatch> {
        let mean = self.distance(drawn, TEMPERATURE);
        let stale = before.map(|before| before.distance(drawn, TEMPERATURE));
        // One token alone can be as near to the version before by chance.
        let tokens = &drawn.tokens;
        let are_several = tokens.iter().any(|(token, _)| tokens.first().is_some_and(|(first, _)| token != first));
        let is_stale = stale.is_some_and(|stale| stale * NEARER < mean) && mean > tolerance * ROUNDING && are_several;
        tracing::debug!("a probe: log-probabilities differ by {mean:.2e} on average");
        if mean <= tolerance && !is_stale {
            return Ok(mean);
        }
        let found = if is_stale {
            Found::VersionBefore
        } else if self.distance(drawn, 1.0) <= tolerance {
            Found::OtherTemperature
        } else {
            Found::Other
        };
        Err(Mismatch { mean, found })
    }
}

/// The logarithm of the sum of the exponentials.
fn normaliser(scaled: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = scaled.clone().fold(f64::NEG_INFINITY, f64::max);
    most + scaled.map(|logit| (logit - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe of a vocabulary of four tokens.
    fn probe(logits: [f32; 4]) -> Probe {
        let sum: f32 = logits.iter().map(|logit| logit.exp()).sum();
        Probe { prompt: [1].into(), logprobs: logits.iter().map(|logit| logit - sum.ln()).collect() }
    }

    /// Tokens that could be drawn among all.
    fn among_all(tokens: &[(u32, f32)]) -> Drawn {
        Drawn { tokens: tokens.to_vec(), masks: SamplingMasks::new() }
    }

    /// The log-probabilities of all tokens at a temperature.
    fn drawn(logits: [f32; 4], temperature: f32) -> Drawn {
        let scaled = logits.map(|logit| logit / temperature);
        let tokens: Vec<_> = (0..).zip(&*probe(scaled).logprobs).map(|(token, logprob)| (token, *logprob)).collect();
        among_all(&tokens)
    }

    #[test]
    fn what_differs_is_found() {
        let (before, now) = ([0.0, 1.0, 2.0, 3.0], [0.01, 1.0, 2.0, 3.0]);
        let (old, probe) = (probe(before), probe(now));
        assert!(probe.check(&drawn(now, 0.7), Some(&old), 1e-4).unwrap() < 1e-6);
        let found = |drawn: &Drawn, tolerance| probe.check(drawn, Some(&old), tolerance).unwrap_err().found;
        assert_eq!(found(&drawn(now, 1.0), 1e-4), Found::OtherTemperature);
        // The step was so small that the difference is within the tolerance.
        assert_eq!(found(&drawn(before, 0.7), 0.01), Found::VersionBefore);
        assert_eq!(found(&drawn([3.0, 2.0, 1.0, 0.0], 0.7), 1e-4), Found::Other);
        for none in [(9, -1.0), (1, f32::NAN)] {
            assert_eq!(probe.check(&among_all(&[none]), Some(&old), 1e-4).unwrap_err().mean, f64::INFINITY);
        }
        // The version before is nearer, by rounding alone, or at one token alone.
        assert!(probe.check(&drawn(before, 0.7), Some(&old), 10.0).is_ok());
        assert!(probe.check(&among_all(&drawn(before, 0.7).tokens[..1]), Some(&old), 0.1).is_ok());
        // A step that changes nothing is not stale.
        assert!(probe.check(&drawn(now, 0.7), Some(&probe), 1e-4).is_ok());
    }

    #[test]
    fn tokens_are_compared_among_those_that_could_be_drawn() {
        let logits = [0.5, 1.0, 2.0, 3.0];
        let probe = probe(logits);
        // Of tokens 2 and 3 at the temperature 0.7, each with the other, and without token 0.
        let among = |kept: &[u32]| {
            let sum: f32 = kept.iter().map(|token| (logits[*token as usize] / 0.7).exp()).sum();
            [2, 3].map(|token: u32| (token, logits[token as usize] / 0.7 - sum.ln()))
        };
        for (kept, mask) in [(&[2, 3][..], SamplingMask::Only(vec![2, 3])), (&[1, 2, 3], SamplingMask::Except(vec![0]))]
        {
            let mut masks = SamplingMasks::new();
            [&mask, &mask].into_iter().for_each(|mask| masks.push(mask));
            let right = Drawn { tokens: among(kept).to_vec(), masks: masks.clone() };
            assert!(probe.check(&right, None, 1e-4).unwrap() < 1e-6, "{mask:?}");
            // Log-probabilities among all tokens are another distribution's.
            let wrong = Drawn { tokens: among(&[0, 1, 2, 3]).to_vec(), masks };
            assert_eq!(probe.check(&wrong, None, 1e-4).unwrap_err().found, Found::Other, "{mask:?}");
        }
    }

    #[test]
    fn a_prompt_fits_the_model() {
        assert_eq!((probe_prompt(259, 64).len(), probe_prompt(259, 4096).len()), (63, 128));
        assert!(probe_prompt(7, 40).iter().all(|token| *token < 7));
    }
}
