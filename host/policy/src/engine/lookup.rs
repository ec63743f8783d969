//! Prompt look-up: what followed the last tokens of a sequence when they came before is proposed to follow them again
//! (Saxena, "Prompt Lookup Decoding", 2023).

use crate::error::{PolicyError, Result};

/// How tokens are proposed. The names are vLLM's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The most tokens that are proposed for a row and step.
    pub num_speculative_tokens: usize,
    /// The most last tokens that are looked up.
    pub prompt_lookup_max: usize,
    /// The fewest last tokens that are looked up.
    pub prompt_lookup_min: usize,
    /// Nothing is proposed while more rows than this are under way.
    pub disable_by_batch_size: usize,
}

impl Default for Lookup {
    fn default() -> Self {
        Self { num_speculative_tokens: 4, prompt_lookup_max: 4, prompt_lookup_min: 2, disable_by_batch_size: 16 }
    }
}

impl Lookup {
    pub(super) fn validate(&self) -> Result<()> {
        let wrong = |what: &str| Err(PolicyError::Input(what.into()));
        if self.num_speculative_tokens == 0 || self.prompt_lookup_min == 0 {
            return wrong("`num_speculative_tokens` and `prompt_lookup_min` must be at least 1");
        }
        if self.prompt_lookup_min > self.prompt_lookup_max {
            return wrong("`prompt_lookup_min` must be at most `prompt_lookup_max`");
        }
        Ok(())
    }

    /// Whether anything is proposed where so many rows are under way.
    pub(super) fn is_used_for(&self, rows: usize) -> bool {
        rows <= self.disable_by_batch_size
    }

    /// At most `most` tokens that followed the longest possible end of a sequence where it came before; of several such
    /// places, the latest. Empty if there is none.
    pub(super) fn propose(&self, prompt: &[u32], response: &[u32], most: usize) -> Vec<u32> {
        let all = [prompt, response].concat();
        let Some((last, before)) = all.split_last() else { return Vec::new() };
        let longest = self.prompt_lookup_max.min(before.len());
        let (mut best, mut next) = (self.prompt_lookup_min.saturating_sub(1), None);
        // Most places differ in the last token.
        for end in (1..all.len()).rev().filter(|end| all[end - 1] == *last) {
            let shared = all[..end].iter().rev().zip(all.iter().rev()).take(longest);
            let shared = shared.take_while(|(before, last)| before == last).count();
            if shared > best {
                (best, next) = (shared, Some(end));
                if shared == longest {
                    break;
                }
            }
        }
        let Some(next) = next else { return Vec::new() };
        // What is proposed may be repeated in turn.
        let period = all.len() - next;
        (0..most).map(|at| all[next + at % period]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(min: usize, max: usize) -> Lookup {
        Lookup { prompt_lookup_min: min, prompt_lookup_max: max, ..Lookup::default() }
    }

    #[test]
    fn what_followed_the_longest_and_latest_match_is_proposed() {
        let propose = |of: &Lookup, prompt: &[u32], response: &[u32]| of.propose(prompt, response, 3);
        let two_to_three = lookup(2, 3);
        assert_eq!(propose(&two_to_three, &[1, 2, 3, 4, 5, 6], &[2, 3]), [4, 5, 6]);
        // Three tokens match at the first place, two at the second.
        assert_eq!(propose(&two_to_three, &[1, 2, 3, 7, 7, 9, 2, 3, 8, 8], &[1, 2, 3]), [7, 7, 9]);
        assert_eq!(propose(&lookup(2, 2), &[1, 2, 3, 7, 7, 9, 2, 3, 8, 8], &[1, 2, 3]), [8, 8, 1]);
        assert!(propose(&two_to_three, &[1, 2, 3, 4], &[9, 3]).is_empty());
        assert_eq!(propose(&lookup(1, 3), &[1, 2, 3, 4], &[9, 3]), [4, 9, 3]);
        // Repetition goes on.
        assert_eq!(propose(&two_to_three, &[5, 5, 5], &[]), [5, 5, 5]);
        assert_eq!(propose(&two_to_three, &[8, 1, 2, 1], &[2]), [1, 2, 1]);
        assert!(propose(&two_to_three, &[5], &[]).is_empty());
    }
}
